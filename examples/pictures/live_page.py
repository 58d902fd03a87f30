"""Record the live page of the FastAPI example as the animated picture of the README.

``python -m examples.pictures.live_page`` starts the service with its embedded API server, opens the
page in a headless Chromium, and writes ``live_page.gif`` beside this file. The picture shows pods
that change, a search, and an outage of the API server with the recovery. The browser must be
installed; ``AIOINFORMER_CHROMIUM`` can name its path.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import uvicorn
from PIL import Image
from playwright.async_api import Page, async_playwright

from examples.fastapi_app.app import create_app
from examples.fastapi_app.settings import Settings

__all__ = ["PICTURE", "Frame", "encode_gif", "fit_gif", "read_colours", "record", "serving"]

PICTURE = Path(__file__).with_suffix(".gif")

WIDTH, HEIGHT = 1200, 640
INTERVAL = 0.25
"""Seconds between two frames."""
COLOURS = 64
"""Colours beside those of the style sheet. More of them enlarge the file and change little."""
MAX_BYTES = 950_000
"""The largest picture. Readers of the README load it before they know what it shows."""
STYLE = Path(__file__).parents[1] / "fastapi_app" / "static" / "page.css"

Colour: TypeAlias = tuple[int, int, int]

SETTINGS = Settings(objects=250, rate=6)
CHART_SECONDS = 20
"""Seconds before the first frame, in which the charts get data."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True, slots=True)
class Frame:
    """One screenshot, with the time at which it was taken."""

    image: Image.Image
    at: float


def encode_gif(frames: Sequence[Frame], own: Sequence[Colour] = (), *, last: float = 1.0) -> bytes:
    """Return the frames as an animated GIF that repeats.

    All frames share one palette, so that a pixel that didn't change has the same value in both
    frames and costs nothing.

    Args:
        frames: the frames in order, at least one.
        own: colours that the palette has in any case. Small areas in rare colours, such as the dot
            of a state, would have the colour of larger areas otherwise.
        last: seconds for which the last frame is shown.
    """
    palette = _make_palette([frame.image for frame in frames], own)
    images = [frame.image.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    times = [frame.at for frame in frames] + [frames[-1].at + last]
    durations = [round((end - start) * 100) * 10 for start, end in pairwise(times)]
    file = BytesIO()
    images[0].save(
        file,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=durations,
        loop=0,
        optimize=True,
    )
    return file.getvalue()


def fit_gif(frames: Sequence[Frame], own: Sequence[Colour], max_bytes: int = MAX_BYTES) -> bytes:
    """Return the GIF, with every fourth frame left out until the file has at most ``max_bytes``."""
    gif = encode_gif(frames, own)
    if len(gif) <= max_bytes or len(frames) == 1:
        return gif
    kept = [frame for place, frame in enumerate(frames) if place % 4 != 1]
    return fit_gif(kept, own, max_bytes)


def _make_palette(images: Sequence[Image.Image], own: Sequence[Colour]) -> Image.Image:
    """Return a palette of ``own`` colours and of the most important ones of the images."""
    some = images[:: max(1, len(images) // 8)]
    width, height = some[0].size
    sheet = Image.new("RGB", (width, height * len(some)))
    for place, image in enumerate(some):
        sheet.paste(image, (0, height * place))
    found = sheet.quantize(colors=COLOURS, method=Image.Quantize.MEDIANCUT).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in own for part in colour] + found)
    return palette


def read_colours(style: str) -> list[Colour]:
    """Return the colours of the light scheme, which are those before the first ``@media``."""
    found = re.findall(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2});", style.split("@media")[0])
    return sorted({(int(red, 16), int(green, 16), int(blue, 16)) for red, green, blue in found})


# -- recording -----------------------------------------------------------------------------------

Scene: TypeAlias = tuple[float, Callable[[Page], Awaitable[None]]]
"""An action on the page, and the seconds to record after it."""


async def record(page: Page, scenes: Sequence[Scene]) -> list[Frame]:
    """Run the scenes one after the other; return their frames."""
    clock = asyncio.get_running_loop().time
    frames: list[Frame] = []
    for seconds, act in scenes:
        await act(page)
        end = clock() + seconds
        while clock() < end:
            at = clock()
            frames.append(Frame(_read_image(await page.screenshot()), at))
            await asyncio.sleep(max(0.0, at + INTERVAL - clock()))
    return frames


def _read_image(png: bytes) -> Image.Image:
    return Image.open(BytesIO(png)).convert("RGB")


async def _look(page: Page) -> None:
    """Show the page as it is."""
    await page.mouse.move(0, 0)


async def _search(page: Page) -> None:
    await page.locator("#search").fill("payments")


async def _clear(page: Page) -> None:
    await page.locator("#clear").click()
    await page.locator("#search").blur()


async def _stop_server(page: Page) -> None:
    await page.locator("#outage").click()


SCENES = ((4.0, _look), (2.4, _search), (1.6, _clear), (9.0, _stop_server))


@asynccontextmanager
async def serving(settings: Settings) -> AsyncGenerator[str]:
    """Serve the application on a free port until the block ends; return its URL."""
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    with socket.create_server(("127.0.0.1", 0)) as port:
        running = asyncio.create_task(server.serve([port]), name="uvicorn")
        try:
            yield f"http://127.0.0.1:{port.getsockname()[1]}"
        finally:
            app.state.feed.close()
            server.should_exit = True
            await running


async def main() -> None:
    """Record the page and write the picture."""
    browser_path = os.environ.get("AIOINFORMER_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    async with serving(SETTINGS) as url, async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        page = await browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        await page.goto(url)
        await asyncio.sleep(CHART_SECONDS)
        frames = await record(page, SCENES)
        await browser.close()
    PICTURE.write_bytes(fit_gif(frames, read_colours(STYLE.read_text())))


if __name__ == "__main__":
    asyncio.run(main())

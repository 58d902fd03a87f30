"""Chromium without a window, and pages in it that may not complain nor ask another host.

The browser is the machine's own, Debian's ``chromium`` for example; nothing is downloaded. Where
there is none, the tests are skipped and say so; ``.ci/run`` installs it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.examples.fastapi_service import Service

NAMES = ("chromium", "chromium-browser", "google-chrome")

CHROMIUM_FLAGS = (
    "--no-sandbox",  # tests may run as root, where Chromium's sandbox doesn't work
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

Open: TypeAlias = Callable[..., AbstractAsyncContextManager[Page]]
"""Opens the page of a service: ``async with open_page(service, color_scheme="dark") as page``."""


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser."""
    found = os.environ.get("AIOINFORMER_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), ""
    )
    if not found:
        pytest.skip("there is no Chromium (Debian: apt-get install chromium)")
    return found


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Where screenshots go: ``$AIOINFORMER_ARTIFACTS``, else a folder that git ignores."""
    folder = Path(os.environ.get("AIOINFORMER_ARTIFACTS") or "artifacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield browser
        await browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Open:
    @asynccontextmanager
    async def opened(
        service: Service, *, complaints: bool = False, **context: Any
    ) -> AsyncGenerator[Page]:
        """A page of a service that was told everything. What it complains about, or asks of
        another host, fails the test; the former not with ``complaints``, where it must.
        """
        wrong: list[str] = []
        own = service.url
        options: dict[str, Any] = {"viewport": {"width": 1360, "height": 860}} | context
        async with await browser.new_context(**options) as tab:
            page = await tab.new_page()
            page.on("pageerror", lambda error: wrong.append(f"page error: {error}"))
            page.on("request", lambda asked: wrong.extend(_foreign_request_errors(asked.url, own)))
            if not complaints:
                page.on("console", lambda said: wrong.append(f"console {said.type}: {said.text}"))
            await page.goto(own)
            await expect(page.locator("#state")).not_to_have_text("Connecting")
            yield page
        assert wrong == []

    return opened


def _foreign_request_errors(url: str, own: str) -> list[str]:
    return [] if url.startswith((own, "about:")) else [f"request to another host: {url}"]

"""Fixtures for headless Chromium, and pages that must not log errors or contact other hosts.

The browser is installed on the machine, for example from Debian's package ``chromium``; nothing is
downloaded here. Without a browser the tests are skipped with that reason; ``.ci/run`` installs it.
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

from aioinformer.testing import ApiServer
from tests.examples.fastapi_service import Service, make_settings, running_service

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

expect.set_options(timeout=20_000)  # milliseconds; a loaded machine needs more than the default 5 s

Open: TypeAlias = Callable[..., AbstractAsyncContextManager[Page]]
"""Opens the page of a service: ``async with open_page(service, color_scheme="dark") as page``."""


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of the browser."""
    path = os.environ.get("AIOINFORMER_CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), ""
    )
    if not path:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    return path


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Create the folder for screenshots: ``$AIOINFORMER_ARTIFACTS``, or one that git ignores."""
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
        service: Service, *, console_errors: bool = False, script: str = "", **context: Any
    ) -> AsyncGenerator[Page]:
        """Open the page of a service, and wait until the page is connected.

        Script errors, messages on the console and requests to other hosts fail the test.

        Args:
            service: the service.
            console_errors: True to ignore messages on the console, which some tests cause.
            script: JavaScript that runs before the scripts of the page.
            context: options of the browser context.
        """
        errors: list[str] = []
        own = service.url
        options: dict[str, Any] = {"viewport": {"width": 1360, "height": 860}} | context
        async with await browser.new_context(**options) as tab:
            if script:
                await tab.add_init_script(script)
            page = await tab.new_page()
            page.on("pageerror", lambda error: errors.append(f"page error: {error}"))
            page.on("request", lambda sent: errors.extend(_foreign_request_errors(sent.url, own)))
            if not console_errors:
                page.on("console", lambda line: errors.append(f"console {line.type}: {line.text}"))
            await page.goto(own)
            await expect(page.locator("#state")).not_to_have_text("Connecting")
            yield page
        assert errors == []

    return opened


def _foreign_request_errors(url: str, own: str) -> list[str]:
    return [] if url.startswith((own, "about:")) else [f"request to another host: {url}"]


@pytest.fixture
async def service(server: ApiServer, tmp_path: Path) -> AsyncIterator[Service]:
    """Serve the page of the test's own server."""
    async with running_service(make_settings(server, tmp_path)) as service:
        await service.wait_synced()
        yield service

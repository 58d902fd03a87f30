"""Screenshots of the page for review: laptop and phone, light and dark, live and in an outage."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from examples.fastapi_app.settings import Settings
from tests.browser.conftest import Open
from tests.examples.fastapi_service import Service, running_service

pytestmark = pytest.mark.browser

LAPTOP = {"viewport": {"width": 1360, "height": 860}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
CHART_DELAY = 6000
"""Milliseconds until the charts contain data."""


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with running_service(Settings(rate=40)) as service:
        await service.wait_synced()
        yield service


async def open_object(page: Page) -> None:
    """Open the object that changed last, or another one if it was deleted meanwhile."""
    for _ in range(5):
        await page.locator(".row:not([data-gone]) .name button").first.click()
        await expect(page.locator("#dialog-body")).to_contain_text(re.compile("kind|no object"))
        if "kind" in (await page.locator("#dialog-body").inner_text()):
            return
        await page.keyboard.press("Escape")
    raise AssertionError("each object that was opened had been deleted")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "device"), [("laptop", LAPTOP), ("phone", PHONE)])
async def test_screenshots_are_saved(
    service: Service,
    open_page: Open,
    artifacts: Path,
    name: str,
    device: dict[str, Any],
    scheme: str,
) -> None:
    # Chromium logs the 404 of an object that the workload deleted just before the click.
    async with open_page(service, console_errors=True, color_scheme=scheme, **device) as page:
        await expect(page.locator("#state")).to_have_text("Live")
        await page.wait_for_timeout(CHART_DELAY)
        await page.screenshot(path=artifacts / f"{name}-{scheme}.png")
        await page.locator("#outage").click()
        await expect(page.locator("#state")).to_have_text("API server away")
        await page.screenshot(path=artifacts / f"{name}-{scheme}-outage.png")
        await expect(page.locator("#state")).to_have_text("Live", timeout=45_000)
        await open_object(page)
        await page.screenshot(path=artifacts / f"{name}-{scheme}-object.png")

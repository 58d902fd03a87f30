"""The keyboard and screen readers on the live page of the FastAPI example.

``axe-core`` checks the rules of WCAG 2.2 (A and AA). The accessibility tree of Chromium is what a
screen reader gets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import resources
from typing import Any

import pytest
from playwright.async_api import Page, expect

from aioinformer.testing import ApiServer
from tests.browser.conftest import Open
from tests.browser.test_page import SOON, pod, restart, row
from tests.examples.fastapi_service import Service
from tests.promises.conftest import wait_until

pytestmark = pytest.mark.browser

PODS = 300
MORE_PODS = 3000
"""Pods that a new page receives in several portions."""

AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = """async (rules) => {
    const found = await axe.run({ runOnly: rules });
    return found.violations.map((each) => [each.id, each.nodes.map((node) => node.html)]);
}"""

FOCUSED = "document.activeElement.closest('.row')?.querySelector('.name').textContent"


async def expect_focus(page: Page, name: str) -> None:
    """Wait until a cell in the row of ``name`` has the focus, which some keys move later."""
    # Not ``wait_for_function``: its later looks evaluate a string, which the page's policy forbids.
    await expect(page.locator(".row:focus-within .name")).to_have_text(name)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        for number in range(PODS):
            pod(server, f"web-{number:03}")
        server.cluster.create("nodes", {"metadata": {"name": "node-1"}})
        yield server


async def enter_table(page: Page) -> None:
    """Sort by name and press Tab until the focus is in the table."""
    await page.get_by_role("button", name="Name", exact=True).click()
    await expect(page.locator(".row .name").first).to_have_text("web-000")
    await page.get_by_role("columnheader", name="Changed").get_by_role("button").focus()
    await page.keyboard.press("Tab")


async def find_violations(page: Page) -> list[Any]:
    await page.evaluate(AXE)
    violations: list[Any] = await page.evaluate(RUN_AXE, RULES)
    return violations


async def test_the_arrow_keys_move_through_all_rows(service: Service, open_page: Open) -> None:
    async with open_page(service) as page:
        await enter_table(page)
        await expect_focus(page, "web-000")
        for _ in range(60):
            await page.keyboard.press("ArrowDown")
        await expect_focus(page, "web-060")
        box = await page.locator(":focus").bounding_box()
        assert box is not None
        assert 36 <= box["y"] <= 860 - box["height"], "the focus is visible"
        await page.keyboard.press("Control+End")
        await expect_focus(page, f"web-{PODS - 1}")
        await page.keyboard.press("PageUp")
        assert await page.evaluate(FOCUSED) < f"web-{PODS - 10}"
        await page.keyboard.press("Control+Home")
        await page.keyboard.press("ArrowUp")
        await expect_focus(page, "web-000")
        assert await page.locator(".row").count() < 60


async def test_the_arrow_keys_move_between_the_cells_that_are_shown(
    service: Service, open_page: Open
) -> None:
    """Below 1180 pixels of width, the labels are hidden."""
    column = "(document.activeElement.closest('[role=gridcell]')).className"
    async with open_page(service, viewport={"width": 1000, "height": 800}) as page:
        await enter_table(page)
        columns = [await page.evaluate(column)]
        for _ in range(5):
            await page.keyboard.press("ArrowRight")
            columns.append(await page.evaluate(column))
        assert columns == ["name", "namespace", "detail", "age", "changed", "changed"]
        await page.keyboard.press("Home")
        assert await page.evaluate(column) == "status"
        await page.keyboard.press("ArrowDown")
        assert await page.evaluate(column) == "status"
        await expect_focus(page, "web-001")


async def test_enter_opens_an_object_and_escape_closes_it(
    service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await enter_table(page)
        for key in ("ArrowDown", "ArrowRight", "Enter"):  # from a cell without a button
            await page.keyboard.press(key)
        await expect(page.locator("#dialog-title")).to_have_text("pods web/web-001")
        await page.keyboard.press("Escape")
        await expect(page.locator("#dialog")).to_be_hidden()
        await expect_focus(page, "web-001")
        await page.keyboard.press("Escape")
        await expect(page.locator("#search")).to_be_focused()
        await page.keyboard.type("web-007")
        await expect(page.locator(".row .name")).to_have_text(["web-007"])
        await page.keyboard.press("Escape")
        await expect(page.locator("#search")).to_have_value("")


async def test_the_tab_key_reaches_the_first_row_also_if_another_row_was_the_first(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await expect(page.get_by_role("tab", name="pods")).to_contain_text(str(PODS))
        names = page.locator(".row .name")
        # The first rows are those of the latest second in which the fixture created pods. A slow
        # machine needs more than one second, so no name is known to be among these rows.
        changed = await names.nth(5).inner_text()
        await expect(names.first).not_to_have_text(changed)
        restart(server, changed)  # rows are sorted by their last change
        await expect(names.first).to_have_text(changed, timeout=SOON)
        await page.get_by_role("columnheader", name="Changed").get_by_role("button").focus()
        await page.keyboard.press("Tab")
        await expect_focus(page, changed)


async def test_the_tab_key_stops_once_in_the_table(service: Service, open_page: Open) -> None:
    async with open_page(service) as page:
        await enter_table(page)
        assert await page.locator(".rows [tabindex='0']").count() == 1
        await page.keyboard.press("Tab")
        assert not await page.evaluate("!!document.activeElement.closest('.rows')")
        await page.keyboard.press("Shift+Tab")
        await expect_focus(page, "web-000")


async def test_the_focus_stays_in_its_row_while_rows_change(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await enter_table(page)
        await page.keyboard.press("ArrowDown")
        await page.mouse.wheel(0, 6000)  # the row leaves the window
        await expect(row(page, "web-140")).to_be_visible()
        pod(server, "early-0")
        restart(server, "web-140")
        await expect(row(page, "web-140")).to_contain_text("1 restart", timeout=SOON)
        await expect_focus(page, "web-001")
        await page.keyboard.press("ArrowDown")
        await expect_focus(page, "web-002")
        await expect(row(page, "web-002")).to_be_in_viewport()


async def test_the_focus_moves_to_the_next_row_when_its_row_no_longer_matches_the_search(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await page.get_by_role("button", name="Running").click()
        await enter_table(page)
        await page.keyboard.press("ArrowDown")
        failed = {"status": {"phase": "Failed"}}
        server.cluster.merge_patch("pods", "web-001", failed, namespace="web")
        await expect(row(page, "web-001")).to_have_count(0, timeout=SOON)
        await expect_focus(page, "web-002")


async def test_the_order_is_kept_while_the_user_reads_rows_further_down(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    names = "[...document.querySelectorAll('.row .name')].map(each => each.textContent)"
    async with open_page(service) as page:
        await expect(page.locator(".row").first).to_be_visible()
        await page.mouse.wheel(0, 4000)
        await expect(page.locator(".row[aria-rowindex='80']")).to_be_visible()
        before = await page.evaluate(names)
        changed = before[20]
        restart(server, changed)
        server.cluster.delete("pods", before[22], namespace="web")
        await expect(row(page, changed)).to_contain_text("1 restart", timeout=SOON)
        await expect(row(page, before[22])).to_have_attribute("data-gone", "")
        assert await page.evaluate(names) == before
        await page.get_by_role("button", name="1 changed").click()
        await expect(page.locator(".row .name").first).to_have_text(changed)
        await expect(row(page, before[22])).to_have_count(0)
        await expect(page.locator("#held")).to_be_hidden()


SCROLL_EARLY = """addEventListener('DOMContentLoaded', () => {
    new MutationObserver((changes, observer) => {
        if (document.querySelectorAll('.row').length < 5) return;
        observer.disconnect();
        scrollTo(0, 2000);
    }).observe(document.body, { childList: true, subtree: true });
});"""
"""Scrolls as soon as the page shows rows, before it has received all of them."""


async def test_all_rows_of_a_new_page_are_shown_although_the_user_has_scrolled_before(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    """Only changes are held back from a user who reads rows further down."""
    for number in range(MORE_PODS):
        pod(server, f"more-{number:04}")
    await wait_until(lambda: len(service.live.informers["pods"].lister) == PODS + MORE_PODS)
    async with open_page(service, script=SCROLL_EARLY) as page:
        await expect(page.get_by_role("tab", name="pods")).to_contain_text("3,300")
        grid = page.get_by_role("grid", name="Objects")
        await expect(grid).to_have_attribute("aria-rowcount", str(PODS + MORE_PODS + 1))
        await expect(page.locator("#held")).to_be_hidden()
        assert await page.evaluate("scrollY") > 1000


# -- screen readers ----------------------------------------------------------------------------


async def test_the_accessibility_tree_contains_the_position_of_a_row_in_the_table(
    service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await enter_table(page)
        await page.keyboard.press("Control+End")
        grid = page.get_by_role("grid", name="Objects")
        await expect(grid).to_have_attribute("aria-rowcount", str(PODS + 1))
        last = page.get_by_role("row", name=f"web-{PODS - 1}")
        await expect(last).to_have_attribute("aria-rowindex", str(PODS + 1))
        tree = await last.aria_snapshot()
        assert '- gridcell "Running"' in tree
        assert f'- button "web-{PODS - 1}"' in tree
        heads = await grid.get_by_role("columnheader").all_text_contents()
        assert heads == ["Status", "Name", "Namespace", "Detail", "Labels", "Age", "Changed"]
        await expect(grid).to_have_accessible_description(
            "The arrow keys move between the cells, Enter opens the object, "
            "Escape returns to the search."
        )


async def test_the_number_of_matches_is_announced_once_the_user_stops_typing(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        spoken = page.locator("#spoken")
        await expect(spoken).to_have_role("status")
        await page.locator("#search").press_sequentially("web-00")
        await expect(spoken).to_have_text("10 of 300 pods")
        pod(server, "web-00x")
        await expect(page.locator("#found")).to_have_text("11 of 301")
        await expect(spoken).to_have_text("10 of 300 pods")  # changes are not announced
        await page.get_by_role("button", name="Clear").click()
        await expect(spoken).to_have_text("301 pods")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1360])
async def test_axe_finds_no_violations(
    server: ApiServer, service: Service, open_page: Open, width: int, scheme: str
) -> None:
    viewport = {"width": width, "height": 860}
    async with open_page(service, viewport=viewport, color_scheme=scheme) as page:
        await expect(page.locator(".row").first).to_be_visible()
        assert await find_violations(page) == []
        await page.locator("#search").fill("node-1")
        await page.locator(".row .name button").first.click()
        await expect(page.locator("#dialog-body")).to_contain_text("nodeName")
        assert await find_violations(page) == []
        await page.keyboard.press("Escape")
        await page.locator("#search").fill("nothing like it")
        await expect(page.locator("#none")).to_be_visible()
        await server.stop()
        await expect(page.locator("#notice")).to_be_visible()
        assert await find_violations(page) == []

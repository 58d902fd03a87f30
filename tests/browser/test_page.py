"""The live page of the FastAPI example, in a browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from aioinformer.testing import ApiServer
from tests.browser.conftest import Open
from tests.examples.fastapi_service import Service, make_settings, running_service, stalled_client
from tests.promises.conftest import wait_until

pytestmark = pytest.mark.browser

SOON = 10_000
"""Milliseconds within which the page must show a change, also on a busy machine."""


def pod(server: ApiServer, name: str, *, phase: str = "Running", **status: Any) -> None:
    metadata = {"name": name, "labels": {"app": name.split("-")[0]}}
    body = {"metadata": metadata, "spec": {"nodeName": "node-1"}}
    server.cluster.create("pods", body | {"status": {"phase": phase} | status}, namespace="web")


def restart(server: ApiServer, name: str) -> None:
    status = {"containerStatuses": [{"restartCount": 1}]}
    server.cluster.merge_patch("pods", name, {"status": status}, namespace="web")


def row(page: Page, name: str) -> Locator:
    return page.locator(".row", has_text=name)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        for name in ("web-0", "web-1", "cart-0"):
            pod(server, name)
        server.cluster.create("nodes", {"metadata": {"name": "node-1"}})
        yield server


# -- changes -----------------------------------------------------------------------------------


async def test_an_object_appears_when_it_is_created(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await expect(row(page, "web-1")).to_be_visible()
        pod(server, "web-2")
        await expect(row(page, "web-2")).to_be_visible(timeout=SOON)
        await expect(row(page, "web-2")).to_have_attribute("data-change", "added")
        await expect(page.get_by_role("tab", name="pods")).to_contain_text("4")


async def test_a_changed_row_is_highlighted_for_a_short_time(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        changed = row(page, "web-1")
        await expect(changed).to_be_visible()
        assert await changed.get_attribute("data-change") is None, "initial rows don't flash"
        restart(server, "web-1")
        await expect(changed).to_have_attribute("data-change", "updated", timeout=SOON)
        assert await changed.evaluate("row => row.getAnimations().length") == 1
        await expect(changed).to_contain_text("1 restart")
        assert await row(page, "web-0").get_attribute("data-change") is None
        await expect(changed).not_to_have_attribute("data-change", "updated", timeout=SOON)


async def test_reduced_motion_shows_the_change_without_animation(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service, reduced_motion="reduce") as page:
        await expect(row(page, "web-1")).to_be_visible()
        restart(server, "web-1")
        await expect(row(page, "web-1")).to_have_attribute("data-change", "updated", timeout=SOON)
        assert await page.evaluate("document.getAnimations().length") == 0


async def test_a_deleted_object_is_struck_out_and_then_removed(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await expect(row(page, "web-1")).to_be_visible()
        server.cluster.delete("pods", "web-1", namespace="web")
        await expect(row(page, "web-1")).to_have_attribute("data-gone", "", timeout=SOON)
        await expect(row(page, "web-1")).to_have_count(0, timeout=SOON)
        await expect(page.get_by_role("tab", name="pods")).to_contain_text("2")


# -- outages -----------------------------------------------------------------------------------


async def test_the_page_shows_an_outage_of_the_api_server_and_then_continues(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await expect(page.locator("#state")).to_have_text("Live")
        await server.stop()
        await expect(page.locator("#state")).to_have_text("API server away")
        await expect(page.locator("#notice")).to_contain_text("What you see may be old")
        await expect(page.locator("#said")).to_contain_text("127.0.0.1")
        await expect(row(page, "web-0")).to_be_visible()
        server.cluster.delete("pods", "web-0", namespace="web")
        pod(server, "web-9")
        await server.restart()
        await expect(page.locator("#state")).to_have_text("Live")
        await expect(page.locator("#notice")).to_be_hidden()
        await expect(row(page, "web-9")).to_be_visible(timeout=SOON)
        await expect(row(page, "web-0")).to_have_count(0)
        await expect(page.locator("#said-when")).to_contain_text("ago")


async def test_the_page_reconnects_to_its_service_after_a_restart_of_the_service(
    server: ApiServer, tmp_path: Path, open_page: Open
) -> None:
    settings = make_settings(server, tmp_path)
    async with running_service(settings) as service:
        port = int(service.url.rsplit(":", 1)[1])
        # The browser logs the refused connections on the console.
        opened = open_page(service, console_errors=True)
        page = await opened.__aenter__()
        await expect(row(page, "web-0")).to_be_visible()
    await expect(page.locator("#state")).to_have_text("Reconnecting")
    await expect(page.locator("#notice")).to_contain_text("lost its service")
    await expect(row(page, "web-1")).to_be_visible()
    server.cluster.delete("pods", "web-0", namespace="web")
    async with running_service(settings, port=port):
        await expect(page.locator("#state")).to_have_text("Live", timeout=SOON)
        await expect(row(page, "web-0")).to_have_count(0)
        await expect(row(page, "web-1")).to_be_visible()
        await opened.__aexit__(None, None, None)


async def test_a_page_shows_that_the_api_server_has_been_unavailable_from_the_start(
    server: ApiServer, tmp_path: Path, open_page: Open, artifacts: Path
) -> None:
    settings = make_settings(server, tmp_path)
    await server.stop()
    async with running_service(settings) as service, open_page(service) as page:
        await expect(page.locator("#state")).to_have_text("API server away")
        await expect(page.locator("#notice")).to_contain_text("Nothing was read yet: pods: 127.0")
        await expect(page.locator("#none")).to_contain_text("Waiting for the first full state")
        await page.screenshot(path=artifacts / "laptop-light-never-up.png")
        await server.restart()
        await expect(page.locator("#state")).to_have_text("Live", timeout=SOON)
        await expect(page.locator(".row")).to_have_count(3)


SET_HIDDEN = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
"""Makes the page hidden or visible, as a change of tabs would: a headless browser reports all its
pages as visible."""


async def test_a_hidden_page_closes_its_connection(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    """A browser opens at most six connections to a host, so a seventh tab would stay empty."""
    async with open_page(service) as page:
        await page.evaluate(SET_HIDDEN, True)
        await wait_until(lambda: service.clients == 0, timeout=20)
        pod(server, "web-2")
        server.cluster.delete("pods", "web-0", namespace="web")
        await page.evaluate(SET_HIDDEN, False)
        await expect(row(page, "web-2")).to_be_visible(timeout=SOON)
        await expect(row(page, "web-0")).to_have_count(0)
        await page.evaluate(SET_HIDDEN, True)
        await page.evaluate(SET_HIDDEN, False)
        await expect(page.locator("#state")).to_have_text("Live")
        assert service.clients == 1, "a short change of tabs keeps the connection"


async def test_the_page_continues_after_the_back_button(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await page.goto("about:blank")
        await wait_until(lambda: service.clients == 0)
        pod(server, "web-2")
        await page.go_back()
        await expect(row(page, "web-2")).to_be_visible()
        await expect(page.locator("#state")).to_have_text("Live")


async def test_a_stalled_second_client_does_not_delay_the_page(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page, stalled_client(service):
        for version in range(150):  # more than the socket's buffers hold
            patch = {"metadata": {"labels": {f"l{i}": f"{version:060}" for i in range(40)}}}
            for name in ("web-0", "web-1", "cart-0"):
                server.cluster.merge_patch("pods", name, patch, namespace="web")
            await asyncio.sleep(0.01)
        pod(server, "web-2")
        await expect(row(page, "web-2")).to_be_visible(timeout=SOON)
        await expect(page.locator("#clients")).to_contain_text("2 pages")
        await expect(page.locator("#state")).to_have_text("Live")


# -- search and navigation ---------------------------------------------------------------------


async def test_search_filters_from_the_keyboard(service: Service, open_page: Open) -> None:
    async with open_page(service) as page:
        await expect(page.locator(".row")).to_have_count(3)
        await page.keyboard.press("/")
        await expect(page.locator("#search")).to_be_focused()
        await page.keyboard.type("app=web node-1")
        await expect(page.locator(".row")).to_have_count(2)
        await page.keyboard.type(" nothing like it")
        await expect(page.locator("#none")).to_contain_text("Nothing matches.")
        await page.keyboard.press("Escape")
        await expect(page.locator(".row")).to_have_count(3)


async def test_tabs_and_statuses_filter_the_rows(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    pod(server, "late-0", phase="Pending")
    async with open_page(service) as page:
        await page.get_by_role("button", name="Pending").click()
        await expect(page.locator(".row .name")).to_have_text(["late-0"])
        await page.get_by_role("button", name="Pending").first.click()
        await expect(page.locator(".row")).to_have_count(4)
        await page.get_by_role("tab", name="pods").focus()
        await page.keyboard.press("ArrowRight")
        await expect(page.get_by_role("tab", name="nodes")).to_be_focused()
        await expect(page.locator(".row .name")).to_have_text(["node-1"])


async def test_a_click_on_a_column_header_sorts_the_rows(service: Service, open_page: Open) -> None:
    async with open_page(service) as page:
        names = page.locator(".row .name")
        await page.get_by_role("button", name="Name", exact=True).click()
        await expect(names).to_have_text(["cart-0", "web-0", "web-1"])
        await page.get_by_role("button", name="Name", exact=True).click()
        await expect(names).to_have_text(["web-1", "web-0", "cart-0"])
        header = page.get_by_role("columnheader", name="Name", exact=True)
        await expect(header).to_have_attribute("aria-sort", "descending")


async def test_the_dialog_shows_the_whole_object(service: Service, open_page: Open) -> None:
    async with open_page(service) as page:
        await page.get_by_role("button", name="web-1").click()
        await expect(page.locator("#dialog-body")).to_contain_text('"nodeName": "node-1"')
        await page.keyboard.press("Escape")
        await expect(page.locator("#dialog")).to_be_hidden()


async def test_a_deleted_object_is_opened_without_a_request(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:  # an answer of 404 would be an error on the console
        await expect(row(page, "web-1")).to_be_visible()
        server.cluster.delete("pods", "web-1", namespace="web")
        await expect(row(page, "web-1")).to_have_attribute("data-gone", "", timeout=SOON)
        await row(page, "web-1").locator(".name button").dispatch_event("click")
        await expect(page.locator("#dialog-body")).to_have_text(
            'there is no object "web-1" any more'
        )


async def test_text_from_objects_is_never_shown_as_markup(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    markup = "<img src=x onerror=alert(1)>"
    pod(server, "markup-0", phase="Failed", reason=markup)
    async with open_page(service) as page:
        await expect(row(page, "markup-0").locator(".status")).to_have_text(markup)
        await expect(page.locator("#chips")).to_contain_text(markup)
        assert await page.locator("img").count() == 0


async def test_names_and_values_of_an_object_are_never_shown_as_markup(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    """Kubernetes allows such names of some kinds, such as roles."""
    markup = "<img src=x onerror=alert(1)>"
    script = "</script><script>alert(2)</script>"
    body = {
        "metadata": {"name": "named-0", "labels": {"app": "named"}, "annotations": {"x": script}},
        "spec": {"nodeName": script, "containers": [{"name": markup, "image": script}]},
        "status": {"phase": script, "message": markup},
    }
    renamed = server.faults.rewrite_events(
        lambda line: [line.replace(b'"named-0"', b'"%b"' % markup.encode())]
    )
    async with open_page(service) as page:
        server.cluster.create("pods", body, namespace="web")
        await expect(row(page, markup).locator(".name")).to_have_text(markup)
        await row(page, markup).locator(".name").click()
        await expect(page.locator("#dialog-body")).to_contain_text(script)
        await expect(page.locator("#dialog-body")).to_contain_text(markup)
        assert await page.locator("img").count() == 0
        assert await page.locator("script:not([src])").count() == 0
    assert renamed.hits > 0


# -- the view ----------------------------------------------------------------------------------


async def test_rows_are_sorted_by_their_last_change(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await expect(page.locator(".row")).to_have_count(3)
        for name in ("web-1", "cart-0"):
            restart(server, name)
            await expect(page.locator(".row .name").first).to_have_text(name, timeout=SOON)
        header = page.get_by_role("columnheader", name="Changed")
        await expect(header).to_have_attribute("aria-sort", "ascending")


async def test_counts_follow_the_search_until_it_is_cleared(
    service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await expect(page.get_by_role("tab", name="pods")).to_contain_text("3")
        await page.locator("#search").fill("app=web")
        await expect(page.get_by_role("tab", name="pods")).to_contain_text("2 of 3")
        await expect(page.get_by_role("tab", name="nodes")).to_contain_text("0 of 1")
        await expect(page.get_by_role("button", name="Running")).to_contain_text("2")
        await expect(page.locator("#found")).to_have_text("2 of 3")
        await page.get_by_role("button", name="Clear").click()
        await expect(page.locator("#search")).to_have_value("")
        await expect(page.locator("#search")).to_be_focused()
        await expect(page.locator(".row")).to_have_count(3)
        await expect(page.get_by_role("button", name="Clear")).to_be_hidden()


async def test_a_search_without_matches_names_the_tabs_that_have_some(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    server.cluster.create("nodes", {"metadata": {"name": "spare-7"}})
    async with open_page(service) as page:
        await page.locator("#search").fill("spare")
        await expect(page.locator("#none")).to_contain_text("Nothing matches.")
        await page.get_by_role("button", name="1 in nodes").click()
        await expect(page.locator(".row .name")).to_have_text(["spare-7"])
        await expect(page.get_by_role("tab", name="nodes")).to_be_focused()
        await expect(page.locator("#none")).to_be_hidden()


async def test_a_link_restores_tab_search_status_and_sort(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    pod(server, "late-0", phase="Pending")
    async with open_page(service) as page:
        await page.locator("#search").fill("node-1")
        await page.get_by_role("button", name="Running").click()
        await page.get_by_role("button", name="Name", exact=True).click()
        await page.get_by_role("button", name="Name", exact=True).click()
        await page.wait_for_url("**/?q=node-1&status=Running&sort=-name")
        await page.reload()
        await expect(page.locator(".row .name")).to_have_text(["web-1", "web-0", "cart-0"])
        await expect(page.locator("#search")).to_have_value("node-1")
        await page.get_by_role("tab", name="nodes").click()
        await page.wait_for_url("**/?tab=nodes&q=node-1&sort=-name")
        await page.reload()
        await expect(page.locator(".row .name")).to_have_text(["node-1"])
        selected = page.get_by_role("tab", name="nodes")
        await expect(selected).to_have_attribute("aria-selected", "true")
        await page.goto(f"{service.url}/?tab=widgets&sort=weight")
        await expect(page.locator(".row")).to_have_count(4)


# -- the status of each kind -------------------------------------------------------------------


@pytest.mark.parametrize("width", [390, 1360])
async def test_a_resource_that_the_server_denies_is_reported_at_its_tab_only(
    server: ApiServer, tmp_path: Path, open_page: Open, artifacts: Path, width: int
) -> None:
    server.faults.status(403, resource="pods")
    viewport = {"width": width, "height": 844}
    async with (
        running_service(make_settings(server, tmp_path)) as service,
        open_page(service, viewport=viewport) as page,
    ):
        await expect(page.get_by_role("tab", name="nodes")).to_contain_text("1")
        await expect(page.get_by_role("tab", name="pods")).to_contain_text("\u2013")
        await expect(page.locator("#trouble")).to_contain_text("The pods can't be read: ")
        await expect(page.locator("#trouble")).to_contain_text("403")
        await expect(page.locator("#state")).to_have_text("1 of 2 live")
        await expect(page.locator("#notice")).to_be_hidden()
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        await page.screenshot(path=artifacts / f"forbidden-{width}.png")
        await page.get_by_role("tab", name="nodes").click()
        await expect(page.locator("#trouble")).to_be_hidden()
        await expect(page.locator(".row")).to_have_count(1)


async def test_a_cache_without_changes_is_current(service: Service, open_page: Open) -> None:
    async with open_page(service) as page:
        await expect(page.locator("#fresh")).to_have_text("All 2current")
        await page.wait_for_timeout(2_000)
        await expect(page.locator("#fresh")).to_have_text("All 2current")
        await expect(page.locator("#fresh")).to_have_class("big ")


async def test_the_notice_does_not_move_the_panel(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    async with open_page(service) as page:
        await expect(page.locator(".row")).to_have_count(3)
        top = "document.querySelector('.panel').getBoundingClientRect().top"
        before = await page.evaluate(top)
        await server.stop()
        await expect(page.locator("#notice")).to_be_visible()
        assert await page.evaluate(top) == before


async def test_the_labels_of_an_application_are_readable(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    names = {"name": "checkout", "part-of": "shop", "managed-by": "Helm"}
    labels = {f"app.kubernetes.io/{name}": value for name, value in names.items()}
    server.cluster.merge_patch("pods", "web-1", {"metadata": {"labels": labels}}, namespace="web")
    async with open_page(service) as page:
        shown = row(page, "web-1").locator(".labels span")
        await expect(shown).to_have_text(
            ["app=web", "name=checkout", "part-of=shop", "managed-by=Helm"]
        )
        cut = """labels => {
            const box = labels[0].parentElement.getBoundingClientRect();
            return labels.filter(label =>
                label.scrollWidth > label.clientWidth
                || label.getBoundingClientRect().bottom > box.bottom + 0.5
            ).map(label => label.textContent);
        }"""
        assert await shown.evaluate_all(cut) == []


# -- layout ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [320, 390, 768])
async def test_the_page_needs_no_horizontal_scrolling(
    server: ApiServer, service: Service, open_page: Open, width: int
) -> None:
    reasons = ("Evicted", "NodeLost", "OutOfCpu", "Preempting", "UnexpectedAdmissionError")
    for number, reason in enumerate(reasons):
        pod(server, f"{'long-' * 40}{number}", phase="Failed", reason=reason)
    viewport = {"width": width, "height": 800}
    async with open_page(service, viewport=viewport, is_mobile=True, has_touch=True) as page:
        await expect(page.locator(".row")).to_have_count(8)
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert await page.evaluate("visualViewport.scale") == 1


# Returns the layout shifts since the start that are no answers to input, as Core Web Vitals define
# them: 0.1 and less is good.
SHIFTS = """() => new Promise((resolve) => {
    new PerformanceObserver((list) => resolve(
        list.getEntries().filter((each) => !each.hadRecentInput).map((each) => each.value)
    )).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve([]), 1000);
})"""


@pytest.mark.parametrize("width", [390, 1360])
async def test_the_layout_does_not_shift(
    server: ApiServer, service: Service, open_page: Open, width: int
) -> None:
    async with open_page(service, viewport={"width": width, "height": 844}) as page:
        await expect(page.locator(".row")).to_have_count(3)
        pod(server, "web-2")
        await expect(page.locator(".row")).to_have_count(4)
        await server.stop()
        await expect(page.locator("#notice")).to_be_visible()
        await server.restart()
        await expect(page.locator("#state")).to_have_text("Live", timeout=SOON)
        assert sum(await page.evaluate(SHIFTS)) < 0.02


# Returns the contrast, the class and the text of every visible text on the page.
CONTRAST = """() => {
    const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => {
            const part = c / 255;
            return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (element) => {
        for (; element; element = element.parentElement) {
            const colour = getComputedStyle(element).backgroundColor;
            if (!/, 0\\)$/.test(colour)) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const texts = [...document.querySelectorAll(
        "h1, h2, p, button, li b, li span, .row div, .row b"
    )];
    return texts.filter((each) => each.checkVisibility() && each.innerText?.trim()).map((each) => {
        const [ink, paper] = [light(getComputedStyle(each).color), light(ground(each))];
        const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        const which = each.className || each.id || each.tagName;
        return [Math.round(ratio * 100) / 100, which, each.innerText];
    });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_has_enough_contrast_in_both_colour_schemes(
    server: ApiServer, service: Service, open_page: Open, scheme: str
) -> None:
    """The contrast of text is at least 4.5 to 1, as WCAG 2.2 (AA) requires."""
    pod(server, "late-0", phase="Pending")
    pod(server, "bad-0", phase="Failed")
    pod(server, "done-0", phase="Succeeded")
    async with open_page(service, color_scheme=scheme) as page:
        await expect(page.locator(".row")).to_have_count(6)
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(13, 17, 23)") is (scheme == "dark")
        found = await page.evaluate(CONTRAST)
        assert len(found) > 50
        assert [each for each in found if each[0] < 4.5] == []


async def test_five_thousand_rows_are_shown_quickly_with_few_elements(
    server: ApiServer, service: Service, open_page: Open
) -> None:
    for number in range(5000):
        pod(server, f"pod-{number:04}")
    await wait_until(lambda: len(service.live.informers["pods"].lister) == 5003)
    async with open_page(service) as page:
        clock = asyncio.get_running_loop().time
        start = clock()
        await expect(page.get_by_role("tab", name="pods")).to_contain_text("5,003")
        assert clock() - start < 3
        assert await page.locator(".row").count() < 60
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        await expect(row(page, "web-1")).to_be_visible()
        await page.evaluate("scrollTo(0, 0)")
        await page.locator("#search").fill("pod-4321")
        await expect(page.locator(".row")).to_have_count(1, timeout=SOON)

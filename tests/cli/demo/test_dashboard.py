"""The demo's screen as text, at several sizes."""

from __future__ import annotations

from aioinformer._cli.demo.counters import EventSummary
from aioinformer._cli.demo.dashboard import (
    ASCII,
    UNICODE,
    DashboardSnapshot,
    draw_dashboard,
    format_line,
)
from aioinformer._cli.terminal.style import StyledText, render

NODES = {f"node-{number}": number for number in range(1, 6)}
LATEST = [EventSummary(12.25 - n, "ADDED", f"shop/web-{n}", "Pending") for n in range(30)]

SNAPSHOT = DashboardSnapshot(
    elapsed=12.34,
    server="http://127.0.0.1:8080",
    interruption="connections dropped 0.2 s ago, recovering",
    state="waiting",
    health="waiting for 0.2 s, next attempt in 0.5 s",
    resource_version="1234",
    objects=1200,
    size=3_300_000,
    namespaces={"shop": 1000, "batch": 200},
    nodes=NODES,
    added=1300,
    updated=2500,
    deleted=100,
    restarts=17,
    rate=198.7,
    history=[100, 100, 50, 0, 200],
    latest=LATEST,
)


def screen(width: int, height: int) -> list[str]:
    return [
        render(line, width, colour=False)
        for line in draw_dashboard(SNAPSHOT, width=width, height=height, glyphs=ASCII)
    ]


def test_the_screen_shows_server_informer_cache_index_and_stream() -> None:
    assert screen(72, 18) == [
        " aioinformer demo  pods of http://127.0.0.1:8080                  12.3 s",
        "",
        " server   connections dropped 0.2 s ago, recovering",
        " informer waiting for 0.2 s, next attempt in 0.5 s",
        " cache    1,200 objects, 3.3 MB of JSON, resourceVersion 1234 applied",
        " events   199/s    1,300 added  2,500 updated  100 deleted  17 restarts",
        "          ==: #",
        "",
        ' BY NAMESPACE ---------------------  BY NODE, from the index "node" ---',
        " batch    200 #####                  node-1  1 #####",
        " shop   1,000 #####################  node-2  2 ##########",
        "                                     node-3  3 ###############",
        "                                     2 more  9",
        "",
        " LATEST, from an event stream -----------------------------------------",
        "   12.25  ADDED    shop/web-0  Pending",
        "   11.25  ADDED    shop/web-1  Pending",
        "   10.25  ADDED    shop/web-2  Pending",
    ]


def test_a_tall_terminal_is_filled() -> None:
    assert len(screen(139, 40)) == 11 + 5 + 24


def test_rows_that_do_not_fit_are_shown_as_a_sum() -> None:
    assert " 5 more  15" in " ".join(screen(72, 12)[9:10])


def test_an_empty_cluster_can_be_shown() -> None:
    empty = DashboardSnapshot(
        elapsed=0,
        server="",
        interruption="",
        state="listing",
        health="",
        resource_version="",
        objects=0,
        size=0,
        namespaces={},
        nodes={},
        added=0,
        updated=0,
        deleted=0,
        restarts=0,
        rate=0,
        history=[],
        latest=[],
    )

    lines = [
        render(line, colour=False)
        for line in draw_dashboard(empty, width=72, height=18, glyphs=UNICODE)
    ]

    assert " server   serving" in lines


def test_health_is_coloured_by_state() -> None:
    line = draw_dashboard(SNAPSHOT, width=72, height=18)[3]

    assert line[1] == StyledText("waiting for 0.2 s, next attempt in 0.5 s", "yellow")


def test_without_a_terminal_a_line_has_the_numbers() -> None:
    assert format_line(SNAPSHOT) == (
        "  12.3 s  1200 objects  3.3 MB  199 events/s  added 1300  updated 2500  deleted 100  "
        "rv 1234  waiting for 0.2 s, next attempt in 0.5 s"
    )

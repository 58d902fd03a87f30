"""Rows under each other, and what is marked in them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from aioinformer import Added, Deleted, Event, KubeObject, Updated
from aioinformer._cli.watch.columns import ServerColumns
from aioinformer._cli.watch.kube_events import KubeEvent
from aioinformer._cli.watch.server_tables import Column, Columns
from aioinformer._cli.watch.table import Table
from aioinformer.errors import ObjectDecodeError
from tests.cli.pods import pod

NOW = dt.datetime(2026, 1, 1, 0, 2, 30, tzinfo=dt.UTC)
RUNNING: dict[str, Any] = {"status": {"phase": "Running"}}
COLUMNS = (Column("Name"), Column("Ready"), Column("Status"), Column("Age"), Column("Node", 1))


def plain(*, namespaces: bool = False, colour: bool = False) -> Table:
    """Of a server that prints nothing."""
    return Table(ServerColumns(lambda: ()), namespaces=namespaces, colour=colour)


def printed(columns: Columns = COLUMNS, *, colour: bool = False) -> Table:
    return Table(ServerColumns(lambda: columns), namespaces=False, colour=colour)


def row(*cells: str, **more: Any) -> KubeObject:
    return pod(cells[0], tableCells=list(cells), **more)


def test_a_table_has_a_header_and_a_row_for_each_event() -> None:
    table = plain(namespaces=True)
    events: list[Event] = [
        Added(pod("web-0", **RUNNING), initial=True),
        Updated(pod("web-0", **RUNNING), pod("web-0", version="8", deleted="2026-01-01T00:00:00Z")),
        Deleted(pod("web-0", version="9", **RUNNING)),
    ]

    drawn = table.format_header([], NOW) + "".join(
        table.format_change(event, NOW) for event in events
    )

    assert drawn == (
        "EVENT      NAMESPACE   NAME                       STATUS      AGE\n"
        "ADDED      shop        web-0                      Running     2m30s\n"
        "MODIFIED   shop        web-0                      Terminating   2m30s\n"
        "DELETED    shop        web-0                      Running       2m30s\n"
    )


def test_the_table_of_one_namespace_has_no_namespace_column() -> None:
    assert plain().format_header([], NOW).split() == ["EVENT", "NAME", "STATUS", "AGE"]


def test_the_columns_are_those_that_the_server_prints() -> None:
    table = printed()
    header = table.format_header([], NOW)
    line = table.format_change(Added(row("web-0", "1/1", "Running", "5s", "node-1")), NOW)

    assert header.split() == ["EVENT", "NAME", "READY", "STATUS", "AGE"]
    assert line.split() == ["ADDED", "web-0", "1/1", "Running", "5s"]


def test_the_initial_objects_determine_the_column_widths() -> None:
    table = plain()
    header = table.format_header([pod("a-name-that-is-longer-than-24-letters")], NOW)
    line = table.format_change(Added(pod("web-0", **RUNNING)), NOW)

    assert header.index("STATUS") == line.index("Running")


class FailingColumns:
    """Columns that can't be read of an object called ``deep``."""

    headings = ("NAME",)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def cells(self, obj: KubeObject, now: dt.datetime) -> tuple[str, ...]:
        if obj.name == "deep" and obj.resource_version == "7":
            raise self.error
        return (obj.name,)


@pytest.mark.parametrize(
    "error",
    [ObjectDecodeError("deep", key="deep", resource_version="7"), RecursionError()],
    ids=type,
)
def test_an_object_whose_cells_cannot_be_read_is_an_error_of_its_own_row(error: Exception) -> None:
    table = Table(FailingColumns(error), namespaces=False)
    deep, flat = pod("deep"), pod("deep", version="8")

    assert table.format_header([deep, pod("next")], NOW).split() == ["EVENT", "NAME"]
    with pytest.raises(type(error)):
        table.format_change(Added(deep), NOW)
    assert table.format_change(Updated(deep, flat), NOW).split() == ["MODIFIED", "deep"]


def test_a_change_of_the_columns_prints_another_header() -> None:
    columns: list[Columns] = [COLUMNS]
    table = Table(ServerColumns(lambda: columns[0]), namespaces=False)
    table.format_header([], NOW)
    columns[0] = (Column("Name"), Column("Colour"))

    first = table.format_change(Added(row("a", "red")), NOW)
    second = table.format_change(Added(row("b", "blue")), NOW)

    assert [line.split() for line in first.splitlines()] == [
        ["EVENT", "NAME", "COLOUR"],
        ["ADDED", "a", "red"],
    ]
    assert second.split() == ["ADDED", "b", "blue"]


def test_a_cell_without_a_value_is_a_dash() -> None:
    table = plain(namespaces=True)
    table.format_header([], NOW)

    assert table.format_change(
        Added(pod("n1", namespace="", created=None, status={})), NOW
    ).split() == [
        "ADDED",
        "-",
        "n1",
        "-",
        "-",
    ]


def test_a_row_with_fewer_cells_than_columns_is_filled_up() -> None:
    table = printed()
    table.format_header([], NOW)

    assert table.format_change(Added(row("web-0", "1/1")), NOW).split() == [
        "ADDED",
        "web-0",
        "1/1",
        "-",
        "-",
    ]


def test_escapes_in_a_status_do_not_reach_the_terminal() -> None:
    table = plain(colour=True)
    table.format_header([], NOW)
    line = table.format_change(Added(pod(status={"phase": "\x1b[31mRed"})), NOW)

    assert "\x1b[31mRed" not in line
    assert "\N{REPLACEMENT CHARACTER}[31mRed" in line


# -- colours -----------------------------------------------------------------------------------


def test_changed_cells_are_bold_except_the_age() -> None:
    table = printed(colour=True)
    table.format_header([], NOW)
    before, after = row("web-0", "0/1", "Running", "5s"), row("web-0", "1/1", "Running", "9s")

    line = table.format_change(Updated(before, after), NOW)

    assert "\x1b[1m1/1\x1b[0m" in line
    assert line.count("\x1b[1m") == 1


def test_a_good_and_a_bad_status_have_different_colours() -> None:
    table = printed(colour=True)
    table.format_header([], NOW)

    assert "\x1b[32mRunning\x1b[0m" in table.format_change(Added(row("a", "1/1", "Running")), NOW)
    assert "\x1b[31mCrashLoopBackOff\x1b[0m" in table.format_change(
        Added(row("b", "0/1", "CrashLoopBackOff")), NOW
    )


def test_initial_objects_look_different_from_later_ones() -> None:
    table = printed(colour=True)
    table.format_header([], NOW)

    assert table.format_change(Added(row("a"), initial=True), NOW).startswith("\x1b[2mADDED")
    assert table.format_change(Added(row("b")), NOW).startswith("\x1b[32mADDED")
    assert table.format_change(Deleted(row("b")), NOW).startswith("\x1b[31mDELETED")


# -- notes -------------------------------------------------------------------------------------


def test_a_kubernetes_event_is_aligned_with_the_columns_of_the_table() -> None:
    table = plain(namespaces=True)
    header = table.format_header([], NOW)
    note = KubeEvent(type="Warning", namespace="shop", name="web-0", text="BackOff: again (x3)")

    line = table.format_kube_event(note)

    assert line.startswith("WARNING    shop        web-0 ")
    assert line.index("BackOff: again (x3)\n") == header.index("STATUS")

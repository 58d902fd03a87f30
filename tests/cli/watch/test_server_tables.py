"""Tables of a server as lists and events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer._cli.watch.server_tables import (
    Column,
    Columns,
    ListProgress,
    TableEventTranslator,
    TablePageTranslator,
)
from tests.cli.pods import PODS
from tests.client.recordings import read_recording

COLUMNS = [{"name": "Name", "type": "string"}, {"name": "Node", "priority": 1}]
OBJECT = {"kind": "PartialObjectMetadata", "metadata": {"name": "a", "resourceVersion": "3"}}


def table(*rows: Any, columns: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"kind": "Table", "metadata": metadata, "columnDefinitions": columns, "rows": rows}


def line(event: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": event, "object": obj}) + b"\n"


class Reading:
    """The columns that the translator reported."""

    def __init__(self) -> None:
        self.columns: list[Columns] = []
        self.progress = ListProgress()

    def events(self, *, cells: bool = True) -> TableEventTranslator:
        return TableEventTranslator(self.columns.append, include_cells=cells)

    def page(self, *, cells: bool = True) -> TablePageTranslator:
        return TablePageTranslator(PODS, self.columns.append, self.progress, include_cells=cells)


def test_a_table_event_becomes_an_event_of_the_object_with_its_cells() -> None:
    reading = Reading()
    row = {"cells": ["a", None], "object": OBJECT}

    made = reading.events().feed(line("ADDED", table(row, columns=COLUMNS)))

    assert made == line("ADDED", OBJECT | {"tableCells": ["a", None]})
    assert reading.columns == [(Column("Name"), Column("Node", 1))]


def test_chunks_may_be_cut_anywhere() -> None:
    row = {"cells": ["a", "n"], "object": OBJECT}
    whole = line("ADDED", table(row, columns=COLUMNS)) + line("DELETED", table(row))
    events = Reading().events()

    made = b"".join(events.feed(whole[at : at + 7]) for at in range(0, len(whole), 7))

    assert made == Reading().events().feed(whole)
    assert made.count(b"\n") == 2


def test_whole_objects_are_read_without_cells() -> None:
    row = {"cells": ["a"], "object": OBJECT}

    assert Reading().events(cells=False).feed(line("MODIFIED", table(row))) == line(
        "MODIFIED", OBJECT
    )


def test_a_bookmark_in_a_table_remains_a_bookmark() -> None:
    mark = {"metadata": {"resourceVersion": "9", "annotations": {"a": "true"}}}
    row = {"cells": ["", None], "object": mark}

    assert Reading().events().feed(line("BOOKMARK", table(row))) == line("BOOKMARK", mark)


@pytest.mark.parametrize(
    "said",
    [
        line("ERROR", {"kind": "Status", "code": 410}),
        line("ADDED", {"kind": "Pod", "metadata": {"name": "a"}}),
        line("ADDED", {"kind": "Board", "rows": "odd"}),
        b"no JSON\n",
    ],
)
def test_a_watch_line_that_is_not_a_table_is_not_changed(said: bytes) -> None:
    assert Reading().events().feed(said) == said


def test_a_server_that_sends_objects_prints_no_columns() -> None:
    reading = Reading()
    reading.events().feed(line("ADDED", {"kind": "Pod", "metadata": {"name": "a"}}))

    assert reading.columns == [()]


def test_an_error_event_does_not_set_columns() -> None:
    reading = Reading()
    reading.events().feed(line("ERROR", {"kind": "Status", "code": 410}))

    assert reading.columns == []


def test_a_page_of_a_real_server_becomes_a_list() -> None:
    reading = Reading()
    page = reading.page()
    body = read_recording("28-list-table").body

    assert page.feed(body[:1000]) == page.feed(body[1000:]) == b""
    made = msgspec.json.decode(page.close())

    assert (made["kind"], made["apiVersion"]) == ("PodList", "v1")
    assert made["metadata"]["remainingItemCount"] == 6
    assert [item["metadata"]["name"] for item in made["items"]] == ["web-0", "web-1"]
    assert made["items"][0]["tableCells"][:3] == ["web-0", "0/1", "Pending"]
    assert [column.name for column in reading.columns[0]][:5] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]


def test_the_first_page_sets_the_total_number_of_items() -> None:
    reading = Reading()
    for rows, more in ((2, {"remainingItemCount": 3}), (2, {"remainingItemCount": 1}), (1, {})):
        page = reading.page()
        page.feed(msgspec.json.encode(table(*[{"cells": [], "object": OBJECT}] * rows, **more)))
        page.close()

    assert (reading.progress.items, reading.progress.total) == (5, 5)


@pytest.mark.parametrize("body", [b'{"kind":"PodList","metadata":{},"items":[]}', b"<html>", b""])
def test_a_list_that_is_not_a_table_is_not_changed(body: bytes) -> None:
    page = Reading().page()
    page.feed(body)

    assert page.close() == body

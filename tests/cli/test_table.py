"""Rows, JSON lines, ages and statuses."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import pytest

from aioinformer import Added, Deleted, Event, Resource, Updated
from aioinformer._cli.table import Table, age, json_line, status_of
from tests.cli.objects import pod

NOW = dt.datetime(2026, 1, 1, 0, 2, 30, tzinfo=dt.UTC)
RUNNING: dict[str, Any] = {"status": {"phase": "Running"}}


def test_a_table_has_a_header_and_a_row_for_each_event() -> None:
    table = Table(namespaces=True)
    events: list[Event] = [
        Added(pod("web-0", **RUNNING), initial=True),
        Updated(pod("web-0", **RUNNING), pod("web-0", version="8", deleted="2026-01-01T00:00:00Z")),
        Deleted(pod("web-0", version="9", **RUNNING)),
    ]

    assert table.header() + "".join(table.row(event, NOW) for event in events) == (
        "EVENT      NAMESPACE   NAME                       STATUS      AGE      RESOURCEVERSION\n"
        "ADDED      shop        web-0                      Running     2m30s    7\n"
        "MODIFIED   shop        web-0                      Terminating   2m30s    8\n"
        "DELETED    shop        web-0                      Running       2m30s    9\n"
    )


def test_one_namespace_needs_no_column() -> None:
    table = Table(namespaces=False)

    assert table.header().split() == ["EVENT", "NAME", "STATUS", "AGE", "RESOURCEVERSION"]
    assert table.row(Added(pod(**RUNNING)), NOW).split()[:2] == ["ADDED", "web-0"]


def test_what_is_there_at_first_sets_the_widths() -> None:
    table = Table(namespaces=False)
    table.fit([Added(pod("a-name-that-is-longer-than-24-letters"))], NOW)

    header, row = table.header(), table.row(Added(pod("web-0", **RUNNING)), NOW)

    assert header.index("STATUS") == row.index("Running")


def test_a_cell_without_a_value_is_a_dash() -> None:
    assert Table(namespaces=True).row(
        Added(pod("n1", namespace="", created=None, status={})), NOW
    ).split() == ["ADDED", "-", "n1", "-", "-", "7"]


def test_escapes_in_a_status_do_not_reach_the_terminal() -> None:
    row = Table(namespaces=False).row(Added(pod(status={"phase": "\x1b[31mRed"})), NOW)

    assert "\x1b" not in row


def test_json_is_one_compact_line_with_the_type_first() -> None:
    line = json_line(Added(pod(spec={"x": 1.0}), initial=True))

    assert line == (
        b'{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0",'
        b'"uid":"web-0","resourceVersion":"7","namespace":"shop",'
        b'"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"x":1.0}}}\n'
    )


def test_json_carries_the_group_of_other_resources() -> None:
    deployments = Resource("apps", "v1", "deployments", "Deployment")
    found = msgspec.json.decode(json_line(Deleted(pod(resource=deployments))))

    assert (found["type"], found["object"]["apiVersion"]) == ("DELETED", "apps/v1")


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, ""),
        ({"status": None}, ""),
        ({"status": "odd"}, ""),
        ({"status": {"phase": "Bound"}}, "Bound"),
        ({"status": {"phase": 3, "conditions": "odd"}}, ""),
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}, None]}}, "Ready"),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "NotReady"),
        ({"status": {"conditions": [{"type": "Available", "status": "False"}]}}, "Unavailable"),
        ({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, "Complete"),
        (
            {
                "status": {
                    "conditions": [
                        {"type": "Complete", "status": "False"},
                        {"type": "Failed", "status": "True"},
                    ]
                }
            },
            "Failed",
        ),
    ],
)
def test_a_status_is_the_phase_or_the_condition_that_matters(
    body: dict[str, Any], word: str
) -> None:
    assert status_of(pod(**body)) == word


def test_an_object_that_is_being_deleted_says_so() -> None:
    assert status_of(pod(deleted="2026-01-01T00:00:00Z", **RUNNING)) == "Terminating"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (8 * 3600 - 1, "7h59m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (8 * 86400 - 1, "7d23h"),
        (8 * 86400, "8d"),
        (730 * 86400 - 1, "729d"),
        (731 * 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_an_age_is_written_as_kubectl_writes_it(seconds: float, text: str) -> None:
    """Apimachinery's ``duration.HumanDuration``."""
    assert age(seconds) == text

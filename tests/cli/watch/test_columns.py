"""Columns: the server's cells, chosen fields, ages and statuses."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from aioinformer._cli.watch.columns import FieldColumns, ServerColumns, format_age, summarize_status
from aioinformer._cli.watch.server_tables import Column
from aioinformer.errors import InvalidPath
from tests.cli.pods import pod

NOW = dt.datetime(2026, 1, 1, 0, 2, 30, tzinfo=dt.UTC)
RUNNING: dict[str, Any] = {"status": {"phase": "Running"}}
COLUMNS = (Column("Name"), Column("Ready"), Column("Nominated Node", 1))


@pytest.mark.parametrize(
    ("wide", "headings", "cells"),
    [
        (False, ("NAME", "READY"), ("web-0", "1/1")),
        (True, ("NAME", "READY", "NOMINATED NODE"), ("web-0", "1/1", "node-1")),
    ],
)
def test_columns_of_a_lower_priority_are_shown_only_with_wide(
    wide: bool, headings: tuple[str, ...], cells: tuple[str, ...]
) -> None:
    shown = ServerColumns(lambda: COLUMNS, wide=wide)

    assert shown.headings == headings
    assert shown.cells(pod(tableCells=["web-0", "1/1", "node-1"]), NOW) == cells


def test_a_server_without_tables_leaves_name_status_and_age() -> None:
    shown = ServerColumns(lambda: ())

    assert shown.headings == ("NAME", "STATUS", "AGE")
    assert shown.cells(pod(**RUNNING), NOW) == ("web-0", "Running", "2m30s")


def test_cells_that_are_no_text_are_shown_as_json() -> None:
    shown = ServerColumns(lambda: (Column("N"), Column("B"), Column("None")))

    assert shown.cells(pod(tableCells=[3, True, None]), NOW) == ("3", "true", "")


# -- chosen fields -----------------------------------------------------------------------------


def test_the_headings_of_chosen_fields_are_their_paths_or_given_names() -> None:
    chosen = FieldColumns.parse("metadata.name,NODE:spec.nodeName,metadata.labels['a,b/c']")

    assert chosen.headings == ("metadata.name", "NODE", "metadata.labels['a,b/c']")
    assert chosen.cells(pod(spec={"nodeName": "node-1"}), NOW) == ("web-0", "node-1", "<none>")


def test_lists_and_objects_are_shown_as_json() -> None:
    chosen = FieldColumns.parse("spec.args,spec.map,spec.args[1]")

    assert chosen.cells(pod(spec={"args": ["é", 1], "map": {"a": {"b": None}}}), NOW) == (
        '["é",1]',
        '{"a":{"b":null}}',
        "1",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'': invalid path: expected a key, at the end"),
        ("metadata.name,", "'': invalid path: expected a key, at the end"),
        ("a.b.,c", "'a.b.': invalid path: expected a key, at the end"),
        ("a,NODE:spec..x", "'spec..x': invalid path: expected a key, at character 6"),
        (
            "spec.containers[x]",
            "'spec.containers[x]': invalid path: expected a position or a quoted key in brackets, "
            "at character 16",
        ),
        (
            "a,b['c",
            '"b[\'c": invalid path: expected a position or a quoted key in brackets, '
            "at character 2",
        ),
    ],
)
def test_a_bad_path_is_reported_in_a_line_with_its_position(text: str, said: str) -> None:
    with pytest.raises(InvalidPath) as caught:
        FieldColumns.parse(text)

    assert str(caught.value) == f"--output fields: {said}"


# -- of a server that prints nothing -----------------------------------------------------------


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
def test_a_status_is_the_phase_or_the_most_important_condition(
    body: dict[str, Any], word: str
) -> None:
    assert summarize_status(pod(**body)) == word


def test_the_status_of_an_object_that_is_being_deleted_is_terminating() -> None:
    assert summarize_status(pod(deleted="2026-01-01T00:00:00Z", **RUNNING)) == "Terminating"


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
    assert format_age(seconds) == text

"""The table of ``aioinformer watch``: one row for each event.

A stream of rows has no last row, so a column is as wide as its widest cell so far, as in ``kubectl
get --watch``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Protocol

from aioinformer import Deleted, Event, KubeObject, Updated
from aioinformer._cli.terminal.style import (
    EVENT_STYLES,
    Style,
    StyledText,
    align_columns,
    event_type,
    printable,
    render,
    status_style,
)
from aioinformer._cli.watch.kube_events import KubeEvent
from aioinformer.errors import ObjectDecodeError

UNREADABLE = (ObjectDecodeError, RecursionError)
"""The errors of a cell that can't be read, or is nested too deeply for JSON or YAML."""

MEASURED_OBJECTS = 500
"""Objects whose cells are measured before the first line, which takes a few milliseconds."""

_MIN_WIDTHS = {"EVENT": 8, "NAMESPACE": 9, "NAME": 24, "STATUS": 9, "AGE": 5}
"""MODIFIED has 8 letters. The other widths suit most clusters, so that columns seldom move."""
_STATUS_COLUMNS = ("STATUS", "PHASE")
"""Columns whose words are coloured by ``status_style``."""
_TIME_COLUMNS = ("AGE", "LAST SEEN", "FIRST SEEN", "DURATION")
"""Columns that change with time alone, and so are not highlighted as changes."""


class ColumnSet(Protocol):
    @property
    def headings(self) -> tuple[str, ...]:
        """The headings, which may change when the resource's definition changes."""
        ...

    def cells(self, obj: KubeObject, now: dt.datetime) -> tuple[str, ...]:
        """Return the cells of an object, one for each heading."""
        ...


class Table:
    """A table whose columns, after the event and the namespace, widen as rows are added."""

    def __init__(self, columns: ColumnSet, *, namespaces: bool, colour: bool = False) -> None:
        self._columns = columns
        self._fixed_headings = ("EVENT", "NAMESPACE") if namespaces else ("EVENT",)
        self._colour = colour
        self._headings: tuple[str, ...] = ()
        self._widths: list[int] = []

    def format_header(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """Return the line of headings, wide enough for the first of ``objects``."""
        self._reset_columns()
        for obj in islice(objects, MEASURED_OBJECTS):
            with suppress(*UNREADABLE):  # raised again for its own row
                self._widen_columns(
                    ("", obj.namespace)[: len(self._fixed_headings)] + self._columns.cells(obj, now)
                )
        return self._format_headings()

    def format_change(self, event: Event, now: dt.datetime) -> str:
        """Return the line of an event, after new headings if the columns have changed.

        Raises:
            ObjectDecodeError: a cell of the object can't be read; or a RecursionError.
        """
        header = ""
        if self._fixed_headings + self._columns.headings != self._headings:
            self._reset_columns()
            header = self._format_headings()
        kind, obj = event_type(event), event.obj
        texts = self._cell_texts(kind, obj, now)
        before = texts
        if isinstance(event, Updated):
            with suppress(*UNREADABLE):
                before = self._cell_texts(kind, event.old, now)
        self._widen_columns(texts)
        spans = list(map(self._style_cell, self._headings, texts, before))
        initial = not isinstance(event, (Updated, Deleted)) and event.initial
        spans[0] = StyledText(kind, "dim" if initial else EVENT_STYLES.get(kind, ""))
        return header + self._format_line(spans)

    def format_kube_event(self, event: KubeEvent) -> str:
        """Return the line of a Kubernetes Event, whose text has no column."""
        style: Style = "yellow" if event.is_warning else "dim"
        texts = [event.type.upper(), event.namespace][: len(self._fixed_headings)]
        named = self._headings[len(self._fixed_headings) :][:1] == ("NAME",)
        texts.append(event.name)
        self._widen_columns(texts if named else texts[:-1])
        spans = [StyledText(printable(text) or "-", style) for text in texts]
        return self._format_line([*spans, StyledText(printable(event.text), style)])

    # -- drawing -------------------------------------------------------------------------------

    def _reset_columns(self) -> None:
        self._headings = self._fixed_headings + self._columns.headings
        self._widths = [max(len(each), _MIN_WIDTHS.get(each, 0)) for each in self._headings]

    def _format_headings(self) -> str:
        return self._format_line(
            [StyledText(printable(heading), "bold") for heading in self._headings]
        )

    def _cell_texts(self, kind: str, obj: KubeObject, now: dt.datetime) -> tuple[str, ...]:
        """Return a cell for each heading; "-" for a cell that the server left empty."""
        texts = (
            (kind, obj.namespace)[: len(self._fixed_headings)] + self._columns.cells(obj, now)
        )[: len(self._headings)]
        texts += ("",) * (len(self._headings) - len(texts))
        return tuple(printable(text) or "-" for text in texts)

    def _style_cell(self, heading: str, text: str, before: str) -> StyledText:
        if heading in _STATUS_COLUMNS:
            return StyledText(text, status_style(text))
        changed = text != before and heading not in _TIME_COLUMNS
        return StyledText(text, "bold" if changed else "")

    def _widen_columns(self, texts: Iterable[str]) -> None:
        for position, text in enumerate(texts):
            if position < len(self._widths):
                self._widths[position] = max(self._widths[position], len(printable(text)))

    def _format_line(self, spans: list[StyledText]) -> str:
        line = align_columns(spans, self._widths)
        return render(line, colour=self._colour).rstrip() + "\n"

    def __repr__(self) -> str:
        return f"<Table {' '.join(self._headings)}>"

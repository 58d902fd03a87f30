"""Events as rows: what ``aioinformer watch`` prints for people.

Pure: the time is an argument, and whose cells these are is the ``Cells``' business. A stream has
no last row to measure, so columns are as wide as what has come so far, as in
``kubectl get --watch``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from itertools import islice
from typing import Protocol

from aioinformer import Deleted, Event, KubeObject, Updated
from aioinformer._cli.demo.counters import type_of
from aioinformer._cli.terminal.style import Line, Span, Style, printable, render, tone
from aioinformer._cli.watch.kube_events import Note

__all__ = ["Cells", "Table"]

GAP = "   "
"""kubectl's padding."""
UNCUT = 1_000_000
"""Columns of a line that a terminal may wrap: a stream is read by programs too."""

MEASURED = 500
"""Objects for which room is made before the first line: some milliseconds' work, and most names
of a cluster look alike."""

_WIDTHS = {"EVENT": 8, "NAMESPACE": 9, "NAME": 24, "STATUS": 9, "AGE": 5}
"""The least widths. MODIFIED has 8 letters; the others are guesses that most clusters fill, so
that little moves when the first long name comes."""
_JUDGED = ("STATUS", "PHASE")
"""Columns whose words are good or bad news."""
_CLOCKS = ("AGE", "LAST SEEN", "FIRST SEEN", "DURATION")
"""Columns that change with time alone, and so are no news."""
_EVENTS: dict[str, Style] = {"ADDED": "green", "MODIFIED": "cyan", "DELETED": "red"}


class Cells(Protocol):
    """What is shown of an object."""

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of its columns. They may change as a definition does."""
        ...

    def of(self, obj: KubeObject, now: dt.datetime) -> tuple[str, ...]:
        """An object's cells, one a heading."""
        ...


class Table:
    """Rows that begin under each other."""

    def __init__(self, cells: Cells, *, namespaces: bool, colour: bool = False) -> None:
        """A table with no rows.

        Args:
            cells: what is shown of each object.
            namespaces: whether there is a column for them.
            colour: whether to use escapes.
        """
        self._cells = cells
        self._first = ("EVENT", "NAMESPACE") if namespaces else ("EVENT",)
        self._colour = colour
        self._headings: tuple[str, ...] = ()
        self._widths: list[int] = []

    def opening(self, objects: Iterable[KubeObject], now: dt.datetime) -> str:
        """The header, with room for the first of these objects, and its newline."""
        self._begin()
        for obj in islice(objects, MEASURED):
            self._fit(("", obj.namespace)[: len(self._first)] + self._cells.of(obj, now))
        return self._header()

    def change(self, event: Event, now: dt.datetime) -> str:
        """An event's line, with its newline; under another header if the columns have changed."""
        header = ""
        if self._first + self._cells.headings != self._headings:
            self._begin()
            header = self._header()
        kind, obj = type_of(event), event.obj
        texts = self._texts(kind, obj, now)
        before = self._texts(kind, event.old, now) if isinstance(event, Updated) else texts
        self._fit(texts)
        spans = list(map(self._span, self._headings, texts, before))
        initial = not isinstance(event, (Updated, Deleted)) and event.initial
        spans[0] = Span(kind, "dim" if initial else _EVENTS.get(kind, ""))
        return header + self._line(spans)

    def note(self, note: Note) -> str:
        """What somebody says of an object, with its newline. The text has no column."""
        style: Style = "yellow" if note.warns else "dim"
        texts = [note.type.upper(), note.namespace][: len(self._first)]
        named = self._headings[len(self._first) :][:1] == ("NAME",)
        texts.append(note.name)
        self._fit(texts if named else texts[:-1])
        spans = [Span(printable(text) or "-", style) for text in texts]
        return self._line([*spans, Span(printable(note.text), style)])

    # -- drawing -------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._headings = self._first + self._cells.headings
        self._widths = [max(len(each), _WIDTHS.get(each, 0)) for each in self._headings]

    def _header(self) -> str:
        return self._line([Span(printable(heading), "bold") for heading in self._headings])

    def _texts(self, kind: str, obj: KubeObject, now: dt.datetime) -> tuple[str, ...]:
        """A cell for each heading, those that a server has left empty included."""
        texts = ((kind, obj.namespace)[: len(self._first)] + self._cells.of(obj, now))[
            : len(self._headings)
        ]
        texts += ("",) * (len(self._headings) - len(texts))
        return tuple(printable(text) or "-" for text in texts)

    def _span(self, heading: str, text: str, before: str) -> Span:
        if heading in _JUDGED:
            return Span(text, tone(text))
        changed = text != before and heading not in _CLOCKS
        return Span(text, "bold" if changed else "")

    def _fit(self, texts: Iterable[str]) -> None:
        for position, text in enumerate(texts):
            if position < len(self._widths):
                self._widths[position] = max(self._widths[position], len(printable(text)))

    def _line(self, spans: list[Span]) -> str:
        line: list[Span] = []
        for position, span in enumerate(spans[:-1]):
            line += [span, Span(" " * (self._widths[position] - len(span.text)) + GAP)]
        whole: Line = (*line, *spans[-1:])
        return render(whole, UNCUT, colour=self._colour).rstrip() + "\n"

    def __repr__(self) -> str:
        return f"<Table {' '.join(self._headings)}>"

"""Translators from the server's tables to lists and watch events that an informer reads.

A request with ``as=Table`` makes the server send columns and rows; for a custom resource, the
definition names the columns (``additionalPrinterColumns``). A list is one table, and each event of
a watch is a table of one row. ``includeObject`` chooses the part of the object that a row carries.
The translators add the cells to each object under one more key, so that the informer does all the
rest: reconnecting, relisting, finding changes. A server without tables (some aggregated ones) sends
objects, which pass unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from aioinformer import Resource
from aioinformer._core.codec.line_splitter import LineSplitter

TABLE_ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
"""kubectl's own header without the beta version."""

CELLS_KEY = "tableCells"
"""The key under which an object carries its row's cells."""


class Column(Struct, frozen=True):
    name: str
    priority: int = 0
    """0 for a column that is always shown; more for a column of ``-o wide``."""


Columns: TypeAlias = tuple[Column, ...]


@dataclass(slots=True)
class ListProgress:
    items: int = 0
    total: int | None = None
    """All items. The server sends it for a list of several pages without selectors."""

    def start(self) -> None:
        self.items, self.total = 0, None


class _Row(Struct, gc=False):
    cells: Raw
    object: Raw = Raw(b"null")


class _TableMeta(Struct, rename="camel"):
    remaining_item_count: int = 0


class _Table(Struct, rename="camel"):
    kind: str = ""
    metadata: Raw = Raw(b"{}")
    column_definitions: tuple[Column, ...] | None = None
    rows: list[_Row] | None = None


class _WatchLine(Struct):
    type: str
    object: _Table


_read_line = msgspec.json.Decoder(_WatchLine).decode
_read_table = msgspec.json.Decoder(_Table).decode
_read_meta = msgspec.json.Decoder(_TableMeta).decode


@dataclass(slots=True)
class TableEventTranslator:
    on_columns: Callable[[Columns], None]
    """Called with the columns of each table; with none for an event that is not a table."""
    include_cells: bool = True
    _lines: LineSplitter = field(default_factory=LineSplitter)

    def feed(self, chunk: bytes) -> bytes:
        """Return the events that ``chunk`` completes; raise ``LineTooLong`` above the cap of a
        line.
        """
        return b"".join(map(self._translate_line, self._lines.feed(chunk)))

    def close(self) -> bytes:
        """Return nothing, since an incomplete event is discarded."""
        return b""

    def _translate_line(self, line: bytes) -> bytes:
        try:
            event = _read_line(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _with_newline(line)  # the informer's decoder reports the error
        table = event.object
        if table.kind != "Table":
            if event.type in ("ADDED", "MODIFIED"):
                self.on_columns(())
            return _with_newline(line)
        if table.column_definitions:
            self.on_columns(table.column_definitions)
        with_cells = self.include_cells and event.type != "BOOKMARK"
        head = b'{"type":"%s","object":' % event.type.encode()
        return b"".join(
            head + _object_json(row, cells=with_cells) + b"}\n" for row in table.rows or ()
        )


@dataclass(slots=True)
class TablePageTranslator:
    resource: Resource
    on_columns: Callable[[Columns], None]
    progress: ListProgress
    include_cells: bool = True
    _chunks: list[bytes] = field(default_factory=list[bytes])

    def feed(self, chunk: bytes) -> bytes:
        """Keep ``chunk`` and return nothing: ``close`` translates the whole page at once."""
        self._chunks.append(chunk)
        return b""

    def close(self) -> bytes:
        body = b"".join(self._chunks)
        self._chunks.clear()
        try:
            table = _read_table(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return body
        if table.kind != "Table":
            self.on_columns(())
            return body
        self.on_columns(table.column_definitions or ())
        self._update_progress(table)
        rows = b",".join(_object_json(row, cells=self.include_cells) for row in table.rows or ())
        kind, version = (
            msgspec.json.encode(text)
            for text in (f"{self.resource.kind}List", self.resource.api_version)
        )
        head = b'{"kind":%s,"apiVersion":%s,' % (kind, version)
        return b'%s"metadata":%s,"items":[%s]}' % (head, bytes(table.metadata), rows)

    def _update_progress(self, table: _Table) -> None:
        self.progress.items += len(table.rows or ())
        remaining = _read_meta(table.metadata).remaining_item_count
        if remaining:
            self.progress.total = self.progress.items + remaining


def _object_json(row: _Row, *, cells: bool) -> bytes:
    whole = bytes(row.object)
    if not cells or not whole.endswith(b"}") or len(whole) < len(b'{"a":1}'):
        return whole
    return b'%s,"%s":%s}' % (whole[:-1], CELLS_KEY.encode(), bytes(row.cells))


def _with_newline(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"

"""The server's tables for people, as lists and watches that an informer can hold.

``kubectl get`` shows what the server prints: asked with ``as=Table``, it sends columns and rows
instead of objects, for a custom resource those that its definition names
(``additionalPrinterColumns``). Lists are one table; every event of a watch is one of one row
(recordings 28 and 30; ``includeObject`` says what of the object comes along). Here such an answer
is put back into the shape of a list or an event, with the cells as one more key of each object,
so that everything else, reconnecting and relisting and telling what changed, is an informer's.

A server that knows no tables (some aggregated ones) sends objects; those pass as they are. Pure:
bytes in, bytes out; ``reading`` does the asking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from aioinformer import Resource
from aioinformer._core.codec.watch_decoder import LineSplitter

__all__ = [
    "CELLS_KEY",
    "TABLE_ACCEPT",
    "Column",
    "Columns",
    "ListProgress",
    "TableEventTranslator",
    "TablePageTranslator",
]

TABLE_ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
"""What to ask for: kubectl's own header without the beta."""

CELLS_KEY = "tableCells"
"""The key under which an object carries its row's cells."""


class Column(Struct, frozen=True):
    """A column of a table, as the server defines it."""

    name: str
    priority: int = 0
    """0 for what is always shown; more for ``-o wide``."""


Columns: TypeAlias = tuple[Column, ...]


@dataclass(slots=True)
class ListProgress:
    """How far the reading of a first state is."""

    items: int = 0
    total: int | None = None
    """Of how many, where the server says: a list of several pages that nobody selects from."""

    def start(self) -> None:
        """It is read from the start."""
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
    """One watch: its tables become events."""

    on_columns: Callable[[Columns], None]
    """Told which columns there are; of none if these are no tables."""
    include_cells: bool = True
    """Whether the objects shall carry them."""
    _lines: LineSplitter = field(default_factory=LineSplitter)

    def feed(self, chunk: bytes) -> bytes:
        """The events that ``chunk`` completes.

        Raises:
            LineTooLong: the line under way has passed the cap.
        """
        return b"".join(map(self._translate_line, self._lines.feed(chunk)))

    def close(self) -> bytes:
        """What is left at the end: half an event is none."""
        return b""

    def _translate_line(self, line: bytes) -> bytes:
        try:
            read = _read_line(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _with_newline(line)  # whose turn it is to complain reads it next
        if read.object.kind != "Table":
            if read.type in ("ADDED", "MODIFIED"):
                self.on_columns(())
            return _with_newline(line)
        if read.object.column_definitions:
            self.on_columns(read.object.column_definitions)
        with_cells = self.include_cells and read.type != "BOOKMARK"
        head = b'{"type":"%s","object":' % read.type.encode()
        return b"".join(
            head + _object_json(row, cells=with_cells) + b"}\n" for row in read.object.rows or ()
        )


@dataclass(slots=True)
class TablePageTranslator:
    """One page of a list: its table becomes a list."""

    resource: Resource
    on_columns: Callable[[Columns], None]
    progress: ListProgress
    include_cells: bool = True
    _chunks: list[bytes] = field(default_factory=list[bytes])

    def feed(self, chunk: bytes) -> bytes:
        """Nothing yet: a page is as long as its limit lets it be, and read in one go."""
        self._chunks.append(chunk)
        return b""

    def close(self) -> bytes:
        """The page as a list."""
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

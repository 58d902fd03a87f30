"""The columns of a table: their headings, and the cells of an object. Pure."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from aioinformer import Field, KubeObject, field
from aioinformer._cli.watch.server_tables import CELLS_KEY, Columns
from aioinformer._core.selectors.requirements import END_OF_TEXT
from aioinformer.errors import InvalidPath

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400

ERROR_INDENT = 4
"""Columns by which an error text of a path indents the path."""

MISSING_VALUE = "<none>"
"""kubectl's word for a missing field."""

_read_cells = field(CELLS_KEY)
_read_status = field("status")


@dataclass(frozen=True, slots=True)
class ServerColumns:
    """The columns that the server prints; name, status and age if the server prints none."""

    columns: Callable[[], Columns]
    """Returns the columns of the server's newest table; none if the server sends no tables."""
    wide: bool = False
    """True to include the columns for ``-o wide``."""

    @property
    def headings(self) -> tuple[str, ...]:
        """The server's names of the columns, in capitals like kubectl's."""
        columns = self.columns()
        if not columns:
            return ("NAME", "STATUS", "AGE")
        return tuple(each.name.upper() for each in columns if self.wide or not each.priority)

    def cells(self, obj: KubeObject, now: dt.datetime) -> tuple[str, ...]:
        columns, cells = self.columns(), _read_cells(obj)
        if not columns or cells is None:
            created = obj.creation_timestamp
            age = format_age((now - created).total_seconds()) if created else ""
            return (obj.name, summarize_status(obj), age)
        pairs = zip(columns, cast("Sequence[object]", cells), strict=False)
        return tuple(
            _format_value(cell, "") for column, cell in pairs if self.wide or not column.priority
        )


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """The columns for the fields that the user chose."""

    headings: tuple[str, ...]
    paths: tuple[Field, ...]

    @classmethod
    def parse(cls, text: str) -> FieldColumns:
        """Parse a list of paths such as ``metadata.name,NODE:spec.nodeName``.

        Raises:
            InvalidPath: a path doesn't parse. The message names the path and the position.
        """
        headings, paths = list[str](), list[Field]()
        for part in _split_paths(text):
            heading = _HEADING.match(part)
            path = part[heading.end() :] if heading else part
            try:
                paths.append(field(path))
            except InvalidPath as error:
                raise InvalidPath(_describe_path_error(error, path)) from error
            headings.append(heading["name"] if heading else path)
        return cls(tuple(headings), tuple(paths))

    def cells(self, obj: KubeObject, now: dt.datetime) -> tuple[str, ...]:
        """Return the values of the fields; lists and objects as JSON."""
        return tuple(_format_value(path(obj), MISSING_VALUE) for path in self.paths)


_HEADING = re.compile(r"(?P<name>[A-Z][A-Z0-9_-]*):")
"""A heading before a path, as in kubectl's custom-columns: a key begins with a small letter."""

_PATH = re.compile(r"""(?:'[^']*'|"[^"]*"|[^,'"])*""")
"""A path: the text up to the next comma outside quotes."""


def _split_paths(text: str) -> list[str]:
    parts, position = list[str](), 0
    while position <= len(text):
        found = _PATH.match(text, position)
        end = found.end() if found else position
        if end < len(text) and text[end] != ",":
            end = len(text)  # a quote is not closed: parsing the path reports that
        parts.append(text[position:end])
        position = end + 1
    return parts


def _describe_path_error(error: InvalidPath, path: str) -> str:
    """Return the error of a path, which has several lines, as one line."""
    fault, *_, mark = str(error).splitlines()
    at = (
        END_OF_TEXT
        if mark.endswith(END_OF_TEXT)
        else f"at character {mark.index('^') - ERROR_INDENT + 1}"
    )
    return f"--output fields: {path!r}: {fault}, {at}"


def _format_value(value: object, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, str):
        return value
    return json.dumps(value, default=_to_plain, separators=(",", ":"), ensure_ascii=False)


def _to_plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    return list(cast("Sequence[object]", value))


# -- columns for a server that prints no tables ------------------------------------------------


def summarize_status(obj: KubeObject) -> str:
    """Return one word for the status of any object; empty if the object has none.

    The first that applies: ``Terminating``, ``status.phase``, or the condition that tells if the
    object is ready, available or complete.
    """
    if obj.deletion_timestamp is not None:
        return "Terminating"
    found = _read_status(obj)
    status: Mapping[str, Any] = (
        cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
    )
    phase = status.get("phase")
    return (
        phase
        if isinstance(phase, str) and phase
        else _summarize_conditions(status.get("conditions"))
    )


_CONDITIONS = {"Ready": "NotReady", "Available": "Unavailable", "Complete": "", "Failed": ""}
"""The conditions that describe a status, with the word for a condition that is not true."""


def _summarize_conditions(conditions: object) -> str:
    if not isinstance(conditions, Sequence) or isinstance(conditions, str):
        return ""
    holds: dict[object, bool] = {}
    for each in cast("Sequence[object]", conditions):
        if isinstance(each, Mapping):
            condition = cast("Mapping[str, object]", each)
            holds[condition.get("type")] = condition.get("status") == "True"
    for name, otherwise in _CONDITIONS.items():
        word = (name if holds[name] else otherwise) if name in holds else ""
        if word:
            return word
    return ""


def format_age(seconds: float) -> str:
    """Format a duration with at most two units, like kubectl (apimachinery's ``HumanDuration``)."""
    left = int(seconds)
    if left < 0:
        return "0s"  # the server's clock is ahead of this one
    if left < 2 * MINUTE:
        return f"{left}s"
    if left < 10 * MINUTE:
        return _format_two_units(left, MINUTE, "m", 1, "s")
    if left < 3 * HOUR:
        return f"{left // MINUTE}m"
    if left < 8 * HOUR:
        return _format_two_units(left, HOUR, "h", MINUTE, "m")
    if left < 2 * DAY:
        return f"{left // HOUR}h"
    if left < 8 * DAY:
        return _format_two_units(left, DAY, "d", HOUR, "h")
    if left < 2 * YEAR:
        return f"{left // DAY}d"
    return _format_two_units(left, YEAR, "y", DAY, "d") if left < 8 * YEAR else f"{left // YEAR}y"


def _format_two_units(seconds: int, large: int, first: str, small: int, second: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{first}" + (f"{rest}{second}" if rest else "")

"""What is shown of an object: its cells, and under which headings.

``ServerColumns`` shows what the server prints, or, of a server that prints nothing, name, status and
age; ``FieldColumns`` the fields that somebody has named. Pure: the time is an argument.
"""

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

__all__ = ["FieldColumns", "ServerColumns", "format_age", "summarize_status"]

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400

ERROR_INDENT = 4
"""Columns before a path that is complained of."""

MISSING_VALUE = "<none>"
"""kubectl's word for a field that isn't there."""

_read_cells = field(CELLS_KEY)


@dataclass(frozen=True, slots=True)
class ServerColumns:
    """What the server prints."""

    columns: Callable[[], Columns]
    """Those of its newest table; none if it sends none."""
    wide: bool = False
    """Whether to show those that are for ``-o wide``."""

    @property
    def headings(self) -> tuple[str, ...]:
        """As the server names them, in capitals as kubectl writes them."""
        columns = self.columns()
        if not columns:
            return ("NAME", "STATUS", "AGE")
        return tuple(each.name.upper() for each in columns if self.wide or not each.priority)

    def cells(self, obj: KubeObject, now: dt.datetime) -> tuple[str, ...]:
        """The cells of its row."""
        columns, cells = self.columns(), _read_cells(obj)
        if not columns or cells is None:
            born = obj.creation_timestamp
            lived = format_age((now - born).total_seconds()) if born else ""
            return (obj.name, summarize_status(obj), lived)
        both = zip(columns, cast("Sequence[object]", cells), strict=False)
        return tuple(
            _format_value(cell, "") for column, cell in both if self.wide or not column.priority
        )


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """Some fields."""

    headings: tuple[str, ...]
    """What to call them."""
    paths: tuple[Field, ...]

    @classmethod
    def parse(cls, text: str) -> FieldColumns:
        """Of ``metadata.name,NODE:spec.nodeName``.

        Raises:
            InvalidPath: a path doesn't parse. The message names it, and where in it.
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
        """The values; lists and objects as JSON."""
        return tuple(_format_value(path(obj), MISSING_VALUE) for path in self.paths)


_HEADING = re.compile(r"(?P<name>[A-Z][A-Z0-9_-]*):")
"""A heading of one's own, as kubectl's custom-columns have them; keys of Kubernetes begin small."""

_PATH = re.compile(r"""(?:'[^']*'|"[^"]*"|[^,'"])*""")
"""Up to the next comma outside quotes."""


def _split_paths(text: str) -> list[str]:
    parts, position = list[str](), 0
    while position <= len(text):
        found = _PATH.match(text, position)
        end = found.end() if found else position
        if end < len(text) and text[end] != ",":
            end = len(text)  # a quote that is never closed: the path says so
        parts.append(text[position:end])
        position = end + 1
    return parts


def _describe_path_error(error: InvalidPath, path: str) -> str:
    """One line out of those in which a path is complained of."""
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
    """A read-only part of an object as what ``json`` knows."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    return list(cast("Sequence[object]", value))


# -- of a server that prints nothing -----------------------------------------------------------


def summarize_status(obj: KubeObject) -> str:
    """One word for any object's status; empty if it has none.

    In this order: it is being deleted, its ``status.phase``, or the condition that says whether
    it is of use.
    """
    if obj.deletion_timestamp is not None:
        return "Terminating"
    found = obj.get("status")
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
"""The conditions that say it, and what to call it when they don't hold."""


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
    """A duration as kubectl writes it (apimachinery's ``HumanDuration``).

    Two units while the second one matters: ``5s``, ``2m30s``, ``45m``, ``3h20m``, ``5d4h``.
    """
    left = int(seconds)
    if left < 0:
        return "0s"  # the server's clock is ahead
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

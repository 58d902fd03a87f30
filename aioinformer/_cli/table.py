"""Events as rows and as JSON lines: what ``aioinformer watch`` prints.

Pure: the time is an argument. A stream has no last row to measure, so columns are as wide as what
has come so far, as in ``kubectl get --watch``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from aioinformer import Event, KubeObject
from aioinformer._cli.style import printable
from aioinformer._cli.tally import type_of

__all__ = ["Table", "age", "json_line", "status_of"]

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400

GAP = "   "
"""kubectl's padding."""

_WIDTHS = {"EVENT": 8, "NAMESPACE": 9, "NAME": 24, "STATUS": 9, "AGE": 6, "RESOURCEVERSION": 0}
"""The least widths. MODIFIED has 8 letters; the others are guesses that most clusters fill, so
that little moves when the first long name comes."""


class Table:
    """Rows that begin under each other."""

    def __init__(self, *, namespaces: bool) -> None:
        """A table with no rows; ``namespaces`` gives it that column."""
        self._widths = dict(_WIDTHS)
        if not namespaces:
            del self._widths["NAMESPACE"]

    def fit(self, events: Iterable[Event], now: dt.datetime) -> None:
        """Make room for these, before the first line is written."""
        for event in events:
            self._cells(event, now)

    def header(self) -> str:
        """The first line, with its newline."""
        return self._line(dict.fromkeys(self._widths, "") | {name: name for name in self._widths})

    def row(self, event: Event, now: dt.datetime) -> str:
        """An event's line, with its newline."""
        return self._line(self._cells(event, now))

    def _cells(self, event: Event, now: dt.datetime) -> Mapping[str, str]:
        obj = event.obj
        born = obj.creation_timestamp
        every = {
            "EVENT": type_of(event),
            "NAMESPACE": obj.namespace,
            "NAME": obj.name,
            "STATUS": status_of(obj),
            "AGE": age((now - born).total_seconds()) if born else "",
            "RESOURCEVERSION": obj.resource_version,
        }
        cells = {name: printable(every[name]) or "-" for name in self._widths}
        for name, text in cells.items():
            self._widths[name] = max(self._widths[name], len(text))
        return cells

    def _line(self, cells: Mapping[str, str]) -> str:
        padded = (f"{cells[name]:<{width}}" for name, width in self._widths.items())
        return GAP.join(padded).rstrip() + "\n"

    def __repr__(self) -> str:
        return f"<Table {' '.join(self._widths)}>"


def json_line(event: Event) -> bytes:
    """An event as one line of JSON, as the watch of an API server has it."""
    obj = event.obj
    typed = {"apiVersion": obj.api_version, "kind": obj.kind}  # first, as kubectl writes them
    whole = {"type": type_of(event), "object": typed | obj.to_dict()}
    return msgspec.json.encode(whole) + b"\n"


# -- cells -------------------------------------------------------------------------------------


def status_of(obj: KubeObject) -> str:
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
    return phase if isinstance(phase, str) and phase else _condition(status.get("conditions"))


_CONDITIONS = {"Ready": "NotReady", "Available": "Unavailable", "Complete": "", "Failed": ""}
"""The conditions that say it, and what to call it when they don't hold."""


def _condition(conditions: object) -> str:
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


def age(seconds: float) -> str:
    """A duration as kubectl writes it (apimachinery's ``HumanDuration``).

    Two units while the second one matters: ``5s``, ``2m30s``, ``45m``, ``3h20m``, ``5d4h``.
    """
    left = int(seconds)
    if left < 0:
        return "0s"  # the server's clock is ahead
    if left < 2 * MINUTE:
        return f"{left}s"
    if left < 10 * MINUTE:
        return _two(left, MINUTE, "m", 1, "s")
    if left < 3 * HOUR:
        return f"{left // MINUTE}m"
    if left < 8 * HOUR:
        return _two(left, HOUR, "h", MINUTE, "m")
    if left < 2 * DAY:
        return f"{left // HOUR}h"
    if left < 8 * DAY:
        return _two(left, DAY, "d", HOUR, "h")
    if left < 2 * YEAR:
        return f"{left // DAY}d"
    return _two(left, YEAR, "y", DAY, "d") if left < 8 * YEAR else f"{left // YEAR}y"


def _two(seconds: int, large: int, first: str, small: int, second: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{first}" + (f"{rest}{second}" if rest else "")

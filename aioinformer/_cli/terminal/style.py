"""Styled lines of text: colours, widths, words, and the removal of control characters.

The drawing functions build a ``Line`` without escapes. ``render`` cuts the line to a width and adds
escapes only if the output has colours. ``printable`` removes control characters from text that came
from a server: an escape sequence in an object's name must not reach the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from aioinformer import Added, Deleted, Event, Updated

Style: TypeAlias = Literal["", "bold", "dim", "green", "yellow", "red", "cyan", "blue"]

_CODES: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "green": "32",
    "yellow": "33",
    "red": "31",
    "cyan": "36",
    "blue": "34",
}
_RESET = "\x1b[0m"

EVENT_STYLES: Mapping[str, Style] = {"ADDED": "green", "MODIFIED": "cyan", "DELETED": "red"}

COLUMN_GAP = "   "
"""The space between two columns of a table, as in kubectl."""


class StyledText(NamedTuple):
    text: str
    style: Style = ""


Line: TypeAlias = tuple[StyledText, ...]


def render(line: Iterable[StyledText], width: int = sys.maxsize, *, colour: bool) -> str:
    """Return a line as text, cut to ``width`` columns, by default without a limit.

    Every character counts as one column. With ``colour`` the styles become escapes.
    """
    parts: list[str] = []
    left = max(0, width)
    for text, style in line:
        shown = text[:left]
        left -= len(shown)
        code = _CODES.get(style) if colour and shown.strip() else None
        parts.append(f"\x1b[{code}m{shown}{_RESET}" if code else shown)
    return "".join(parts).rstrip() if not colour else "".join(parts)


def align_columns(cells: Sequence[StyledText], widths: Iterable[int]) -> Line:
    """Return a table's row, with each cell but the last padded to its column's width."""
    line: list[StyledText] = []
    for cell, width in zip(cells[:-1], widths, strict=False):
        line += [cell, StyledText(" " * (width - len(cell.text)) + COLUMN_GAP)]
    return (*line, *cells[-1:])


def printable(text: str) -> str:
    """Return ``text`` in one line, with control characters replaced by U+FFFD."""
    return replace_controls(" ".join(text.split()))


def replace_controls(line: str) -> str:
    """Return ``line`` with each control character replaced by U+FFFD."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)


_GOOD_WORDS = frozenset(
    (
        "Active",
        "Available",
        "Bound",
        "Complete",
        "Completed",
        "Ready",
        "Running",
        "Succeeded",
        "True",
    )
)
_BAD_WORDS = (
    "BackOff",
    "Err",
    "Fail",
    "Lost",
    "Evicted",
    "OOMKilled",
    "Invalid",
    "DeadlineExceeded",
)
"""Parts of the words for a bad status: reasons that the kubelet sets, and phases."""


def event_type(event: Event) -> str:
    """Return the type of an event in the words of the API: ADDED, MODIFIED, DELETED."""
    match event:
        case Added():
            return "ADDED"
        case Updated():
            return "MODIFIED"
        case Deleted():
            return "DELETED"


def status_style(word: str) -> Style:
    """Return the colour of a status: green for good, red for bad, yellow for a transition."""
    if word in _GOOD_WORDS:
        return "green"
    if any(part in word for part in _BAD_WORDS):
        return "red"
    return "" if word in ("-", "<none>", "Unknown") else "yellow"


def compact_bytes(count: int) -> str:
    """Return a number of bytes as short text: ``312 B``, ``1.1 MB`` (powers of ten)."""
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.95 or unit == "GB":
            break
    return f"{size:.1f} {unit}"

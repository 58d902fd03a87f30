"""Lines of text that know their colours and their width, without a terminal.

What draws makes ``Line``s; ``render`` cuts one to a width and adds escapes only if asked to. Text
that came from a server is made harmless here: a name with an escape sequence in it must not
reach a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

__all__ = [
    "Line",
    "Style",
    "StyledText",
    "compact_bytes",
    "plain_text",
    "printable",
    "render",
    "status_style",
]

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


class StyledText(NamedTuple):
    """Some text in one style."""

    text: str
    style: Style = ""


Line: TypeAlias = tuple[StyledText, ...]


def plain_text(line: Iterable[StyledText]) -> str:
    """A line's text alone."""
    return "".join(span.text for span in line)


def render(line: Iterable[StyledText], width: int, *, colour: bool) -> str:
    """A line as a terminal takes it.

    Args:
        line: what to show.
        width: columns; what is longer is cut. Every character counts as one column.
        colour: whether to use escapes.
    """
    parts: list[str] = []
    left = max(0, width)
    for text, style in line:
        shown = text[:left]
        left -= len(shown)
        code = _CODES.get(style) if colour and shown.strip() else None
        parts.append(f"\x1b[{code}m{shown}{_RESET}" if code else shown)
    return "".join(parts).rstrip() if not colour else "".join(parts)


def printable(text: str) -> str:
    """``text`` in one line, without control characters."""
    joined = " ".join(text.split())
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in joined)


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
"""What the words of bad news have in them: kubelet's reasons, and phases."""


def status_style(word: str) -> Style:
    """The colour of a status: good, bad, or not yet."""
    if word in _GOOD_WORDS:
        return "green"
    if any(part in word for part in _BAD_WORDS):
        return "red"
    return "" if word in ("-", "<none>", "Unknown") else "yellow"


def compact_bytes(count: int) -> str:
    """A number of bytes for people: ``312 B``, ``1.1 MB`` (powers of ten)."""
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.95 or unit == "GB":
            break
    return f"{size:.1f} {unit}"

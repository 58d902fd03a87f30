"""Texts of others in errors, logs and health: on one line, printable and no longer than expected.

A server, an object's name or a function of the program may contain line breaks and escape
sequences, which would forge lines of a log and control a terminal.
"""

from __future__ import annotations

MAX_TEXT_LENGTH = 1000
"""Characters of a server's message that are kept. kube-apiserver's own messages have some hundred.
"""


def one_line(text: str, cap: int = MAX_TEXT_LENGTH) -> str:
    """Return ``text`` in one line of at most ``cap`` characters, without control characters."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text[:cap]).split())
    return shown if len(text) <= cap else f"{shown}..."


def printable(text: str) -> str:
    """Return ``text`` unchanged if it is printable, else in one line without other characters."""
    return text if text.isprintable() else one_line(text, len(text))

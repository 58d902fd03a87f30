"""How a selector that doesn't parse is reported: the server's sentence, then the place."""

from __future__ import annotations

from aioinformer.errors import InvalidSelector

__all__ = ["AT_THE_END", "invalid"]

AT_THE_END = "at the end"
"""Said beside the mark of a text that stops too early: the server says only ``found ''``."""


def invalid(problem: str, text: str, position: int) -> InvalidSelector:
    """The error. Its first line is what an API server would say, the rest marks the place."""
    mark = "^" if position < len(text) else f"^ {AT_THE_END}"
    return InvalidSelector(f"{problem}\n    {text}\n    {' ' * position}{mark}")

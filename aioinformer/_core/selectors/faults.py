"""How a selector that doesn't parse is reported: the server's sentence, then the place."""

from __future__ import annotations

from aioinformer.errors import InvalidSelector


def invalid(problem: str, text: str, position: int) -> InvalidSelector:
    """The error. Its first line is what an API server would say, the rest marks the place."""
    return InvalidSelector(f"{problem}\n    {text}\n    {' ' * position}^")

"""Numbers with their nouns, for the texts of logs, health and errors."""

from __future__ import annotations


def quantity(number: int, noun: str) -> str:
    """Return a number with its noun, as ``1 key`` and ``2 keys``.

    Args:
        number: the number.
        noun: the noun in the singular, whose plural is made with an ``s``.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

"""Numbers with their nouns, for the texts of logs, health and errors."""

from __future__ import annotations


def quantity(number: int, noun: str) -> str:
    """Return a number with its noun, given in the singular, as ``1 key`` and ``2 keys``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

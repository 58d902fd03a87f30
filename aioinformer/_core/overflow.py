"""How much a mailbox holds, and what happens beyond that."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

__all__ = ["LIMIT", "Overflow", "check_overflow"]

LIMIT = 1024
"""Live events a mailbox holds by default; client-go's buffer begins at this and has no end."""

Overflow: TypeAlias = Literal["coalesce", "block", "error"]
"""What happens when a mailbox is full. ``coalesce``: the oldest events are merged, object by
object. ``block``: nothing more is applied until there is room. ``error``: the listener is ended."""


def check_overflow(limit: int, overflow: Overflow) -> None:
    """Refuse what no mailbox can do.

    Raises:
        ValueError: the limit is below 1, or nobody knows the rule.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    if overflow not in get_args(Overflow):
        rules = ", ".join(map(repr, get_args(Overflow)))
        raise ValueError(f"overflow must be one of {rules}, not {overflow!r}")

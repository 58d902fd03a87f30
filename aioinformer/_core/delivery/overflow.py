"""The overflow rules: the reaction of a mailbox to more live events than its limit."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NoReturn, TypeAlias

OverflowName: TypeAlias = Literal["coalesce", "block", "error"]


class Overflow(StrEnum):
    """The rule of a mailbox that holds more live events than its limit.

    A new rule is a member and its properties here, and its effect in ``Mailbox``.
    """

    COALESCE = "coalesce"
    """The oldest events are merged by object."""
    BLOCK = "block"
    """The pump waits for room, so that in the end the watch isn't read."""
    ERROR = "error"
    """The listener is ended."""

    @property
    def merges(self) -> bool:
        return self is Overflow.COALESCE

    @property
    def blocks(self) -> bool:
        return self is Overflow.BLOCK

    @property
    def ends(self) -> bool:
        return self is Overflow.ERROR

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        rules = ", ".join(repr(rule.value) for rule in cls)
        raise ValueError(f"overflow must be one of {rules}, not {value!r}")

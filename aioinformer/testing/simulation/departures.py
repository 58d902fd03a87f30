"""How listeners end when nobody has removed them: too slow, or with their factory.

Records like those of ``records``; ``endings`` judges them.
"""

from __future__ import annotations

from dataclasses import dataclass

from aioinformer.testing.simulation.records import Record, State

__all__ = ["Overflowed", "Visited"]


@dataclass(slots=True)
class Overflowed(Record):
    """The mailbox of a listener with ``overflow="error"`` was given too much."""

    listener: str
    limit: int
    high: int
    """The most events that it ever held."""
    twice: bool
    """Whether it was given the changes of a list while it had those of another."""
    raised: list[str]
    """With what its stream has ended, each time that it was told so."""

    def __str__(self) -> str:
        return f"{self.listener} is ended: {self.high} of {self.limit} events were pending"


@dataclass(slots=True)
class Visited(Record):
    """A factory was left, whose handler was to finish what was pending."""

    name: str
    cached: State
    """What the cache held when the body of the factory was through."""
    held: State
    """What the handler holds, after what it was told."""
    late: int
    """Events that came after the factory was left."""
    lasted: float
    """Seconds that leaving took."""
    incomplete: str
    """What ``ShutdownIncomplete`` said; empty if it was not raised."""
    broke: str = ""
    """What its handler raised, which was to end the factory; empty if it didn't."""
    raised: str = ""
    """With what the factory has ended; empty for an end in order."""

    def __str__(self) -> str:
        how = self.incomplete or "in order"
        return f"{self.name} is left with {len(self.held)} of {len(self.cached)} objects: {how}"

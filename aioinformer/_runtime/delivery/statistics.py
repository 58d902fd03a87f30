"""The numbers of one listener, as programs read them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The numbers of a listener at one moment."""

    pending: int
    """Live events that are queued. Events that were merged into another one don't count."""
    limit: int
    """Live events that the mailbox holds."""
    high: int
    """The most live events that were ever pending. With ``overflow="coalesce"`` they are counted
    after merging."""
    delivered: int
    """Events that were passed to the handler or taken from the stream."""
    merged: int
    """Events that were merged into a later event, and so not delivered by themselves."""
    errors: int
    """Calls of the handler that failed, or were not made because ``convert=`` raised."""
    synced: bool
    """True if the handler has returned from all objects that were cached when it joined."""
    oldest: float
    """Seconds that the oldest pending event has waited; 0 if none is pending. Resyncs don't
    count."""
    spent_last: float
    """Seconds that the last call of the handler took."""
    spent_mean: float
    """Seconds that a call took on average."""
    spent_max: float
    """Seconds that the longest call took."""
    blocking_calls: int = 0
    """Calls of the handler that have held the event loop for more than 250 ms at a stretch, async
    or not; see ``InformerOptions.report_blocking``."""

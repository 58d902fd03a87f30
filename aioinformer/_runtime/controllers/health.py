"""What a controller says about itself: for readiness probes, dashboards and people.

A snapshot; times are seconds relative to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from aioinformer._core.objects import ObjectKey
from aioinformer._core.work.failing import FailingKey
from aioinformer._core.work.statistics import QueueStatistics

__all__ = ["ControllerHealth", "ControllerState"]

ControllerState: TypeAlias = Literal["new", "syncing", "running", "stopping", "stopped", "failed"]
"""``syncing``: it waits until its triggers have heard of everything that is cached. ``failed``: an
informer or a worker of its own has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerHealth:
    """A controller at one moment."""

    state: ControllerState
    error: BaseException | None
    """What ended it, if it failed."""
    waiting_for: tuple[str, ...]
    """The triggers that it waits for before it starts to work."""
    running: Mapping[ObjectKey, float]
    """The keys that are being reconciled, and for how many seconds."""
    waiting: int
    """Keys that are to be reconciled, now or later. Of a controller that has stopped: what was left
    undone."""
    runs: int
    """Runs that have ended, one way or the other."""
    failed_runs: int
    """Those of them that failed."""
    failing: tuple[FailingKey, ...]
    """The keys whose last run failed, those first that have failed for longest, a hundred at most.
    """
    failing_keys: int
    """How many keys there are of that kind."""
    queue: QueueStatistics
    """The numbers of its work queue."""

    def __str__(self) -> str:
        parts = [f"{self.state}, {self.runs} runs, {self.waiting} keys waiting"]
        if self.error is not None:
            parts.append(f"{type(self.error).__name__}: {self.error}")
        if self.waiting_for and self.state == "syncing":
            parts.append(f"waiting for {', '.join(self.waiting_for)}")
        if self.failing_keys:
            parts.append(f"{self.failing_keys} keys failing, such as {self.failing[0]}")
        return "; ".join(parts)

"""Whether a resource is gone, as far as its server's discovery documents tell.

A CustomResourceDefinition is deleted, an aggregated API is down, a replica lags behind, a proxy
answers 404 to everything: seen from a list or a watch they look alike. A cache that is emptied by
mistake deletes things in the world outside. So it takes two answers of discovery, some seconds
apart, none of them showing the resource and none in between that does.
"""

from __future__ import annotations

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.objects.resources import Resource

__all__ = ["CONFIRMED_AFTER", "Absence"]

FORGOTTEN_AFTER = 150.0
"""Seconds without an answer after which the one before says nothing any more: more than two of the
longest waits between looks."""

CONFIRMED_AFTER = 5.0
"""Seconds between the two answers, at least: an API server shows a new or deleted definition after
about one, other replicas of it a little later."""


class Absence:
    """What discovery has said of one resource."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.since: float | None = None
        """When it was first said to be absent; ``None`` if it is there, or nobody has looked."""
        self.confirmed = False
        """Whether that has been said twice."""
        self._heard = 0.0

    def hear(self, found: Resource | None, asked: Resource, now: float) -> Outcome:
        """Discovery has answered.

        Args:
            found: the resource as it is served now; ``None`` if it isn't.
            asked: the resource as it is read.
            now: seconds of a monotonic clock.
        """
        heard, self._heard = self._heard, now
        if found is None:
            if self.since is None or now - heard > FORGOTTEN_AFTER:
                self.since = now
            self.confirmed = now - self.since >= CONFIRMED_AFTER
            return Outcome.ABSENT
        was_absent = self.since is not None
        self.forget()
        if found != asked and found.version != asked.version:
            return Outcome.MOVED
        return Outcome.APPEARED if was_absent else Outcome.SERVED

    def forget(self) -> None:
        """It is there."""
        self.since, self.confirmed = None, False

    def __repr__(self) -> str:
        if self.since is None:
            return "<Absence not known>"
        return f"<Absence since {self.since:.1f}{' confirmed' if self.confirmed else ''}>"

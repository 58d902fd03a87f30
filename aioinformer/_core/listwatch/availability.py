"""Whether a resource is gone, as far as its server's discovery documents tell.

A CustomResourceDefinition is deleted, an aggregated API is down, a replica lags behind, a proxy
answers 404 to everything: seen from a list or a watch they look alike. A cache that is emptied by
mistake deletes things in the world outside. So it takes two answers of discovery, some seconds
apart, none of them showing the resource and none in between that does.
"""

from __future__ import annotations

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.objects.resources import Resource

__all__ = ["CONFIRMATION_INTERVAL", "ResourceAvailability"]

ANSWER_VALIDITY = 150.0
"""Seconds without an answer after which the one before says nothing any more: more than two of the
longest waits between looks."""

CONFIRMATION_INTERVAL = 5.0
"""Seconds between the two answers, at least: an API server shows a new or deleted definition after
about one, other replicas of it a little later."""


class ResourceAvailability:
    """What discovery has said of one resource."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.absent_since: float | None = None
        """When it was first said to be absent; ``None`` if it is there, or nobody has looked."""
        self.absence_confirmed = False
        """Whether that has been said twice."""
        self._last_answer_at = 0.0

    def record(self, found: Resource | None, requested: Resource, now: float) -> Outcome:
        """Discovery has answered.

        Args:
            found: the resource as it is served now; ``None`` if it isn't.
            requested: the resource as it is read.
            now: seconds of a monotonic clock.
        """
        heard, self._last_answer_at = self._last_answer_at, now
        if found is None:
            if self.absent_since is None or now - heard > ANSWER_VALIDITY:
                self.absent_since = now
            self.absence_confirmed = now - self.absent_since >= CONFIRMATION_INTERVAL
            return Outcome.NOT_SERVED
        was_absent = self.absent_since is not None
        self.reset()
        if found != requested and found.version != requested.version:
            return Outcome.API_VERSION_CHANGED
        return Outcome.APPEARED if was_absent else Outcome.SERVED

    def reset(self) -> None:
        """It is there."""
        self.absent_since, self.absence_confirmed = None, False

    def __repr__(self) -> str:
        if self.absent_since is None:
            return "<ResourceAvailability not known>"
        return f"<ResourceAvailability since {self.absent_since:.1f}{' confirmed' if self.absence_confirmed else ''}>"

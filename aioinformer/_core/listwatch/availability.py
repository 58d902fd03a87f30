"""The state of a resource that the server stopped serving.

A deleted CustomResourceDefinition, an aggregated API that is down, a replica that lags behind and a
proxy that answers 404 to everything look alike to a list or a watch. A cache that is emptied by
mistake makes controllers delete things in the outside world. So a resource counts as absent only
after two answers of discovery, some seconds apart, that don't show it, with none in between that
does.
"""

from __future__ import annotations

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.objects.resources import Resource

ANSWER_VALIDITY = 150.0
"""Seconds after which the previous answer no longer counts: more than two of the longest waits
between reads of discovery."""

CONFIRMATION_INTERVAL = 20.0
"""The least seconds between the two answers. An API server shows a new or deleted definition after
about one second, its other replicas a little later, but one that has just started may list no
groups of custom resources for many seconds."""


class ResourceAvailability:
    def __init__(self) -> None:
        self.absent_since: float | None = None
        """The time of the first answer without the resource; ``None`` after one that had it, or
        none."""
        self.absence_confirmed = False
        self._last_answer_at = 0.0

    def record(self, found: Resource | None, requested: Resource, now: float) -> Outcome:
        """Record that discovery shows ``found``, or ``None``, where ``requested`` is read."""
        previous, self._last_answer_at = self._last_answer_at, now
        if found is None:
            if self.absent_since is None or now - previous > ANSWER_VALIDITY:
                self.absent_since = now
            self.absence_confirmed = now - self.absent_since >= CONFIRMATION_INTERVAL
            return Outcome.NOT_SERVED
        was_absent = self.absent_since is not None
        self.reset()
        if found != requested and found.version != requested.version:
            return Outcome.API_VERSION_CHANGED
        return Outcome.APPEARED if was_absent else Outcome.SERVED

    def reset(self) -> None:
        self.absent_since, self.absence_confirmed = None, False

    def __repr__(self) -> str:
        if self.absent_since is None:
            return "<ResourceAvailability not absent>"
        confirmed = " confirmed" if self.absence_confirmed else ""
        return f"<ResourceAvailability absent since {self.absent_since:.1f}{confirmed}>"

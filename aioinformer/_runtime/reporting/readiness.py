"""Checks of informers for probes: is a program alive, is it ready, and why not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from aioinformer._runtime.reporting.health import Health

FRESH = 180.0
"""Seconds without a proof of freshness after which a cache is not ``ready`` any more. A server
sends a bookmark once a minute, and two bookmarks may be late."""

_ENDED_STATES = ("failed", "stopped")


class HasHealth(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def health(self) -> Health: ...


def alive(informers: Iterable[HasHealth]) -> dict[str, str]:
    """Return the informers that have ended for good, with the reasons; empty if all are running.

    For a liveness probe: restarting the program helps. An API server that can't be reached is no
    reason to restart.
    """
    return {each.name: str(each.health) for each in informers if each.health.state in _ENDED_STATES}


def ready(informers: Iterable[HasHealth], *, within: float | None = FRESH) -> dict[str, str]:
    """Return the informers that should not be read, with the reasons; empty if all may be read.

    ``within`` is the most seconds since the last proof of freshness; ``None`` if an old cache is
    better than none: an API server that one replica can't reach is usually unreachable for all.
    """
    reasons = {each.name: _unready_reason(each.health, within) for each in informers}
    return {name: why for name, why in reasons.items() if why}


def _unready_reason(health: Health, within: float | None) -> str:
    if health.state in _ENDED_STATES:
        return str(health)
    if not health.synced:
        return f"not synced: {health}"
    if health.rejects_all:
        return f"nothing is cached: {health}"
    if within is not None and (health.fresh is None or health.fresh > within):
        return f"not known to be up to date: {health}"
    return ""

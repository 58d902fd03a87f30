"""What probes ask of a program with informers: whether it is alive, whether ready, and why not.

``alive`` and ``ready`` are functions of informers, for programs that answer probes themselves;
``Probe`` is an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from aioinformer._runtime.informer.informer import SharedInformer
from aioinformer.adapters.asgi.responses import (
    JSON_HEADERS,
    Receive,
    Scope,
    Send,
    check_http,
    send_response,
)

__all__ = ["FRESH", "Check", "Informers", "Probe", "alive", "ready"]

Informers: TypeAlias = Callable[[], Iterable[SharedInformer]]
"""The informers that are meant; asked for each request, since most are made in a lifespan."""

Check: TypeAlias = Callable[[Iterable[SharedInformer]], Mapping[str, str]]
"""What is wrong, by the names of the informers; empty if nothing is."""

FRESH = 180.0
"""Seconds without a proof of freshness after which a cache is no longer ``ready``: a server sends
bookmarks once a minute, and two may be late."""

_ENDED_STATES = ("failed", "stopped")


def alive(informers: Iterable[SharedInformer]) -> dict[str, str]:
    """Which informers have ended and won't come back, and why; empty if all is well.

    For a liveness probe: a restart helps. An API server that is away is no reason for one.
    """
    return {each.name: str(each.health) for each in informers if each.health.state in _ENDED_STATES}


def ready(informers: Iterable[SharedInformer], *, within: float | None = FRESH) -> dict[str, str]:
    """Which informers should not be read from, and why; empty if all of them may be.

    Args:
        informers: those that the program reads.
        within: seconds that the last proof of freshness may be old; ``None`` if an old cache is
            better than none: an API server that is away is away from all replicas at once.
    """
    reasons = {each.name: _unready_reason(each, within) for each in informers}
    return {name: why for name, why in reasons.items() if why}


def _unready_reason(informer: SharedInformer, within: float | None) -> str:
    health = informer.health
    if health.state in _ENDED_STATES:
        return str(health)
    if not health.synced:
        return f"not synced: {health}"
    if within is not None and (health.fresh is None or health.fresh > within):
        return f"not known to be up to date: {health}"
    return ""


class Probe:
    """An ASGI application that answers 200 if a check finds nothing, else 503 and what it found.

    The body is JSON: ``ok``, ``wrong`` (reasons by informer) and ``informers`` (all of their
    healths), with the server's own words where it has said something.
    """

    def __init__(self, informers: Informers, check: Check = ready) -> None:
        """Check with ``ready``, ``alive``, or another function of informers."""
        self._informers = informers
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        check_http(scope)
        informers = list(self._informers())
        wrong = self._check(informers)
        health = {each.name: str(each.health) for each in informers}
        body = {"ok": not wrong, "wrong": wrong, "informers": health}
        await send_response(send, 503 if wrong else 200, JSON_HEADERS, msgspec.json.encode(body))

    def __repr__(self) -> str:
        return f"<Probe {getattr(self._check, '__name__', self._check)}>"

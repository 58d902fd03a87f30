"""Answers for probes: is a program with informers alive, is it ready, and why not.

``alive`` and ``ready`` are functions of informers, for programs that answer probes themselves.
``Probe`` is an ASGI application that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from aioinformer._runtime.informer.informer import SharedInformer
from aioinformer._runtime.reporting.readiness import FRESH, alive, ready
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
"""Returns the informers to check. It is called for each request, since most programs make their
informers in a lifespan."""

Check: TypeAlias = Callable[[Iterable[SharedInformer]], Mapping[str, str]]
"""Returns the problems by name of the informer; empty if there are none."""


class Probe:
    """An ASGI application that answers 200 if a check finds no problem, else 503 and the problems.

    The body is JSON: ``ok``, ``wrong`` (reasons by informer) and ``informers`` (the health of all),
    with the server's message where there is one.
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

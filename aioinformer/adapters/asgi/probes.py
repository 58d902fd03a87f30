"""Answers for probes: is a program with informers alive, is it ready, and why not.

``alive`` and ``ready`` are functions of informers, for programs that answer probes themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

import msgspec

from aioinformer._core.callables import check_not_async, check_signature
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.reporting.readiness import ready
from aioinformer.adapters.asgi.asgi_messages import (
    JSON_HEADERS,
    Receive,
    Scope,
    Send,
    check_http,
    send_response,
)

Informers: TypeAlias = Callable[[], Iterable[SharedInformer[Any]]]
"""Returns the informers, for each request, since most programs make them in a lifespan."""

Check: TypeAlias = Callable[[Iterable[SharedInformer[Any]]], Mapping[str, str]]
"""Returns the problems by name of the informer; empty if there are none."""


def check_informers(informers: object, caller: str) -> None:
    """Raise unless ``informers`` is a function without arguments that returns at once.

    Raises:
        TypeError: ``informers`` is a factory, an informer, a list or an async function.
    """
    if not callable(informers):
        raise TypeError(
            f"{caller} takes a function that returns the informers, because a lifespan creates "
            f"them later: write {caller}(lambda: [pods]), not {informers!r}"
        )
    check_not_async(informers, f"the function of the informers of {caller}")
    check_signature(informers, f"the function of the informers of {caller} ")


class Probe:
    """An ASGI application that answers 200 if a check finds no problem, else 503 and the problems.

    The body is JSON: ``ok``, ``wrong`` (reasons by informer) and ``informers`` (the health of all),
    with the server's message where there is one. The reasons name the API server and the user of
    the program. Pass ``details=False`` where anyone can request the probe.

    Example::

        from aioinformer.adapters.asgi import Probe, ready

        readyz = Probe(lambda: [pods], ready, details=False)
    """

    def __init__(self, informers: Informers, check: Check = ready, *, details: bool = True) -> None:
        """Make a probe.

        Args:
            informers: called for each request; returns the informers to check.
            check: ``ready``, ``alive``, or another function of informers.
            details: False to leave the reasons out: the body is ``{"ok": ...}`` then. The reasons
                are in the log and in ``SharedInformer.health``.

        Raises:
            TypeError: ``informers`` or ``check`` can't be called so.
        """
        check_informers(informers, "Probe")
        if not callable(cast("object", check)):
            raise TypeError(f"a Probe checks with ready, alive or another function, not {check!r}")
        check_not_async(check, f"check {getattr(check, '__name__', check)}")
        check_signature(check, getattr(check, "__name__", repr(check)), "informers")
        self._informers = informers
        self._check = check
        self._details = details

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        check_http(scope)
        informers = list(self._informers())
        wrong = self._check(informers)
        health = {each.name: str(each.health) for each in informers}
        body: dict[str, object] = {"ok": not wrong}
        if self._details:
            body |= {"wrong": wrong, "informers": health}
        await send_response(send, 503 if wrong else 200, JSON_HEADERS, msgspec.json.encode(body))

    def __repr__(self) -> str:
        return f"<Probe {getattr(self._check, '__name__', self._check)}>"

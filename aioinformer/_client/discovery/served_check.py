"""``Lookups``: whether a resource is served, asked once for all who want to know.

Two hundred informers may read one custom resource, each in a namespace of its own. When it is
removed, each of them is answered 404 and looks whether it is served at all: that is one question,
not two hundred. An answer, good or bad, is told again for a moment; after that somebody asks
afresh. How to ask is ``survey``'s work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from aioinformer._client.discovery.catalogue import remembered
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError

__all__ = ["AGAIN", "Lookups"]

AGAIN = 2.0
"""Seconds for which an answer is told again. Less than the time after which a second answer
confirms an absence: the two that it takes are never one and the same."""

Ask: TypeAlias = Callable[[Resource], Awaitable[Resource | None]]
"""Asks the server; raises ``FetchError`` if it can't be known."""


@dataclass(slots=True)
class _Lookup:
    """What is known of one resource."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever asks. The others wait for it, and find the answer."""
    users: int = 0
    """How many ask or wait."""
    at: float = float("-inf")
    """When the last answer came."""
    found: Resource | None = None
    failure: FetchError | None = None

    def answer(self) -> Resource | None:
        if self.failure is not None:
            raise remembered(self.failure)
        return self.found


class Lookups:
    """Asks whether resources are served. It belongs to one event loop."""

    def __init__(self, ask: Ask) -> None:
        """Nobody has asked yet.

        Args:
            ask: asks the server.
        """
        self._ask = ask
        self._known: dict[tuple[str, str, str], _Lookup] = {}

    async def __call__(self, resource: Resource) -> Resource | None:
        """The resource as it is served now, or was ``AGAIN`` seconds ago at most.

        Raises:
            FetchError: it can't be known.
        """
        self._forget()
        identity = (resource.group, resource.version, resource.plural)
        lookup = self._known.setdefault(identity, _Lookup())
        lookup.users += 1
        try:
            async with lookup.lock:  # one that is cancelled leaves the question to the next
                if self._now() - lookup.at >= AGAIN:
                    await self._look(lookup, resource)
                return lookup.answer()
        finally:
            lookup.users -= 1

    async def _look(self, lookup: _Lookup, resource: Resource) -> None:
        try:
            lookup.found, lookup.failure = await self._ask(resource), None
        except FetchError as error:
            lookup.found, lookup.failure = None, remembered(error)
        lookup.at = self._now()

    def _forget(self) -> None:
        """Drop the answers that are too old, so that no more is kept than is asked for."""
        oldest = self._now() - AGAIN
        self._known = {
            name: each for name, each in self._known.items() if each.users or each.at > oldest
        }

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def __repr__(self) -> str:
        asking = sum(each.users for each in self._known.values())
        return f"<Lookups {len(self._known)} known, {asking} asking>"

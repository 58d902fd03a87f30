"""``ServedCheck``: whether a resource is served, asked once for all who want to know.

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

from aioinformer._client.discovery.catalogue import copy_error
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError

__all__ = ["ANSWER_LIFETIME", "ServedCheck"]

ANSWER_LIFETIME = 2.0
"""Seconds for which an answer is told again. Less than the time after which a second answer
confirms an absence: the two that it takes are never one and the same."""

CheckResource: TypeAlias = Callable[[Resource], Awaitable[Resource | None]]
"""Asks the server; raises ``FetchError`` if it can't be known."""


@dataclass(slots=True)
class _Answer:
    """What is known of one resource."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever asks. The others wait for it, and find the answer."""
    users: int = 0
    """How many ask or wait."""
    answered_at: float = float("-inf")
    """When the last answer came."""
    resource: Resource | None = None
    failure: FetchError | None = None

    def result(self) -> Resource | None:
        if self.failure is not None:
            raise copy_error(self.failure)
        return self.resource


class ServedCheck:
    """Asks whether resources are served. It belongs to one event loop."""

    def __init__(self, check: CheckResource) -> None:
        """Nobody has asked yet.

        Args:
            check: asks the server.
        """
        self._check = check
        self._answers: dict[tuple[str, str, str], _Answer] = {}

    async def __call__(self, resource: Resource) -> Resource | None:
        """The resource as it is served now, or was ``ANSWER_LIFETIME`` seconds ago at most.

        Raises:
            FetchError: it can't be known.
        """
        self._drop_expired()
        identity = (resource.group, resource.version, resource.plural)
        lookup = self._answers.setdefault(identity, _Answer())
        lookup.users += 1
        try:
            async with lookup.lock:  # one that is cancelled leaves the question to the next
                if self._now() - lookup.answered_at >= ANSWER_LIFETIME:
                    await self._refresh(lookup, resource)
                return lookup.result()
        finally:
            lookup.users -= 1

    async def _refresh(self, answer: _Answer, resource: Resource) -> None:
        try:
            answer.resource, answer.failure = await self._check(resource), None
        except FetchError as error:
            answer.resource, answer.failure = None, copy_error(error)
        answer.answered_at = self._now()

    def _drop_expired(self) -> None:
        """Drop the answers that are too old, so that no more is kept than is asked for."""
        oldest = self._now() - ANSWER_LIFETIME
        self._answers = {
            name: each
            for name, each in self._answers.items()
            if each.users or each.answered_at > oldest
        }

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def __repr__(self) -> str:
        asking = sum(each.users for each in self._answers.values())
        return f"<ServedCheck {len(self._answers)} known, {asking} asking>"

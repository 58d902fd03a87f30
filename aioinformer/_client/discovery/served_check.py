"""``ServedCheck``: one shared request for all informers that check if a resource is served.

Two hundred informers may read one custom resource, each in its own namespace. When the resource is
removed, each of them receives a 404 and checks if the resource is served at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from aioinformer._client.discovery.catalogue import copy_error
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError

ANSWER_LIFETIME = 2.0
"""Seconds for which a result or error is used again. They are shorter than the time after which a
second answer confirms an absence, so that the two answers come from different requests."""

CheckResource: TypeAlias = Callable[[Resource], Awaitable[Resource | None]]
"""A function that asks the server; raises ``FetchError`` if the request fails."""


@dataclass(slots=True)
class _Answer:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held during a request. Other callers wait for the lock and find the answer."""
    users: int = 0
    answered_at: float = float("-inf")
    resource: Resource | None = None
    failure: FetchError | None = None

    def result(self) -> Resource | None:
        if self.failure is not None:
            raise copy_error(self.failure)
        return self.resource


class ServedCheck:
    def __init__(self, check: CheckResource) -> None:
        self._check = check
        self._answers: dict[tuple[str, str, str], _Answer] = {}

    async def __call__(self, resource: Resource) -> Resource | None:
        """Return the resource as it is served now, or was at most ``ANSWER_LIFETIME`` seconds ago.

        Raises:
            FetchError: the request failed.
        """
        self._drop_expired()
        identity = (resource.group, resource.version, resource.plural)
        answer = self._answers.setdefault(identity, _Answer())
        answer.users += 1
        try:
            async with answer.lock:  # if this caller is cancelled, the next one sends the request
                if self._now() - answer.answered_at >= ANSWER_LIFETIME:
                    await self._refresh(answer, resource)
                return answer.result()
        finally:
            answer.users -= 1

    async def _refresh(self, answer: _Answer, resource: Resource) -> None:
        try:
            answer.resource, answer.failure = await self._check(resource), None
        except FetchError as error:
            answer.resource, answer.failure = None, copy_error(error)
        answer.answered_at = self._now()

    def _drop_expired(self) -> None:
        """Drop outdated answers, so that memory depends on the number of current callers only."""
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

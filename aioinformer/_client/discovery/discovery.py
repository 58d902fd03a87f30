"""What one server serves, found by name, and how long an answer holds.

Asking is ``survey``'s work, what a name means ``catalogue``'s. Here: one question at a time,
whose answer all who wait for it share; an age; and a name that is missing is asked for again,
though not at every call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TypeVar

from aioinformer._client.discovery.catalogue import Catalogue, copy_error, split_group_version
from aioinformer._client.discovery.fetcher import DiscoveryFetcher, FetchDocument
from aioinformer._client.discovery.served_check import ServedCheck
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError

__all__ = ["Discovery"]

T = TypeVar("T")

CACHE_LIFETIME = 600.0
"""Seconds for which an answer is used again. A name that it lacks is asked for anew, so only a
resource that has gone or moved is seen late (kubectl keeps its answers for 6 hours)."""

MISSING_RETRY_INTERVAL = 2.0
"""Seconds for which a name stays missing: a program that waits in a loop for its custom resource
asks the server this often."""


class Discovery:
    """What one server serves, asked for when needed and kept for a while."""

    def __init__(self, fetch: FetchDocument, describe_server: Callable[[], str] = str) -> None:
        """Nothing asked yet.

        Args:
            fetch: asks the server.
            describe_server: the server's URL, and the file and context that name it, for messages.
        """
        self._describe_server = describe_server
        self._fetcher = DiscoveryFetcher(fetch, describe_server)
        self._served_check = ServedCheck(self._fetcher.served)
        self._catalogue = Catalogue()
        self._fetched_at = float("-inf")
        self._group_fetched_at: dict[str, float] = {}
        """When a name was last asked for in the group that it carries."""
        self._lock = asyncio.Lock()
        self._waiters = 0
        self._finished_fetches = 0
        """How many have ended, well or not."""
        self._failure: FetchError | None = None
        """What the last one failed with, while somebody waits who shall hear it."""

    async def find(self, name: str) -> Resource:
        """The resource of that name. Names are those of ``Client.resource``.

        Raises:
            AmbiguousResource: several groups have it.
            UnknownResource: there is none, also after asking again.
            UnwatchableResource: it can't be listed and watched.
            FetchError: it can't be known: the server could not be asked, or doesn't tell
                (phase ``discovery``).
        """
        if self._cache_age() < CACHE_LIFETIME and (known := self._catalogue.find(name)):
            return known
        if self._cache_age() >= MISSING_RETRY_INTERVAL:
            await self._refresh()
        found = self._catalogue.find(name)
        if found is None and self._may_be_incomplete(name):
            await self._fetch_named_group(name)
            found = self._catalogue.find(name)
        if found is None:
            near = await _run_in_steps(self._catalogue.find_similar(name))
            raise self._catalogue.make_lookup_error(name, near, location=self._describe_server())
        return found

    async def served(self, resource: Resource) -> Resource | None:
        """Whether a resource is served now. See ``Client.served``."""
        return await self._served_check(resource)

    def _cache_age(self) -> float:
        return self._now() - self._fetched_at

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # -- asking --------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        """Read everything, unless another caller does: then its end, good or bad, is shared."""
        before = self._finished_fetches
        self._waiters += 1
        try:
            async with self._lock:
                if self._finished_fetches == before:  # a survey that was cancelled doesn't count
                    await self._fetch_all()
                elif self._failure is not None:
                    raise copy_error(self._failure)
        finally:
            self._waiters -= 1
            if not self._waiters:
                self._failure = None

    async def _fetch_all(self) -> None:
        try:
            self._catalogue = await self._fetcher.fetch_all()
        except FetchError as error:
            self._failure = copy_error(error)
            self._finished_fetches += 1
            raise
        self._failure = None
        self._finished_fetches += 1
        self._fetched_at = self._now()

    def _may_be_incomplete(self, name: str) -> bool:
        """Whether a name carries a group of which not everything was to be learnt."""
        return any(
            not self._catalogue.covers_group(group) for group, _ in split_group_version(name)
        )

    async def _fetch_named_group(self, name: str) -> None:
        async with self._lock:
            now = self._now()
            self._group_fetched_at = {
                each: at
                for each, at in self._group_fetched_at.items()
                if now - at < MISSING_RETRY_INTERVAL
            }
            if name not in self._group_fetched_at:
                more = await self._fetcher.fetch_named_groups(name)
                self._catalogue = self._catalogue.union(more)
                self._group_fetched_at[name] = self._now()

    def __repr__(self) -> str:
        return f"<Discovery {self._catalogue!r}>"


async def _run_in_steps(steps: Generator[None, None, T]) -> T:
    """What a computation returns, with a turn for others after each of its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            returned: T = end.value
            return returned
        await asyncio.sleep(0)

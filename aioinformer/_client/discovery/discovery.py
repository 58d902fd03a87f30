"""``Discovery``: the resources of one server by name. All concurrent callers share one request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TypeVar

from aioinformer._client.discovery.catalogue import Catalogue, copy_error, split_group_version
from aioinformer._client.discovery.fetcher import DiscoveryFetcher, FetchDocument
from aioinformer._client.discovery.resource_list import ResourceList
from aioinformer._client.discovery.served_check import ServedCheck
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import AmbiguousResource, FetchError

T = TypeVar("T")

CACHE_LIFETIME = 600.0
"""Seconds for which a catalogue is used. A name that is not in the catalogue causes a new request,
as does an ambiguous one, so only a removed or moved resource is noticed late (kubectl keeps its
cache for 6 hours)."""

MISSING_RETRY_INTERVAL = 2.0
"""Minimum seconds between two requests because of a missing name. A program that waits in a loop
for its custom resource asks the server this often."""


class Discovery:
    def __init__(self, fetch: FetchDocument, describe_server: Callable[[], str] = str) -> None:
        """Create the discovery without a request.

        ``describe_server`` returns the server's URL, and its file and context, for messages.
        """
        self._describe_server = describe_server
        self._fetcher = DiscoveryFetcher(fetch, describe_server)
        self._served_check = ServedCheck(self._fetcher.served)
        self._catalogue = Catalogue()
        self._fetched_at = float("-inf")
        self._group_fetched_at: dict[str, float] = {}
        """The time of the last request for the group in a name, by name."""
        self._lock = asyncio.Lock()
        self._waiters = 0
        self._finished_fetches = 0
        """Number of fetches that have ended, with success or failure."""
        self._failure: FetchError | None = None
        """The error of the last fetch, kept while callers wait for its result."""

    async def find(self, name: str) -> Resource:
        """Return the resource of that name. Names have the forms of ``Client.resource``.

        Raises:
            AmbiguousResource: several groups have a resource of that name.
            UnknownResource: no resource has that name, also after a new request.
            UnwatchableResource: the resource can't be listed and watched.
            FetchError: discovery failed, completely or for the part that may have the name (phase
                ``discovery``).
        """
        if known := self._find_cached(name):
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

    def _find_cached(self, name: str) -> Resource | None:
        if self._cache_age() >= CACHE_LIFETIME:
            return None
        try:
            return self._catalogue.find(name)
        except AmbiguousResource:
            return None  # one of the resources may have been removed since

    async def list_served(self) -> ResourceList:
        if self._cache_age() >= MISSING_RETRY_INTERVAL:
            await self._refresh()
        return ResourceList(self._catalogue.served, sorted(self._catalogue.unread))

    async def served(self, resource: Resource) -> Resource | None:
        return await self._served_check(resource)

    def _cache_age(self) -> float:
        return self._now() - self._fetched_at

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # -- requests ------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        """Fetch everything, or wait for a running fetch and share its result or error."""
        before = self._finished_fetches
        self._waiters += 1
        try:
            async with self._lock:
                if self._finished_fetches == before:  # a cancelled fetch doesn't count
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
        """Return True if the catalogue lacks a part of a group that the name contains."""
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


async def _run_in_steps(steps: Generator[None, None, T]) -> T:
    """Run a computation, yield to the loop after each of its steps, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            returned: T = end.value
            return returned
        await asyncio.sleep(0)

"""Asks a server what it serves, and finds a resource by name in the answer.

Two requests bring everything (aggregated discovery, Kubernetes 1.30). An older server, or a
proxy that rewrites ``Accept``, is asked group by group. A server that has groups and no list of
them, such as a standalone apiextensions-apiserver, is asked for the group that the name
carries. What the documents say is read by ``catalogue``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from aioinformer._client.catalogue import (
    Catalogue,
    aggregated_resources,
    group_versions,
    legacy_groups,
    legacy_resources,
)
from aioinformer._core.resources import Resource, is_segment
from aioinformer.errors import NotFound, ServerFailure

__all__ = ["AGGREGATED", "Discovery", "Fetch"]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
LEGACY = "application/json"

FRESH = 600.0
"""Seconds for which an answer is used again. A name that it lacks is asked for anew at once, so
only a resource that has gone or moved is seen late (kubectl keeps its answers for 6 hours)."""


class Fetch(Protocol):
    """Fetches one document."""

    async def __call__(self, path: str, accept: str) -> bytes:
        """The body of a GET; raises ``FetchError`` for any answer but 200."""
        ...


class Discovery:
    """What one server serves, asked for when needed and kept for a while."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._catalogue = Catalogue()
        self._read_at = float("-inf")
        self._lock = asyncio.Lock()

    async def find(self, name: str) -> Resource:
        """The resource of that name. Names are those of ``Client.resource``.

        Raises:
            UnknownResource: there is none, also after asking again; or several groups have it.
            FetchError: the server could not be asked (phase ``discovery``).
        """
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._read_at < FRESH and (known := self._catalogue.find(name)):
                return known
            self._catalogue = await self._read(name)
            self._read_at = now
            found = self._catalogue.find(name)
        if found is None:
            raise self._catalogue.unknown(name)
        return found

    async def _read(self, name: str) -> Catalogue:
        core = await self._read_core()
        try:
            document = await self._fetch("/apis", AGGREGATED)
        except NotFound:
            versions = await self._versions_of(name.lower().partition(".")[2])
            return replace(await self._read_versions(core, versions), names_groups=False)
        found = aggregated_resources(document, "/apis")
        if found is not None:
            return Catalogue((*core, *found))
        return await self._read_versions(core, legacy_groups(document, "/apis"))

    async def _read_core(self) -> tuple[Resource, ...]:
        """The core group's resources; none if the server doesn't have it."""
        try:
            found = aggregated_resources(await self._fetch("/api", AGGREGATED), "/api")
            if found is not None:
                return found
            return legacy_resources(await self._fetch("/api/v1", LEGACY), "/api/v1", "v1")
        except NotFound:
            return ()

    async def _versions_of(self, rest: str) -> tuple[str, ...]:
        """The versions of the group in a name's rest, which is ``group`` or ``version.group``."""
        for group in filter(is_segment, (rest, rest.partition(".")[2])):
            path = f"/apis/{group}"
            try:
                return tuple(group_versions(await self._fetch(path, LEGACY), path))
            except NotFound:
                continue
        return ()

    async def _read_versions(
        self, core: tuple[Resource, ...], versions: Iterable[str]
    ) -> Catalogue:
        """The core and these group versions.

        One that is down (a broken aggregated API) or that went meanwhile doesn't hide the
        others; it is named if the search fails.
        """
        resources, unread = list(core), list[str]()
        for group_version in versions:
            path = f"/apis/{group_version}"
            try:
                document = await self._fetch(path, LEGACY)
            except (NotFound, ServerFailure):
                unread.append(group_version)
                continue
            resources += legacy_resources(document, path, group_version)
        return Catalogue(tuple(resources), tuple(unread))

    def __repr__(self) -> str:
        return f"<Discovery {self._catalogue!r}>"

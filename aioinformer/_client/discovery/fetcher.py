"""Asks a server what it serves: everything, one group, or whether one resource is there.

Two requests bring everything (aggregated discovery, Kubernetes 1.30). An older server, or a
proxy that rewrites ``Accept``, is asked group by group. What doesn't come hides nothing else: the
list of groups may be forbidden or missing (a standalone apiextensions-apiserver has none), an
aggregated API may be down. What the documents say is read by ``documents``; nothing is kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from aioinformer._client.auth.off_loop import off_loop
from aioinformer._client.discovery.catalogue import Catalogue, places, remembered
from aioinformer._client.discovery.documents import (
    Served,
    aggregated_resources,
    core_versions,
    group_versions,
    legacy_groups,
    legacy_resources,
    version_path,
)
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError, Forbidden, NotFound, ProtocolError, ServerFailure

__all__ = ["AGGREGATED", "Fetch", "Survey"]

T = TypeVar("T")
P = ParamSpec("P")

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
LEGACY = "application/json"

SHORT = 64 * 1024
"""Bytes of a document that is read on the loop, which takes a millisecond or two at most."""

PARTIAL = (NotFound, Forbidden, ServerFailure)
"""Answers that concern one document and say nothing of the others."""


class Fetch(Protocol):
    """Fetches one document."""

    async def __call__(self, path: str, accept: str) -> bytes:
        """The body of a GET; raises ``FetchError`` for any answer but 200."""
        ...


class Survey:
    """Asks one server, anew each time."""

    def __init__(self, fetch: Fetch, where: Callable[[], str] = str) -> None:
        self._fetch = fetch
        self._where = where

    # -- everything ----------------------------------------------------------------------------

    async def everything(self) -> Catalogue:
        """All that the server serves, and what of it could not be read.

        Raises:
            FetchError: the server could not be asked, doesn't know who asks, or is none of
                Kubernetes.
        """
        core = await self._core()
        found = core.with_more(await self._groups())
        lost = found.unread.get("/apis")
        if not found.served and isinstance(lost, NotFound) and not _by_an_api_server(lost):
            raise lost
        return found

    async def _core(self) -> Catalogue:
        try:
            document = await self._fetch("/api", AGGREGATED)
            found = await _read(aggregated_resources, document, self._named("/api"))
        except NotFound:
            return Catalogue()  # a server of custom resources alone
        except PARTIAL:
            found = None  # the document of its one version may be there
        return await self._versions(["v1"]) if found is None else Catalogue(found.served)

    async def _groups(self) -> Catalogue:
        try:
            document = await self._fetch("/apis", AGGREGATED)
        except PARTIAL as error:
            return Catalogue((), {"/apis": remembered(error)})
        found = await _read(aggregated_resources, document, self._named("/apis"))
        if found is None:
            return await self._versions(await _read(legacy_groups, document, self._named("/apis")))
        return Catalogue(found.served, {version_path(each): None for each in found.stale})

    async def _versions(self, group_versions: Iterable[str]) -> Catalogue:
        """These, as far as they answer: one that is broken or went meanwhile is noted."""
        served, unread = list[Served](), dict[str, FetchError | None]()
        for each in group_versions:
            try:
                served += await self._version(each)
            except (*PARTIAL, ProtocolError) as error:
                unread[version_path(each)] = remembered(error)
        return Catalogue(tuple(served), unread)

    async def _version(self, group_version: str) -> tuple[Served, ...]:
        path = version_path(group_version)
        document = await self._fetch(path, LEGACY)
        return await _read(legacy_resources, document, self._named(path), group_version)

    def _named(self, path: str) -> str:
        """A document, for messages."""
        where = self._where()
        return f"{path} of {where}" if where else path

    # -- one group -----------------------------------------------------------------------------

    async def groups_in(self, name: str) -> Catalogue:
        """What there is in the groups that a name may carry, asked for directly.

        Raises:
            FetchError: the server could not be asked.
        """
        found = Catalogue()
        for group, version in places(name):
            if version:
                more = await self._versions([f"{group}/{version}" if group else version])
            else:
                more = await self._group(group)
            found = found.with_more(more)
            if more.served:
                break
        return found

    async def _group(self, group: str) -> Catalogue:
        path = f"/apis/{group}"
        try:
            document = await self._fetch(path, LEGACY)
            versions = await _read(group_versions, document, self._named(path))
            return await self._versions(versions)
        except (*PARTIAL, ProtocolError) as error:
            return Catalogue((), {path: remembered(error)})

    # -- one resource --------------------------------------------------------------------------

    async def served(self, resource: Resource) -> Resource | None:
        """The resource as it is served now; in another version, if it is only there.

        ``None`` if the server says that it has neither. One request if it is where it was.

        Raises:
            FetchError: it can't be known (phase ``discovery``).
        """
        try:
            here = await self._version(resource.api_version)
        except NotFound:
            here = ()
        return _same(here, resource) or await self._elsewhere(resource)

    async def _elsewhere(self, resource: Resource) -> Resource | None:
        """The resource in another version of its group.

        The list of all groups is a second witness: a 404 for one path may come from a proxy.
        """
        root = "/apis" if resource.group else "/api"
        try:
            document = await self._fetch(root, AGGREGATED)
        except (NotFound, Forbidden) as error:
            return await self._in_versions(await self._versions_of(resource.group, error), resource)
        found = await _read(aggregated_resources, document, self._named(root))
        if found is None:
            listed = (
                await _read(legacy_groups, document, self._named(root))
                if resource.group
                else await _read(core_versions, document, self._named(root))
            )
            return await self._in_versions(listed, resource)
        other = _same(found.served, resource)
        stale = [each for each in found.stale if each.rpartition("/")[0] == resource.group]
        if other is None and stale:
            said = f"{root}: {', '.join(stale)} does not answer, and may serve {resource}"
            raise FetchError(said, phase="discovery")
        return other

    async def _versions_of(self, group: str, error: NotFound | Forbidden) -> Iterable[str]:
        """The versions of a group on a server that doesn't list its groups."""
        path = f"/apis/{group}" if group else "/api"
        try:
            if group:
                document = await self._fetch(path, LEGACY)
                return await _read(group_versions, document, self._named(path))
        except NotFound as missing:
            error = missing
        if isinstance(error, Forbidden) or not _by_an_api_server(error):
            said = f"whether the server has {path} can't be known: {error}"
            raise ProtocolError(said, phase="discovery") from error
        return ()

    async def _in_versions(self, versions: Iterable[str], resource: Resource) -> Resource | None:
        for each in versions:
            if each.rpartition("/")[0] != resource.group or each == resource.api_version:
                continue
            try:
                found = _same(await self._version(each), resource)
            except NotFound:
                continue
            if found is not None:
                return found
        return None

    def __repr__(self) -> str:
        return f"<Survey by {self._fetch!r}>"


async def _read(
    reading: Callable[Concatenate[bytes, P], T], document: bytes, *more: P.args, **named: P.kwargs
) -> T:
    """What a document says, read beside the loop if it is long: a large cluster's takes 50 ms."""
    read = partial(reading, document, *more, **named)
    return read() if len(document) <= SHORT else await off_loop(read)


def _same(served: Iterable[Served], resource: Resource) -> Resource | None:
    """The resource of that group and plural: in its own version, else in the first there is."""
    found = [each.resource for each in served if _identity(each.resource) == _identity(resource)]
    own = (each for each in found if each.version == resource.version)
    return next(own, None) or next(iter(found), None)


def _identity(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.plural


def _by_an_api_server(error: NotFound) -> bool:
    """Whether a 404 reads like Kubernetes: a Status, or the text of Go's HTTP library
    (recordings 26 and 53), not the page of a proxy that has lost its way.
    """
    return error.status.reason == "NotFound" or error.status.message == "404 page not found"

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

from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._client.discovery.catalogue import Catalogue, copy_error, split_group_version
from aioinformer._client.discovery.documents import (
    ServedResource,
    parse_aggregated_resources,
    parse_core_versions,
    parse_group_versions,
    parse_legacy_groups,
    parse_legacy_resources,
    version_path,
)
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError, Forbidden, NotFound, ProtocolError, ServerFailure

__all__ = ["AGGREGATED_ACCEPT", "DiscoveryFetcher", "FetchDocument"]

T = TypeVar("T")
P = ParamSpec("P")

AGGREGATED_ACCEPT = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
)
LEGACY_ACCEPT = "application/json"

MAX_INLINE_BYTES = 64 * 1024
"""Bytes of a document that is read on the loop, which takes a millisecond or two at most."""

DOCUMENT_ERRORS = (NotFound, Forbidden, ServerFailure)
"""Answers that concern one document and say nothing of the others."""


class FetchDocument(Protocol):
    """Fetches one document."""

    async def __call__(self, path: str, accept: str) -> bytes:
        """The body of a GET; raises ``FetchError`` for any answer but 200."""
        ...


class DiscoveryFetcher:
    """Asks one server, anew each time."""

    def __init__(self, fetch: FetchDocument, describe_server: Callable[[], str] = str) -> None:
        self._fetch = fetch
        self._describe_server = describe_server

    # -- everything ----------------------------------------------------------------------------

    async def fetch_all(self) -> Catalogue:
        """All that the server serves, and what of it could not be read.

        Raises:
            FetchError: the server could not be asked, doesn't know who asks, or is none of
                Kubernetes.
        """
        core = await self._fetch_core()
        found = core.union(await self._fetch_groups())
        lost = found.unread.get("/apis")
        if not found.served and isinstance(lost, NotFound) and not _is_from_api_server(lost):
            raise lost
        return found

    async def _fetch_core(self) -> Catalogue:
        try:
            document = await self._fetch("/api", AGGREGATED_ACCEPT)
            found = await _parse_document(
                parse_aggregated_resources, document, self._describe_document("/api")
            )
        except NotFound:
            return Catalogue()  # a server of custom resources alone
        except DOCUMENT_ERRORS:
            found = None  # the document of its one version may be there
        return await self._fetch_versions(["v1"]) if found is None else Catalogue(found.served)

    async def _fetch_groups(self) -> Catalogue:
        try:
            document = await self._fetch("/apis", AGGREGATED_ACCEPT)
        except DOCUMENT_ERRORS as error:
            return Catalogue((), {"/apis": copy_error(error)})
        found = await _parse_document(
            parse_aggregated_resources, document, self._describe_document("/apis")
        )
        if found is None:
            return await self._fetch_versions(
                await _parse_document(
                    parse_legacy_groups, document, self._describe_document("/apis")
                )
            )
        return Catalogue(found.served, {version_path(each): None for each in found.stale})

    async def _fetch_versions(self, group_versions: Iterable[str]) -> Catalogue:
        """These, as far as they answer: one that is broken or went meanwhile is noted."""
        served, unread = list[ServedResource](), dict[str, FetchError | None]()
        for each in group_versions:
            try:
                served += await self._fetch_version(each)
            except (*DOCUMENT_ERRORS, ProtocolError) as error:
                unread[version_path(each)] = copy_error(error)
        return Catalogue(tuple(served), unread)

    async def _fetch_version(self, group_version: str) -> tuple[ServedResource, ...]:
        path = version_path(group_version)
        document = await self._fetch(path, LEGACY_ACCEPT)
        return await _parse_document(
            parse_legacy_resources, document, self._describe_document(path), group_version
        )

    def _describe_document(self, path: str) -> str:
        """A document, for messages."""
        where = self._describe_server()
        return f"{path} of {where}" if where else path

    # -- one group -----------------------------------------------------------------------------

    async def fetch_named_groups(self, name: str) -> Catalogue:
        """What there is in the groups that a name may carry, asked for directly.

        Raises:
            FetchError: the server could not be asked.
        """
        found = Catalogue()
        for group, version in split_group_version(name):
            if version:
                more = await self._fetch_versions([f"{group}/{version}" if group else version])
            else:
                more = await self._fetch_group(group)
            found = found.union(more)
            if more.served:
                break
        return found

    async def _fetch_group(self, group: str) -> Catalogue:
        path = f"/apis/{group}"
        try:
            document = await self._fetch(path, LEGACY_ACCEPT)
            versions = await _parse_document(
                parse_group_versions, document, self._describe_document(path)
            )
            return await self._fetch_versions(versions)
        except (*DOCUMENT_ERRORS, ProtocolError) as error:
            return Catalogue((), {path: copy_error(error)})

    # -- one resource --------------------------------------------------------------------------

    async def served(self, resource: Resource) -> Resource | None:
        """The resource as it is served now; in another version, if it is only there.

        ``None`` if the server says that it has neither. One request if it is where it was.

        Raises:
            FetchError: it can't be known (phase ``discovery``).
        """
        try:
            here = await self._fetch_version(resource.api_version)
        except NotFound:
            here = ()
        return _find_resource(here, resource) or await self._find_in_other_version(resource)

    async def _find_in_other_version(self, resource: Resource) -> Resource | None:
        """The resource in another version of its group.

        The list of all groups is a second witness: a 404 for one path may come from a proxy.
        """
        root = "/apis" if resource.group else "/api"
        try:
            document = await self._fetch(root, AGGREGATED_ACCEPT)
        except (NotFound, Forbidden) as error:
            return await self._find_in_versions(
                await self._fetch_group_versions(resource.group, error), resource
            )
        found = await _parse_document(
            parse_aggregated_resources, document, self._describe_document(root)
        )
        if found is None:
            listed = (
                await _parse_document(parse_legacy_groups, document, self._describe_document(root))
                if resource.group
                else await _parse_document(
                    parse_core_versions, document, self._describe_document(root)
                )
            )
            return await self._find_in_versions(listed, resource)
        other = _find_resource(found.served, resource)
        stale = [each for each in found.stale if each.rpartition("/")[0] == resource.group]
        if other is None and stale:
            said = f"{root}: {', '.join(stale)} does not answer, and may serve {resource}"
            raise FetchError(said, phase="discovery")
        return other

    async def _fetch_group_versions(self, group: str, error: NotFound | Forbidden) -> Iterable[str]:
        """The versions of a group on a server that doesn't list its groups."""
        path = f"/apis/{group}" if group else "/api"
        try:
            if group:
                document = await self._fetch(path, LEGACY_ACCEPT)
                return await _parse_document(
                    parse_group_versions, document, self._describe_document(path)
                )
        except NotFound as missing:
            error = missing
        if isinstance(error, Forbidden) or not _is_from_api_server(error):
            said = f"whether the server has {path} can't be known: {error}"
            raise ProtocolError(said, phase="discovery") from error
        return ()

    async def _find_in_versions(
        self, versions: Iterable[str], resource: Resource
    ) -> Resource | None:
        for each in versions:
            if each.rpartition("/")[0] != resource.group or each == resource.api_version:
                continue
            try:
                found = _find_resource(await self._fetch_version(each), resource)
            except NotFound:
                continue
            if found is not None:
                return found
        return None

    def __repr__(self) -> str:
        return f"<DiscoveryFetcher by {self._fetch!r}>"


async def _parse_document(
    parse: Callable[Concatenate[bytes, P], T], document: bytes, *more: P.args, **named: P.kwargs
) -> T:
    """What a document says, read beside the loop if it is long: a large cluster's takes 50 ms."""
    read = partial(parse, document, *more, **named)
    return read() if len(document) <= MAX_INLINE_BYTES else await run_in_thread(read)


def _find_resource(served: Iterable[ServedResource], resource: Resource) -> Resource | None:
    """The resource of that group and plural: in its own version, else in the first there is."""
    found = [
        each.resource
        for each in served
        if _group_and_plural(each.resource) == _group_and_plural(resource)
    ]
    own = (each for each in found if each.version == resource.version)
    return next(own, None) or next(iter(found), None)


def _group_and_plural(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.plural


def _is_from_api_server(error: NotFound) -> bool:
    """Whether a 404 reads like Kubernetes: a Status, or the text of Go's HTTP library
    (recordings 26 and 53), not the page of a proxy that has lost its way.
    """
    return error.status.reason == "NotFound" or error.status.message == "404 page not found"

"""``DiscoveryFetcher``: the requests for discovery documents.

Two requests return everything (aggregated discovery, Kubernetes 1.30). An older server, or a proxy
that rewrites ``Accept``, requires one request per group version. A missing document hides no other
one: the list of groups may be forbidden or missing (a standalone apiextensions-apiserver has none),
and an aggregated API may be down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from aioinformer._client.auth.off_loop import compute_in_thread
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
from aioinformer.errors import (
    FetchError,
    Forbidden,
    NotFound,
    ProtocolError,
    ServerError,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
)

T = TypeVar("T")
P = ParamSpec("P")

AGGREGATED_ACCEPT = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
)
LEGACY_ACCEPT = "application/json"

MAX_INLINE_BYTES = 64 * 1024
"""Maximum bytes of a document that is parsed on the loop, which takes at most two milliseconds."""

DOCUMENT_ERRORS = (NotFound, Forbidden, ServerFailure)

CLIENT_ERRORS = (Unauthorized, TooManyRequests)
"""Errors that concern all requests of the client. Any other error of the document of one group
version concerns that one, as in client-go: an aggregated API may answer anything."""


class FetchDocument(Protocol):
    async def __call__(self, path: str, accept: str) -> bytes:
        """Send a GET and return the body; raise ``FetchError`` for any status but 200."""
        ...


class DiscoveryFetcher:
    def __init__(self, fetch: FetchDocument, describe_server: Callable[[], str] = str) -> None:
        self._fetch = fetch
        self._describe_server = describe_server

    # -- all resources -------------------------------------------------------------------------

    async def fetch_all(self) -> Catalogue:
        """Return all resources of the server, and the documents that could not be read.

        Raises:
            FetchError: the request failed, was not authenticated, or the server is not a Kubernetes
                API server.
        """
        core = await self._fetch_core()
        found = core.union(await self._fetch_groups())
        error = found.unread.get("/apis")
        if not found.served and isinstance(error, NotFound) and not _is_from_api_server(error):
            raise error
        return found

    async def _fetch_core(self) -> Catalogue:
        try:
            found = await self._read("/api", AGGREGATED_ACCEPT, parse_aggregated_resources)
        except NotFound:
            return Catalogue()  # this server serves custom resources only
        except DOCUMENT_ERRORS:
            found = None  # the document of the only version, v1, may be readable
        return await self._fetch_versions(["v1"]) if found is None else Catalogue(found.served)

    async def _fetch_groups(self) -> Catalogue:
        try:
            document = await self._fetch("/apis", AGGREGATED_ACCEPT)
        except DOCUMENT_ERRORS as error:
            return Catalogue((), {"/apis": copy_error(error)})
        found = await self._parse(parse_aggregated_resources, document, "/apis")
        if found is None:
            groups = await self._parse(parse_legacy_groups, document, "/apis")
            return await self._fetch_versions(groups)
        return Catalogue(found.served, {version_path(each): None for each in found.stale})

    async def _fetch_versions(self, group_versions: Iterable[str]) -> Catalogue:
        """Return the resources of group versions; the invalid and missing ones become unread."""
        served, unread = list[ServedResource](), dict[str, FetchError | None]()
        for each in group_versions:
            try:
                served += await self._fetch_version(each)
            except CLIENT_ERRORS:
                raise
            except (ServerError, ProtocolError) as error:
                unread[version_path(each)] = copy_error(error)
        return Catalogue(tuple(served), unread)

    async def _fetch_version(self, group_version: str) -> tuple[ServedResource, ...]:
        path = version_path(group_version)
        return await self._read(path, LEGACY_ACCEPT, parse_legacy_resources, group_version)

    async def _read(
        self,
        path: str,
        accept: str,
        parse: Callable[Concatenate[bytes, str, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return await self._parse(parse, await self._fetch(path, accept), path, *args, **kwargs)

    async def _parse(
        self,
        parse: Callable[Concatenate[bytes, str, P], T],
        document: bytes,
        path: str,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Parse a document, in a thread if it is long: that of a large cluster takes 50 ms."""
        server = self._describe_server()
        origin = f"{path} of {server}" if server else path
        call = partial(parse, document, origin, *args, **kwargs)
        return call() if len(document) <= MAX_INLINE_BYTES else await compute_in_thread(call)

    # -- one group -----------------------------------------------------------------------------

    async def fetch_named_groups(self, name: str) -> Catalogue:
        """Request each group that a name may contain; raise ``FetchError`` if a request fails."""
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
            versions = await self._read(path, LEGACY_ACCEPT, parse_group_versions)
            return await self._fetch_versions(versions)
        except CLIENT_ERRORS:
            raise
        except (ServerError, ProtocolError) as error:
            return Catalogue((), {path: copy_error(error)})

    # -- one resource --------------------------------------------------------------------------

    async def served(self, resource: Resource) -> Resource | None:
        """Return the resource as it is served now, perhaps in another version, or ``None``.

        This takes one request if the version has not changed. Only a list of all groups, ``/apis``
        or ``/api``, proves an absence: anything that stands before the API server may answer 404.

        Raises:
            FetchError: a request failed, or the documents don't show if the resource is served
                (phase ``discovery``).
        """
        missing: NotFound | None = None
        same_version: tuple[ServedResource, ...] = ()
        try:
            same_version = await self._fetch_version(resource.api_version)
        except NotFound as error:
            missing = error
        return _find_resource(same_version, resource) or await self._find_in_other_version(
            resource, missing
        )

    async def _find_in_other_version(
        self, resource: Resource, missing: NotFound | None
    ) -> Resource | None:
        """Return the resource in another version of its group; ``None`` if it is proven absent.

        ``missing`` is the 404 of its own version, if there was one.
        """
        root = "/apis" if resource.group else "/api"
        try:
            document = await self._fetch(root, AGGREGATED_ACCEPT)
        except (NotFound, Forbidden) as error:
            if other := await self._find_without_list(resource):
                return other
            wrong = "; is the server's URL right?" if isinstance(error, NotFound) else ""
            raise _unclear_error(resource, error, wrong) from error
        found = await self._parse(parse_aggregated_resources, document, root)
        if found is None:
            parse = parse_legacy_groups if resource.group else parse_core_versions
            listed = await self._parse(parse, document, root)
            return await self._find_in_versions(listed, resource, missing)
        other = _find_resource(found.served, resource)
        stale = [each for each in found.stale if each.rpartition("/")[0] == resource.group]
        if other is None and stale:
            text = f"{root}: {', '.join(stale)} does not answer, and may serve {resource}"
            raise FetchError(text, phase="discovery")
        return other

    async def _find_without_list(self, resource: Resource) -> Resource | None:
        """Return the resource in another version on a server that doesn't list its groups."""
        if not resource.group:
            return None
        path = f"/apis/{resource.group}"
        try:
            versions = await self._read(path, LEGACY_ACCEPT, parse_group_versions)
            return await self._find_in_versions(versions, resource, None)
        except NotFound:
            return None

    async def _find_in_versions(
        self, versions: Iterable[str], resource: Resource, missing: NotFound | None
    ) -> Resource | None:
        contradiction: NotFound | None = None
        for each in versions:
            if each.rpartition("/")[0] != resource.group:
                continue
            if each == resource.api_version:
                contradiction = contradiction or missing
                continue
            try:
                found = _find_resource(await self._fetch_version(each), resource)
            except NotFound as error:
                contradiction = error
                continue
            if found is not None:
                return found
        if contradiction is not None:  # the list has a version whose document is a 404
            raise _unclear_error(resource, contradiction) from contradiction
        return None

    def __repr__(self) -> str:
        return f"<DiscoveryFetcher by {self._fetch!r}>"


def _find_resource(served: Iterable[ServedResource], resource: Resource) -> Resource | None:
    """Return the resource of the same group and plural: in the same version, else in the first."""
    found = [
        each.resource
        for each in served
        if _group_and_plural(each.resource) == _group_and_plural(resource)
    ]
    own = (each for each in found if each.version == resource.version)
    return next(own, None) or next(iter(found), None)


def _group_and_plural(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.plural


def _unclear_error(resource: Resource, error: FetchError, hint: str = "") -> ProtocolError:
    path = f"/apis/{resource.group}" if resource.group else "/api"
    text = f"can't find out if the server has {path}: {error}{hint}"
    return ProtocolError(text, phase="discovery")


def _is_from_api_server(error: NotFound) -> bool:
    """Return True if an API server may have sent this 404: a Status, or the text of Go's HTTP
    library, which proxies that are written in Go send as well.
    """
    return error.status.reason == "NotFound" or error.status.message == "404 page not found"

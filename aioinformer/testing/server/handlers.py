"""Routes of the HTTP server: the verb and the target of a request, and the code that answers."""

from __future__ import annotations

import hashlib
from contextlib import aclosing
from hmac import compare_digest

from aiohttp import web

from aioinformer.errors import ServerError, TransportError
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.faults.exchange import FaultedRequest
from aioinformer.testing.faults.faults import Faults, RequestVerb
from aioinformer.testing.server import queries
from aioinformer.testing.server.clock import Clock
from aioinformer.testing.server.objects import (
    BODY_LIMIT,
    WRITE_VERBS,
    ObjectRequest,
    handle_request,
)
from aioinformer.testing.server.request_driver import RequestDriver
from aioinformer.testing.server.responses import (
    Response,
    abort,
    document_response,
    error_response,
    send_response,
    stream_response,
)
from aioinformer.testing.wire import discovery, statuses
from aioinformer.testing.wire.encoding import encode_document
from aioinformer.testing.wire.negotiation import (
    accepts_gzip,
    negotiate_list_form,
    negotiate_object_form,
    negotiate_watch_form,
    wants_aggregated,
)
from aioinformer.testing.wire.tables import partial_object_metadata
from aioinformer.testing.wire.urls import ResourcePath

__all__ = ["make_application"]


def make_application(
    cluster: Cluster, *, faults: Faults, clock: Clock, token: str | None
) -> web.Application:
    """Return the HTTP application of a cluster. With ``token``, every request must bear it."""
    app = web.Application(client_max_size=BODY_LIMIT)
    app.router.add_route("*", "/{path:.*}", _RequestRouter(cluster, faults, clock, token).handle)
    return app


class _RequestRouter:
    """The entry of every request and the exit of every response."""

    def __init__(self, cluster: Cluster, faults: Faults, clock: Clock, token: str | None) -> None:
        self._cluster = cluster
        self._faults = faults
        self._clock = clock
        self._token = token
        self._non_resource_urls = _NonResourceUrls(cluster)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = _find_path(request, self._cluster)
        resource, namespace = (path.resource, path.namespace) if path else (None, None)
        verb = _request_verb(request, path)
        with FaultedRequest(self._faults, verb, resource, namespace) as faulted:
            driver = RequestDriver(faulted, self._clock)
            try:
                try:
                    return await self._respond(request, driver)
                except ServerError as error:
                    return await send_response(request, error_response(error), driver)
            # Either a fault broke the connection, or the client closed it.
            except (TransportError, ConnectionError):
                return abort(request)

    async def _respond(self, request: web.Request, driver: RequestDriver) -> web.StreamResponse:
        foreign = await driver.start_response()
        if foreign is not None:
            content = Response(foreign.body, content_type=foreign.content_type)
            return await send_response(request, content, driver)
        self._check_token(request)
        document = self._non_resource_urls.find_response(request)
        if document is not None:
            return await send_response(request, document, driver)
        # The path is parsed again: its resource may have been added or removed during the wait.
        path = _parse_path(request, self._cluster)
        if request.method != "GET" or path.name:
            response = await _object_response(self._cluster, request, path)
            return await send_response(request, response, driver)
        await driver.wait_for_version(self._cluster, queries.required_version(request.query))
        if queries.is_watch(request.query):
            return await self._stream_watch(request, path, driver)
        return await send_response(request, self._list_response(request, path, driver), driver)

    def _check_token(self, request: web.Request) -> None:
        """Raise ``Unauthorized`` if the server has a token and the request doesn't bear it."""
        shown, token = request.headers.get("Authorization", ""), self._token
        if token is not None and not compare_digest(shown.encode(), f"Bearer {token}".encode()):
            raise statuses.unauthorized()

    def _list_response(
        self, request: web.Request, path: ResourcePath, driver: RequestDriver
    ) -> Response:
        form = negotiate_list_form(request.headers.get("Accept", ""), path.resource)
        query = driver.request.list_query(request.query)
        page = queries.list_page(self._cluster, path.resource, path.namespace, query, form=form)
        return Response(driver.request.list_body(page))

    async def _stream_watch(
        self, request: web.Request, path: ResourcePath, driver: RequestDriver
    ) -> web.StreamResponse:
        query = request.query
        watch = queries.start_watch(
            self._cluster,
            path.resource,
            path.namespace,
            query,
            now=self._clock.now,
            form=negotiate_watch_form(request.headers.get("Accept", "")),
        )
        gzipped = (
            self._cluster.features.gzipped_watch_lists
            and queries.is_watch_list(query)
            and accepts_gzip(request.headers)
        )
        try:
            async with aclosing(driver.watch_lines(watch)) as lines:
                return await stream_response(request, lines, driver, gzipped=gzipped)
        finally:
            watch.close()


def _parse_path(request: web.Request, cluster: Cluster) -> ResourcePath:
    """Return the target of a request for objects.

    Raises:
        NotFound: the path names no served resource.
    """
    return ResourcePath.parse(request.path, cluster.resources, cluster.with_status)


def _find_path(request: web.Request, cluster: Cluster) -> ResourcePath | None:
    """Return the target of a request, or ``None`` if its path names no served resource."""
    try:
        return _parse_path(request, cluster)
    except ServerError:
        return None


def _request_verb(request: web.Request, path: ResourcePath | None) -> RequestVerb:
    if request.method in WRITE_VERBS:
        return WRITE_VERBS[request.method]
    if path is None or path.name:
        return "get"
    if not queries.is_watch(request.query):
        return "list"
    return "watch_list" if queries.is_watch_list(request.query) else "watch"


# -- documents ---------------------------------------------------------------------------------


class _NonResourceUrls:
    """The paths that name no object: discovery, health, version."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def find_response(self, request: web.Request) -> Response | None:
        """Return the document at a path; ``None`` for a path of objects.

        Raises:
            NotFound: the path is one of a document, but that document doesn't exist.
        """
        served, with_status = self._cluster.resources, self._cluster.with_status
        aggregated = wants_aggregated(request.headers.get("Accept", ""))
        match request.path.strip("/").split("/"):
            case ["healthz" | "readyz" | "livez"]:
                return Response(b"ok", content_type="text/plain; charset=utf-8")
            case ["version"]:
                return document_response(discovery.version_info(self._cluster.features.minor))
            case ["api" | "apis" as root] if aggregated:
                return self._aggregated_discovery(request, core=root == "api")
            case ["api"]:
                return document_response(discovery.api_versions(request.host))
            case ["apis"]:
                return document_response(discovery.api_group_list(served))
            case ["apis", group]:
                return document_response(discovery.api_group(served, group))
            case ["api", version]:
                return document_response(discovery.api_resource_list(served, version, with_status))
            case ["apis", group, version]:
                group_version = f"{group}/{version}"
                return document_response(
                    discovery.api_resource_list(served, group_version, with_status)
                )
            case _:
                return None

    def _aggregated_discovery(self, request: web.Request, *, core: bool) -> Response:
        """Return the aggregated document, or 304 if the client has it already (recording 02)."""
        body = encode_document(
            discovery.api_group_discovery_list(
                self._cluster.resources, core=core, with_status=self._cluster.with_status
            )
        )
        tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        headers = {"Etag": tag, "Vary": "Accept", "Cache-Control": "public"}
        if request.headers.get("If-None-Match") == tag:
            return Response(b"", 304, discovery.AGGREGATED_CONTENT_TYPE, headers)
        return Response(body, 200, discovery.AGGREGATED_CONTENT_TYPE, headers)


# -- one object --------------------------------------------------------------------------------


async def _object_response(cluster: Cluster, request: web.Request, path: ResourcePath) -> Response:
    """Return the response to a request that is neither a list nor a watch."""
    # Negotiation goes first: a write whose answer has no acceptable form isn't done.
    form = negotiate_object_form(request.headers.get("Accept", ""))
    try:
        body = await request.read() if request.can_read_body else b""
    except web.HTTPRequestEntityTooLarge as error:
        raise statuses.body_too_large(BODY_LIMIT) from error
    object_request = ObjectRequest(request.method, path, request.query, request.content_type, body)
    response = handle_request(cluster, object_request)
    if request.method == "GET" and form == "metadata":
        return document_response(partial_object_metadata(response.body["metadata"]))
    return Response(response.raw, response.status)

"""Requests to a cluster: which verb, which object, and the answer. ``replies`` sends it."""

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
from aioinformer.testing.wire.encoding import encode_json
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
    """The HTTP side of a cluster; with ``token``, for those who bear it."""
    app = web.Application(client_max_size=BODY_LIMIT)
    app.router.add_route("*", "/{path:.*}", _RequestRouter(cluster, faults, clock, token).handle)
    return app


class _RequestRouter:
    """Every request comes in here, and every answer goes out."""

    def __init__(self, cluster: Cluster, faults: Faults, clock: Clock, token: str | None) -> None:
        self._cluster = cluster
        self._faults = faults
        self._clock = clock
        self._token = token
        self._non_resource_urls = _NonResourceUrls(cluster)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        target = _parse_path(request, self._cluster)
        place = (target.resource, target.namespace) if target else (None, None)
        with FaultedRequest(self._faults, _request_verb(request, target), *place) as exchange:
            passage = RequestDriver(exchange, self._clock)
            try:
                try:
                    return await self._respond(request, passage)
                except ServerError as error:
                    return await send_response(request, error_response(error), passage)
            except (TransportError, ConnectionError):  # broken on purpose; the client has gone
                return abort(request)

    async def _respond(self, request: web.Request, driver: RequestDriver) -> web.StreamResponse:
        await driver.start_response()
        self._check_token(request)
        found = self._non_resource_urls.find_response(request)
        if found is not None:
            return await send_response(request, found, driver)
        target = ResourcePath.parse(
            request.path, self._cluster.resources, self._cluster.with_status
        )
        if request.method == "GET" and not target.name:
            await driver.wait_for_version(self._cluster, queries.required_version(request.query))
            if queries.is_watch(request.query):
                return await self._stream_watch(request, target, driver)
            return await send_response(request, self._list_response(request, target), driver)
        return await send_response(
            request, await _object_response(self._cluster, request, target), driver
        )

    def _check_token(self, request: web.Request) -> None:
        """Let those through who bear the token; everyone if there is none."""
        shown, token = request.headers.get("Authorization", ""), self._token
        if token is not None and not compare_digest(shown.encode(), f"Bearer {token}".encode()):
            raise statuses.unauthorized()

    def _list_response(self, request: web.Request, path: ResourcePath) -> Response:
        form = negotiate_list_form(request.headers.get("Accept", ""), path.resource)
        place = (path.resource, path.namespace)
        return Response(queries.list_page(self._cluster, *place, request.query, form=form))

    async def _stream_watch(
        self, request: web.Request, path: ResourcePath, driver: RequestDriver
    ) -> web.StreamResponse:
        accept, query = request.headers.get("Accept", ""), request.query
        form = negotiate_watch_form(accept)
        place, now = (path.resource, path.namespace), self._clock.now
        watch = queries.start_watch(self._cluster, *place, query, now=now, form=form)
        zipped = (
            self._cluster.features.gzipped_watch_lists
            and queries.is_watch_list(query)
            and accepts_gzip(request.headers)
        )
        try:
            async with aclosing(driver.watch_lines(watch)) as lines:
                return await stream_response(request, lines, driver, gzipped=zipped)
        finally:
            watch.close()


def _parse_path(request: web.Request, cluster: Cluster) -> ResourcePath | None:
    """What a request is about, if it is about objects."""
    try:
        return ResourcePath.parse(request.path, cluster.resources, cluster.with_status)
    except ServerError:
        return None


def _request_verb(request: web.Request, path: ResourcePath | None) -> RequestVerb:
    if request.method in WRITE_VERBS:
        return WRITE_VERBS[request.method]
    if path is None or path.name:
        return "get"
    return "watch" if queries.is_watch(request.query) else "list"


# -- documents ---------------------------------------------------------------------------------


class _NonResourceUrls:
    """What is no object: discovery, health, version."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def find_response(self, request: web.Request) -> Response | None:
        """The document at a path; ``None`` if none belongs there.

        Raises:
            NotFound: one would, but it isn't there.
        """
        served, having = self._cluster.resources, self._cluster.with_status
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
                return document_response(discovery.api_resource_list(served, version, having))
            case ["apis", group, version]:
                return document_response(
                    discovery.api_resource_list(served, f"{group}/{version}", having)
                )
            case _:
                return None

    def _aggregated_discovery(self, request: web.Request, *, core: bool) -> Response:
        """Everything at once, with a tag to ask whether it is still so (recording 02)."""
        served, having = self._cluster.resources, self._cluster.with_status
        body = (
            encode_json(discovery.api_group_discovery_list(served, core=core, with_status=having))
            + b"\n"
        )
        tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        headers = {"Etag": tag, "Vary": "Accept", "Cache-Control": "public"}
        if request.headers.get("If-None-Match") == tag:
            return Response(b"", 304, discovery.AGGREGATED_CONTENT_TYPE, headers)
        return Response(body, 200, discovery.AGGREGATED_CONTENT_TYPE, headers)


# -- one object --------------------------------------------------------------------------------


async def _object_response(cluster: Cluster, request: web.Request, path: ResourcePath) -> Response:
    """The answer to anything but a list or a watch."""
    form = negotiate_object_form(request.headers.get("Accept", ""))  # refuses what can't be written
    try:
        body = await request.read() if request.can_read_body else b""
    except web.HTTPRequestEntityTooLarge as error:
        raise statuses.body_too_large(BODY_LIMIT) from error
    asked = ObjectRequest(request.method, path, request.query, request.content_type, body)
    answered = handle_request(cluster, asked)
    if request.method == "GET" and form == "metadata":
        return document_response(partial_object_metadata(answered.body["metadata"]))
    return Response(answered.raw, answered.status)

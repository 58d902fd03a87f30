"""Routes of the HTTP server: the verb and the target of a request, and the code that answers."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace

import msgspec
from aiohttp import web

from aioinformer.errors import ServerError, TransportError
from aioinformer.errors.texts import printable
from aioinformer.testing.access.access import Access
from aioinformer.testing.access.impersonated_user import impersonate, read_impersonation
from aioinformer.testing.access.rights import check_access
from aioinformer.testing.access.users import RequestAttributes, User
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.faults.exchange import FaultedRequest
from aioinformer.testing.faults.faults import Faults, RequestVerb
from aioinformer.testing.server import queries
from aioinformer.testing.server.clock import Clock
from aioinformer.testing.server.foreign_pages import find_refusal
from aioinformer.testing.server.object_requests import ObjectRequest, ObjectResponse
from aioinformer.testing.server.objects import (
    BODY_LIMIT,
    handle_request,
    object_verb,
    request_attributes,
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
from aioinformer.testing.wire import discovery_documents as discovery
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, JsonObject, encode_document
from aioinformer.testing.wire.negotiation import (
    accepts_gzip,
    negotiate_list_form,
    negotiate_object_form,
    negotiate_watch_form,
    wants_aggregated,
)
from aioinformer.testing.wire.served_resources import ServedResources
from aioinformer.testing.wire.tables import partial_object_metadata
from aioinformer.testing.wire.urls import ResourcePath

_log = logging.getLogger(__name__)

_READ_METHODS = ("GET", "HEAD")


class RequestRouter:
    """The entry of every request and the exit of every response."""

    def __init__(
        self,
        cluster: Cluster,
        faults: Faults,
        clock: Clock,
        access: Access,
        accepted_hosts: frozenset[str],
    ) -> None:
        self._cluster = cluster
        self._faults = faults
        self._clock = clock
        self._access = access
        self._accepted_hosts = accepted_hosts
        self._non_resource_urls = _NonResourceUrls(cluster)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        served = self._cluster.served
        path = _find_path(request, served)
        verb = _request_verb(request, path)
        refusal = find_refusal(request.headers, self._accepted_hosts)
        # No request of a foreign page counts for a fault.
        faults = self._faults if refusal is None else Faults()
        with _start_faults(faults, verb, request, path) as faulted:
            driver = RequestDriver(faulted, self._clock)
            try:
                try:
                    if refusal is not None:
                        raise refusal
                    return await self._respond(request, driver, path, served)
                except ServerError as error:
                    return await send_response(request, error_response(error), driver)
            # Either a fault broke the connection, or the client closed it.
            except (TransportError, ConnectionError):
                return abort(request)
            except Exception as error:  # noqa: BLE001 - of this server; logged and answered
                shown = printable(request.path)
                _log.exception("%s %s: the embedded server failed", request.method, shown)
                return await _respond_to_failure(request, error, driver)

    async def _respond(
        self,
        request: web.BaseRequest,
        driver: RequestDriver,
        path: ResourcePath | None,
        served: ServedResources,
    ) -> web.StreamResponse:
        """Return the response, sent or ready; ``path`` is ``None`` if ``served`` has no such
        resource.
        """
        foreign = await driver.start_response()
        if foreign is not None:
            content = Response(foreign.body, content_type=foreign.content_type)
            return await send_response(request, content, driver)
        user = self._authorize(request)
        if path is None:
            document = self._non_resource_urls.find_response(request)
            if document is not None:
                return await send_response(request, document, driver)
        if path is None or self._cluster.served is not served:
            # The resource may have been added or removed during the wait.
            path = ResourcePath.parse(request.path, self._cluster.served)
        verb = _request_verb(request, path)
        _check_method(request, verb, path, self._cluster)
        if verb in ("list", "watch", "watch_list"):
            await driver.wait_for_version(self._cluster, queries.required_version(request.query))
            if verb == "list":
                return await send_response(
                    request, self._list_response(request, path, driver), driver
                )
            return await self._stream_watch(request, path, driver)
        response = await self._object_response(request, path, user)
        return await send_response(request, response, driver)

    def _authorize(self, request: web.BaseRequest) -> User:
        """Return the user of a request, who may be another one than its sender, or raise the
        refusal.
        """
        cluster, access = self._cluster, self._access
        user = access.authenticate(cluster, request.headers.get("Authorization", ""))
        wanted = read_impersonation(request.headers.items())
        if wanted is None and user.unrestricted:
            return user
        path = _find_path(request, cluster.served) or ResourcePath.guess(request.path)
        attributes = _request_attributes(request, path)
        if wanted is not None:
            user = impersonate(cluster, access, user, wanted, attributes)
        check_access(cluster, user, attributes)
        return user

    def _list_response(
        self, request: web.BaseRequest, path: ResourcePath, driver: RequestDriver
    ) -> Response:
        form = negotiate_list_form(request.headers.get("Accept", ""), path.resource)
        query = driver.request.list_query(request.query)
        page = queries.list_page(self._cluster, path.resource, path.namespace, query, form=form)
        return Response(driver.request.list_body(page))

    async def _stream_watch(
        self, request: web.BaseRequest, path: ResourcePath, driver: RequestDriver
    ) -> web.StreamResponse:
        query = _watch_query(request, path)
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

    async def _object_response(
        self, request: web.BaseRequest, path: ResourcePath, user: User
    ) -> Response:
        # Negotiation goes first: a write whose answer has no acceptable form isn't done.
        form = negotiate_object_form(request.headers.get("Accept", ""))
        try:
            body = await request.read() if request.can_read_body else b""
        except web.HTTPRequestEntityTooLarge as error:
            raise statuses.body_too_large(BODY_LIMIT) from error
        method = "GET" if request.method == "HEAD" else request.method
        agent = request.headers.get("User-Agent", "")
        sent = ObjectRequest(method, path, request.query, request.content_type, body, user, agent)
        response = handle_request(self._cluster, sent, self._access)
        if method == "GET" and form == "metadata":
            return document_response(_partial_metadata(response))
        return Response(response.raw, response.status, warnings=response.warnings)


def _start_faults(
    faults: Faults, verb: RequestVerb, request: web.BaseRequest, path: ResourcePath | None
) -> FaultedRequest:
    if path is None:
        return FaultedRequest(faults, verb, None, url_path=request.path)
    return FaultedRequest(faults, verb, path.resource, path.namespace, name=path.name)


async def _respond_to_failure(
    request: web.BaseRequest, error: Exception, driver: RequestDriver
) -> web.StreamResponse:
    """Answer with 500 after an exception of this server; break off a response that has begun."""
    if request.writer.output_size:
        return abort(request)
    failure = statuses.internal_error(f"the embedded server failed: {error!r}; see its log")
    try:
        return await send_response(request, error_response(failure), driver)
    except (TransportError, ConnectionError):
        return abort(request)


def _partial_metadata(response: ObjectResponse) -> JsonObject:
    if response.stored is not None:
        return partial_object_metadata(response.stored.metadata)
    document: JsonObject = msgspec.json.decode(response.raw)
    return partial_object_metadata(document["metadata"])


def _find_path(request: web.BaseRequest, served: ServedResources) -> ResourcePath | None:
    try:
        return ResourcePath.parse(request.path, served)
    except ServerError:
        return None


def _request_verb(request: web.BaseRequest, path: ResourcePath | None) -> RequestVerb:
    if path is None:
        return "get"
    if request.method not in _READ_METHODS:
        return object_verb(request.method, path)
    if path.watched:
        return "watch"
    if path.name:
        return "get"
    if not queries.is_watch(request.query):
        return "list"
    return "watch_list" if queries.is_watch_list(request.query) else "watch"


def _request_attributes(request: web.BaseRequest, path: ResourcePath | None) -> RequestAttributes:
    if path is None:
        return RequestAttributes(verb=request.method.lower(), path=request.path)
    verb = _request_verb(request, path)
    attributes = request_attributes("watch" if verb == "watch_list" else verb, path)
    # A list or watch of one name is allowed by a rule for this name (apiserver's RequestInfo).
    selected = "" if path.name else queries.selected_name(request.query)
    return replace(attributes, name=selected) if selected else attributes


def _check_method(
    request: web.BaseRequest, verb: RequestVerb, path: ResourcePath, cluster: Cluster
) -> None:
    """Raise 405 for resources that can't be listed, and for the HEAD of built-in resources."""
    served = cluster.served.find(path.resource)
    if verb in ("list", "watch", "watch_list") and served and "list" not in served.verbs:
        raise statuses.method_not_allowed()
    if request.method == "HEAD" and not Encoding(path.resource).custom:
        raise statuses.method_not_allowed()


def _watch_query(request: web.BaseRequest, path: ResourcePath) -> Mapping[str, str]:
    """Return the query of a watch. The old form of a watch of one object selects its name."""
    if not path.name:
        return request.query
    return {**request.query, "fieldSelector": f"metadata.name={path.name}"}


# -- documents ---------------------------------------------------------------------------------


_HEALTH_PATHS = ("healthz", "readyz", "livez")


class _NonResourceUrls:
    """The paths that name no object: discovery, health, version."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def find_response(self, request: web.BaseRequest) -> Response | None:
        """Return the document of a path; ``None`` for a path of objects. ``NotFound`` if it is
        missing.
        """
        segments = request.path.strip("/").split("/")
        if segments[0] in _HEALTH_PATHS and len(segments) == 1:
            headers = {"X-Content-Type-Options": "nosniff"}
            return Response(b"ok", 200, "text/plain; charset=utf-8", headers)
        found = self._find_document(request, segments)
        if found is not None and request.method == "HEAD":
            raise statuses.method_not_allowed()
        return found

    def _find_document(self, request: web.BaseRequest, segments: list[str]) -> Response | None:
        served = self._cluster.served
        aggregated = wants_aggregated(request.headers.get("Accept", ""))
        match segments:
            case ["version"]:
                return self._version(request)
            case ["api" | "apis" as root] if aggregated:
                return self._aggregated_discovery(request, core=root == "api")
            case ["api"]:
                return document_response(discovery.api_versions(request.host))
            case ["apis"]:
                return document_response(discovery.api_group_list(served))
            case ["apis", group]:
                return document_response(discovery.api_group(served, group))
            case ["api", version]:
                return document_response(discovery.api_resource_list(served, version))
            case ["apis", group, version]:
                return document_response(discovery.api_resource_list(served, f"{group}/{version}"))
            case _:
                return None

    def _version(self, request: web.BaseRequest) -> Response:
        document = discovery.version_info(self._cluster.features.minor)
        return Response(msgspec.json.format(msgspec.json.encode(document), indent=2))

    def _aggregated_discovery(self, request: web.BaseRequest, *, core: bool) -> Response:
        """Return the aggregated document, or 304 if the client has it already."""
        body = encode_document(discovery.api_group_discovery_list(self._cluster.served, core=core))
        tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        headers = {"Etag": tag, "Vary": "Accept", "Cache-Control": "public"}
        if request.headers.get("If-None-Match") == tag:
            return Response(b"", 304, discovery.AGGREGATED_CONTENT_TYPE, headers)
        return Response(body, 200, discovery.AGGREGATED_CONTENT_TYPE, headers)

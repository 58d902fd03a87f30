"""Requests to a cluster: which verb, which object, and the answer. ``replies`` sends it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from hmac import compare_digest
from typing import Any

import msgspec
from aiohttp import web

from aioinformer.errors import ServerError, TransportError
from aioinformer.testing import discovery, queries, statuses, writes
from aioinformer.testing.clock import Clock
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.encoding import Encoding, json_bytes
from aioinformer.testing.exchange import Exchange
from aioinformer.testing.faults import Faults, Verb
from aioinformer.testing.forms import partial_object
from aioinformer.testing.negotiation import (
    JSON,
    accepts_gzip,
    list_form,
    object_form,
    wants_aggregated,
)
from aioinformer.testing.passage import Passage
from aioinformer.testing.replies import Reply, cut, document, refusal, send, stream
from aioinformer.testing.targets import Target

__all__ = ["application"]


BODY_LIMIT = 3 * 1024 * 1024
"""The longest body of a write (the API server's ``MaxRequestBodyBytes``)."""

MERGE_PATCH = "application/merge-patch+json"
_WRITES: Mapping[str, Verb] = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


def application(
    cluster: Cluster, *, faults: Faults, clock: Clock, token: str | None
) -> web.Application:
    """The HTTP side of a cluster; with ``token``, for those who bear it."""
    app = web.Application(client_max_size=BODY_LIMIT)
    app.router.add_route("*", "/{path:.*}", _Front(cluster, faults, clock, token).serve)
    return app


class _Front:
    """Every request comes in here, and every answer goes out."""

    def __init__(self, cluster: Cluster, faults: Faults, clock: Clock, token: str | None) -> None:
        self._cluster = cluster
        self._faults = faults
        self._clock = clock
        self._token = token
        self._documents = _Documents(cluster)
        self._objects = _Objects(cluster)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        target = _target(request, self._cluster)
        place = (target.resource, target.namespace) if target else (None, None)
        with Exchange(self._faults, _verb(request, target), *place) as exchange:
            passage = Passage(exchange, self._clock)
            try:
                try:
                    return await self._answer(request, passage)
                except ServerError as error:
                    return await send(request, refusal(error), passage)
            except (TransportError, ConnectionError):  # broken on purpose; the client has gone
                return cut(request)

    async def _answer(self, request: web.Request, passage: Passage) -> web.StreamResponse:
        await passage.admit()
        self._check_token(request)
        found = self._documents.find(request)
        if found is not None:
            return await send(request, found, passage)
        target = Target.parse(request.path, self._cluster.resources)
        if request.method == "GET" and not target.name:
            await passage.fresh(self._cluster, queries.wanted_version(request.query))
            if queries.is_watch(request.query):
                return await self._watch(request, target, passage)
            return await send(request, self._list(request, target), passage)
        return await send(request, await self._objects.answer(request, target), passage)

    def _check_token(self, request: web.Request) -> None:
        """Let those through who bear the token; everyone if there is none."""
        shown, token = request.headers.get("Authorization", ""), self._token
        if token is not None and not compare_digest(shown.encode(), f"Bearer {token}".encode()):
            raise statuses.unauthorized()

    def _list(self, request: web.Request, target: Target) -> Reply:
        form = list_form(request.headers.get("Accept", ""), target.resource)
        place = (target.resource, target.namespace)
        return Reply(queries.list_page(self._cluster, *place, request.query, form=form))

    async def _watch(
        self, request: web.Request, target: Target, passage: Passage
    ) -> web.StreamResponse:
        accept, query = request.headers.get("Accept", ""), request.query
        form = object_form(accept, watched=True)
        place, now = (target.resource, target.namespace), self._clock.now
        watch = queries.start_watch(self._cluster, *place, query, now=now, form=form)
        zipped = (
            self._cluster.features.gzipped_watch_lists
            and queries.is_watch_list(query)
            and accepts_gzip(request.headers)
        )
        try:
            async with aclosing(passage.lines(watch)) as lines:
                return await stream(request, lines, passage, zipped=zipped)
        finally:
            watch.close()


def _target(request: web.Request, cluster: Cluster) -> Target | None:
    """What a request is about, if it is about objects."""
    try:
        return Target.parse(request.path, cluster.resources)
    except ServerError:
        return None


def _verb(request: web.Request, target: Target | None) -> Verb:
    if request.method in _WRITES:
        return _WRITES[request.method]
    if target is None or target.name:
        return "get"
    return "watch" if queries.is_watch(request.query) else "list"


# -- documents ---------------------------------------------------------------------------------


class _Documents:
    """What is no object: discovery, health, version."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def find(self, request: web.Request) -> Reply | None:
        """The document at a path; ``None`` if none belongs there.

        Raises:
            NotFound: one would, but it isn't there.
        """
        served = self._cluster.resources
        aggregated = wants_aggregated(request.headers.get("Accept", ""))
        match request.path.strip("/").split("/"):
            case ["healthz" | "readyz" | "livez"]:
                return Reply(b"ok", content_type="text/plain; charset=utf-8")
            case ["version"]:
                return document(discovery.version(self._cluster.features.minor))
            case ["api" | "apis" as root] if aggregated:
                return self._aggregated(request, core=root == "api")
            case ["api"]:
                return document(discovery.core_versions(request.host))
            case ["apis"]:
                return document(discovery.groups(served))
            case ["apis", group]:
                return document(discovery.group(served, group))
            case ["api", version]:
                return document(discovery.group_version(served, version))
            case ["apis", group, version]:
                return document(discovery.group_version(served, f"{group}/{version}"))
            case _:
                return None

    def _aggregated(self, request: web.Request, *, core: bool) -> Reply:
        """Everything at once, with a tag to ask whether it is still so (recording 02)."""
        body = json_bytes(discovery.aggregated(self._cluster.resources, core=core)) + b"\n"
        tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        headers = {"Etag": tag, "Vary": "Accept", "Cache-Control": "public"}
        if request.headers.get("If-None-Match") == tag:
            return Reply(b"", 304, discovery.AGGREGATED, headers)
        return Reply(body, 200, discovery.AGGREGATED, headers)


# -- one object --------------------------------------------------------------------------------


class _Objects:
    """Reads and writes of single objects."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def answer(self, request: web.Request, target: Target) -> Reply:
        """The answer to anything but a list or a watch."""
        accept = request.headers.get("Accept", "")
        verbs: dict[tuple[str, bool], Callable[[web.Request, Target], Awaitable[Reply]]] = {
            ("GET", True): self._get,
            ("POST", False): self._create,
            ("PUT", True): self._update,
            ("PATCH", True): self._patch,
            ("DELETE", True): self._delete,
        }
        verb = verbs.get((request.method, bool(target.name)))
        if verb is None:
            raise statuses.method_not_allowed()
        object_form(accept)  # refuses what can't be written
        return await verb(request, target)

    async def _get(self, request: web.Request, target: Target) -> Reply:
        where = self._namespace(target)
        body = self._cluster.get(target.resource, target.name, namespace=where)
        if object_form(request.headers.get("Accept", "")) == "metadata":
            return document(partial_object(body["metadata"]))
        return _object(target, body)

    async def _create(self, request: web.Request, target: Target) -> Reply:
        body = await _body(request, JSON)
        where = self._namespace(target)
        created = self._cluster.create(target.resource, body, namespace=where)
        return _object(target, created, status=201)

    async def _update(self, request: web.Request, target: Target) -> Reply:
        body = await _body(request, JSON)
        where = self._namespace(target)
        whole = writes.checked(body)
        found = whole["metadata"].setdefault("name", target.name)
        if found != target.name:
            raise statuses.bad_request(
                f"the name of the object ({found}) does not match the name on the URL "
                f"({target.name})"
            )
        return _object(target, self._cluster.update(target.resource, whole, namespace=where))

    async def _patch(self, request: web.Request, target: Target) -> Reply:
        patch = await _body(request, MERGE_PATCH)
        where = self._namespace(target)
        patched = self._cluster.merge_patch(target.resource, target.name, patch, namespace=where)
        return _object(target, patched)

    async def _delete(self, request: web.Request, target: Target) -> Reply:
        options = _options(await _body(request, JSON) if request.can_read_body else {})
        preconditions = options.preconditions or _Preconditions()
        last = self._cluster.delete(
            target.resource,
            target.name,
            namespace=self._namespace(target),
            uid=preconditions.uid,
            resource_version=preconditions.resource_version,
        )
        metadata = last["metadata"]
        if metadata.get("finalizers"):
            return _object(target, last)  # it is still there
        return document(statuses.success(target.resource, target.name, metadata["uid"]))

    def _namespace(self, target: Target) -> str | None:
        """The namespace in the URL; over HTTP there is no default one."""
        if target.resource.namespaced and target.namespace is None:
            raise statuses.method_not_allowed()
        return target.namespace


def _object(target: Target, body: dict[str, Any], *, status: int = 200) -> Reply:
    encoding = Encoding(target.resource)
    return Reply(encoding.whole(encoding.item(body)) + b"\n", status)


async def _body(request: web.Request, content_type: str) -> dict[str, Any]:
    if "dryRun" in request.query:
        raise statuses.bad_request("dryRun is not available on this server")
    if request.content_type not in (content_type, "application/octet-stream"):
        raise statuses.unsupported_media_type(content_type)
    try:
        return msgspec.json.decode(await request.read(), type=dict[str, Any])
    except web.HTTPRequestEntityTooLarge as error:
        raise statuses.body_too_large(BODY_LIMIT) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise statuses.bad_request(f"the body is not a JSON object: {error}") from error


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(msgspec.Struct):
    """What is read of the body of a DELETE."""

    preconditions: _Preconditions | None = None


def _options(body: dict[str, Any]) -> _DeleteOptions:
    try:
        return msgspec.convert(body, _DeleteOptions)
    except msgspec.ValidationError as error:
        raise statuses.bad_request(str(error)) from error

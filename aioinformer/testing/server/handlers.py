"""Requests to a cluster: which verb, which object, and the answer. ``replies`` sends it."""

from __future__ import annotations

import hashlib
from contextlib import aclosing
from hmac import compare_digest

from aiohttp import web

from aioinformer.errors import ServerError, TransportError
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.faults.exchange import Exchange
from aioinformer.testing.faults.faults import Faults, Verb
from aioinformer.testing.server import queries
from aioinformer.testing.server.clock import Clock
from aioinformer.testing.server.objects import BODY_LIMIT, WRITES, Asked, answer
from aioinformer.testing.server.request_driver import Passage
from aioinformer.testing.server.responses import Reply, cut, document, refusal, send, stream
from aioinformer.testing.wire import discovery, statuses
from aioinformer.testing.wire.encoding import json_bytes
from aioinformer.testing.wire.negotiation import (
    accepts_gzip,
    list_form,
    object_form,
    wants_aggregated,
    watch_form,
)
from aioinformer.testing.wire.tables import partial_object
from aioinformer.testing.wire.urls import Target

__all__ = ["application"]


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
        target = Target.parse(request.path, self._cluster.resources, self._cluster.with_status)
        if request.method == "GET" and not target.name:
            await passage.fresh(self._cluster, queries.wanted_version(request.query))
            if queries.is_watch(request.query):
                return await self._watch(request, target, passage)
            return await send(request, self._list(request, target), passage)
        return await send(request, await _one_object(self._cluster, request, target), passage)

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
        form = watch_form(accept)
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
        return Target.parse(request.path, cluster.resources, cluster.with_status)
    except ServerError:
        return None


def _verb(request: web.Request, target: Target | None) -> Verb:
    if request.method in WRITES:
        return WRITES[request.method]
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
        served, having = self._cluster.resources, self._cluster.with_status
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
                return document(discovery.group_version(served, version, having))
            case ["apis", group, version]:
                return document(discovery.group_version(served, f"{group}/{version}", having))
            case _:
                return None

    def _aggregated(self, request: web.Request, *, core: bool) -> Reply:
        """Everything at once, with a tag to ask whether it is still so (recording 02)."""
        served, having = self._cluster.resources, self._cluster.with_status
        body = json_bytes(discovery.aggregated(served, core=core, with_status=having)) + b"\n"
        tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
        headers = {"Etag": tag, "Vary": "Accept", "Cache-Control": "public"}
        if request.headers.get("If-None-Match") == tag:
            return Reply(b"", 304, discovery.AGGREGATED, headers)
        return Reply(body, 200, discovery.AGGREGATED, headers)


# -- one object --------------------------------------------------------------------------------


async def _one_object(cluster: Cluster, request: web.Request, target: Target) -> Reply:
    """The answer to anything but a list or a watch."""
    form = object_form(request.headers.get("Accept", ""))  # refuses what can't be written
    try:
        body = await request.read() if request.can_read_body else b""
    except web.HTTPRequestEntityTooLarge as error:
        raise statuses.body_too_large(BODY_LIMIT) from error
    asked = Asked(request.method, target, request.query, request.content_type, body)
    answered = answer(cluster, asked)
    if request.method == "GET" and form == "metadata":
        return document(partial_object(answered.body["metadata"]))
    return Reply(answered.raw, answered.status)

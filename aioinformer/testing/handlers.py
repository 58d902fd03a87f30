"""Requests to a cluster as aiohttp handlers: verbs, formats, and how bytes are sent.

Every answer with a body of some size and every watch goes through ``_stream``, so that whatever
shall happen to bytes on their way has one place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from hmac import compare_digest
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from aioinformer.errors import ServerError
from aioinformer.testing import discovery, queries, statuses, writes
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.encoding import Encoding, document_bytes
from aioinformer.testing.list_watcher import chunks_of, lines_of
from aioinformer.testing.targets import Target

__all__ = ["application"]


BODY_LIMIT = 3 * 1024 * 1024
"""The longest body of a write (the API server's ``MaxRequestBodyBytes``)."""
INLINE = 2048
"""Answers up to this size carry a Content-Length; longer ones are chunked (Go's net/http)."""
GZIP_FROM = 128 * 1024
"""Lists from this size on are compressed for those who accept it (recording 55)."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
_PRIVATE = {"Cache-Control": "no-cache, private"}


def application(cluster: Cluster, *, token: str | None) -> web.Application:
    """The HTTP side of a cluster; with ``token``, for those who bear it."""
    app = web.Application(middlewares=[_refusals, _bearer(token)], client_max_size=BODY_LIMIT)
    endpoint = _Endpoint(cluster)
    for path in ("/healthz", "/readyz", "/livez"):
        app.router.add_get(path, _ok)
    app.router.add_get("/version", endpoint.version)
    app.router.add_get("/api", endpoint.core)
    app.router.add_get("/apis", endpoint.groups)
    app.router.add_get("/api/{version}", endpoint.group_version)
    app.router.add_get("/apis/{group}", endpoint.group)
    app.router.add_get("/apis/{group}/{version}", endpoint.group_version)
    app.router.add_route("*", "/{path:.*}", endpoint.objects)
    return app


# -- around every request ----------------------------------------------------------------------


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A refusal as the server words it: a Status, or plain text where that is what it sends."""
    try:
        return await handler(request)
    except ServerError as error:
        status = error.status
        headers = dict(_PRIVATE)
        if status.retry_after is not None:
            headers["Retry-After"] = f"{status.retry_after:g}"
        if status.code == 404 and not status.reason:
            headers["X-Content-Type-Options"] = "nosniff"
            return web.Response(status=404, text=f"{status.message}\n", headers=headers)
        body = document_bytes(statuses.document(status))
        return web.Response(status=status.code, body=body, content_type=JSON, headers=headers)


def _bearer(token: str | None) -> Middleware:
    """Lets those through who bear the token; everyone if there is none."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        shown = request.headers.get("Authorization", "")
        if token is not None and not compare_digest(shown.encode(), f"Bearer {token}".encode()):
            raise statuses.unauthorized()
        return await handler(request)

    return check


async def _ok(_: web.Request) -> web.StreamResponse:
    return web.Response(text="ok", headers=_PRIVATE)


# -- what can be asked -------------------------------------------------------------------------


class _Endpoint:
    """A cluster as handlers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def version(self, _: web.Request) -> web.StreamResponse:
        return _document(discovery.version())

    async def core(self, request: web.Request) -> web.StreamResponse:
        if _wants_aggregated(request):
            return self._aggregated(core=True)
        return _document(discovery.core_versions(request.host))

    async def groups(self, request: web.Request) -> web.StreamResponse:
        if _wants_aggregated(request):
            return self._aggregated(core=False)
        return _document(discovery.groups(self._cluster.resources))

    async def group(self, request: web.Request) -> web.StreamResponse:
        return _document(discovery.group(self._cluster.resources, request.match_info["group"]))

    async def group_version(self, request: web.Request) -> web.StreamResponse:
        parts = (request.match_info.get("group", ""), request.match_info["version"])
        api_version = "/".join(filter(None, parts))
        return _document(discovery.group_version(self._cluster.resources, api_version))

    def _aggregated(self, *, core: bool) -> web.StreamResponse:
        found = discovery.aggregated(self._cluster.resources, core=core)
        response = _document(found)
        response.headers["Content-Type"] = discovery.AGGREGATED
        response.headers["Vary"] = "Accept"
        return response

    async def objects(self, request: web.Request) -> web.StreamResponse:
        """Everything below a group version."""
        target = Target.parse(request.path, self._cluster.resources)
        _check_accept(request)
        match request.method, bool(target.name):
            case "GET", True:
                return self._get(target)
            case "GET", False:
                watching = queries.is_watch(request.query)
                return await (self._watch if watching else self._list)(request, target)
            case "POST", False:
                return await self._create(request, target)
            case "PUT", True:
                return await self._update(request, target)
            case "PATCH", True:
                return await self._patch(request, target)
            case "DELETE", True:
                return await self._delete(request, target)
            case _:
                raise statuses.method_not_allowed()

    # -- one object ---------------------------------------------------------------------------

    def _get(self, target: Target) -> web.StreamResponse:
        where = self._namespace(target)
        return _object(target, self._cluster.get(target.resource, target.name, namespace=where))

    async def _create(self, request: web.Request, target: Target) -> web.StreamResponse:
        body = await _body(request, JSON)
        where = self._namespace(target)
        created = self._cluster.create(target.resource, body, namespace=where)
        return _object(target, created, status=201)

    async def _update(self, request: web.Request, target: Target) -> web.StreamResponse:
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

    async def _patch(self, request: web.Request, target: Target) -> web.StreamResponse:
        patch = await _body(request, MERGE_PATCH)
        where = self._namespace(target)
        patched = self._cluster.merge_patch(target.resource, target.name, patch, namespace=where)
        return _object(target, patched)

    async def _delete(self, request: web.Request, target: Target) -> web.StreamResponse:
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
        return _document(statuses.success(target.resource, target.name, metadata["uid"]))

    def _namespace(self, target: Target) -> str | None:
        """The namespace in the URL; over HTTP there is no default one."""
        if target.resource.namespaced and target.namespace is None:
            raise statuses.method_not_allowed()
        return target.namespace

    # -- many objects -------------------------------------------------------------------------

    async def _list(self, request: web.Request, target: Target) -> web.StreamResponse:
        body = queries.list_page(self._cluster, target.resource, target.namespace, request.query)
        if len(body) <= INLINE:
            return web.Response(body=body, content_type=JSON, headers=_PRIVATE)
        zipped = len(body) > GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", "")
        return await _stream(request, chunks_of(body), zipped=zipped)

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        now = asyncio.get_running_loop().time()
        watch = queries.start_watch(
            self._cluster, target.resource, target.namespace, request.query, now=now
        )
        try:
            return await _stream(request, lines_of(watch))
        finally:
            watch.close()


# -- formats -----------------------------------------------------------------------------------


async def _stream(
    request: web.Request, chunks: AsyncGenerator[bytes], *, zipped: bool = False
) -> web.StreamResponse:
    """Send bytes as they come, each piece as one HTTP chunk; the head goes out at once."""
    response = web.StreamResponse(headers={"Content-Type": JSON} | _PRIVATE)
    response.enable_chunked_encoding()
    if zipped:
        response.enable_compression(web.ContentCoding.gzip)
    async with aclosing(chunks):
        await response.prepare(request)
        async for chunk in chunks:
            await response.write(chunk)
    await response.write_eof()
    return response


def _document(document: Mapping[str, Any] | None) -> web.Response:
    if document is None:
        raise statuses.page_not_found()
    body = document_bytes(dict(document))
    return web.Response(body=body, content_type=JSON, headers=_PRIVATE)


def _object(target: Target, body: dict[str, Any], *, status: int = 200) -> web.Response:
    encoding = Encoding(target.resource)
    whole = encoding.whole(encoding.item(body)) + b"\n"
    return web.Response(status=status, body=whole, content_type=JSON, headers=_PRIVATE)


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


def _check_accept(request: web.Request) -> None:
    """JSON is all there is: whoever takes other formats only must learn of it."""
    wanted = request.headers.get("Accept", "*/*")
    offers = [offer.replace(" ", "").partition(";") for offer in wanted.split(",")]
    if not any(
        kind in (JSON, "application/*", "*/*") and "as=" not in rest for kind, _, rest in offers
    ):
        raise statuses.not_acceptable(JSON)


def _wants_aggregated(request: web.Request) -> bool:
    """Whether the first format asked for that exists here is the aggregated one."""
    wanted = request.headers.get("Accept", "").replace(" ", "")
    needed = ("g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList")
    return any(
        set(needed) <= set(offer.split(";")) and offer.startswith(JSON)
        for offer in wanted.split(",")
    )

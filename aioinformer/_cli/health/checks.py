"""The checks of ``aioinformer health``, and their results.

For each resource, one object is listed, a watch is opened, and an informer reads the initial list.
It is the informer that a program would use, so the report shows the strategy and the times that a
program gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import msgspec

from aioinformer import Client, Metrics, Resource, SharedInformerFactory, WatchRequest
from aioinformer._client.http.request import JSON, ApiRequest, read_all
from aioinformer._core.listwatch.reflector_requests import Verb
from aioinformer.errors import FetchError, Forbidden, RequestTimedOut, SyncTimeout, UsageError

VERSION_PATH = "/version"
"""The role ``system:public-info-viewer`` grants it to every user."""
REVIEW_VERSION = "authentication.k8s.io/v1"
REVIEW_PATH = f"/apis/{REVIEW_VERSION}/selfsubjectreviews"
"""Every authenticated user may create a review, which names the user."""
LATENCY_REQUESTS = 5
"""Requests whose median is the latency. The request before them opens the connection."""
WATCH_SECONDS = 1
"""The timeout that the watch request asks for; the check closes the watch at once."""


@dataclass(slots=True, kw_only=True)
class ServerReport:
    url: str
    version: str = ""
    credentials: str = ""
    """The kind of the credentials; no secret."""
    user: str = ""
    """The server's name for the user, and the groups; empty if the server doesn't say."""
    first: float | None = None
    """Seconds of the first request, which opens the connection."""
    latency: float | None = None
    """The median seconds of a small request."""
    slowest: float | None = None
    """Seconds of the slowest of these requests."""
    error: str = ""


@dataclass(slots=True, kw_only=True)
class ResourceReport:
    resource: str
    scope: str = ""
    """The checked namespace, or ``all``."""
    lists: bool | None = None
    """``None`` if the check did not get that far."""
    watches: bool | None = None
    """``None`` as for ``lists``."""
    strategy: str = ""
    """The request for the initial list of an informer: ``watchlist`` or ``list``."""
    bookmarks: bool | None = None
    """True if the server sent a bookmark. Without a WatchList, the first comes after a minute."""
    synced: float | None = None
    """Seconds until the initial list was complete."""
    objects: int | None = None
    size: int | None = None
    """Uncompressed bytes received until the initial list was complete."""
    note: str = ""
    """A limitation that an informer works around."""
    error: str = ""
    """The error of a failed check, with advice."""

    @property
    def ok(self) -> bool:
        return self.synced is not None and not self.error


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


@dataclass(slots=True)
class _ByteCounter(Metrics):
    size: int = 0
    last: float = field(default_factory=_loop_time)
    """The loop's time of the last chunk; before the first one, that of the request."""

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        self.size += size
        self.last = _loop_time()


async def check_server(client: Client, report: ServerReport, *, timeout: float) -> None:
    """Fill in ``report`` within ``timeout`` seconds; raise ``FetchError`` if a request fails."""
    async with _enforce_timeout(timeout):
        await _ask_version(client, report)
        report.user = await _ask_user(client)


@asynccontextmanager
async def _enforce_timeout(seconds: float) -> AsyncGenerator[None]:
    """Raise ``RequestTimedOut`` after ``seconds``: the client's own timeouts are longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise RequestTimedOut(f"the server has not answered within {seconds:g} s") from error


async def _ask_version(client: Client, report: ServerReport) -> None:
    try:
        report.first, body = await _time_version_request(client)
    except Forbidden:  # the cluster has removed the default grant for this path
        report.version = "(version not readable)"
        return
    try:
        info = msgspec.json.decode(body, type=dict[str, object])
    except msgspec.DecodeError:
        info = {}  # a proxy answered instead of the server
    report.version = str(info.get("gitVersion", "unknown"))
    times = [(await _time_version_request(client))[0] for _ in range(LATENCY_REQUESTS)]
    report.latency, report.slowest = median(times), max(times)


class _UserInfo(msgspec.Struct):
    username: str = ""
    groups: list[str] = []


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _UserInfo


class _Review(msgspec.Struct):
    status: _ReviewStatus


async def _ask_user(client: Client) -> str:
    """Return the user and the groups that the server sees, as ``kubectl auth whoami`` does.

    The result is empty if the server doesn't serve SelfSubjectReviews (before Kubernetes 1.28), or
    denies them.
    """
    body = msgspec.json.encode({"apiVersion": REVIEW_VERSION, "kind": "SelfSubjectReview"})
    call = ApiRequest("write", REVIEW_PATH, method="POST", body=body, content_type=JSON)
    try:
        async with client.request(call) as answer:
            review = msgspec.json.decode(await read_all(answer, call), type=_Review)
    except (FetchError, msgspec.DecodeError):
        return ""
    user = review.status.user_info
    groups = f" (groups {', '.join(user.groups)})" if user.groups else ""
    return f"{user.username}{groups}"


async def _time_version_request(client: Client) -> tuple[float, bytes]:
    start = perf_counter()
    body = await client.get_raw(VERSION_PATH)
    return perf_counter() - start, body


async def check_resource(
    client: Client, name: str, namespace: str, *, timeout: float
) -> ResourceReport:
    """Check if a resource can be listed and watched. The report holds the errors.

    ``timeout`` are seconds for the first requests, and again for the initial list.
    """
    report = ResourceReport(resource=name)
    try:
        async with _enforce_timeout(timeout):
            resource = await client.resource(name)
            scope = (namespace or None) if resource.namespaced else None
            report.resource = _resource_name(resource)
            report.scope = scope or "all"
            version = await _list_one(client, resource, scope, report)
            await _open_watch(client, resource, scope, version, report)
        await _measure_sync(client, resource, scope, timeout, report)
    except (FetchError, UsageError, SyncTimeout) as error:
        report.error = str(error)
    return report


def _resource_name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


class _VersionMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _VersionList(msgspec.Struct):
    metadata: _VersionMeta


async def _list_one(
    client: Client, resource: Resource, namespace: str | None, report: ResourceReport
) -> str:
    """List one object, and return the resourceVersion of the list."""
    report.lists = False
    body = await client.get_raw(resource.path(namespace), {"limit": "1"})
    report.lists = True
    try:
        return msgspec.json.decode(body, type=_VersionList).metadata.resource_version
    except msgspec.DecodeError:
        return ""  # the informer reports the error


async def _open_watch(
    client: Client, resource: Resource, namespace: str | None, version: str, report: ResourceReport
) -> None:
    lister_watcher = client.lister_watcher(resource, namespace=namespace)
    report.watches = False
    async with lister_watcher.watch(WatchRequest(version, WATCH_SECONDS)):
        report.watches = True


ENDLESS_WATCH_LIST = (
    "this server does not complete a WatchList of the resource; an informer falls back to LIST "
    "after half a minute, and at once with SharedInformerFactory(client, watch_list=False)"
)


async def _measure_sync(
    client: Client,
    resource: Resource,
    namespace: str | None,
    timeout: float,
    report: ResourceReport,
) -> None:
    counter = _ByteCounter()
    informers = SharedInformerFactory(client, namespace=namespace, metrics=counter)
    try:
        await _read_initial_list(informers, resource, counter, report, timeout)
    except SyncTimeout:
        idle = _loop_time() - counter.last
        if report.strategy == "list" or idle < timeout / 2:
            raise  # the server was still sending data, or rejects the LIST too
        counter = _ByteCounter()
        informers = SharedInformerFactory(
            client, namespace=namespace, metrics=counter, watch_list=False
        )
        await _read_initial_list(informers, resource, counter, report, timeout)
        report.note = ENDLESS_WATCH_LIST


async def _read_initial_list(
    informers: SharedInformerFactory,
    resource: Resource,
    counter: _ByteCounter,
    report: ResourceReport,
    timeout: float,
) -> None:
    start = perf_counter()
    async with informers:
        informer = informers.informer(resource)
        try:
            await informer.wait_synced(timeout)
            report.synced = perf_counter() - start
        finally:
            health = informer.health
            report.strategy, report.size = health.strategy, counter.size
            report.objects = health.objects
    if report.strategy == "watchlist":
        report.bookmarks = True  # a bookmark marks the end of the initial list

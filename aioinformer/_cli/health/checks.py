"""What ``aioinformer health`` asks a cluster, and what came of it.

The server is asked for its version, some times, to see how fast it answers. Of each resource, one
object is listed, a watch is opened, and an informer reads the first state: what the library
would do for a program, so that its strategy and times are those that a program would get.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import msgspec

from aioinformer import Client, NoMetrics, Resource, SharedInformerFactory, WatchRequest
from aioinformer._core.listwatch.requests import Verb
from aioinformer.errors import FetchError, Forbidden, RequestTimedOut, SyncTimeout, UsageError

__all__ = ["ResourceReport", "ServerReport", "check_resource", "check_server"]

VERSION_PATH = "/version"
"""What everybody may read who may read anything (``system:public-info-viewer``)."""
LATENCY_REQUESTS = 5
"""Requests whose median is the latency; the first one of all opens the connection and is apart."""
WATCH_SECONDS = 1
"""Seconds after which a watch that is only opened would end by itself."""


@dataclass(slots=True, kw_only=True)
class ServerReport:
    """A server at one moment."""

    url: str
    version: str = ""
    credentials: str = ""
    """Of which kind; no secret."""
    first: float | None = None
    """Seconds of the first request, with the connection."""
    latency: float | None = None
    """Seconds of a small request, the median of some."""
    slowest: float | None = None
    error: str = ""


@dataclass(slots=True, kw_only=True)
class ResourceReport:
    """What can be done with one resource."""

    resource: str
    scope: str = ""
    """A namespace, or ``all``."""
    lists: bool | None = None
    """Whether it can be listed; ``None`` if that was not tried."""
    watches: bool | None = None
    strategy: str = ""
    """How an informer reads its first state: ``watchlist`` or ``list``."""
    bookmarks: bool | None = None
    """Whether the server has sent one. Without a WatchList the first comes after a minute."""
    synced: float | None = None
    """Seconds to the first state."""
    objects: int | None = None
    size: int | None = None
    """Bytes on the wire to the first state, unpacked."""
    note: str = ""
    """What works, and not as one would think."""
    error: str = ""
    """What failed, and what to do about it."""

    @property
    def ok(self) -> bool:
        """Whether an informer of it works."""
        return self.synced is not None and not self.error


@dataclass(slots=True)
class _ByteCounter(NoMetrics):
    """Counts what an informer receives."""

    size: int = 0
    last: float = field(default_factory=perf_counter)
    """When something came last, or when it was asked for."""

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        """Count a chunk."""
        self.size += size
        self.last = perf_counter()


async def check_server(client: Client, report: ServerReport, *, timeout: float) -> None:
    """Ask for the version, some times; fill in a report.

    Args:
        client: an open one.
        report: what to fill in.
        timeout: seconds for all of it.

    Raises:
        FetchError: no answer, or one that is no version.
    """
    async with _enforce_timeout(timeout):
        await _ask_version(client, report)


@asynccontextmanager
async def _enforce_timeout(seconds: float) -> AsyncGenerator[None]:
    """Somebody waits: the client's own patience with a silent server is for programs.

    Raises:
        RequestTimedOut: it took longer.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise RequestTimedOut(f"the server has not answered within {seconds:g} s") from error


async def _ask_version(client: Client, report: ServerReport) -> None:
    try:
        report.first, body = await _time_version_request(client)
    except Forbidden:  # of somebody who may do nothing but what was granted
        report.version = "(version not to be read)"
        return
    try:
        read = msgspec.json.decode(body, type=dict[str, object])
    except msgspec.DecodeError:
        read = {}  # a proxy that answers for it
    report.version = str(read.get("gitVersion", "unknown"))
    times = [(await _time_version_request(client))[0] for _ in range(LATENCY_REQUESTS)]
    report.latency, report.slowest = median(times), max(times)


async def _time_version_request(client: Client) -> tuple[float, bytes]:
    start = perf_counter()
    body = await client.get_raw(VERSION_PATH)
    return perf_counter() - start, body


async def check_resource(
    client: Client, name: str, namespace: str, *, timeout: float
) -> ResourceReport:
    """Find out what can be done with a resource. What can't is in the finding.

    Args:
        client: an open one.
        name: as somebody calls it.
        namespace: where; empty for everywhere.
        timeout: seconds for what is asked first, and again for the first state.
    """
    finding = ResourceReport(resource=name)
    try:
        async with _enforce_timeout(timeout):
            resource = await client.resource(name)
            place = (namespace or None) if resource.namespaced else None
            finding.resource = _resource_name(resource)
            finding.scope = place or "all"
            version = await _list_one(client, resource, place, finding)
            await _open_watch(client, resource, place, version, finding)
        await _measure_sync(client, resource, place, timeout, finding)
    except (FetchError, UsageError, SyncTimeout) as error:
        finding.error = str(error)
    return finding


def _resource_name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


class _VersionMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _VersionList(msgspec.Struct):
    metadata: _VersionMeta


async def _list_one(
    client: Client, resource: Resource, namespace: str | None, report: ResourceReport
) -> str:
    """The resourceVersion of a list of one object."""
    report.lists = False
    body = await client.get_raw(resource.path(namespace), {"limit": "1"})
    report.lists = True
    try:
        return msgspec.json.decode(body, type=_VersionList).metadata.resource_version
    except msgspec.DecodeError:
        return ""  # the informer says what is wrong with it


async def _open_watch(
    client: Client, resource: Resource, namespace: str | None, version: str, report: ResourceReport
) -> None:
    reader = client.lister_watcher(resource, namespace=namespace)
    report.watches = False
    async with reader.watch(WatchRequest(version, WATCH_SECONDS)):
        report.watches = True


ENDLESS_WATCH_LIST = (
    "WatchLists of it don't come to an end here; an informer lists after half a minute of silence, "
    "and SharedInformerFactory(client, watch_list=False) at once"
)


async def _measure_sync(
    client: Client,
    resource: Resource,
    namespace: str | None,
    timeout: float,
    report: ResourceReport,
) -> None:
    meter = _ByteCounter()
    informers = SharedInformerFactory(client, namespace=namespace, metrics=meter)
    try:
        await _read_initial_list(informers, resource, meter, report, timeout)
    except SyncTimeout:
        silent = perf_counter() - meter.last
        if report.strategy == "list" or silent < timeout / 2:
            raise  # it was coming, or is refused
        meter = _ByteCounter()
        informers = SharedInformerFactory(
            client, namespace=namespace, metrics=meter, watch_list=False
        )
        await _read_initial_list(informers, resource, meter, report, timeout)
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
        report.bookmarks = True  # its end is marked by one

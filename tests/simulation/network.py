"""The network of a history: the faults of a plan on ``aioinformer.testing``, and records of bytes.

Each informer has a ``ClusterSource`` with ``Faults`` of its own, so that a fault can concern one
informer. ``Network.begin`` switches the faults of a plan on and off, by the table ``_SWITCHES``.

``RecordingListerWatcher`` passes requests on and records what its client can see: the time of the
head, of each bookmark, of the end of a whole state, of the last byte, and the error at the end. It
cuts some chunks in two, since a connection keeps no boundaries, and adds to some WatchLists a
bookmark that looks like the end mark but isn't.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import (
    AbstractContextManager,
    aclosing,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from msgspec import structs

from aioinformer._core.listwatch.outcomes import Outcome, classify
from aioinformer._core.listwatch.reflector_requests import (
    AnyRequest,
    DiscoveryRequest,
    ListRequest,
    WatchRequest,
)
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError, Phase, ServerError
from aioinformer.testing import ClusterSource, Faults
from aioinformer.testing import Fault as Switch
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.faults.effects import Cut
from aioinformer.testing.faults.faults import TOO_LARGE, ListFilter
from aioinformer.testing.server.source import ClusterListerWatcher
from aioinformer.testing.wire import statuses, version_statuses
from aioinformer.testing.wire.encoding import INITIAL_EVENTS_END
from tests.simulation.plan import Fault, FaultKind
from tests.simulation.records import FaultStarted, History, Request

_BOOKMARK = b'{"type":"BOOKMARK"'
_END_ANNOTATION = b'"%s":"true"' % INITIAL_EVENTS_END.encode()
_NO_END_ANNOTATION = b'"%s":"false"' % INITIAL_EVENTS_END.encode()
_MORE = re.compile(rb'"continue":"[^"]')

_CUTS = 0.3
"""Share of the chunks that arrive in two parts."""
_DECOYS = 0.3
"""Share of the WatchLists with a bookmark that doesn't end their initial state."""
_FORMS: tuple[Literal["message", "reason", "cause"], ...] = ("message", "reason", "cause")
"""The forms of ``version_too_large`` by the amount of the fault."""
_CHUNK = 1 << 16
"""Bytes that arrive together while there is latency."""

# -- the faults of a plan ----------------------------------------------------------------------

_ENDED = ("refuse", "outage", "drip", "latency", "no_bookmarks", "duplicate_bookmarks")
"""Faults that end for open requests as well. The others go on for the requests that they concern: a
connection that fell silent stays so."""
_OPEN: ListFilter = {"under_way": True}
"""The requests that are open when a fault begins."""


def _refuse(on: Faults, new: ListFilter) -> Switch:
    # Without a connection, the client can't tell a refusal from a reset by its share.
    return on.refuse() if new.get("share") == 1 else on.reset(**new)


def _reject_watch_lists(on: Faults, fault: Fault, new: ListFilter) -> list[Switch]:
    if fault.amount != 500:
        return [on.status(fault.amount, verb="watch_list", **new)]
    # Half of these servers have a storage without WatchLists; the others fail otherwise.
    known = fault.at * 1e6 % 2 < 1
    message = version_statuses.unsupported_watch_list().status.message if known else ""
    return [on.error_event(500, message=message, verb="watch_list", **new)]


def _answer_status(on: Faults, fault: Fault, new: ListFilter) -> list[Switch]:
    plain = fault.amount == 404 and fault.at * 1e6 % 2 < 1
    retry_after = fault.retry_after or None
    return [on.status(fault.amount, retry_after=retry_after, plain=plain, **new)]


def _omit_end_marks(on: Faults, fault: Fault, new: ListFilter) -> list[Switch]:
    endless, after = on.endless_watch_list(**new), fault.amount
    return [endless, *([on.end_watches(after=after, verb="watch_list", **new)] if after else [])]


_SWITCHES: dict[FaultKind, Callable[[Faults, Fault, ListFilter], list[Switch]]] = {
    # New requests fail, and in an outage open ones break.
    "refuse": lambda on, _, new: [_refuse(on, new)],
    "outage": lambda on, _, new: [_refuse(on, new), on.reset(**_OPEN)],
    # Open and new requests break after some bytes, or fall silent: only the client can end them.
    "reset": lambda on, each, new: [on.reset(after=each.amount, **of) for of in (_OPEN, new)],
    "stall": lambda on, each, new: [on.stall(after=each.amount, **of) for of in (_OPEN, new)],
    # New requests get no head of an answer.
    "hang": lambda on, _, new: [on.latency(float("inf"), **new)],
    # Bytes arrive a few at a time, or requests and chunks take time.
    "drip": lambda on, each, _: [on.drip(size=each.amount, every=0.0)],
    "latency": lambda on, each, _: [
        on.latency(each.amount / 1000),
        on.drip(size=_CHUNK, every=each.amount / 1000),
    ],
    # A brace of each stream or answer becomes a NUL.
    "corrupt": lambda on, each, new: [
        on.corrupt(after=each.amount, put=b"\0", find=b"{", **of) for of in (_OPEN, new)
    ],
    # Requests are answered with 200 and a page for people, or with an error.
    "html_page": lambda on, _, new: [on.html_page(**new)],
    "status": _answer_status,
    "version_too_large": lambda on, each, new: [on.version_too_large(_FORMS[each.amount], **new)],
    # Lists show an older state than the one that was requested, or have pages without end.
    "stale_list": lambda on, each, new: [on.stale_lists(each.amount, **new)],
    "endless_pages": lambda on, _, new: [on.endless_pages(**new)],
    # Open watches end with an ERROR event, or properly.
    "error_event": lambda on, each, _: [
        on.error_event(504, reason="Timeout", message=TOO_LARGE, **_OPEN)
        if each.amount == 504
        else on.error_event(each.amount, **_OPEN)
    ],
    "end": lambda on, _, __: [on.end_watches(**_OPEN)],
    # The server forgets its history, and connections break.
    "compact": lambda on, _, __: [on.reset(**_OPEN)],
    # New watches end at once, after some seconds, or with a bookmark when there is no event.
    "unserved": lambda on, _, new: [on.end_watches(**new)],
    "brief": lambda on, each, new: [on.end_watches(after=each.amount, **new)],
    "empty_watch": lambda on, _, new: [on.end_watches(idle=True, **new)],
    # WatchLists are rejected, or watches as well, as if the role allowed lists only.
    "no_watchlist": _reject_watch_lists,
    "watch_refused": lambda on, each, new: [on.status(each.amount, verb="watch", **new)],
    # WatchLists have no end mark, and end after some seconds, or never.
    "endless": _omit_end_marks,
    # Bookmarks are dropped, or sent twice.
    "no_bookmarks": lambda on, _, __: [on.drop_bookmarks()],
    "duplicate_bookmarks": lambda on, _, __: [on.repeat_bookmarks()],
    # The resource is not served, too shortly to be believed, or in another version only. That is
    # decided by ``Network``, because a cluster serves one version to all clients.
    "absent": lambda _, __, ___: [],
    "moved": lambda _, __, ___: [],
}
"""The switches of each fault for the requests of one informer. The last argument selects the new
requests that the fault concerns."""


class Network:
    """The connections of all informers of a history to its cluster."""

    def __init__(
        self,
        cluster: Cluster,
        history: History,
        chance: Random,
        *,
        on_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create a network without faults.

        Args:
            cluster: answers the requests.
            history: receives the records of requests and faults.
            chance: decides the cuts between bytes.
            on_failure: called with the name of an informer of which a request has failed.
        """
        self.cluster = cluster
        self.history = history
        self.chance = chance
        self.open: list[Request] = []
        """Requests whose context was not left yet."""
        self.on_failure = on_failure
        self._faults: dict[str, Faults] = {}
        self._versions: list[tuple[float, Fault]] = []
        """The faults ``absent`` and ``moved``, with the times of their ends."""

    def begin(self, fault: Fault) -> None:
        """Begin a fault now."""
        now = self.history.add(FaultStarted, fault).time
        if fault.target:
            self.source(fault.target)
        if fault.kind == "compact":
            self.cluster.compact()
        if fault.kind in ("absent", "moved"):
            self._versions.append((now + fault.lasting, fault))
        new: ListFilter = {"under_way": False, "share": fault.share}
        switches = [
            switch
            for name, faults in self._faults.items()
            if fault.target in ("", name)
            for switch in _SWITCHES[fault.kind](faults, fault, new)
        ]
        if fault.lasting:
            asyncio.get_running_loop().call_later(fault.lasting, _switch_off, fault, switches)
        else:
            _switch_off(fault, switches)

    def source(self, name: str) -> ClusterSource:
        """Return the cluster as an informer reaches it. Faults concern it from now on."""
        if name not in self._faults:
            self._faults[name] = self.make_faults(name)
        return ClusterSource(self.cluster, self._faults[name])

    def make_faults(self, name: str) -> Faults:
        """Make the faults of an informer, none of which is on."""
        return Faults(random=Random(f"{self.chance.random()} {name}"))

    def served_version(self, informer: str, resource: Resource) -> Resource | None:
        """Return a resource in the version in which it is served now; ``None`` if it isn't."""
        now = self.history.clock()
        self._versions = [(until, fault) for until, fault in self._versions if until > now]
        kinds = [fault.kind for _, fault in self._versions if fault.target in ("", informer)]
        version = "v9" if "moved" in kinds else "v1"
        return None if "absent" in kinds else structs.replace(resource, version=version)

    @contextmanager
    def record(self, name: str, asked: AnyRequest, query: str) -> Generator[Request]:
        """Record a request and its end."""
        request = self.history.add(Request, name, asked.verb, query)
        if isinstance(asked, WatchRequest):
            request.length, request.since = asked.timeout, int(asked.resource_version or 0)
        self.open.append(request)
        try:
            yield request
        except FetchError as error:
            _note(request, error)
            self.on_failure(name)
            raise
        finally:
            self.open.remove(request)
            _, request.ended = self.history.stamp()

    def __repr__(self) -> str:
        return f"<Network open={len(self.open)} faults={len(self.history.of(FaultStarted))}>"


def _switch_off(fault: Fault, switches: list[Switch]) -> None:
    for switch in switches:
        if fault.kind in _ENDED and not isinstance(switch.effect, Cut):
            switch.end()
        else:
            switch.retire()


def _note(request: Request, error: FetchError) -> None:
    request.failure = f"{type(error).__name__}: {error}"
    request.expired = classify(error) in (Outcome.EXPIRED, Outcome.VERSION_TOO_LARGE)
    if isinstance(error, ServerError):
        request.retry_after = error.status.retry_after or 0.0


# -- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordingListerWatcher:
    """Lists and watches one selection for one informer; a ``ListerWatcher``."""

    network: Network
    name: str
    """The name in the records."""
    resource: Resource
    inner: ClusterListerWatcher
    """The lister-watcher of the resource in the only version that the cluster has."""
    watch_lists: bool = True

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Open a page; yields its bytes."""
        with self._record(request, request.query()) as record:
            self._check_version("list")
            async with (
                self.inner.list(request) as chunks,
                aclosing(self._observe(record, chunks)) as observed,
            ):
                yield observed

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Open a stream of events; yields its bytes."""
        with (
            self._record(request, request.query()) as record,
            self._decoy(request),
            self._in_version(),
        ):
            self._check_version("watch")
            async with (
                self.inner.watch(request) as chunks,
                aclosing(self._observe(record, chunks)) as observed,
            ):
                yield observed

    async def discover(self) -> Resource | None:
        """Return the resource as the discovery documents have it; ``None`` if they don't."""
        with self._record(DiscoveryRequest(), {}):
            served = await self.inner.discover()
            return served and self.network.served_version(connection_of(self.name), served)

    def with_resource(self, resource: Resource) -> RecordingListerWatcher:
        """Return a lister-watcher of the resource in another version."""
        return replace(self, resource=resource)

    def release_list_slot(self) -> None:
        """Let another informer begin: the initial list of the open WatchList is complete."""
        self.inner.release_list_slot()

    def _record(
        self, request: AnyRequest, query: dict[str, str]
    ) -> AbstractContextManager[Request]:
        query |= {"labelSelector": self.inner.labels} if self.inner.labels else {}
        text = "&".join(f"{name}={value}" for name, value in query.items())
        return self.network.record(self.name, request, text)

    def _check_version(self, phase: Phase) -> None:
        """Raise a 404 unless the resource is served in the requested version."""
        if self.network.served_version(connection_of(self.name), self.resource) != self.resource:
            with statuses.error_phase(phase):
                raise statuses.not_served(self.resource.api_version)

    @contextmanager
    def _decoy(self, request: WatchRequest) -> Generator[None]:
        """Add a bookmark before the end mark that isn't the end mark, to some WatchLists."""
        chance = self.network.chance
        if not request.initial or chance.random() >= _DECOYS:
            yield
            return
        version = self.network.cluster.resource_version
        left = [_decoy(version)]

        def with_decoy(line: bytes) -> list[bytes]:
            if left and (_END_ANNOTATION in line or chance.random() < 0.1):
                return [left.pop(), line]
            return [line]

        with self.inner.source.faults.rewrite_events(with_decoy, verb="watch_list", times=1):
            yield

    def _in_version(self) -> AbstractContextManager[object]:
        """Have the events of a watch name the version of the resource, if it has moved."""
        stored, served = (
            b'"apiVersion":"%s"' % each.api_version.encode()
            for each in (self.inner.resource, self.resource)
        )
        if stored == served:
            return nullcontext()
        faults = self.inner.source.faults
        return faults.rewrite_events(lambda line: [line.replace(stored, served)], times=1)

    async def _observe(
        self, request: Request, chunks: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes]:
        """Pass bytes on, some of them cut in two, and record the times of their arrival."""
        history, chance = self.network.history, self.network.chance
        request.answered = request.last_read = history.clock()
        arrived = _Arrivals(request)
        request.awaited = True
        async for chunk in chunks:
            cut = chance.randrange(len(chunk)) if chance.random() < _CUTS else 0
            for part in (chunk[:cut], chunk[cut:]):
                if part:
                    arrived.add(part, *history.stamp())
                    request.awaited = False
                    yield part
                    request.awaited, request.last_read = True, history.clock()
        arrived.finish(*history.stamp())

    def __repr__(self) -> str:
        return f"<RecordingListerWatcher of {self.resource} for {self.name}>"


class _Arrivals:
    """The bytes of one answer, searched for bookmarks and the end of a whole state."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._rest: bytes = b""

    def add(self, data: bytes, order: int, now: float) -> None:
        """Record the lines of a watch that are complete with ``data``, which has arrived."""
        request = self._request
        data = self._rest + data
        if request.kind not in ("watch", "watchlist"):
            self._rest = data
            return
        *lines, rest = data.split(b"\n")
        self._rest = rest
        for line in lines:
            if not line.startswith(_BOOKMARK):
                request.changes += 1
            elif _END_ANNOTATION in line:
                request.initial_list_complete = request.initial_list_complete or order
            elif request.kind == "watch" or request.initial_list_complete:
                request.bookmarks.append(now)

    def finish(self, order: int, now: float) -> None:
        """Record the end of a list, which is the end of a state if there is no further page."""
        body = self._rest
        if self._request.kind == "list" and body.startswith(b"{") and not _MORE.search(body):
            self._request.initial_list_complete = order


@dataclass(frozen=True, slots=True)
class RecordingSource:
    """A network in the place of a client; a factory's ``Source``."""

    network: Network
    name: str

    def lister_watcher(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
    ) -> RecordingListerWatcher:
        """Return the lister-watcher of one informer."""
        inner = self.network.source(connection_of(self.name)).lister_watcher(
            resource, namespace=namespace, labels=labels, fields=fields
        )
        return RecordingListerWatcher(self.network, self.name, resource, inner)


def connection_of(name: str) -> str:
    """Return the name that faults have for an informer, or for one of its namespaces.

    A namespace that is read again has another name in the records, as in ``pods (web) #2``.
    """
    return name.partition(" #")[0]


def _decoy(version: int) -> bytes:
    metadata = b'"annotations":{%s},"resourceVersion":"%d"' % (_NO_END_ANNOTATION, version)
    return b'%s,"object":{"metadata":{%s}}}\n' % (_BOOKMARK, metadata)

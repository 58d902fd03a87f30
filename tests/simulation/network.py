"""The way between informers and a cluster, and what goes wrong on it.

A ``Network`` answers lists and watches from a ``Cluster`` as an HTTP connection would carry them:
bytes cut anywhere, at some speed, until something breaks. Faults begin when ``begin`` is called:

    refuse       new requests fail for a while
    outage       the same, and what is open breaks
    reset        what is open, or is opened within the time, breaks after some bytes
    stall        the same, but it falls silent: only the client can end it
    hang         new requests get no head of an answer for a while
    drip         bytes come a few at a time for a while
    latency      requests and chunks take time for a while
    corrupt      a brace in the next chunk of each stream, or in the next answer, becomes a NUL
    html_page    requests are answered with 200 and a page for people for a while
    status       requests are answered with an error for a while
    version_too_large  requests are answered with 'too large resource version' for a while
    stale_list   lists show an older state than they were asked for, for a while
    absent       the resource isn't served for a while, says discovery too; short, and all is there
    moved        the resource is served in another version only for a while
    error_event  open watches end with an ERROR event
    compact      the server forgets its history, and connections break
    end          open watches end properly
    unserved     watches end at once, with nothing in them, for a while
    brief        watches end after some seconds, for a while
    empty_watch  watches end with a bookmark as soon as there is nothing to say, for a while
    no_watchlist  WatchLists are refused for a while: by a status, or (500) by an ERROR event
    endless      WatchLists have no end mark for a while, and end after some seconds, or never
    no_bookmarks, duplicate_bookmarks  bookmarks are dropped, or come twice, for a while

At any time a WatchList may have a bookmark in its initial state whose annotation doesn't say
``"true"``. Each request is written down with how it ended for its client: the context manager that
carries it sees whatever error leaves it, the client's own included.

One request under way, and what is about to happen to its bytes.

A ``Network`` creates connections and applies faults to them. A ``FaultyListerWatcher`` sends
through them. They record what came through, which is the evidence for the checks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from aioinformer._core.listwatch.outcomes import Outcome, classify
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import (
    ConnectionFailed,
    FetchError,
    Phase,
    RequestTimedOut,
    ServerError,
    Status,
    server_error,
)
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import INITIAL_EVENTS_END
from tests.simulation.plan import Fault, FaultKind
from tests.simulation.records import Closed, FaultStarted, History, Request

SILENCE = 75.0
"""Seconds without a byte of a list after which a client gives up (``Timeouts.silence``)."""
HEAD = 90.0
"""Seconds without the head of a watch after which it does (``Timeouts.watch_start``)."""
GRACE = 30.0
"""Seconds that a watch may last beyond what was asked for (``Timeouts.grace``)."""

_BOOKMARK = b'{"type":"BOOKMARK"'
_END_BOOKMARK = b'"%s":"true"' % INITIAL_EVENTS_END.encode()
_MORE = re.compile(rb'"continue":"[^"]')


def is_bookmark(line: bytes) -> bool:
    """Whether a line of a watch is one, the mark behind an initial state included."""
    return line.startswith(_BOOKMARK)


def is_end_bookmark(line: bytes) -> bool:
    """Whether a line of a watch is the mark behind its initial state."""
    return line.startswith(_BOOKMARK) and _END_BOOKMARK in line


@dataclass(slots=True, eq=False)
class Connection:
    """One request, and what is about to happen to it."""

    request: Request
    resource: Resource
    """What is asked for."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to read, or something has happened."""
    allowance: int | None = None
    """Bytes until it breaks or falls silent; ``None`` if it doesn't."""
    stalls: bool = False
    """Whether it then falls silent."""
    corrupt: bool = False
    garbage: bool = False
    without_end_mark: bool = False
    """Whether the mark behind the initial state is kept back."""
    ends: bool = False
    ends_at: float | None = None
    empty: bool = False
    error: Status | None = None
    """The ERROR event that it ends with."""
    _notable: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    """Behind how many more bytes a bookmark (or else a whole state) will be through."""

    # -- breaking -----------------------------------------------------------------------------

    @property
    def broken(self) -> bool:
        """Whether nothing gets through any more, and the client knows."""
        return self.allowance == 0 and not self.stalls

    @property
    def silent(self) -> bool:
        """Whether nothing gets through any more, and the client doesn't know."""
        return self.allowance == 0 and self.stalls

    def cut(self, after: int, *, stalls: bool = False) -> None:
        """Let so many more bytes through."""
        self.allowance, self.stalls = after, stalls

    def due(self, now: float) -> bool:
        """Whether it is time for the server to end it."""
        return self.ends or (self.ends_at is not None and now >= self.ends_at)

    # -- sending ------------------------------------------------------------------------------

    def announce(self, data: bytes) -> None:
        """Look for what is worth noting when ``data``, which is sent next, is through."""
        self._notable = list(_notable(self.request.kind, data))

    def spend(self, chunk: bytes, order: int, now: float) -> bytes:
        """What of a chunk still gets through.

        Args:
            chunk: the next bytes.
            order: the number of this moment.
            now: its time.
        """
        through = chunk
        if self.allowance is not None:
            through = chunk[: self.allowance]
            self.allowance -= len(through)
        self._notable = [(left - len(through), what) for left, what in self._notable]
        while self._notable and self._notable[0][0] <= 0:
            _, bookmark = self._notable.pop(0)
            if not bookmark:
                self.request.initial_list_complete = order
            elif self.request.kind == "watch" or self.request.initial_list_complete:
                self.request.bookmarks.append(now)
        return through

    def __repr__(self) -> str:
        state = "broken" if self.broken else "silent" if self.silent else "open"
        return f"<Connection {self.request} {state}>"


def _notable(kind: str, data: bytes) -> Iterator[tuple[int, bool]]:
    if kind == "list":
        if not _MORE.search(data):
            yield len(data), False
        return
    if _BOOKMARK not in data or kind == "probe":
        return
    end = 0
    for line in data.splitlines(keepends=True):
        end += len(line)
        if is_end_bookmark(line):
            yield end, False
        elif is_bookmark(line):
            yield end, True


CHUNK_LINES = 16
"""Events that come in one chunk at most: as many as fit a TLS record of 16 KiB."""

DECOYS = 0.3
"""The share of chunks of an initial state that have a bookmark which doesn't end it."""

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
_TOO_LARGE = "Too large resource version"
_TOO_LARGE_STATUSES = (
    Status(504, "Timeout", f"{_TOO_LARGE}: 9, current: 1", retry_after=1.0),
    Status(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]}),
    Status(504, "Timeout", details={"causes": [{"message": _TOO_LARGE}]}),
)
"""How servers say that a resourceVersion isn't reached yet (client-go's isTooLargeResourceVersion
knows these three)."""


class Network:
    """Carries the requests of all informers of a history."""

    def __init__(self, cluster: Cluster, history: History, chance: Random) -> None:
        """Make a network without faults.

        Args:
            cluster: who answers.
            history: where requests and faults are written down.
            chance: decides how bytes are cut.
        """
        self.cluster = cluster
        self.history = history
        self.chance = chance
        self.open: list[Connection] = []
        """Requests whose context was not left."""
        self.on_failure: Callable[[str], None] | None = None
        """Called with an informer's name when a request of its has failed."""
        self._lasting: dict[FaultKind, list[tuple[float, Fault]]] = {}

    # -- faults -------------------------------------------------------------------------------

    def begin(self, fault: Fault) -> None:
        """Something breaks, now."""
        now = self.history.add(FaultStarted, fault).time
        self._lasting.setdefault(fault.kind, []).append((now + fault.lasting, fault))
        if fault.kind == "compact":
            self.cluster.compact()
        for connection in self.open:
            if fault.target in ("", connection.request.informer):
                self._strike(connection, fault)
                connection.wake.set()

    def _strike(self, connection: Connection, fault: Fault) -> None:
        """What a fault does to an open connection."""
        match fault.kind:
            case "reset" | "stall":
                connection.cut(fault.amount, stalls=fault.kind == "stall")
            case "outage" | "compact":
                connection.cut(0)
            case "corrupt":
                connection.corrupt = True
            case "error_event":
                connection.error = error_status(fault.amount)
            case "end":
                connection.ends = True
            case _:
                pass  # it lasts, rather than strikes

    def current(self, kind: FaultKind, informer: str) -> Fault | None:
        """The fault of a kind that lasts now for an informer."""
        pairs = self._lasting.get(kind)
        if not pairs:
            return None
        now = self.history.clock()
        lasting = self._lasting[kind] = [pair for pair in pairs if pair[0] > now]
        hits = (fault for _, fault in lasting if fault.target in ("", informer))
        return next(hits, None)

    def hits(self, kind: FaultKind, informer: str) -> Fault | None:
        """The fault of a kind that hits a new request of an informer."""
        if self.current(kind, informer) is None:
            return None
        for _, fault in self._lasting[kind]:
            if fault.target in ("", informer) and self.chance.random() < fault.share:
                return fault
        return None

    # -- requests -----------------------------------------------------------------------------

    def version(self, informer: str, resource: Resource) -> Resource:
        """A resource in the version in which it is served to an informer now."""
        moved = self.current("moved", informer) is not None
        return replace(resource, version="v9" if moved else "v1")

    @contextmanager
    def carry(self, request: Request, resource: Resource) -> Generator[Connection]:
        """A connection for a request; writes down how it ends."""
        connection = Connection(request, resource)
        self.open.append(connection)
        try:
            yield connection
        except FetchError as error:
            _note(request, error)
            if self.on_failure is not None:
                self.on_failure(request.informer)
            raise
        finally:
            self.open.remove(connection)
            request.ended = self.history.add(Closed, request).time

    async def admit(self, connection: Connection) -> None:
        """Let a request through to the server, or not.

        Raises:
            FetchError: it doesn't get there, or the server refuses.
        """
        request = connection.request
        informer, phase = request.informer, phase_of(request)
        await self.delay(informer)
        if self.hits("refuse", informer) or self.hits("outage", informer):
            raise ConnectionFailed("connection refused", phase=phase)
        if self.hits("hang", informer):
            request.silent_since = self.history.clock()
            await asyncio.sleep(HEAD if phase == "watch" else SILENCE)
            raise RequestTimedOut("no answer came in time", phase=phase)
        if (status := self._refusal(connection)) is not None:
            raise server_error(status, phase=phase)
        for kind in ("reset", "stall"):
            if fault := self.hits(kind, informer):
                connection.cut(fault.amount, stalls=kind == "stall")
        connection.corrupt = self.hits("corrupt", informer) is not None
        connection.garbage = self.hits("html_page", informer) is not None
        if phase == "watch":
            self._shorten(connection)
        request.answered = request.last_read = self.history.clock()

    def _refusal(self, connection: Connection) -> Status | None:
        """What the server answers instead."""
        request = connection.request
        informer = request.informer
        elsewhere = self.version(informer, connection.resource) != connection.resource
        if (elsewhere or self.current("absent", informer)) and request.kind != "lookup":
            return error_status(404, plain=self.chance.random() < 0.5)
        if fault := self.hits("status", informer):
            return error_status(fault.amount, fault.retry_after, plain=self.chance.random() < 0.5)
        if fault := self.hits("version_too_large", informer):
            return _TOO_LARGE_STATUSES[fault.amount % len(_TOO_LARGE_STATUSES)]
        if request.kind == "watchlist" and (fault := self.hits("no_watchlist", informer)):
            return error_status(fault.amount) if fault.amount != 500 else None
        return None

    def _shorten(self, connection: Connection) -> None:
        """What a watch won't have, or won't reach."""
        informer, now = connection.request.informer, self.history.clock()
        connection.ends = self.hits("unserved", informer) is not None
        connection.empty = self.hits("empty_watch", informer) is not None
        if fault := self.hits("brief", informer):
            connection.ends_at = now + fault.amount
        if connection.request.kind == "watchlist":
            if (fault := self.hits("no_watchlist", informer)) and fault.amount == 500:
                connection.error = statuses.unsupported_watch_list().status
            if fault := self.hits("endless", informer):
                connection.without_end_mark = True
                connection.ends_at = now + fault.amount if fault.amount else None

    async def delay(self, informer: str) -> None:
        """Take the time that the network takes now."""
        fault = self.current("latency", informer)
        await asyncio.sleep(fault.amount / 1000 if fault else 0)

    # -- bytes --------------------------------------------------------------------------------

    def pieces(self, connection: Connection, data: bytes) -> list[bytes]:
        """Bytes cut as they arrive: anywhere."""
        fault = self.current("drip", connection.request.informer)
        if fault and len(data) <= fault.amount * 200:
            return [data[at : at + fault.amount] for at in range(0, len(data), fault.amount)]
        if self.chance.random() < 0.7 or len(data) < 2:
            return [data]
        cut = self.chance.randrange(1, len(data))
        return [data[:cut], data[cut:]]

    def lines(self, connection: Connection, lines: list[bytes]) -> list[bytes]:
        """The events of a watch as they are sent: without bookmarks, or with too many."""
        request = connection.request
        if connection.without_end_mark:
            lines = [line for line in lines if not is_end_bookmark(line)]
        elif request.kind == "watchlist" and not request.initial_list_complete and lines:
            lines = self._with_a_decoy(lines)
        if self.current("no_bookmarks", request.informer):
            return [line for line in lines if not is_bookmark(line) or is_end_bookmark(line)]
        if self.current("duplicate_bookmarks", request.informer):
            return [each for line in lines for each in _echoed(line)]
        return lines

    def _with_a_decoy(self, lines: list[bytes]) -> list[bytes]:
        """With a bookmark before the mark that isn't the mark."""
        marks = [at for at, line in enumerate(lines) if is_end_bookmark(line)]
        if self.chance.random() >= DECOYS:
            return lines
        at = self.chance.randint(0, min(marks, default=len(lines)))
        return [*lines[:at], _decoy(self.cluster.resource_version), *lines[at:]]

    def corrupted(self, data: bytes) -> bytes:
        """With one brace broken: nothing else in these bodies is certain to be noticed."""
        braces = [at for at, byte in enumerate(data) if byte == ord("{")]
        if not braces:
            return data
        at = self.chance.choice(braces)
        return data[:at] + b"\0" + data[at + 1 :]

    def __repr__(self) -> str:
        return f"<Network open={len(self.open)} faults={len(self.history.of(FaultStarted))}>"


def error_status(code: int, retry_after: int = 0, *, plain: bool = False) -> Status:
    """What a server says with a code; of a 404, ``plain`` text or the usual object.

    ``504`` is a resourceVersion that is too large, ``502`` any other failure.
    """
    if code == 504:
        return _TOO_LARGE_STATUSES[0]
    if code == 404 and plain:
        return statuses.page_not_found().status
    if code == 302:
        return Status(302, "", "redirected to another host, which is not followed")
    return Status(code, _REASONS.get(code, ""), "made up", retry_after=float(retry_after) or None)


def phase_of(request: Request) -> Phase:
    """During what errors of a request happen."""
    if request.kind == "lookup":
        return "discovery"
    return "watch" if request.kind in ("watch", "watchlist") else "list"


def _echoed(line: bytes) -> list[bytes]:
    return [line, line] if is_bookmark(line) else [line]


def _decoy(version: int) -> bytes:
    metadata = (
        b'"annotations":{"k8s.io/initial-events-end":"false"},"resourceVersion":"%d"' % version
    )
    return b'{"type":"BOOKMARK","object":{"metadata":{%s}}}\n' % metadata


def _note(request: Request, error: FetchError) -> None:
    request.failure = f"{type(error).__name__}: {error}"
    request.expired = classify(error) in (Outcome.EXPIRED, Outcome.VERSION_TOO_LARGE)
    if isinstance(error, ServerError):
        request.retry_after = error.status.retry_after or 0.0

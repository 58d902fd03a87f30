"""The network between informers and a cluster, with faults.

A ``Network`` answers lists and watches from a ``Cluster`` as an HTTP connection would: bytes are
cut anywhere and have some speed, until something breaks. A ``Connection`` is one request: faults
act on it, and it records what arrives, which is the evidence for the checks.

The faults differ from those of ``aioinformer.testing.Faults`` in what the checks need: a fault may
concern one informer or a share of the requests, silence stays until the client ends it, and the
arrival of each byte is recorded. ``begin`` starts a fault. The faults that last do so for a while:

    refuse               new requests fail
    outage               new requests fail, and open ones break
    reset                open and new requests break after some bytes
    stall                the same, but they fall silent: only the client can end them
    hang                 new requests get no head of an answer
    drip                 bytes arrive a few at a time
    latency              requests and chunks take time
    corrupt              a brace in the next chunk of each stream or answer becomes a NUL
    html_page            requests are answered with 200 and a page for people
    status               requests are answered with an error
    version_too_large    requests are answered with 'too large resource version'
    stale_list           lists show an older state than the one that was requested
    absent               the resource is not served, and discovery says so; too short to be believed
    moved                the resource is served in another version only
    error_event          open watches end with an ERROR event
    compact              the server forgets its history, and connections break
    end                  open watches end properly
    unserved             watches end at once, without an event
    brief                watches end after some seconds
    empty_watch          watches end with a bookmark as soon as there is no event to send
    no_watchlist         WatchLists are rejected: by a status, or (500) by an ERROR event
    endless              WatchLists have no end mark, and end after some seconds, or never
    no_bookmarks         bookmarks are dropped
    duplicate_bookmarks  bookmarks are sent twice

At any time a WatchList may have a bookmark in its initial state whose annotation doesn't say
``"true"``. Each request is recorded with the error that ended it for its client: the context
manager of the request sees every error that leaves it, also the client's own.
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
"""Seconds without the head of a watch after which a client gives up (``Timeouts.watch_start``)."""
GRACE = 30.0
"""Seconds that a watch may last beyond the requested time (``Timeouts.grace``)."""

_BOOKMARK = b'{"type":"BOOKMARK"'
_END_BOOKMARK = b'"%s":"true"' % INITIAL_EVENTS_END.encode()
_MORE = re.compile(rb'"continue":"[^"]')


def is_bookmark(line: bytes) -> bool:
    """Return True if a line of a watch is a bookmark, also the one that ends an initial state."""
    return line.startswith(_BOOKMARK)


def is_end_bookmark(line: bytes) -> bool:
    """Return True if a line of a watch is the bookmark that ends the initial state."""
    return line.startswith(_BOOKMARK) and _END_BOOKMARK in line


@dataclass(slots=True, eq=False)
class Connection:
    """One request, with the faults that act on it."""

    request: Request
    resource: Resource
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there are bytes to send, or a fault acts on the request."""
    allowance: int | None = None
    """Bytes until the connection breaks or falls silent; ``None`` for no end."""
    stalls: bool = False
    """True if the connection then falls silent."""
    corrupt: bool = False
    html_page: bool = False
    without_end_mark: bool = False
    """True if the bookmark that ends the initial state is dropped."""
    ends: bool = False
    ends_at: float | None = None
    empty: bool = False
    error: Status | None = None
    """The content of the ERROR event that ends the watch."""
    _milestones: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    """The bytes until the next bookmarks (True) and complete states (False) have arrived."""

    # -- breaking -----------------------------------------------------------------------------

    @property
    def broken(self) -> bool:
        """True if no more bytes arrive, and the client sees that."""
        return self.allowance == 0 and not self.stalls

    @property
    def silent(self) -> bool:
        """True if no more bytes arrive, and the client doesn't see that."""
        return self.allowance == 0 and self.stalls

    def cut(self, after: int, *, stalls: bool = False) -> None:
        """Break or silence the connection after so many more bytes."""
        self.allowance, self.stalls = after, stalls

    def due(self, now: float) -> bool:
        """Return True if it is time for the server to end the request."""
        return self.ends or (self.ends_at is not None and now >= self.ends_at)

    # -- sending ------------------------------------------------------------------------------

    def announce(self, data: bytes) -> None:
        """Find the bookmarks and the end of the initial state in ``data``, which is sent next."""
        self._milestones = list(_milestones(self.request.kind, data))

    def spend(self, chunk: bytes, order: int, now: float) -> bytes:
        """Return the part of a chunk that arrives, and record the milestones in it.

        Args:
            chunk: the next bytes.
            order: the number of this moment.
            now: the time of this moment.
        """
        through = chunk
        if self.allowance is not None:
            through = chunk[: self.allowance]
            self.allowance -= len(through)
        self._milestones = [(left - len(through), what) for left, what in self._milestones]
        while self._milestones and self._milestones[0][0] <= 0:
            _, bookmark = self._milestones.pop(0)
            if not bookmark:
                self.request.initial_list_complete = order
            elif self.request.kind == "watch" or self.request.initial_list_complete:
                self.request.bookmarks.append(now)
        return through

    def __repr__(self) -> str:
        state = "broken" if self.broken else "silent" if self.silent else "open"
        return f"<Connection {self.request} {state}>"


def _milestones(kind: str, data: bytes) -> Iterator[tuple[int, bool]]:
    if kind == "list":
        if not _MORE.search(data):
            yield len(data), False
        return
    if _BOOKMARK not in data or kind == "freshness_check":
        return
    end = 0
    for line in data.splitlines(keepends=True):
        end += len(line)
        if is_end_bookmark(line):
            yield end, False
        elif is_bookmark(line):
            yield end, True


CHUNK_LINES = 16
"""The most events in one chunk: as many as fit a TLS record of 16 KiB."""

DECOYS = 0.3
"""The share of chunks of an initial state with a bookmark that doesn't end the state."""

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
"""The forms in which servers say that a resourceVersion isn't reached yet (client-go's
isTooLargeResourceVersion knows these three)."""


class Network:
    """The network of all informers of a history."""

    def __init__(self, cluster: Cluster, history: History, chance: Random) -> None:
        """Create a network without faults.

        Args:
            cluster: answers the requests.
            history: receives the records of requests and faults.
            chance: decides the cuts between bytes.
        """
        self.cluster = cluster
        self.history = history
        self.chance = chance
        self.open: list[Connection] = []
        """Requests whose context was not left yet."""
        self.on_failure: Callable[[str], None] | None = None
        """Called with the name of an informer of which a request has failed."""
        self._lasting: dict[FaultKind, list[tuple[float, Fault]]] = {}

    # -- faults -------------------------------------------------------------------------------

    def begin(self, fault: Fault) -> None:
        """Begin a fault now."""
        now = self.history.add(FaultStarted, fault).time
        self._lasting.setdefault(fault.kind, []).append((now + fault.lasting, fault))
        if fault.kind == "compact":
            self.cluster.compact()
        for connection in self.open:
            if fault.target in ("", connection.request.informer):
                self._act(connection, fault)
                connection.wake.set()

    def _act(self, connection: Connection, fault: Fault) -> None:
        """Let a fault act on an open connection."""
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
                pass  # concerns new requests, or lasts

    def current(self, kind: FaultKind, informer: str) -> Fault | None:
        """Return a fault of a kind that lasts now and concerns an informer."""
        pairs = self._lasting.get(kind)
        if not pairs:
            return None
        now = self.history.clock()
        lasting = self._lasting[kind] = [pair for pair in pairs if pair[0] > now]
        hits = (fault for _, fault in lasting if fault.target in ("", informer))
        return next(hits, None)

    def hits(self, kind: FaultKind, informer: str) -> Fault | None:
        """Return a fault of a kind that concerns a new request of an informer."""
        if self.current(kind, informer) is None:
            return None
        for _, fault in self._lasting[kind]:
            if fault.target in ("", informer) and self.chance.random() < fault.share:
                return fault
        return None

    # -- requests -----------------------------------------------------------------------------

    def version(self, informer: str, resource: Resource) -> Resource:
        """Return a resource in the version in which the server has it for an informer now."""
        moved = self.current("moved", informer) is not None
        return replace(resource, version="v9" if moved else "v1")

    @contextmanager
    def carry(self, request: Request, resource: Resource) -> Generator[Connection]:
        """Open a connection for a request, and record its end."""
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
        """Wait until the server begins its answer.

        Raises:
            FetchError: the request doesn't get to the server, or the answer is an error.
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
        if (status := self._error_answer(connection)) is not None:
            raise server_error(status, phase=phase)
        for kind in ("reset", "stall"):
            if fault := self.hits(kind, informer):
                connection.cut(fault.amount, stalls=kind == "stall")
        connection.corrupt = self.hits("corrupt", informer) is not None
        connection.html_page = self.hits("html_page", informer) is not None
        if phase == "watch":
            self._shorten(connection)
        request.answered = request.last_read = self.history.clock()

    def _error_answer(self, connection: Connection) -> Status | None:
        """Return the error that the server answers instead, if there is one."""
        request = connection.request
        informer = request.informer
        elsewhere = self.version(informer, connection.resource) != connection.resource
        if (elsewhere or self.current("absent", informer)) and request.kind != "discovery":
            return error_status(404, plain=self.chance.random() < 0.5)
        if fault := self.hits("status", informer):
            return error_status(fault.amount, fault.retry_after, plain=self.chance.random() < 0.5)
        if fault := self.hits("version_too_large", informer):
            return _TOO_LARGE_STATUSES[fault.amount % len(_TOO_LARGE_STATUSES)]
        if request.kind == "watchlist" and (fault := self.hits("no_watchlist", informer)):
            return error_status(fault.amount) if fault.amount != 500 else None
        return None

    def _shorten(self, connection: Connection) -> None:
        """Apply the faults that end a watch early or leave something out of it."""
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
        """Wait for the present latency."""
        fault = self.current("latency", informer)
        await asyncio.sleep(fault.amount / 1000 if fault else 0)

    # -- bytes --------------------------------------------------------------------------------

    def pieces(self, connection: Connection, data: bytes) -> list[bytes]:
        """Cut bytes anywhere, as they would arrive."""
        fault = self.current("drip", connection.request.informer)
        if fault and len(data) <= fault.amount * 200:
            return [data[at : at + fault.amount] for at in range(0, len(data), fault.amount)]
        if self.chance.random() < 0.7 or len(data) < 2:
            return [data]
        cut = self.chance.randrange(1, len(data))
        return [data[:cut], data[cut:]]

    def lines(self, connection: Connection, lines: list[bytes]) -> list[bytes]:
        """Return the events of a watch as they are sent, with the faults of bookmarks."""
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
        """Add a bookmark before the end mark that isn't the end mark."""
        marks = [at for at, line in enumerate(lines) if is_end_bookmark(line)]
        if self.chance.random() >= DECOYS:
            return lines
        at = self.chance.randint(0, min(marks, default=len(lines)))
        return [*lines[:at], _decoy(self.cluster.resource_version), *lines[at:]]

    def corrupted(self, data: bytes) -> bytes:
        """Break one brace: no other change of these bodies is certain to be noticed."""
        braces = [at for at, byte in enumerate(data) if byte == ord("{")]
        if not braces:
            return data
        at = self.chance.choice(braces)
        return data[:at] + b"\0" + data[at + 1 :]

    def __repr__(self) -> str:
        return f"<Network open={len(self.open)} faults={len(self.history.of(FaultStarted))}>"


def error_status(code: int, retry_after: int = 0, *, plain: bool = False) -> Status:
    """Return the status that a server sends with a code.

    Args:
        code: the HTTP status; 504 means a resourceVersion that is too large.
        retry_after: seconds for ``Retry-After``; 0 for none.
        plain: send a 404 as plain text instead of an object.
    """
    if code == 504:
        return _TOO_LARGE_STATUSES[0]
    if code == 404 and plain:
        return statuses.page_not_found().status
    if code == 302:
        return Status(302, "", "redirected to another host, which is not followed")
    return Status(code, _REASONS.get(code, ""), "made up", retry_after=float(retry_after) or None)


def phase_of(request: Request) -> Phase:
    """Return the phase of the errors of a request."""
    if request.kind == "discovery":
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

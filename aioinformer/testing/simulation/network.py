"""The way between informers and a cluster, and what goes wrong on it.

A ``Network`` answers lists and watches from a ``Cluster`` as an HTTP connection would carry them:
bytes cut anywhere, at some speed, until something breaks. Faults begin when ``begin`` is called:

    refuse       new requests fail for a while
    outage       the same, and what is open breaks
    reset        what is open, or is opened within the time, breaks after some bytes
    stall        what is open falls silent, and times out in the end
    drip         bytes come a few at a time for a while
    latency      requests and chunks take time for a while
    corrupt      a brace in the next chunk of each stream, or in the next answer, becomes a NUL
    status       requests are answered with an error for a while
    error_event  open watches end with an ERROR event
    compact      the server forgets its history, and connections break
    end          open watches end properly
    unserved     watches end at once, with nothing in them, for a while
    curt         watches end with a bookmark as soon as there is nothing to say, for a while
    mute, echo   bookmarks are dropped, or come twice, for a while

Each request is written down with how it ended for its client: the context manager that carries it
sees whatever error leaves it, the client's own included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from aioinformer._core.outcomes import Outcome, classify
from aioinformer.errors import (
    ConnectionFailed,
    FetchError,
    ServerError,
    Status,
    server_error,
)
from aioinformer.testing.cluster import Cluster
from aioinformer.testing.simulation.history import Broke, Closed, History, Request
from aioinformer.testing.simulation.plan import Fault, FaultKind

__all__ = ["CHUNK_LINES", "REASONS", "Connection", "Network", "is_bookmark"]

CHUNK_LINES = 16
"""Events that come in one chunk at most: as many as fit a TLS record of 16 KiB."""

REASONS = {403: "Forbidden", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}

_BOOKMARK = b'{"type":"BOOKMARK"'


@dataclass(slots=True, eq=False)
class Connection:
    """One request under way, and what is about to happen to it."""

    request: Request
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to read, or something has happened."""
    allowance: int | None = None
    """Bytes until it breaks; ``None`` if it doesn't."""
    silent_until: float | None = None
    """When a stalled one times out."""
    corrupt: bool = False
    ends: bool = False
    curt: bool = False
    error_code: int = 0

    def spend(self, chunk: bytes) -> bytes:
        """What of a chunk still gets through."""
        if self.allowance is None:
            return chunk
        through = chunk[: self.allowance]
        self.allowance -= len(through)
        return through

    @property
    def broken(self) -> bool:
        """Whether nothing gets through any more."""
        return self.allowance == 0


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
        order, now = self.history.stamp()
        self.history.faults.append(Broke(order, now, fault))
        self._lasting.setdefault(fault.kind, []).append((now + fault.lasting, fault))
        if fault.kind == "compact":
            self.cluster.compact()
        for connection in self.open:
            if fault.target in ("", connection.request.informer):
                self._strike(connection, fault, now)
                connection.wake.set()

    def _strike(self, connection: Connection, fault: Fault, now: float) -> None:
        """What a fault does to an open connection."""
        match fault.kind:
            case "reset":
                connection.allowance = fault.amount
            case "outage" | "compact":
                connection.allowance = 0
            case "stall":
                connection.silent_until = now + fault.lasting
            case "corrupt":
                connection.corrupt = True
            case "error_event":
                connection.error_code = fault.amount
            case "end":
                connection.ends = True
            case _:
                pass  # it lasts, rather than strikes

    def current(self, kind: FaultKind, informer: str) -> Fault | None:
        """The fault of a kind that lasts now for an informer."""
        now = self.history.clock()
        lasting = [pair for pair in self._lasting.get(kind, ()) if pair[0] > now]
        self._lasting[kind] = lasting
        hits = (fault for _, fault in lasting if fault.target in ("", informer))
        return next(hits, None)

    # -- requests -----------------------------------------------------------------------------

    @contextmanager
    def carry(self, request: Request) -> Generator[Connection]:
        """A connection for a request; writes down how it ends."""
        connection = Connection(request)
        self.history.requests.append(request)
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
            order, now = self.history.stamp()
            request.ended = now
            self.history.closings.append(Closed(order, now, request))

    async def admit(self, connection: Connection) -> None:
        """Let a request through to the server, or not.

        Raises:
            FetchError: it doesn't get there, or the server refuses.
        """
        informer, kind = connection.request.informer, connection.request.kind
        await self.delay(informer)
        if self.current("refuse", informer) or self.current("outage", informer):
            raise ConnectionFailed("connection refused", phase=kind)
        if fault := self.current("status", informer):
            reason = REASONS.get(fault.amount, "ServiceUnavailable")
            status = Status(fault.amount, reason, retry_after=float(fault.retry_after) or None)
            raise server_error(status, phase=kind)
        if fault := self.current("reset", informer):
            connection.allowance = fault.amount
        if self.current("corrupt", informer):
            connection.corrupt = True
        if kind == "watch" and self.current("unserved", informer):
            connection.ends = True
        connection.curt = kind == "watch" and self.current("curt", informer) is not None

    async def delay(self, informer: str) -> None:
        """Take the time that the network takes now."""
        fault = self.current("latency", informer)
        await asyncio.sleep(fault.amount / 1000 if fault else 0)

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
        informer = connection.request.informer
        if self.current("mute", informer):
            return [line for line in lines if not is_bookmark(line)]
        if self.current("echo", informer):
            return [each for line in lines for each in _echoed(line)]
        return lines

    def corrupted(self, data: bytes) -> bytes:
        """With one brace broken: nothing else in these bodies is certain to be noticed."""
        braces = [at for at, byte in enumerate(data) if byte == ord("{")]
        if not braces:
            return data
        at = self.chance.choice(braces)
        return data[:at] + b"\0" + data[at + 1 :]

    def __repr__(self) -> str:
        return f"<Network open={len(self.open)} faults={len(self.history.faults)}>"


def is_bookmark(line: bytes) -> bool:
    """Whether a line of a watch is one."""
    return line.startswith(_BOOKMARK)


def _echoed(line: bytes) -> list[bytes]:
    return [line, line] if is_bookmark(line) else [line]


def _note(request: Request, error: FetchError) -> None:
    request.failure = f"{type(error).__name__}: {error}"
    request.expired = classify(error) in (Outcome.EXPIRED, Outcome.AHEAD)
    if isinstance(error, ServerError):
        request.retry_after = error.status.retry_after or 0.0

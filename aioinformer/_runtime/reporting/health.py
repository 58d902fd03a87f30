"""The health of an informer: for readiness probes, errors of timeouts, and people.

Times are seconds relative to the snapshot, so that they are readable in a log. An informer loads
this module when its health is first read, since the two dataclasses take longer to create than any
other part of the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from aioinformer._core.quantities import quantity
from aioinformer._runtime.reporting.error_texts import cut_watches_text, error_text

InformerState: TypeAlias = Literal[
    "new", "listing", "watching", "polling", "waiting", "absent", "stopped", "failed"
]
"""``new``: not started.
``waiting``: a request failed; the next one is due in ``retry_in``.
``polling``: the server refuses watches, for the reason in ``error``, and lists refresh the cache;
the next list is due in ``retry_in``.
``absent``: the server doesn't serve the resource; the next check is due in ``retry_in``.
``failed``: a task of the informer ended that should not have: a bug, or ``fail_fast``."""


_STATE_TEXTS: dict[InformerState, str] = {
    "absent": "waiting for the resource",
    "polling": "polling, since the server refuses watches,",
}

MAX_SHOWN_SCOPES = 5
"""Namespaces in trouble that the text of a health lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeHealth:
    """The state of one namespace of an informer that reads several, as the fields of ``Health``."""

    namespace: str
    optional: bool
    """True if the informer counts as synced without this namespace while it is refused."""
    state: InformerState
    since: float
    error: Exception | None
    retry_in: float | None
    synced: bool
    """True if the first state of the namespace was applied."""
    resource_version: str
    fresh: float | None
    strategy: Literal["watchlist", "list"]
    rewinds: int

    @property
    def troubled(self) -> bool:
        """True if the namespace has an error, or no state yet."""
        return self.error is not None or not self.synced

    def __str__(self) -> str:
        parts = [f"namespace {self.namespace}: {self.state} for {self.since:.1f} s"]
        if self.retry_in is not None:
            parts.append(f"next attempt in {self.retry_in:.1f} s")
        if self.error is not None:
            parts.append(f"last error: {error_text(self.error)}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of an informer at one moment.

    Example::

        health: Health = pods.health
        assert health.ok, str(health)
    """

    state: InformerState
    since: float
    """Seconds in this state."""
    error: Exception | None
    """The last error, with the server's Status in it if there was one; ``None`` once a list or a
    watch has succeeded again. In the state ``polling``, the error with which the server refuses
    watches."""
    retry_in: float | None
    """Seconds to the next request, while waiting or polling."""
    synced: bool
    """True once the initial list was applied, and from then on."""
    resource_version: str
    """The version up to which the cache has applied everything."""
    objects: int
    rejected: tuple[str, ...]
    """Keys of objects whose newest version was rejected, a hundred at most: the version doesn't fit
    ``model=``, or ``transform=`` or an index function raised. The previous version stays cached. A
    key is listed until a version is accepted, or the object is deleted."""
    blocked_by: tuple[str, ...]
    """Names of the listeners whose full mailbox stops the reading of the watch."""
    rejections: int = 0
    unconverted: int = 0
    """Times that ``convert=`` has raised. Every access calls ``convert=``."""
    fresh: float | None = None
    """Seconds since the server last proved that the cache is up to date, by the end of a list, an
    event or a bookmark; ``None`` before the first proof. Bookmarks arrive about once a minute, so
    that up to 75 s are normal. A server without bookmarks may send nothing for as long as nothing
    changes."""
    strategy: Literal["watchlist", "list"] = "list"
    """The kind of request by which the whole state is, or was last, read."""
    rewinds: int = 0
    """Times that the server has gone back in time (restored from a backup)."""
    ignored: int = 0
    """Watch events that were ignored, because their objects are of another kind or in another
    namespace (``errors.UnexpectedObject``)."""
    shard_filter: Literal["", "server", "client"] = ""
    """The side that selects the objects of the informer's ``shard=``: ``"server"`` if everything
    that has arrived since the last list or WatchList began was of the shard, else ``"client"``.
    Empty without a shard."""
    other_shards: int = 0
    """Objects and events of other shards that have arrived and were dropped."""
    shards: tuple[int, ...] = ()
    """The shards of the group that this member holds, for an informer with ``shard=group``."""
    shard_watches: int = 0
    """Watches and lists under way that read these shards: one for each namespace of the informer,
    and one more while the state of shards that moved in is read. 0 without a group or shard."""
    verified: float | None = None
    """Seconds since ``verify`` last compared the cache with the server and found no difference;
    ``None`` before the first time."""
    differences: int = 0
    """Differences that the last comparison found and did not repair."""
    repaired: int = 0
    """Differences that comparisons have repaired in all."""
    blocking_calls: int = 0
    """The number of calls of the present handlers that have held the event loop for more than
    250 ms (``InformerOptions.report_blocking``)."""
    blocking_handlers: tuple[str, ...] = ()
    """Names of the handlers that made these calls."""
    restored: float | None = None
    """The age in seconds of the state that was restored from a cache file, as long as the server
    has not confirmed it; ``None`` before and afterwards. The informer is not synced meanwhile, and
    ``lister.unsynced`` reads the state."""
    cache_problem: str = ""
    """The reason why the cache file isn't used or doesn't advance; empty if there is none."""
    watches_cut_after: float | None = None
    """Seconds after which each of the last three watches was cut, if that was always about as long.
    A proxy does so: raise its timeout, or choose a smaller ``watch_seconds=`` (60 s at least). Such
    watches begin 20 s apart at least, so that the cache may be some seconds old."""
    scopes: tuple[ScopeHealth, ...] = ()
    """The state of each namespace, for an informer of several namespaces; empty for any other. The
    fields above then show the worst of all: the ``state`` and ``error`` of a namespace in trouble,
    the oldest ``resource_version`` and ``fresh``, the first ``retry_in``."""

    @property
    def rejects_all(self) -> bool:
        """True if there are objects, and every one of them was rejected, so that none is cached."""
        return self.rejections > 0 and not self.objects

    @property
    def ok(self) -> bool:
        """True if the cache can be read: synced, running, and not every object was rejected.

        ``fresh`` shows the age of the cache.
        """
        return self.synced and self.state not in ("stopped", "failed") and not self.rejects_all

    def __str__(self) -> str:
        if self.state == "new":
            return "not started: enter the factory with `async with`, or await run()"
        doing = _STATE_TEXTS.get(self.state, self.state)
        parts = [f"{doing} for {self.since:.1f} s"]
        if self.restored is not None:
            parts.append(f"restored from a state that is {self.restored:.0f} s old")
        if self.cache_problem:
            parts.append(self.cache_problem)
        if self.retry_in is not None and not self.scopes:
            parts.append(f"next attempt in {self.retry_in:.1f} s")
        if self.scopes:
            parts.append(self._scopes_text())
        elif self.error is not None:
            parts.append(f"last error: {error_text(self.error)}")
        if self.watches_cut_after is not None:
            parts.append(cut_watches_text(self.watches_cut_after))
        if self.rewinds:
            parts.append(f"the server went back in time {quantity(self.rewinds, 'time')}")
        if self.ignored:
            parts.append(f"{quantity(self.ignored, 'event')} of other kinds or namespaces ignored")
        if self.shard_filter == "client":
            dropped = quantity(self.other_shards, "object")
            parts.append(f"{dropped} of other shards dropped on arrival")
        if self.differences:
            verb = "differs" if self.differences == 1 else "differ"
            parts.append(f"{quantity(self.differences, 'object')} {verb} from the server's")
        if self.repaired:
            parts.append(f"{quantity(self.repaired, 'object')} repaired after verifications")
        if self.rejections:
            rejected = f"{quantity(self.rejections, 'object')} rejected"
            parts.append(f"{rejected}: none is cached" if self.rejects_all else rejected)
        if self.unconverted:
            parts.append(f"convert= failed {quantity(self.unconverted, 'time')}")
        if self.blocked_by:
            parts.append(f"blocked by {', '.join(self.blocked_by)}")
        if self.blocking_calls:
            calls = quantity(self.blocking_calls, "call")
            parts.append(f"{calls} of {', '.join(self.blocking_handlers)} held the event loop")
        return ", ".join(parts)

    def _scopes_text(self) -> str:
        troubled = [each for each in self.scopes if each.troubled]
        total = quantity(len(self.scopes), "namespace")
        verb = "is" if len(self.scopes) == 1 else "are"
        counts = f"{len(self.scopes) - len(troubled)} of {total} {verb} watched"
        shown = [f"({each})" for each in troubled[:MAX_SHOWN_SCOPES]]
        more = ["..."] if len(troubled) > MAX_SHOWN_SCOPES else []
        return ", ".join([counts, *shown, *more])

"""Where a reflector stands between the list and the watch.

An outcome goes in, the next request comes out: which page or stream to ask for, from which
resourceVersion, and after what wait. What follows what is ``rules``' table; this is the memory
that it needs. It knows no network (the client renders requests), no clock and no chance (they are
arguments), and no objects.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import Struct

from aioinformer._core.listwatch.backoff import Backoff
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.requests import (
    ANY,
    NEWEST,
    PAGE_SIZE,
    AnyRequest,
    DiscoveryRequest,
    ListRequest,
    WatchRequest,
)
from aioinformer._core.listwatch.server_profile import (
    WATCHLIST_FAILED_PAUSE,
    WATCHLIST_UNSUPPORTED_PAUSE,
    ServerProfile,
)
from aioinformer._core.listwatch.transitions import (
    STRATEGY_FAILURES,
    TRANSITIONS,
    NextRequest,
    Phase,
    Wait,
)
from aioinformer._core.objects.identity import is_older
from aioinformer.errors import ProtocolError

__all__ = ["ListWatchState", "ScheduledRequest"]

WATCH_SECONDS = (300, 600)
"""How long a watch is asked to last: random, so that streams opened together don't end together
(client-go)."""
VERY_SHORT_WATCH_SECONDS = 1.0
"""A watch that ends sooner, with nothing in it, was not served (client-go's VeryShortWatch)."""
SHORT_WATCH_SECONDS = 10.0
"""A watch that ends sooner, with nothing in it, is not asked for again at once if the one before
was brief too. (client-go asks again without a pause.)"""
SHORT_WATCH_SPACING = 20.0
"""Seconds between the beginnings of watches that a proxy keeps cutting: three a minute."""
MAX_CONSECUTIVE_FAILURES = 3
"""After so many watches in a row that were not served, get the state again; after so many
WatchLists that came to nothing, list."""


class ScheduledRequest(Struct, frozen=True):
    """What to do next."""

    request: AnyRequest
    delay: float = 0.0
    """Seconds to wait first."""


class ListWatchState:
    """The state: the last request, the last resourceVersion, and what is known of the server."""

    def __init__(
        self,
        *,
        backoff: Backoff | None = None,
        page_size: int = 0,
        profile: ServerProfile | None = None,
        watch_list: bool = False,
        discovery: bool = False,
    ) -> None:
        """Make a cursor; ``begin`` gives its first request.

        Args:
            backoff: the waits after failures.
            page_size: items a page, 0 for client-go's rule: 500, and no limit for a list at a
                known resourceVersion, since a limit would bypass the server's cache.
            profile: what is known of the resource.
            watch_list: whether to ask for a WatchList before a list.
            discovery: whether there is a way to see if the resource is served.
        """
        self.backoff = backoff or Backoff()
        self.profile = profile or ServerProfile()
        self.resource_version = ""
        """The last one received; where the next watch starts. Empty until the first state."""
        self.version_went_back = False
        """Whether the state that was read last is older than one seen before."""
        self.by_content = False
        """Whether it is to be compared with the one before by content: versions prove nothing."""
        self.used_watchlist = False
        """Whether the whole state is, or was last, read by a WatchList."""
        self.request: AnyRequest = ListRequest(ANY, page_size or PAGE_SIZE)
        """The request under way."""
        self._page_size = page_size
        self._watch_list = watch_list
        self._discovery = discovery
        self.initial_list_complete = False
        """Whether the watch under way has no initial state ahead of it."""
        self._list_version = ANY
        self._needs_newest = False
        self._watch_cache_disabled = False
        self._continue_token = ""
        self._first_page_version = ""
        self._compare_next_by_content = False
        self._consecutive_failures = 0
        self._watchlist_pause = 0.0
        """For how long to list after this, once a list has worked; 0 if nothing is wrong."""
        self._last_watch_short = False
        self._very_short_watches = 0
        self._requested_at = 0.0

    def begin(self, *, now: float, jitter: float) -> AnyRequest:
        """The first request. Arguments as for ``advance``."""
        self._requested_at = now
        self.request = self._build_request(NextRequest.FULL_STATE, now, jitter)
        return self.request

    @property
    def phase(self) -> Phase:
        """What the request under way is."""
        request = self.request
        if isinstance(request, DiscoveryRequest):
            return Phase.DISCOVERY
        if isinstance(request, WatchRequest):
            return (
                Phase.WATCHLIST
                if request.initial and not self.initial_list_complete
                else Phase.WATCH
            )
        if request.freshness_check:
            return Phase.FRESHNESS_CHECK
        return Phase.PAGE if request.continue_token else Phase.LIST

    @property
    def versions_comparable(self) -> bool:
        """Whether equal versions make equal objects in the state under way. Not if the server may
        have gone back in time: a consistent read may be of an older state than one seen before.
        """
        return not (self._compare_next_by_content or self._consistent_read)

    @property
    def _consistent_read(self) -> bool:
        """Whether the state under way is read consistently, and not for the first time."""
        request = self.request
        asked = "" if isinstance(request, DiscoveryRequest) else request.resource_version
        return asked == NEWEST and bool(self.resource_version)

    # -- what came -----------------------------------------------------------------------------

    def finish_page(self, resource_version: str, continue_token: str) -> Outcome:
        """A page came; the outcome to advance with.

        Raises:
            ProtocolError: it has no version. A watch from none would begin with everything.
        """
        if not resource_version:
            raise ProtocolError("the list has no resourceVersion to watch from", phase="list")
        if self.phase is Phase.FRESHNESS_CHECK:
            return Outcome.REWOUND if self._goes_back(resource_version) else Outcome.COMPLETE
        if self.phase is Phase.PAGE and continue_token == self._continue_token:
            raise ProtocolError("the list goes on with the page that it was on", phase="list")
        if self.phase is Phase.LIST:
            self._first_page_version = resource_version
        self._continue_token = continue_token
        if continue_token:
            # A list from the cache is never cut into pages, so this server has no cache.
            self._watch_cache_disabled = self._watch_cache_disabled or self._list_version == ANY
            return Outcome.MORE
        # Of pages that are not of one moment, the first one's: nothing after it is missed.
        if not self._consistent_read and self._goes_back(self._first_page_version):
            return Outcome.REWOUND
        self._accept_state(self._first_page_version)
        return Outcome.COMPLETE

    def complete_initial_list(self, resource_version: str) -> None:
        """The initial state of a WatchList is complete. What follows is a watch.

        Raises:
            ProtocolError: the mark behind it has no version.
        """
        if not resource_version:
            raise ProtocolError("the end mark of a WatchList has no version", phase="watch")
        if not self._consistent_read and self._goes_back(resource_version):
            raise ProtocolError("the state is older than the one asked for", phase="watch")
        self._accept_state(resource_version)
        self.initial_list_complete = True

    def _accept_state(self, resource_version: str) -> None:
        """A whole state was read, as of this version."""
        self.version_went_back = self._consistent_read and self._goes_back(resource_version)
        self.by_content = self.version_went_back or self._compare_next_by_content
        self._compare_next_by_content = False
        self.resource_version = resource_version
        self._needs_newest = False
        self._consecutive_failures = 0

    def _goes_back(self, resource_version: str) -> bool:
        # The first read of a list is never evidence: "any version" may be any old one.
        return is_older(resource_version, self.resource_version)

    def compare_by_content(self) -> None:
        """The next state is of other objects, or of the same ones in another form: equal versions
        don't make equal objects.
        """
        self._compare_next_by_content = True

    def observe_version(self, resource_version: str) -> None:
        """The watch delivered an event or bookmark.

        An empty version is no version, and an older one is no place to go back to: a watch from
        there would bring once more what came since.
        """
        if resource_version and not is_older(resource_version, self.resource_version):
            self.resource_version = resource_version
            self._consecutive_failures = 0

    def classify_watch_end(self, *, lasted: float, changed: bool) -> Outcome:
        """How a watch ended that ended without an error.

        Args:
            lasted: seconds.
            changed: whether a change came. A bookmark is none, and neither is an old event once
                more: who sends one and hangs up would be asked without a pause. (client-go
                counts events, and does ask so.) Who brings one change at a time is believed a
                few times in a row.
        """
        request = self.request
        started = request.resource_version if isinstance(request, WatchRequest) else ""
        self._very_short_watches = (
            self._very_short_watches + 1 if lasted < VERY_SHORT_WATCH_SECONDS else 0
        )
        if changed and self.phase is Phase.WATCH and self.resource_version != started:
            return (
                Outcome.SHORT_WATCH
                if self._very_short_watches > MAX_CONSECUTIVE_FAILURES
                else Outcome.ENDED
            )
        if lasted >= SHORT_WATCH_SECONDS:
            return Outcome.ENDED
        return Outcome.EMPTY_WATCH if lasted < VERY_SHORT_WATCH_SECONDS else Outcome.SHORT_WATCH

    # -- what follows --------------------------------------------------------------------------

    def advance(
        self, outcome: Outcome, *, now: float, jitter: float, retry_after: float | None = None
    ) -> ScheduledRequest:
        """The request under way ended so; what comes next.

        Args:
            outcome: how it ended.
            now: seconds of a monotonic clock.
            jitter: chance in [0, 1), for the wait and the length of a watch.
            retry_after: the least wait that the server asked for, in seconds.
        """
        rule = TRANSITIONS[self.phase][outcome]
        goto = self._switch_strategy(rule.next_request, outcome)
        if goto is NextRequest.LIST:
            self._watchlist_pause = (
                WATCHLIST_FAILED_PAUSE
                if outcome in STRATEGY_FAILURES[Phase.WATCHLIST]
                else WATCHLIST_UNSUPPORTED_PAUSE
            )
        elif outcome is Outcome.COMPLETE and self._watchlist_pause:
            # Only now: what a list is answered alike says nothing of WatchLists.
            self.profile.record_watchlist_failure(now, self._watchlist_pause)
            self._watchlist_pause = 0.0
        if outcome is Outcome.IDLE_TIMEOUT:
            self.profile.record_idle_timeout()
        delay = self._compute_delay(rule.wait, now, jitter, retry_after or 0.0)
        self._last_watch_short = outcome in (Outcome.SHORT_WATCH, Outcome.EMPTY_WATCH)
        self._requested_at = now + delay
        request = self._build_request(goto, self._requested_at, jitter)
        self.request = replace(request, restart=outcome not in (Outcome.MORE, Outcome.COMPLETE))
        return ScheduledRequest(self.request, delay)

    def _switch_strategy(self, next_request: NextRequest, outcome: Outcome) -> NextRequest:
        """Another way, if this one has come to nothing several times in a row."""
        phase = self.phase
        if outcome is Outcome.ENDED and phase is Phase.WATCH:
            self._consecutive_failures = 0
        if outcome not in STRATEGY_FAILURES.get(phase, ()):
            return next_request
        self._consecutive_failures += 1
        if self._consecutive_failures < MAX_CONSECUTIVE_FAILURES:
            return next_request
        self._consecutive_failures = 0
        return NextRequest.LIST if phase is Phase.WATCHLIST else NextRequest.FULL_STATE

    def _compute_delay(self, wait: Wait, now: float, jitter: float, minimum: float) -> float:
        if wait is Wait.NONE:
            return 0.0
        if wait is Wait.SPACED:
            return (
                max(0.0, self._requested_at + SHORT_WATCH_SPACING - now)
                if self._last_watch_short
                else 0.0
            )
        if wait is Wait.UNLESS_FIRST and not minimum and self.backoff.is_first(now):
            return self.backoff.skip(now)
        return self.backoff.next(now, jitter, minimum=minimum)

    def _build_request(self, next_request: NextRequest, now: float, jitter: float) -> AnyRequest:
        match next_request:
            case NextRequest.WATCH:
                self.initial_list_complete = True
                return WatchRequest(self.resource_version, _watch_timeout(jitter))
            case NextRequest.PAGE:
                return ListRequest(self._list_version, self._page_limit(), self._continue_token)
            case NextRequest.UNPAGED_LIST:
                return ListRequest(self._list_version, 0)
            case NextRequest.FRESHNESS_CHECK:
                return ListRequest(NEWEST, 1, freshness_check=True)
            case NextRequest.DISCOVERY if self._discovery:
                return DiscoveryRequest()
            case (
                NextRequest.FULL_STATE
                | NextRequest.NEWEST_STATE
                | NextRequest.LIST
                | NextRequest.DISCOVERY
            ):
                self._needs_newest = self._needs_newest or next_request is NextRequest.NEWEST_STATE
                return self._build_state_request(now, jitter)

    def _build_state_request(self, now: float, jitter: float) -> AnyRequest:
        """A WatchList if there is hope, else the first page of a list."""
        known = NEWEST if self._needs_newest else self.resource_version
        self.used_watchlist = (
            self._watch_list and not self._watchlist_pause and self.profile.supports_watchlist(now)
        )
        if self.used_watchlist:
            self.initial_list_complete = False
            return WatchRequest(known, _watch_timeout(jitter), initial=True)
        self._list_version = known or (NEWEST if self._needs_newest else ANY)
        return ListRequest(self._list_version, self._page_limit())

    def _page_limit(self) -> int:
        if self._page_size:
            return self._page_size
        from_cache = self._list_version not in (ANY, NEWEST) and not self._watch_cache_disabled
        return 0 if from_cache else PAGE_SIZE

    def __repr__(self) -> str:
        known = self.resource_version or "none"
        return f"<ListWatchState {self.phase.name} rv={known} failures={self.backoff.failures}>"


def _watch_timeout(jitter: float) -> int:
    """Seconds that a watch is asked to last."""
    low, high = WATCH_SECONDS
    return int(low + (high - low) * jitter)

"""The list/watch state machine of one reflector.

An outcome goes in, the next request comes out, with the wait before it. The transition table says
what follows; this module holds the state that the table needs, and the facts about the watch under
way that decide how its end is classified. Clock and randomness are arguments.
"""

from __future__ import annotations

from msgspec.structs import replace

from aioinformer._core.listwatch.backoff import Backoff
from aioinformer._core.listwatch.confirmation import CONFIRMING_WATCH_SECONDS, Confirmation
from aioinformer._core.listwatch.liveness import IdleTimeout, LivenessPolicy
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd, classify, classify_watchlist
from aioinformer._core.listwatch.polling import POLL_INTERVAL, REFUSALS, Polling
from aioinformer._core.listwatch.reflector_requests import (
    ANY,
    DEFAULT_START,
    NEWEST,
    PAGE_SIZE,
    AnyRequest,
    DiscoveryRequest,
    ListRequest,
    Start,
    WatchRequest,
)
from aioinformer._core.listwatch.server_profile import (
    WATCHLIST_FAILED_PAUSE,
    WATCHLIST_UNANSWERED_PAUSE,
    WATCHLIST_UNSUPPORTED_PAUSE,
    ServerProfile,
)
from aioinformer._core.listwatch.transitions import (
    TRANSITIONS,
    UNTIL_ANSWER,
    Ending,
    Learn,
    NextRequest,
    Phase,
    ScheduledRequest,
    Transition,
    TransitionTable,
    Wait,
)
from aioinformer._core.objects.object_key import is_older
from aioinformer.errors import ConnectionLost, FetchError, ProtocolError, RequestTimedOut

WATCH_SECONDS = (300, 600)
"""Limits of the random duration of a watch, so that watches don't end together (client-go)."""
VERY_SHORT_WATCH_SECONDS = 1.0
"""A watch that ends sooner without a change was not served (client-go's VeryShortWatch)."""
SHORT_WATCH_SECONDS = 10.0
"""A watch that ends sooner without a change has been cut."""
SILENCE_SECONDS = 300.0
"""Seconds without a version from the server after which the end of a watch is followed by a check
of the server's version. They only pass where no bookmarks come."""
MAX_CONSECUTIVE_FAILURES = 3
"""Outcomes with a ``fallback`` in a row after which it is used: after so many watches that were not
served the state is read again, after so many failed WatchLists it is listed."""
MISSED_CHANGES_WINDOW = 5.0
"""Seconds after the opening of a watch in which the changes arrive that the previous one missed."""


class ListWatchState:
    """The last request, the last resourceVersion, and the watch under way."""

    def __init__(
        self,
        *,
        backoff: Backoff | None = None,
        liveness: LivenessPolicy | None = None,
        page_size: int = 0,
        profile: ServerProfile | None = None,
        watch_list: bool = False,
        discovery: bool = False,
        poll_interval: float = POLL_INTERVAL,
        watch_seconds: tuple[int, int] = WATCH_SECONDS,
        transitions: TransitionTable = TRANSITIONS,
    ) -> None:
        """Create the state of a reflector that hasn't started; ``begin`` returns the first request.

        ``page_size`` 0 means client-go's rule: 500 items, and no limit for a list at a known
        resourceVersion, because a limit would bypass the server's cache. ``watch_list`` tries a
        WatchList before a list. ``discovery`` says that the source can show whether the resource is
        served. ``poll_interval`` and ``watch_seconds`` are in seconds.
        """
        self.backoff = backoff or Backoff()
        self.profile = profile or ServerProfile()
        self.resource_version = ""
        """The version from which the next watch starts. Empty until the first state is complete."""
        self.version_went_back = False
        """True if the state that was read last is older than an earlier one."""
        self.used_watchlist = False
        """True if the whole state is, or was last, read by a WatchList."""
        self.request: AnyRequest = ListRequest(ANY, page_size or PAGE_SIZE)
        self.initial_list_complete = False
        """True if the watch under way has no initial list ahead of it."""
        self.confirmation = Confirmation()
        self._liveness = liveness or LivenessPolicy()
        self._page_size = page_size
        self._watch_seconds_limits = watch_seconds
        self._watch_list = watch_list
        self._discovery = discovery
        self._transitions = transitions
        self._polling = Polling(poll_interval)
        self._list_version = ANY
        self._needs_newest = False
        self._watch_cache_disabled = False
        self._continue_token = ""
        self._first_page_version = ""
        self._consecutive_failures = 0
        self._watchlist_pause = 0.0
        """Seconds for which to list instead of using WatchLists, once a list has worked; or 0."""
        self._very_short_watches = 0
        self._requested_at = 0.0
        self._unreachable_since: float | None = None
        self._follows_outage = False
        """True if the connection broke, and no watch has shown anything since."""
        self._checks_refused = False  # the role may allow watches only
        self._waited_for: Outcome | None = None
        """The last failure if a wait has followed it."""
        # The watch under way; meaningful from ``open_watch`` on.
        self._idle_timeout = IdleTimeout(
            self._liveness, self.profile, now=0.0, timeout=0, initial=False
        )
        self._watch_opened_at = 0.0
        self._watch_seconds = 0
        self._watch_changed = False
        self._watch_served = False
        """True once the watch has shown its initial list, an event or a bookmark."""
        self._version_shown_at = 0.0
        """The time of the last whole state, freshness check, change or bookmark."""

    def begin(self, start: Start = DEFAULT_START, *, now: float, jitter: float) -> AnyRequest:
        """Return the first request."""
        self._requested_at = self._version_shown_at = now
        self.resource_version = start.resume_from or start.not_older_than
        self._needs_newest |= start.newest
        first = NextRequest.WATCH if start.resume_from else NextRequest.FULL_STATE
        if start.restored and start.resume_from:
            self.confirmation.pending, first = True, NextRequest.FRESHNESS_CHECK
        self.request = self._build_request(first, now, jitter)
        return self.request

    @property
    def watches(self) -> bool:
        return self.phase is Phase.WATCH

    @property
    def phase(self) -> Phase:
        request = self.request
        if isinstance(request, DiscoveryRequest):
            return Phase.DISCOVERY
        if isinstance(request, WatchRequest):
            initial = request.initial and not self.initial_list_complete
            return Phase.WATCHLIST if initial else Phase.WATCH
        if request.freshness_check:
            return Phase.FRESHNESS_CHECK
        return Phase.PAGE if request.continue_token else Phase.LIST

    @property
    def _consistent_read(self) -> bool:
        request = self.request
        requested = "" if isinstance(request, DiscoveryRequest) else request.resource_version
        return requested == NEWEST and bool(self.resource_version)

    # -- whole states --------------------------------------------------------------------------

    def finish_page(self, resource_version: str, continue_token: str) -> RequestEnd:
        """Record that a page was read to its end.

        Raises:
            ProtocolError: the page has no version, and a watch from no version would begin with the
                whole state; or its token is that of the page itself.
        """
        if not resource_version:
            raise ProtocolError("the list has no resourceVersion to watch from", phase="list")
        if self.phase is Phase.FRESHNESS_CHECK:
            # A server that is behind a restored state doesn't confirm it; a list reports this.
            older = self._goes_back(resource_version)
            moved = self._idle_timeout.server_moved = resource_version != self.resource_version
            self.confirmation.server_version = "" if older else resource_version
            if older:
                return RequestEnd(Outcome.REWOUND)
            if not self._idle_timeout.expired:
                return RequestEnd(Outcome.COMPLETE)
            alive, self._follows_outage = self._follows_outage or not moved, False
            return RequestEnd(Outcome.ALIVE if alive else Outcome.COMPLETE)
        if self.phase is Phase.PAGE and continue_token == self._continue_token:
            raise ProtocolError("the continue token of a page leads to the same page", phase="list")
        if self.phase is Phase.LIST:
            self._first_page_version = resource_version
        self._continue_token = continue_token
        if continue_token:
            # A server never cuts a list from its cache, so this server has no cache.
            self._watch_cache_disabled = self._watch_cache_disabled or self._list_version == ANY
            return RequestEnd(Outcome.MORE)
        # If the pages are of different moments, a watch from the first page's misses nothing.
        if not self._consistent_read and self._goes_back(self._first_page_version):
            message = "the list is older than requested; reading the newest state instead"
            return RequestEnd(Outcome.REWOUND, ProtocolError(message, phase="list"))
        self._accept_state(self._first_page_version)
        return RequestEnd(Outcome.COMPLETE if self._polling.finish_list() else Outcome.POLLED)

    def complete_initial_list(self, resource_version: str, now: float) -> None:
        """Record that the initial list of a WatchList is complete. A watch follows.

        Raises:
            ProtocolError: the end mark has no version, or the state is older than requested.
        """
        if not resource_version:
            raise ProtocolError("the end mark of a WatchList has no version", phase="watch")
        if not self._consistent_read and self._goes_back(resource_version):
            raise ProtocolError("the state of a WatchList is older than requested", phase="watch")
        self._accept_state(resource_version)
        self.backoff.record_success(now)
        self.initial_list_complete = True
        self._record_served(now)
        self._idle_timeout.complete_initial_list(now)

    def _accept_state(self, resource_version: str) -> None:
        self.version_went_back = self._consistent_read and self._goes_back(resource_version)
        self.resource_version = resource_version
        self._needs_newest = self.confirmation.pending = False
        self._consecutive_failures = 0

    def _goes_back(self, resource_version: str) -> bool:
        return is_older(resource_version, self.resource_version)

    # -- the watch under way -------------------------------------------------------------------

    def open_watch(self, request: WatchRequest, now: float) -> IdleTimeout:
        """Record that the response to ``request`` has begun. Return the watch's idle timeout."""
        self._watch_opened_at, self._watch_seconds = now, request.timeout
        self._watch_changed = self._watch_served = False
        self._polling.open_watch()
        if not request.initial:
            self.backoff.record_success(now)
        self._idle_timeout = IdleTimeout(
            self._liveness, self.profile, now=now, timeout=request.timeout, initial=request.initial
        )
        return self._idle_timeout

    def record_watch_data(
        self, resource_version: str, *, now: float, changed: bool = False, bookmark: bool = False
    ) -> None:
        """Record what a piece of a watch contained: its last version, a change, a bookmark.

        Synthetic events have no version (client-go has no such guard), and a watch from an older
        version would repeat the changes since.
        """
        self._idle_timeout.last_data, known = now, self.resource_version
        newer = len(resource_version) == len(known) and resource_version >= known  # nearly always
        if resource_version and (newer or not is_older(resource_version, known)):
            self.resource_version, self._consecutive_failures = resource_version, 0
        if changed or bookmark:
            self._record_served(now)
        if changed and not self._watch_changed:
            self._watch_changed = True
            if now - self._watch_opened_at < MISSED_CHANGES_WINDOW:
                self.profile.record_dead_connection()
        if bookmark:
            self._idle_timeout.record_bookmark(now)

    def _record_served(self, now: float) -> None:
        self._version_shown_at = now
        self._follows_outage = False
        if not self._watch_served:
            self._watch_served = True
            self.backoff.record_answer()

    def finish_watch(self, now: float) -> RequestEnd:
        outcome = self._classify_watch(lasted := now - self._watch_opened_at, now)
        if not self.initial_list_complete:
            message = (
                f"the WatchList ended after {lasted:.1f} s, before its initial list was complete"
            )
            return RequestEnd(outcome, ConnectionLost(message, phase="watch"))
        if outcome in (Outcome.ENDED, Outcome.SILENT_WATCH):
            return RequestEnd(outcome)
        when = "at once" if outcome is Outcome.EMPTY_WATCH else f"after {lasted:.1f} s"
        message = f"the watch ended {when} without a change"
        return RequestEnd(outcome, ConnectionLost(message, phase="watch"))

    def _classify_watch(self, lasted: float, now: float) -> Outcome:
        """Return the outcome of a watch that ended without an error after ``lasted`` seconds.

        A bookmark and an old event that is sent again don't count as changes. If they did, a server
        that sends one of them and closes would be watched again without a pause, as by client-go. A
        server that sends one change per watch is accepted a few times in a row.
        """
        request = self.request
        started = request.resource_version if isinstance(request, WatchRequest) else ""
        very_short = lasted < VERY_SHORT_WATCH_SECONDS
        self._very_short_watches = self._very_short_watches + 1 if very_short else 0
        moved = self._watch_changed and self.resource_version != started
        if moved and self.phase is Phase.WATCH:
            often = self._very_short_watches > MAX_CONSECUTIVE_FAILURES
            return Outcome.SHORT_WATCH if often else Outcome.ENDED
        short = self._watch_seconds == CONFIRMING_WATCH_SECONDS
        if lasted >= (CONFIRMING_WATCH_SECONDS - 1 if short else SHORT_WATCH_SECONDS):
            silent = self.initial_list_complete and now - self._version_shown_at >= SILENCE_SECONDS
            # The server's version was read before a watch that confirms a restored state.
            return Outcome.SILENT_WATCH if silent and not short else Outcome.ENDED
        return Outcome.EMPTY_WATCH if very_short else Outcome.SHORT_WATCH

    def finish_idle_watch(self, now: float) -> RequestEnd:
        idle = self._idle_timeout
        if idle.past_deadline(now):
            message = f"the watch did not end after its {self._watch_seconds} s; replacing it"
            return RequestEnd(Outcome.CONNECTION_LOST, RequestTimedOut(message, phase="watch"))
        if not self.initial_list_complete:
            lasted = now - self._watch_opened_at
            message = f"the WatchList had no end mark after {lasted:.0f} s; using lists instead"
            return RequestEnd(Outcome.WATCHLIST_TIMEOUT, RequestTimedOut(message, phase="watch"))
        return RequestEnd(Outcome.IDLE_TIMEOUT, idle.expire(now))

    def finish_failed(
        self, error: FetchError, *, opened: bool, now: float = 0.0, answered: bool = False
    ) -> RequestEnd:
        """Classify the end by an error; ``opened`` if a 200 response had begun before it.

        ``answered`` if the server has answered another informer since the last failure.
        """
        if self.phase is Phase.WATCHLIST:
            return RequestEnd(classify_watchlist(error, opened=opened, answered=answered), error)
        outcome, polling = classify(error, opened=opened), self._polling
        if self.phase is Phase.WATCH and not opened and polling.is_refusal(outcome):
            end = RequestEnd(Outcome.WATCH_REFUSED, error, known=polling.active)
            polling.start()
            return end
        at_once = now - self._watch_opened_at < VERY_SHORT_WATCH_SECONDS and not self._watch_served
        if at_once and self.phase is Phase.WATCH and outcome is Outcome.CONNECTION_LOST:
            outcome = Outcome.LOST_AT_ONCE
        if self.phase in (Phase.LIST, Phase.PAGE) and outcome in REFUSALS:
            polling.listing = False
        return RequestEnd(outcome, error)

    # -- the next request ----------------------------------------------------------------------

    def advance(
        self, outcome: Outcome, *, now: float, jitter: float, retry_after: float | None = None
    ) -> ScheduledRequest:
        """Return the request that follows ``outcome``.

        ``jitter``, in [0, 1), is for the wait and the duration of a watch; ``retry_after`` the
        least wait in seconds that the server asked for.
        """
        row = self._transitions[self.phase][outcome]
        if outcome in (Outcome.COMPLETE, Outcome.ALIVE):
            self._version_shown_at = now
        next_request = self._fall_back(row)
        if row.ending is Ending.FAILED and self._watchlist_pause < WATCHLIST_UNSUPPORTED_PAUSE:
            self._watchlist_pause = 0.0  # a trial list has failed as well
        if next_request is NextRequest.LIST:
            self._watchlist_pause = WATCHLIST_UNSUPPORTED_PAUSE
        elif next_request is NextRequest.TRIAL_LIST and outcome is Outcome.WATCHLIST_UNANSWERED:
            self._watchlist_pause = WATCHLIST_UNANSWERED_PAUSE
        elif next_request is NextRequest.TRIAL_LIST:
            self._watchlist_pause = WATCHLIST_FAILED_PAUSE
        self._needs_newest = self._needs_newest or row.next_request is NextRequest.NEWEST_STATE
        self._learn(row.learn, now)
        self._record_reachability(outcome, now)
        if self.phase is Phase.FRESHNESS_CHECK and not row.ending.healthy:
            self._checks_refused = outcome in REFUSALS
        elif outcome is Outcome.CONNECTION_LOST and next_request is NextRequest.FRESHNESS_CHECK:
            next_request = NextRequest.WATCH if self._checks_refused else next_request
        again = outcome is Outcome.EXPIRED and self._waited_for not in (None, outcome)
        delay = self._compute_delay(row.wait, now, jitter, retry_after or 0.0, again=again)
        if not row.ending.healthy:
            self._waited_for = outcome if delay else None
            if row.wait is Wait.NONE:
                self.backoff.record_request(now)
        self._requested_at = now + delay
        request = self._build_request(next_request, self._requested_at, jitter)
        self.request = replace(request, restart=row.ending is not Ending.CONTINUED)
        until_answer = outcome in UNTIL_ANSWER and not retry_after and self.backoff.can_wake
        until_success = until_answer and outcome is not Outcome.UNREACHABLE
        rejected = outcome is Outcome.UNAUTHORIZED and self.backoff.can_wake
        return ScheduledRequest(self.request, row, delay, until_answer, until_success, rejected)

    def end_wait(self, now: float) -> float:
        """End the wait under way. Return the seconds still to wait."""
        delay = self.backoff.wake(now)
        self._requested_at = now + delay
        return delay

    def _record_reachability(self, outcome: Outcome, now: float) -> None:
        since = self._unreachable_since
        if outcome is Outcome.UNREACHABLE:
            self._unreachable_since = now if since is None else since
        elif since is not None:
            self.backoff.record_answer(now - since)
            self._unreachable_since = None
        if outcome in (Outcome.UNREACHABLE, Outcome.CONNECTION_LOST):
            self._follows_outage = True

    def _fall_back(self, row: Transition) -> NextRequest:
        if row.ending is Ending.NORMAL:
            self._consecutive_failures = 0
        if row.fallback is None:
            return row.next_request
        self._consecutive_failures += 1
        if self._consecutive_failures < MAX_CONSECUTIVE_FAILURES:
            return row.next_request
        self._consecutive_failures = 0
        return row.fallback

    def _learn(self, learn: Learn, now: float) -> None:
        self._needs_newest = self._needs_newest or Learn.NOT_SERVED in learn
        if Learn.WATCH_IDLE in learn:
            self._idle_timeout.end_check()
        if Learn.LIST_WORKS in learn:
            self.backoff.record_success(now)
            if self._watchlist_pause:
                # Not before: an error that a list gets too says nothing about WatchLists.
                self.profile.record_watchlist_failure(now, self._watchlist_pause)
                self._watchlist_pause = 0.0

    def _compute_delay(
        self, wait: Wait, now: float, jitter: float, minimum: float, *, again: bool
    ) -> float:
        if wait is Wait.NONE:
            return 0.0
        if wait is Wait.POLL:
            return self._polling.delay(jitter)
        if wait is Wait.SPACED:
            return self.backoff.space(now, jitter, self._requested_at)
        if wait is Wait.SKIP_ONCE and self.backoff.can_skip(now, again=again):
            return self.backoff.skip(now, minimum=minimum)
        if wait is Wait.AS_REQUESTED and minimum:
            return self.backoff.pause(now, jitter, minimum)
        return self.backoff.next(now, jitter, minimum=minimum)

    def _build_request(self, next_request: NextRequest, now: float, jitter: float) -> AnyRequest:
        match next_request:
            case NextRequest.WATCH:
                self.initial_list_complete = True
                return WatchRequest(self.resource_version, self._watch_timeout(jitter))
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
                | NextRequest.TRIAL_LIST
                | NextRequest.SINGLE_LIST
                | NextRequest.DISCOVERY
            ):
                if next_request is NextRequest.SINGLE_LIST:
                    self._polling.listing = True
                return self._build_state_request(now, jitter)

    def _build_state_request(self, now: float, jitter: float) -> AnyRequest:
        known = NEWEST if self._needs_newest else self.resource_version
        lists_only = self._watchlist_pause or self._polling.listing or self._polling.active
        self.used_watchlist = (
            self._watch_list and not lists_only and self.profile.supports_watchlist(now)
        )
        if self.used_watchlist:
            self.initial_list_complete = False
            return WatchRequest(known, self._watch_timeout(jitter), initial=True)
        self._list_version = known or (NEWEST if self._needs_newest else ANY)
        return ListRequest(self._list_version, self._page_limit())

    def _watch_timeout(self, jitter: float) -> int:
        if self.confirmation.pending:
            return CONFIRMING_WATCH_SECONDS
        low, high = self._watch_seconds_limits
        return int(low + (high - low) * jitter)

    def _page_limit(self) -> int:
        if self._page_size:
            return self._page_size
        from_cache = self._list_version not in (ANY, NEWEST) and not self._watch_cache_disabled
        return 0 if from_cache else PAGE_SIZE

    def __repr__(self) -> str:
        known = self.resource_version or "none"
        return f"<ListWatchState {self.phase.name} rv={known} failures={self.backoff.failures}>"

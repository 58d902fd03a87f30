"""Cursors that have come so far, for the tests of the table and of the cursor itself."""

from __future__ import annotations

from collections.abc import Callable

from aioinformer._core.listwatch.backoff import Backoff, BackoffPolicy
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.listwatch.requests import AnyRequest, DiscoveryRequest, WatchRequest
from aioinformer._core.listwatch.state_machine import ListWatchState, ScheduledRequest
from aioinformer._core.listwatch.transitions import Phase

NO_JITTER = BackoffPolicy(jitter=0.0)


def listing_state(*, page_size: int = 0) -> ListWatchState:
    """A cursor that has asked for its first list, and whose waits are exact."""
    return ListWatchState(backoff=Backoff(NO_JITTER), page_size=page_size)


def paging_state(*, page_size: int = 0) -> ListWatchState:
    """A cursor that has asked for the second page of its first list."""
    cursor = listing_state(page_size=page_size)
    advance(cursor, cursor.finish_page("10", "t1"))
    return cursor


def watching_state(rv: str = "10", *, page_size: int = 0) -> ListWatchState:
    """A cursor whose first list came whole, and that has asked for a watch."""
    cursor = listing_state(page_size=page_size)
    advance(cursor, cursor.finish_page(rv, ""))
    return cursor


def advance(
    state: ListWatchState,
    end: Outcome | RequestEnd,
    *,
    now: float = 0.0,
    retry_after: float | None = None,
) -> ScheduledRequest:
    """Return the next request."""
    outcome = end.outcome if isinstance(end, RequestEnd) else end
    return state.advance(outcome, now=now, jitter=0.5, retry_after=retry_after)


def observe(state: ListWatchState, resource_version: str) -> None:
    """Let a change of this version arrive."""
    state.record_watch_data(resource_version, now=0.0)


def watchlist_state(rv: str = "") -> ListWatchState:
    """A cursor that has asked for a WatchList; the version that it knows before, if any."""
    cursor = ListWatchState(backoff=Backoff(NO_JITTER), watch_list=True)
    cursor.begin(now=0.0, jitter=0.5)
    if rv:
        cursor.complete_initial_list(rv, 0.0)
        advance(cursor, Outcome.ERROR_EVENT)
        cursor.backoff.failures = 0
    return cursor


def freshness_check_state() -> ListWatchState:
    """A cursor whose watch from 10 was silent, and that looks how new the server is."""
    cursor = watching_state()
    advance(cursor, Outcome.IDLE_TIMEOUT)
    return cursor


def discovery_state() -> ListWatchState:
    """A cursor whose first list was answered with 404, and that looks what is served."""
    cursor = ListWatchState(backoff=Backoff(NO_JITTER), discovery=True)
    advance(cursor, Outcome.NOT_FOUND)
    cursor.backoff.failures = 0
    return cursor


STATES_BY_PHASE: dict[Phase, Callable[[], ListWatchState]] = {
    Phase.WATCHLIST: watchlist_state,
    Phase.LIST: listing_state,
    Phase.PAGE: paging_state,
    Phase.WATCH: watching_state,
    Phase.FRESHNESS_CHECK: freshness_check_state,
    Phase.DISCOVERY: discovery_state,
}

DISCOVERY = "lookup"
WATCHLIST_PREFIX = "stream "
"""In what ``plain`` gives: a WatchList at this version."""


def summarize(request: AnyRequest) -> tuple[str, int, str] | str:
    """A request in short: rv, limit and token of a list, or the rv of a watch."""
    if isinstance(request, DiscoveryRequest):
        return DISCOVERY
    if isinstance(request, WatchRequest):
        return f"{WATCHLIST_PREFIX if request.initial else ''}{request.resource_version}"
    return request.resource_version, request.limit, request.continue_token

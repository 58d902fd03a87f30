"""State machines in each phase, for the tests of the transitions and of the state machine."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from aioinformer._core.listwatch.backoff import Backoff, BackoffPolicy
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.listwatch.reflector_requests import (
    AnyRequest,
    DiscoveryRequest,
    WatchRequest,
)
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._core.listwatch.transitions import Phase, ScheduledRequest

NO_JITTER = BackoffPolicy(factor=2.0, maximum=30.0, jitter=0.0)


def listing_state(*, page_size: int = 0) -> ListWatchState:
    """Return a state machine in its first list. Its waits have no jitter."""
    return ListWatchState(backoff=Backoff(NO_JITTER), page_size=page_size)


def paging_state(*, page_size: int = 0) -> ListWatchState:
    """Return a state machine in the second page of its first list."""
    state = listing_state(page_size=page_size)
    advance(state, state.finish_page("10", "t1"))
    return state


def watching_state(rv: str = "10", *, page_size: int = 0) -> ListWatchState:
    """Return a state machine in a watch, after a complete first list."""
    state = listing_state(page_size=page_size)
    advance(state, state.finish_page(rv, ""))
    return state


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
    """Record the arrival of a change with this version."""
    state.record_watch_data(resource_version, now=0.0)


def watchlist_state(rv: str = "") -> ListWatchState:
    """Return a state machine in a WatchList.

    Args:
        rv: the version of an earlier complete list; empty for none.
    """
    state = ListWatchState(backoff=Backoff(NO_JITTER), watch_list=True)
    state.begin(now=0.0, jitter=0.5)
    if rv:
        state.complete_initial_list(rv, 0.0)
        advance(state, Outcome.ERROR_EVENT)
        state.backoff.failures = 0
    return state


def freshness_check_state() -> ListWatchState:
    """Return a state machine that checks the server's version after an idle timeout at 10."""
    state = watching_state()
    advance(state, Outcome.IDLE_TIMEOUT)
    return state


def discovery_state() -> ListWatchState:
    """Return a state machine in discovery, after a first list with a 404."""
    state = ListWatchState(backoff=Backoff(NO_JITTER), discovery=True)
    advance(state, Outcome.NOT_FOUND)
    state.backoff.failures = 0
    return state


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
"""The prefix of a WatchList's version in the result of ``summarize``."""


def sent(request: AnyRequest) -> AnyRequest:
    """Return a request without its flag ``restart``, which the server doesn't receive."""
    return replace(request, restart=False)


def summarize(request: AnyRequest) -> tuple[str, int, str] | str:
    """Return a request in short: rv, limit and token of a list, or the rv of a watch."""
    if isinstance(request, DiscoveryRequest):
        return DISCOVERY
    if isinstance(request, WatchRequest):
        return f"{WATCHLIST_PREFIX if request.initial else ''}{request.resource_version}"
    return request.resource_version, request.limit, request.continue_token

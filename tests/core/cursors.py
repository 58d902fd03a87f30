"""Cursors that have come so far, for the tests of the table and of the cursor itself."""

from __future__ import annotations

from collections.abc import Callable

from aioinformer._core.listwatch.backoff import Backoff, BackoffPolicy
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.requests import AnyRequest, LookupRequest, WatchRequest
from aioinformer._core.listwatch.state_machine import Cursor, Step
from aioinformer._core.listwatch.transitions import Phase

EXACT = BackoffPolicy(jitter=0.0)


def fresh(*, page_size: int = 0) -> Cursor:
    """A cursor that has asked for its first list, and whose waits are exact."""
    return Cursor(backoff=Backoff(EXACT), page_size=page_size)


def paging(*, page_size: int = 0) -> Cursor:
    """A cursor that has asked for the second page of its first list."""
    cursor = fresh(page_size=page_size)
    ended(cursor, cursor.page("10", "t1"))
    return cursor


def watching(rv: str = "10", *, page_size: int = 0) -> Cursor:
    """A cursor whose first list came whole, and that has asked for a watch."""
    cursor = fresh(page_size=page_size)
    ended(cursor, cursor.page(rv, ""))
    return cursor


def ended(
    cursor: Cursor, outcome: Outcome, *, now: float = 0.0, retry_after: float | None = None
) -> Step:
    """What comes next."""
    return cursor.advance(outcome, now=now, jitter=0.5, retry_after=retry_after)


def streaming(rv: str = "") -> Cursor:
    """A cursor that has asked for a WatchList; the version that it knows before, if any."""
    cursor = Cursor(backoff=Backoff(EXACT), watch_list=True)
    cursor.begin(now=0.0, jitter=0.5)
    if rv:
        cursor.settle(rv)
        ended(cursor, Outcome.ERRED)
        cursor.backoff.failures = 0
    return cursor


def probing() -> Cursor:
    """A cursor whose watch from 10 was silent, and that looks how new the server is."""
    cursor = watching()
    ended(cursor, Outcome.SILENT)
    return cursor


def looking() -> Cursor:
    """A cursor whose first list was answered with 404, and that looks what is served."""
    cursor = Cursor(backoff=Backoff(EXACT), lookup=True)
    ended(cursor, Outcome.MISSING)
    cursor.backoff.failures = 0
    return cursor


AT: dict[Phase, Callable[[], Cursor]] = {
    Phase.STREAM: streaming,
    Phase.LIST: fresh,
    Phase.PAGE: paging,
    Phase.WATCH: watching,
    Phase.PROBE: probing,
    Phase.LOOKUP: looking,
}

LOOKUP = "lookup"
STREAMED = "stream "
"""In what ``plain`` gives: a WatchList at this version."""


def plain(request: AnyRequest) -> tuple[str, int, str] | str:
    """A request in short: rv, limit and token of a list, or the rv of a watch."""
    if isinstance(request, LookupRequest):
        return LOOKUP
    if isinstance(request, WatchRequest):
        return f"{STREAMED if request.initial else ''}{request.resource_version}"
    return request.resource_version, request.limit, request.continue_token

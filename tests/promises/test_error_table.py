"""The reaction to each failure of a request: client-go's table, with our deviations.

There is one test for each row, in simulated time, with an informer on a scripted server. The test
checks the next request, the wait before it, and the reported problem. No failure may change the
cache. The id of a row names the difference from client-go, if there is one.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import pytest

from aioinformer.errors import (
    BadRequest,
    ConnectionFailed,
    ConnectionLost,
    Expired,
    FetchError,
    Forbidden,
    NotFound,
    ProtocolError,
    RequestTimedOut,
    ServerError,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
)
from tests.promises.function_lister_watcher import (
    ENDLESS_PAUSE,
    Answer,
    FunctionListerWatcher,
    InformerHarness,
    Reply,
    in_sequence,
    initial_events_end,
    reply,
    run_simulated,
)
from tests.runtime.scripted_source import (
    ErrorResponse,
    ListResponse,
    added,
    body,
    bookmark,
    error_event,
    error_response,
    event_line,
    list_response,
)

LOST = ConnectionLost("reset by peer")
REFUSED = ErrorResponse(ConnectionFailed("refused"))
GONE = error_response(410, "Expired", "too old resource version: 10 (20)")
TOO_LARGE = error_response(504, "Timeout", "Too large resource version: 20, current: 10")
BUSY = error_response(429, "TooManyRequests")
RETRY_LATER = error_response(503, "ServiceUnavailable", retry=25.0)
REDIRECT = error_response(302, "Found", "Moved to https://login.example.com")
TABLE = (
    b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"rows":[]}'
)


def listed(answer: ListResponse) -> Reply:
    return Reply(answer.chunks, answer.error)


STATE = listed(list_response(body("a", 3), version="10"))
"""A list of one object."""
STREAMED = (added("a", 3), initial_events_end(10))
"""The same as a WatchList."""
LONG = 200.0
"""Seconds after which failures from before are forgotten."""


@dataclass(frozen=True, slots=True)
class Start:
    """The state of an informer at the time of the failure."""

    answers: tuple[Answer, ...]
    """The responses before the failure."""
    watch_lists: bool = False
    problems: int = 0
    """The problems that were reported before the failure."""
    cached: tuple[str, ...] = ("a",)
    """Names of what it holds."""


FIRST_LIST = Start((), cached=())
LATER_LIST = Start((STATE, reply(LONG, error_event(500, "InternalError"))), problems=1)
PAGE = Start((listed(list_response(body("a", 3), token="t")),), cached=())
FIRST_STREAM = Start((), watch_lists=True, cached=())
LATER_STREAM = Start(
    (reply(*STREAMED, *(70.0, bookmark(10)) * 3, error_event(500, "InternalError")),),
    watch_lists=True,
    problems=1,
)
WATCH = Start((STATE,))
RESUMED = Start((STATE, reply(30.0, bookmark(20))))
AFTER_MARK = Start((), watch_lists=True)

AT_ONCE = (0.0, 0.0)
ONE_STEP = (0.8, 1.6)
TWO_STEPS = (1.6, 3.2)
POLLED = (54.0, 66.0)
"""The interval of polling, a tenth more or less."""
AS_ASKED = (25.0, 25.0)
"""The wait equals the ``Retry-After`` of the server."""


@dataclass(frozen=True, slots=True)
class Row:
    """One way to fail."""

    start: Start
    ends: Answer
    cause: str
    error: type[FetchError]
    then: str
    """The request that follows."""
    wait: tuple[float, float]
    """Seconds before it: at least, at most."""

    @property
    def expected(self) -> bool:
        """True if a server without WatchLists always answers so, and no warning is logged."""
        first = self.start.watch_lists and not self.start.answers
        return first and self.cause in ("bad_request", "error_event", "watchlist_timeout")


ROWS: dict[str, Row] = {
    # -- the first list
    "list, 410: by consistent read": Row(
        FIRST_LIST, GONE, "expired", Expired, "list newest", AT_ONCE
    ),
    "list, too large: the same": Row(
        FIRST_LIST, TOO_LARGE, "version_too_large", ServerFailure, "list newest", AT_ONCE
    ),
    "list, 429": Row(FIRST_LIST, BUSY, "throttled", TooManyRequests, "list 0", ONE_STEP),
    "list, 503 with Retry-After": Row(
        FIRST_LIST, RETRY_LATER, "unavailable", ServerFailure, "list 0", AS_ASKED
    ),
    "list, 400": Row(
        FIRST_LIST, error_response(400, "BadRequest"), "bad_request", BadRequest, "list 0", ONE_STEP
    ),
    "list, 401": Row(
        FIRST_LIST,
        error_response(401, "Unauthorized"),
        "unauthorized",
        Unauthorized,
        "list 0",
        ONE_STEP,
    ),
    "list, 403": Row(
        FIRST_LIST, error_response(403, "Forbidden"), "access_denied", Forbidden, "list 0", ONE_STEP
    ),
    "list, 404": Row(
        FIRST_LIST, error_response(404, "NotFound"), "not_found", NotFound, "list 0", ONE_STEP
    ),
    "list, 500": Row(
        FIRST_LIST,
        error_response(500, "InternalError"),
        "server_error",
        ServerFailure,
        "list 0",
        ONE_STEP,
    ),
    "list, redirect": Row(FIRST_LIST, REDIRECT, "bad_request", ServerError, "list 0", ONE_STEP),
    "list, refused": Row(FIRST_LIST, REFUSED, "unreachable", ConnectionFailed, "list 0", ONE_STEP),
    "list, broken off": Row(
        FIRST_LIST,
        listed(list_response(body("b", 4), error=LOST)),
        "connection_lost",
        ConnectionLost,
        "list 0",
        ONE_STEP,
    ),
    "list, garbage": Row(
        FIRST_LIST, reply(b"<html>"), "protocol_error", ProtocolError, "list 0", ONE_STEP
    ),
    "list, a Table": Row(
        FIRST_LIST, reply(TABLE), "protocol_error", ProtocolError, "list 0", ONE_STEP
    ),
    "list, no version": Row(
        FIRST_LIST,
        listed(list_response(body("b", 4), version="")),
        "protocol_error",
        ProtocolError,
        "list 0",
        ONE_STEP,
    ),
    # -- a later list, which follows a failure already
    "relist, 410: at once, once in an outage": Row(
        LATER_LIST, GONE, "expired", Expired, "list newest", AT_ONCE
    ),
    "relist, 403": Row(
        LATER_LIST,
        error_response(403, "Forbidden"),
        "access_denied",
        Forbidden,
        "whole 10",
        TWO_STEPS,
    ),
    "relist, refused": Row(
        LATER_LIST, REFUSED, "unreachable", ConnectionFailed, "whole 10", TWO_STEPS
    ),
    "relist, broken off": Row(
        LATER_LIST,
        listed(list_response(body("b", 4), error=LOST)),
        "connection_lost",
        ConnectionLost,
        "whole 10",
        TWO_STEPS,
    ),
    "relist, 503 with Retry-After": Row(
        LATER_LIST, RETRY_LATER, "unavailable", ServerFailure, "whole 10", AS_ASKED
    ),
    # -- further pages
    "page, 410: all in one, at the version first asked for": Row(
        PAGE, GONE, "expired", Expired, "whole 0", AT_ONCE
    ),
    "page, 429: the page again": Row(PAGE, BUSY, "throttled", TooManyRequests, "page t", ONE_STEP),
    "page, 500: the page again": Row(
        PAGE,
        error_response(500, "InternalError"),
        "server_error",
        ServerFailure,
        "page t",
        ONE_STEP,
    ),
    "page, refused: the page again": Row(
        PAGE, REFUSED, "unreachable", ConnectionFailed, "page t", ONE_STEP
    ),
    "page, broken off: the page again": Row(
        PAGE,
        listed(list_response(body("b", 4), error=LOST)),
        "connection_lost",
        ConnectionLost,
        "page t",
        ONE_STEP,
    ),
    "page, 403: from the start": Row(
        PAGE, error_response(403, "Forbidden"), "access_denied", Forbidden, "list 0", ONE_STEP
    ),
    "page, garbage: from the start": Row(
        PAGE, reply(b"<html>"), "protocol_error", ProtocolError, "list 0", ONE_STEP
    ),
    # -- a WatchList, before its head and before its mark
    "WatchList, refused": Row(
        FIRST_STREAM, REFUSED, "unreachable", ConnectionFailed, "stream newest", ONE_STEP
    ),
    "WatchList, 429": Row(
        FIRST_STREAM, BUSY, "throttled", TooManyRequests, "stream newest", ONE_STEP
    ),
    "WatchList, 503 with Retry-After: no list yet": Row(
        FIRST_STREAM, RETRY_LATER, "unavailable", ServerFailure, "stream newest", AS_ASKED
    ),
    "WatchList, 401: no list": Row(
        FIRST_STREAM,
        error_response(401, "Unauthorized"),
        "unauthorized",
        Unauthorized,
        "stream newest",
        ONE_STEP,
    ),
    "WatchList, 403: a list": Row(
        FIRST_STREAM,
        error_response(403, "Forbidden"),
        "access_denied",
        Forbidden,
        "list 0",
        AT_ONCE,
    ),
    "WatchList, 404: a list": Row(
        FIRST_STREAM, error_response(404, "NotFound"), "not_found", NotFound, "list 0", AT_ONCE
    ),
    "WatchList, 405: a list": Row(
        FIRST_STREAM,
        error_response(405, "MethodNotAllowed"),
        "method_not_allowed",
        ServerError,
        "list 0",
        AT_ONCE,
    ),
    "WatchList, 500: no list yet": Row(
        FIRST_STREAM,
        error_response(500, "InternalError"),
        "server_error",
        ServerFailure,
        "stream newest",
        ONE_STEP,
    ),
    "WatchList, 400: a list": Row(
        FIRST_STREAM,
        error_response(400, "BadRequest"),
        "bad_request",
        BadRequest,
        "list 0",
        AT_ONCE,
    ),
    "WatchList, redirect: a list": Row(
        FIRST_STREAM, REDIRECT, "bad_request", ServerError, "list 0", AT_ONCE
    ),
    "WatchList, error event 500: a list": Row(
        FIRST_STREAM,
        reply(error_event(500, "InternalError", "etcd doesn't support it")),
        "error_event",
        ServerFailure,
        "list 0",
        AT_ONCE,
    ),
    "WatchList, error event 429": Row(
        FIRST_STREAM,
        reply(added("b", 4), error_event(429, "TooManyRequests")),
        "throttled",
        TooManyRequests,
        "stream newest",
        ONE_STEP,
    ),
    "WatchList, error event 410": Row(
        LATER_STREAM,
        reply(added("b", 4), error_event(410, "Expired")),
        "expired",
        Expired,
        "stream newest",
        AT_ONCE,
    ),
    "WatchList, too large": Row(
        LATER_STREAM, TOO_LARGE, "version_too_large", ServerFailure, "stream newest", AT_ONCE
    ),
    "WatchList, broken off: what came is discarded": Row(
        LATER_STREAM,
        reply(added("b", 44), error=LOST),
        "connection_lost",
        ConnectionLost,
        "stream 10",
        TWO_STEPS,
    ),
    "WatchList, ends before its mark: waits": Row(
        LATER_STREAM,
        reply(added("b", 44), 30.0 - 1e-6),
        "ended",
        ConnectionLost,
        "stream 10",
        TWO_STEPS,
    ),
    "WatchList, ends at once: no list yet": Row(
        FIRST_STREAM, reply(), "empty_watch", ConnectionLost, "stream newest", ONE_STEP
    ),
    "WatchList, garbage: what came is discarded": Row(
        LATER_STREAM,
        reply(added("b", 44), b"garbage\n"),
        "protocol_error",
        ProtocolError,
        "stream 10",
        TWO_STEPS,
    ),
    "WatchList, no mark for 30 s: a list": Row(
        FIRST_STREAM,
        reply(added("b", 44), ENDLESS_PAUSE),
        "watchlist_timeout",
        RequestTimedOut,
        "list 0",
        AT_ONCE,
    ),
    "WatchList, no mark for 5 min though much comes: a list": Row(
        FIRST_STREAM,
        reply(*(part for n in range(40) for part in (added("b", 44 + n), 10.0))),
        "watchlist_timeout",
        RequestTimedOut,
        "list 0",
        AT_ONCE,
    ),
    # -- a watch, before its head
    "watch, refused: no relist, but a check of the version": Row(
        WATCH, REFUSED, "unreachable", ConnectionFailed, "probe", ONE_STEP
    ),
    "watch, 429: no relist": Row(WATCH, BUSY, "throttled", TooManyRequests, "watch 10", ONE_STEP),
    "watch, 503 with Retry-After: no relist": Row(
        WATCH, RETRY_LATER, "unavailable", ServerFailure, "watch 10", AS_ASKED
    ),
    "watch, 401: no relist": Row(
        WATCH,
        error_response(401, "Unauthorized"),
        "unauthorized",
        Unauthorized,
        "watch 10",
        ONE_STEP,
    ),
    "watch, 403 right after a list: polled": Row(
        WATCH, error_response(403, "Forbidden"), "watch_refused", Forbidden, "whole 10", POLLED
    ),
    "watch, 405 right after a list: polled": Row(
        WATCH,
        error_response(405, "MethodNotAllowed"),
        "watch_refused",
        ServerError,
        "whole 10",
        POLLED,
    ),
    "watch, 500: no relist yet": Row(
        WATCH,
        error_response(500, "InternalError"),
        "server_error",
        ServerFailure,
        "watch 10",
        ONE_STEP,
    ),
    "watch, 404 right after a list: polled": Row(
        WATCH, error_response(404, "NotFound"), "watch_refused", NotFound, "whole 10", POLLED
    ),
    "watch, 403 after a watch: a list": Row(
        RESUMED, error_response(403, "Forbidden"), "access_denied", Forbidden, "whole 20", AT_ONCE
    ),
    "watch, 404 after a watch: a list": Row(
        RESUMED, error_response(404, "NotFound"), "not_found", NotFound, "whole 20", AT_ONCE
    ),
    "watch, 405 after a watch: a list": Row(
        RESUMED,
        error_response(405, "MethodNotAllowed"),
        "method_not_allowed",
        ServerError,
        "whole 20",
        AT_ONCE,
    ),
    "watch, 410: a list at once": Row(WATCH, GONE, "expired", Expired, "whole 10", AT_ONCE),
    "watch, too large: by consistent read": Row(
        WATCH, TOO_LARGE, "version_too_large", ServerFailure, "list newest", AT_ONCE
    ),
    "watch, 400: a list": Row(
        WATCH, error_response(400, "BadRequest"), "bad_request", BadRequest, "whole 10", ONE_STEP
    ),
    "watch, redirect: a list": Row(
        WATCH, REDIRECT, "bad_request", ServerError, "whole 10", ONE_STEP
    ),
    # -- a watch, in its stream
    "stream, broken off: a check of the version at once": Row(
        WATCH,
        reply(bookmark(20), 40.0, error=LOST),
        "connection_lost",
        ConnectionLost,
        "probe",
        AT_ONCE,
    ),
    "stream, broken off behind a mark: a check of the version at once": Row(
        AFTER_MARK,
        reply(*STREAMED, bookmark(20), error=LOST),
        "connection_lost",
        ConnectionLost,
        "probe",
        AT_ONCE,
    ),
    "stream, broken off at once: a check of the version": Row(
        WATCH, reply(error=LOST), "lost_at_once", ConnectionLost, "probe", ONE_STEP
    ),
    "stream, ends at once with nothing: no relist yet": Row(
        WATCH, reply(), "empty_watch", ConnectionLost, "watch 10", ONE_STEP
    ),
    "stream, ends soon with nothing: at once, the first time": Row(
        WATCH, reply(5.0), "short_watch", ConnectionLost, "watch 10", AT_ONCE
    ),
    "stream, error event 410: a list at the last version": Row(
        WATCH,
        reply(bookmark(20), error_event(410, "Expired")),
        "expired",
        Expired,
        "whole 20",
        AT_ONCE,
    ),
    "stream, error event Gone": Row(
        WATCH, reply(error_event(410, "Gone")), "expired", Expired, "whole 10", AT_ONCE
    ),
    "stream, error event 429: no relist": Row(
        WATCH,
        reply(error_event(429, "TooManyRequests")),
        "throttled",
        TooManyRequests,
        "watch 10",
        ONE_STEP,
    ),
    "stream, error event 500: a list": Row(
        WATCH,
        reply(error_event(500, "InternalError")),
        "error_event",
        ServerFailure,
        "whole 10",
        ONE_STEP,
    ),
    "stream, error event 504 too large": Row(
        WATCH,
        reply(error_event(504, "Timeout", "Too large resource version: 10, current: 4")),
        "version_too_large",
        ServerFailure,
        "list newest",
        AT_ONCE,
    ),
    "stream, error event 403: a list": Row(
        WATCH,
        reply(error_event(403, "Forbidden")),
        "access_denied",
        Forbidden,
        "whole 10",
        AT_ONCE,
    ),
    "stream, an error that is no Status": Row(
        WATCH, reply(event_line("ERROR", "{}")), "error_event", ServerFailure, "whole 10", ONE_STEP
    ),
    "stream, garbage: a list": Row(
        WATCH,
        reply(bookmark(20), b"garbage\n"),
        "protocol_error",
        ProtocolError,
        "whole 20",
        ONE_STEP,
    ),
    # client-go skips these three and goes on; what was missed would never be noticed.
    "stream, an object without metadata: a list": Row(
        WATCH,
        reply(event_line("ADDED", '{"kind":"Pod"}')),
        "protocol_error",
        ProtocolError,
        "whole 10",
        ONE_STEP,
    ),
    "stream, an event of unknown type: a list": Row(
        WATCH,
        reply(event_line("RENAMED", body("a", 11))),
        "protocol_error",
        ProtocolError,
        "whole 10",
        ONE_STEP,
    ),
    "stream, an event that is no object: a list": Row(
        WATCH,
        reply(event_line("ADDED", "[]")),
        "protocol_error",
        ProtocolError,
        "whole 10",
        ONE_STEP,
    ),
}


@pytest.mark.client_go(1, 12, 34, 36, 43, 45, 55)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_10_every_abnormal_end_is_reported_and_the_next_request_is_that_of_the_table(
    row: Row, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="aioinformer")
    caplog.set_level(logging.INFO, logger="aioinformer.reflector")

    async def scenario() -> None:
        start = row.start
        harness = InformerHarness(
            FunctionListerWatcher(
                in_sequence(*start.answers, row.ends), watch_lists=start.watch_lists
            )
        )
        async with harness.running():
            problem = await harness.wait_for_problem(start.problems + 1)
            _check_report(harness, row)
            at, requests = harness.problems[-1][0], len(start.answers) + 1
            assert problem.retry_in is not None
            came = await harness.wait_for_request(requests + 1)
            assert harness.request_summaries[requests] == row.then
            least, most = row.wait
            assert least <= came - at <= most + 0.001
            assert came - at == pytest.approx(problem.retry_in, abs=0.001)
            assert tuple(harness.cached_versions) == start.cached
            await asyncio.sleep(10.0)
            assert len(harness.request_summaries) == requests + 1
            assert len(harness.problems) == start.problems + 1

    run_simulated(scenario)
    *ends, last = caplog.records
    if "fresh again, " in last.getMessage():  # the next request has ended the outage
        assert not row.expected
        *ends, last = ends
    assert len(ends) == row.start.problems
    assert last.levelname == ("INFO" if row.expected else "WARNING")
    assert f": {row.error.__name__}: " in last.getMessage()
    assert "\n" not in last.getMessage()


def _check_report(harness: InformerHarness, row: Row) -> None:
    """Check that hook and health report the same problem, and that the cache is unchanged."""
    problem, health = harness.problems[-1][1], harness.informer.health
    assert (problem.cause, type(problem.error)) == (row.cause, row.error)
    assert problem.phase == harness.recorder.requests[len(row.start.answers)][1].verb
    assert health.synced is bool(row.start.cached)
    assert tuple(harness.cached_versions) == row.start.cached
    if row.wait != AT_ONCE:
        assert health.error is problem.error
        assert health.state == ("polling" if row.wait == POLLED else "waiting")
        assert health.retry_in is not None
        assert 0 < health.retry_in <= row.wait[1]

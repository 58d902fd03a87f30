"""Lists, then watches, for ever; what each end of a request leads to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from aioinformer import Bookmark, Delta, DeltaQueue, ListRequest, Reflector, Replaced, WatchRequest
from aioinformer._core.cache.delta_fifo import HIGH_MARK
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    Forbidden,
    LineTooLong,
    ProtocolError,
)
from tests.runtime.informers import FAST_BACKOFF, SLOW_BACKOFF, running_in_background
from tests.runtime.scripted_source import (
    ErrorResponse,
    ScriptedListerWatcher,
    ScriptedResponse,
    added,
    body,
    bookmark,
    deleted,
    error_event,
    error_response,
    list_response,
    modified,
    scripted_lister_watcher,
    wait_until,
    watch_response,
    yield_to_loop,
)

LOST = ConnectionLost("reset by peer")


@asynccontextmanager
async def reflecting(
    source: ScriptedListerWatcher, queue: DeltaQueue | None = None, *, line_cap: int = 1024
) -> AsyncGenerator[Reflector]:
    reflector = Reflector(source, queue or DeltaQueue(), backoff=FAST_BACKOFF, line_cap=line_cap)
    async with running_in_background(reflector.run()):
        yield reflector


async def asked(source: ScriptedListerWatcher, times: int) -> list[str]:
    """Return the first requests, in short: ``list 0``, ``page TOKEN``, ``watch 10``."""
    async with reflecting(source):
        await source.wait_for_request(times)
    return [_in_short(request) for request in source.requests[:times]]


def _in_short(request: ListRequest | WatchRequest) -> str:
    if isinstance(request, WatchRequest):
        return f"watch {request.resource_version}"
    if request.continue_token:
        return f"page {request.continue_token}"
    return f"list {request.resource_version or 'newest'}"


async def queued(source: ScriptedListerWatcher, entries: int) -> list[str]:
    """Return the first entries of the queue, in short: ``= a b``, ``Added a``, ``at 12``."""
    queue, shown = DeltaQueue(), list[str]()
    async with reflecting(source, queue):
        while len(shown) < entries:
            await queue.ready()
            match queue.pop():
                case Replaced(objects, version):
                    shown.append(" ".join(["=", *(obj.name for obj in objects), "at", version]))
                case Delta(kind, obj):
                    shown.append(f"{kind} {obj.name}")
                case Bookmark(version):
                    shown.append(f"at {version}")
                case other:
                    raise AssertionError(other)
    return shown


async def failure(source: ScriptedListerWatcher, requests: int = 2) -> FetchError:
    """Return the error in the status while the reflector waits."""
    reflector = Reflector(source, DeltaQueue(), backoff=SLOW_BACKOFF)
    async with running_in_background(reflector.run()):
        await wait_until(lambda: reflector.status.state == "waiting")
        assert len(source.requests) == requests
        assert isinstance(reflector.status.error, FetchError)
        return reflector.status.error


# -- from the list to the watch ---------------------------------------------------------------


@pytest.mark.client_go(11)
async def test_a_reflector_lists_and_then_watches_from_the_version_of_the_list() -> None:
    source = scripted_lister_watcher(list_response(body("a", 3), version="10"))

    assert await asked(source, 2) == ["list 0", "watch 10"]


@pytest.mark.client_go(8)
async def test_listed_objects_and_watch_events_are_queued_in_order() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 3), body("b", 4), version="10"),
        watch_response(
            added("c", 11) + modified("a", 12), deleted("b", 13), bookmark(20), never_ends=True
        ),
    )

    assert await queued(source, 5) == [
        "= a b at 10",
        "Added c",
        "Updated a",
        "Deleted b",
        "at 20",
    ]


async def test_events_may_be_cut_anywhere() -> None:
    text = added("a", 11) + modified("a", 12)
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]

    assert await queued(
        scripted_lister_watcher(list_response(), watch_response(*pieces, never_ends=True)), 3
    ) == [
        "= at 10",
        "Added a",
        "Updated a",
    ]


@pytest.mark.client_go(19)
async def test_all_pages_of_a_list_are_queued_as_one_state() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 3), token="one"),
        list_response(body("b", 4), token="two"),
        list_response(body("c", 5)),
    )

    assert await queued(source, 1) == ["= a b c at 10"]
    assert [_in_short(request) for request in source.requests] == [
        "list 0",
        "page one",
        "page two",
        "watch 10",
    ]


async def test_the_version_of_a_reflector_is_the_last_received_one() -> None:
    source = scripted_lister_watcher(
        list_response(version="10"), watch_response(bookmark(20), never_ends=True)
    )
    queue = DeltaQueue()

    async with reflecting(source, queue) as reflector:
        assert reflector.resource_version == ""
        await wait_until(lambda: source.chunks_read == 3)
        assert reflector.resource_version == "20"
        assert len(queue.fifo) == 2


# -- a watch ends -----------------------------------------------------------------------------


async def test_a_malformed_line_is_a_protocol_error_that_does_not_contain_it() -> None:
    error = await failure(
        scripted_lister_watcher(list_response(), watch_response(b"secret secret\n"))
    )

    assert isinstance(error, ProtocolError)
    assert "secret" not in str(error)


async def test_a_line_beyond_the_cap_leads_to_a_list() -> None:
    source = scripted_lister_watcher(
        list_response(),
        watch_response(added("a", 11), added("b", 12, size=2000)[:-1]),
        list_response(),
    )

    async with reflecting(source, line_cap=1024) as reflector:
        await wait_until(lambda: isinstance(reflector.status.error, LineTooLong))
        await source.wait_for_request(3)

    assert _in_short(source.requests[2]) == "list 11"


async def test_an_item_of_a_list_that_is_longer_than_the_cap_is_an_error() -> None:
    source = scripted_lister_watcher(list_response(body("a", 1, size=40_000)))
    async with reflecting(source, line_cap=1024) as reflector:
        await wait_until(lambda: reflector.status.error is not None)

    error = reflector.status.error
    assert isinstance(error, ProtocolError)
    assert "item 1 is longer than 1024 bytes; if the cluster" in str(error)
    assert "raise line_cap" in str(error)


async def test_a_watch_that_ends_at_once_with_only_a_bookmark_is_an_error_with_backoff() -> None:
    """Asking again at once made 1,000 requests a second of it (simulation, fault ``curt``)."""
    error = await failure(scripted_lister_watcher(list_response(), watch_response(bookmark(20))))

    assert isinstance(error, ConnectionLost)
    assert str(error) == "the watch ended at once without a change"


LIST = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}'


@pytest.mark.parametrize("initial", [False, True], ids=["a watch", "a WatchList"])
@pytest.mark.parametrize(
    "chunks",
    [(LIST,), (LIST + b"\n",), (LIST[:9], LIST[9:]), (LIST[:9], LIST[9:] + b"\n")],
    ids=["no newline", "a newline", "two chunks", "two chunks and a newline"],
)
async def test_a_watch_that_is_answered_with_a_list_says_so(
    chunks: tuple[bytes, ...], initial: bool
) -> None:
    first = [] if initial else [list_response()]
    source = scripted_lister_watcher(*first, watch_response(*chunks), watch_lists=initial)
    reflector = Reflector(source, DeltaQueue(), backoff=SLOW_BACKOFF)
    async with running_in_background(reflector.run()):
        await wait_until(lambda: reflector.status.error is not None)
    assert isinstance(reflector.status.error, ProtocolError)
    assert str(reflector.status.error) == (
        "the watch of pods brought no event: a list came (PodList of v1): the server, or a proxy "
        "before it, ignores watch=true"
    )


async def test_a_watch_that_breaks_off_within_an_event_is_not_taken_for_a_list() -> None:
    error = await failure(scripted_lister_watcher(list_response(), watch_response(LIST[:-1])))

    assert str(error) == "the watch ended at once without a change"


# -- requests fail ----------------------------------------------------------------------------


# A watch that is refused, by 403 or 404, is followed by a list.


async def test_the_server_s_own_status_is_shown() -> None:
    error = await failure(
        scripted_lister_watcher(error_response(403, "Forbidden", "pods is forbidden: User x")), 1
    )

    assert isinstance(error, Forbidden)
    assert str(error.status) == "403 Forbidden: pods is forbidden: User x"


# -- pages fail -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failed",
    [
        error_response(500, "InternalError"),
        error_response(429, "TooManyRequests"),
        ErrorResponse(ConnectionFailed("refused")),
        list_response(body("b", 4), body("c", 5), body("d", 6), error=LOST),
    ],
    ids=["500", "429", "refused", "broken off"],
)
async def test_a_page_that_failed_is_requested_again_and_its_objects_are_queued_once(
    failed: ScriptedResponse,
) -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 3), token="one"),
        failed,
        list_response(body("b", 4), body("c", 5), body("d", 6)),
    )

    assert await queued(source, 1) == ["= a b c d at 10"]
    assert [_in_short(request) for request in source.requests[:3]] == [
        "list 0",
        "page one",
        "page one",
    ]


# -- the high mark ----------------------------------------------------------------------------


async def test_a_reflector_does_not_read_the_watch_while_the_queue_is_full() -> None:
    flood = b"".join(added(f"p-{n}", 11 + n) for n in range(HIGH_MARK))
    source = scripted_lister_watcher(
        list_response(), watch_response(flood, added("last", 99_999), never_ends=True)
    )
    queue = DeltaQueue()

    async with reflecting(source, queue):
        await wait_until(lambda: queue.fifo.full)
        await yield_to_loop()
        read = source.chunks_read
        assert len(queue.fifo) == HIGH_MARK + 1, "the list and the flood"

        queue.pop()
        await yield_to_loop()
        assert source.chunks_read == read, "still full"

        queue.pop()
        await wait_until(lambda: source.chunks_read == read + 1)
        assert len(queue.fifo) == HIGH_MARK, "one popped, the last one in: full again"


# -- what is said of it -----------------------------------------------------------------------


async def test_successful_requests_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="aioinformer")
    source = scripted_lister_watcher(
        list_response(), watch_response(added("a", 11)), watch_response(never_ends=True)
    )

    async with reflecting(source):
        await source.wait_for_request(3)

    assert caplog.records == []


async def test_the_repr_of_a_reflector_shows_its_state() -> None:
    source = scripted_lister_watcher(list_response(), watch_response(never_ends=True))

    async with reflecting(source) as reflector:
        assert repr(reflector) == "<Reflector pods new rv=none>"
        await wait_until(lambda: reflector.status.state == "watching")
        assert repr(reflector) == "<Reflector pods watching rv=10>"


async def test_a_bug_in_a_source_is_raised_and_not_retried() -> None:
    reflector = Reflector(
        scripted_lister_watcher(ErrorResponse(RuntimeError("a bug"))), DeltaQueue()
    )

    with pytest.raises(RuntimeError, match="a bug"):
        await reflector.run()


@pytest.mark.client_go(6)
async def test_every_answer_is_closed_when_it_ends() -> None:
    source = scripted_lister_watcher(
        list_response(),
        watch_response(error_event(500, "InternalError")),
        list_response(),
        watch_response(never_ends=True),
    )

    async with reflecting(source):
        await source.wait_for_request(4)
        assert source.open_responses == 1
    assert source.open_responses == 0


@pytest.mark.client_go(4)
async def test_a_reflector_that_is_cancelled_before_its_start_sends_no_request() -> None:
    source = scripted_lister_watcher(list_response())
    task = asyncio.create_task(Reflector(source, DeltaQueue()).run())

    task.cancel()
    await asyncio.wait({task})

    assert task.cancelled()
    assert source.requests == []


async def test_a_watch_that_only_repeats_known_events_and_ends_is_an_error_with_backoff() -> None:
    error = await failure(
        scripted_lister_watcher(
            list_response(body("a", 9), version="10"), watch_response(added("a", 10))
        )
    )

    assert "ended at once" in str(error)

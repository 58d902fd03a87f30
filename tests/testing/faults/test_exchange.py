"""Tests of the actions for one request under faults, without waiting or sending."""

from __future__ import annotations

from random import Random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.listwatch.outcomes import Outcome, classify
from aioinformer._core.objects.resources import find_built_in
from aioinformer.testing import Faults
from aioinformer.testing.faults.effects import (
    BreakConnection,
    FaultAction,
    RespondWithError,
    SendBytes,
    WaitUntil,
)
from aioinformer.testing.faults.exchange import FaultedRequest
from aioinformer.testing.faults.faults import RequestVerb

PODS = find_built_in("pods")
END_MARK = b'{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":'
BOOKMARK = b'{"type":"BOOKMARK","object":{}}\n'
ADDED = b'{"type":"ADDED","object":{}}\n'
NEVER = float("inf")


def exchange(faults: Faults, verb: RequestVerb = "watch") -> FaultedRequest:
    return FaultedRequest(faults, verb, PODS, "web")


def test_without_faults_everything_is_sent() -> None:
    one = exchange(Faults())
    assert one.response_action(0) == SendBytes(b"")
    assert one.body_action(b"abc", 0) == SendBytes(b"abc")
    assert one.bytes_sent == 3


def test_bytes_are_counted_from_when_a_fault_concerns_an_answer() -> None:
    faults = Faults()
    one = exchange(faults)
    one.body_action(b"0123456789", 0)
    faults.reset(after=4)
    assert one.body_action(b"abcdef", 0) == SendBytes(b"abcd")
    assert one.body_action(b"ef", 0) == BreakConnection()
    other = exchange(faults)
    assert other.response_action(0) == SendBytes(b"")
    assert other.body_action(b"abcdef", 0) == SendBytes(b"abcd")


def test_a_reset_has_priority_over_a_stall_at_the_same_byte() -> None:
    faults = Faults()
    one = exchange(faults)
    faults.stall()
    assert one.response_action(0) == WaitUntil(NEVER)
    faults.reset()
    assert one.response_action(0) == BreakConnection()
    assert one.body_action(b"a", 0) == BreakConnection()


def test_an_answer_continues_after_a_stall() -> None:
    faults = Faults()
    one = exchange(faults)
    with faults.stall(after=1):
        assert one.body_action(b"abc", 0) == SendBytes(b"a")
        assert one.body_action(b"bc", 0) == WaitUntil(NEVER)
        assert one.body_action(b"", 0) == WaitUntil(NEVER)
    assert one.body_action(b"bc", 0) == SendBytes(b"bc")


def test_a_fault_with_times_keeps_its_requests_and_takes_no_others() -> None:
    faults = Faults()
    fault = faults.stall(times=1)
    one, other = exchange(faults), exchange(faults)
    assert one.response_action(0) == WaitUntil(NEVER)
    assert other.response_action(0) == SendBytes(b"")
    assert one.response_action(9) == WaitUntil(NEVER)
    assert (fault.hits, fault.active) == (1, False)


def test_a_drip_waits_between_its_pieces() -> None:
    faults = Faults()
    faults.drip(size=2, every=0.5)
    one = exchange(faults)
    assert one.body_action(b"abcde", 10.0) == SendBytes(b"ab")
    assert one.body_action(b"cde", 10.0) == WaitUntil(10.5)
    assert one.body_action(b"", 10.0) == SendBytes(b"")
    assert one.body_action(b"cde", 10.5) == SendBytes(b"cd")


def test_latencies_add_up_before_the_head() -> None:
    faults = Faults()
    faults.latency(1.0)
    faults.latency(0.5, verb="list")
    one, other = exchange(faults, "list"), exchange(faults, "watch")
    assert one.response_action(10.0) == WaitUntil(11.5)
    assert other.response_action(10.0) == WaitUntil(11.0)
    assert one.response_action(11.5) == SendBytes(b"")
    one.close()


def test_a_status_is_a_new_error_each_time() -> None:
    faults = Faults()
    faults.status(503, retry_after=3)
    errors = [exchange(faults).response_action(0) for _ in range(2)]
    first, second = errors
    assert isinstance(first, RespondWithError)
    assert isinstance(second, RespondWithError)
    assert first.error is not second.error
    assert first.error.status.retry_after == 3.0
    assert first.error.status.details == {"retryAfterSeconds": 3}


def test_a_status_does_not_concern_an_answer_under_way() -> None:
    faults = Faults()
    one = exchange(faults)
    fault = faults.status(500)
    assert one.body_action(b"abc", 0) == SendBytes(b"abc")
    assert fault.hits == 0


@pytest.mark.parametrize(
    ("verb", "resource", "concerned"),
    [
        ("any", None, True),
        ("watch", None, True),
        ("list", None, False),
        ("any", "pods", True),
        ("any", "Pod", True),
        ("watch", "po", True),
        ("any", PODS, True),
        ("any", "services", False),
    ],
)
def test_a_fault_is_for_a_verb_and_a_resource(
    verb: RequestVerb, resource: str | None, concerned: bool
) -> None:
    faults = Faults()
    faults.stall(verb=verb, resource=resource)
    assert (exchange(faults).response_action(0) == WaitUntil(NEVER)) is concerned


def test_the_end_mark_alone_is_withheld() -> None:
    faults = Faults()
    fault = faults.endless_watch_list()
    one = exchange(faults)
    others = [BOOKMARK, b'{"type":"ADDED","object":{"k8s.io/initial-events-end":"true"}}\n']
    assert one.sent_lines([END_MARK, *others]) == others
    fault.end()
    assert one.sent_lines([END_MARK]) == [END_MARK]


def test_bookmarks_alone_are_repeated() -> None:
    faults = Faults()
    one = exchange(faults)
    with faults.repeat_bookmarks():
        assert one.sent_lines([ADDED, BOOKMARK]) == [ADDED, BOOKMARK, BOOKMARK]
    assert one.sent_lines([ADDED, BOOKMARK]) == [ADDED, BOOKMARK]


def test_a_function_gets_the_lines_of_the_server_and_returns_those_to_send() -> None:
    faults = Faults()
    one = exchange(faults)
    with faults.rewrite_events(lambda line: [] if b"BOOKMARK" in line else [line, b"{}\n"]):
        assert one.sent_lines([ADDED, BOOKMARK]) == [ADDED, b"{}\n"]


@pytest.mark.parametrize(
    ("under_way", "open_one", "new_one"),
    [(None, True, True), (True, True, False), (False, False, True)],
)
def test_a_fault_is_for_requests_under_way_or_later_ones(
    under_way: bool | None, open_one: bool, new_one: bool
) -> None:
    faults = Faults()
    one = exchange(faults)
    one.response_action(0)
    faults.reset(after=0, under_way=under_way)
    broken = [isinstance(one.body_action(b"a", 0), BreakConnection)]
    other = exchange(faults)
    assert other.response_action(0) == SendBytes(b"")
    broken.append(isinstance(other.body_action(b"a", 0), BreakConnection))
    assert broken == [open_one, new_one]


def test_a_fault_that_ends_at_once_affects_the_answers_under_way() -> None:
    faults = Faults()
    one = exchange(faults)
    one.response_action(0)
    fault = faults.stall(under_way=True)
    fault.retire()
    assert fault.hits == 1
    assert one.body_action(b"a", 0) == WaitUntil(NEVER)
    assert not fault.active
    assert "retired" in repr(fault)
    assert exchange(faults).response_action(0) == SendBytes(b"")
    fault.end()
    assert one.body_action(b"a", 0) == SendBytes(b"a")


def test_a_fault_concerns_a_share_of_requests_and_each_of_them_wholly() -> None:
    faults = Faults(random=Random(1))
    faults.stall(after=0, share=0.3)
    requests = [exchange(faults) for _ in range(1000)]
    stalled = [one for one in requests if one.body_action(b"a", 0) == WaitUntil(NEVER)]
    assert 230 < len(stalled) < 370
    again = [one for one in requests if one.body_action(b"a", 0) == WaitUntil(NEVER)]
    assert again == stalled


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_is_from_0_to_1(share: float) -> None:
    with pytest.raises(ValueError, match="share must be from 0 to 1"):
        Faults().stall(share=share)


def test_a_watch_list_is_a_watch_but_not_every_watch_is_one() -> None:
    faults = Faults()
    faults.status(422, verb="watch_list")
    assert isinstance(exchange(faults, "watch_list").response_action(0), RespondWithError)
    assert exchange(faults, "watch").response_action(0) == SendBytes(b"")
    faults.clear()
    faults.status(422, verb="watch")
    assert isinstance(exchange(faults, "watch_list").response_action(0), RespondWithError)


@pytest.mark.parametrize("pieces", [[b'ab{"c":{}}'], [b"ab", b'{"c"', b":{}}"]])
def test_the_first_of_the_wanted_bytes_is_overwritten(pieces: list[bytes]) -> None:
    faults = Faults()
    faults.corrupt(put=b"\0", find=b"{", after=1)
    one = exchange(faults)
    sent = b""
    for piece in pieces:
        action = one.body_action(piece, 0)
        assert isinstance(action, SendBytes)
        sent += action.data
    assert sent == b'ab\0"c":{}}'


def test_watches_end_after_some_seconds() -> None:
    faults = Faults()
    faults.end_watches(after=3.0)
    one = exchange(faults)
    one.response_action(10.0)
    assert one.watch_end(12.9, idle=False) is None
    assert one.next_watch_end() == 13.0
    assert one.watch_end(13.0, idle=False) is not None


def test_lists_of_a_version_show_an_older_state() -> None:
    faults = Faults()
    faults.stale_lists(5)
    one = exchange(faults, "list")
    assert one.list_query({"resourceVersion": "17", "limit": "2"}) == {
        "resourceVersion": "12",
        "resourceVersionMatch": "Exact",
        "limit": "2",
    }
    assert one.list_query({"resourceVersion": "3"}) == {"resourceVersion": "3"}
    assert one.list_query({}) == {}


@pytest.mark.parametrize("form", ["message", "reason", "cause"])
def test_each_form_of_a_version_that_is_too_large_is_recognised(
    form: Literal["message", "reason", "cause"],
) -> None:
    faults = Faults()
    faults.version_too_large(form)
    answer = exchange(faults, "list").response_action(0)
    assert isinstance(answer, RespondWithError)
    assert classify(answer.error) is Outcome.VERSION_TOO_LARGE


def test_bookmarks_are_as_late_as_all_delays_together() -> None:
    faults = Faults()
    faults.delay_bookmarks(1)
    one = exchange(faults)
    assert one.bookmark_delay() == 1
    with faults.drop_bookmarks():
        assert one.bookmark_delay() == NEVER


def test_a_request_reports_changes_until_it_is_closed() -> None:
    faults, calls = Faults(), list[str]()
    with exchange(faults) as one:
        one.on_change = lambda: calls.append("changed")
        faults.stall()
    faults.clear()
    assert calls == ["changed"]


@given(
    st.lists(st.binary(max_size=12), max_size=8),
    st.integers(1, 5),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_sent_bytes_are_those_of_the_body_under_any_faults(
    pieces: list[bytes], size: int, place: int, end: int
) -> None:
    """The sent bytes end at the cut, and differ in the overwritten byte alone."""
    faults, now, got = Faults(), 0.0, b""
    faults.drip(size=size, every=1.0)
    faults.corrupt(after=place, put=b"\xff")
    faults.reset(after=end)
    one = exchange(faults)
    for piece in pieces:
        rest = piece
        while rest:
            action: FaultAction = one.body_action(rest, now)
            if isinstance(action, WaitUntil):
                now = action.until
                continue
            if not isinstance(action, SendBytes):
                break
            got += action.data
            rest = rest[len(action.data) :]
    expected = b"".join(pieces)[:end]
    if place < len(expected):
        expected = expected[:place] + b"\xff" + expected[place + 1 :]
    assert got == expected


def test_the_repr_shows_the_bytes_sent() -> None:
    one = exchange(Faults())
    one.body_action(b"abc", 0)
    assert repr(one) == "<FaultedRequest watch pods 3 bytes []>"

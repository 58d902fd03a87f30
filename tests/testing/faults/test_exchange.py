"""Tests of the actions for one request under faults, without waiting or sending."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_a_reset_wins_over_a_stall_at_the_same_byte() -> None:
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
    assert one.drops_line(END_MARK)
    assert not one.drops_line(b'{"type":"BOOKMARK","object":{}}')
    assert not one.drops_line(b'{"type":"ADDED","object":{"k8s.io/initial-events-end":"true"}}')
    fault.end()
    assert not one.drops_line(END_MARK)


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

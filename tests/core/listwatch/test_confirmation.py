"""The confirmation of a restored state."""

from __future__ import annotations

import pytest

from aioinformer._core.listwatch.confirmation import CONFIRMING_WATCH_SECONDS, Confirmation
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.listwatch.reflector_requests import ListRequest, Start, WatchRequest
from aioinformer._core.listwatch.state_machine import ListWatchState


def pending(server_version: str) -> Confirmation:
    confirmation = Confirmation()
    confirmation.pending, confirmation.server_version = True, server_version
    return confirmation


@pytest.mark.parametrize(
    ("server", "reached", "confirmed"),
    [
        ("12", "12", True),
        ("12", "13", True),
        ("12", "9", False),
        ("x", "x", True),
        ("x", "9", False),
        ("", "9", False),
    ],
)
def test_the_servers_version_confirms_the_state(server: str, reached: str, confirmed: bool) -> None:
    confirmation = pending(server)
    assert confirmation.reach(reached) is confirmed
    assert confirmation.pending is not confirmed
    assert not confirmation.reach(reached), "once"


def test_only_the_usual_end_of_a_watch_confirms_the_state() -> None:
    confirmation = pending("")
    assert not confirmation.end_watch(RequestEnd(Outcome.CONNECTION_LOST))
    assert confirmation.end_watch(RequestEnd(Outcome.ENDED))
    assert not confirmation.end_watch(RequestEnd(Outcome.ENDED))


def test_a_state_that_was_not_restored_needs_no_confirmation() -> None:
    confirmation = Confirmation()
    confirmation.server_version = "12"
    assert not confirmation.reach("12")
    assert not confirmation.end_watch(RequestEnd(Outcome.ENDED))


def test_the_repr_of_a_confirmation_shows_what_is_awaited() -> None:
    assert repr(pending("12")) == "<Confirmation pending=True server=12>"
    assert repr(Confirmation()) == "<Confirmation pending=False server=unknown>"


def test_a_restored_state_is_checked_watched_shortly_and_then_as_usual() -> None:
    state = ListWatchState()
    check = state.begin(Start(resume_from="10", restored=True), now=0.0, jitter=0.5)
    assert isinstance(check, ListRequest)
    assert check.freshness_check
    end = state.finish_page("12", "")
    watch = state.advance(end.outcome, now=0.0, jitter=0.5).request
    assert isinstance(watch, WatchRequest)
    assert (watch.resource_version, watch.timeout) == ("10", CONFIRMING_WATCH_SECONDS)
    state.open_watch(watch, 0.0)
    end = state.finish_watch(float(CONFIRMING_WATCH_SECONDS))
    assert end == RequestEnd(Outcome.ENDED), "the short watch is no failure"
    assert state.confirmation.end_watch(end)
    watch = state.advance(end.outcome, now=4.0, jitter=0.5).request
    assert isinstance(watch, WatchRequest)
    assert watch.timeout > 60


def test_a_server_that_is_older_than_the_restored_state_is_read_anew() -> None:
    state = ListWatchState()
    state.begin(Start(resume_from="10", restored=True), now=0.0, jitter=0.5)
    end = state.finish_page("7", "")
    assert end.outcome is Outcome.REWOUND
    assert not state.confirmation.reach("10"), "the list is still to come"
    state.advance(end.outcome, now=0.0, jitter=0.5)
    end = state.finish_page("7", "")
    assert end.outcome is Outcome.COMPLETE
    assert state.version_went_back
    assert not state.confirmation.pending, "a whole state needs no confirmation"


def test_a_state_with_rejected_objects_is_listed_at_least_as_new() -> None:
    state = ListWatchState()
    request = state.begin(Start(not_older_than="10", restored=True), now=0.0, jitter=0.5)
    assert request == ListRequest("10", 0)
    assert not state.confirmation.pending

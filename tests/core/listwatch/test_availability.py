"""The state of a resource by the answers of discovery."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from aioinformer import Resource
from aioinformer._core.listwatch.availability import (
    ANSWER_VALIDITY,
    CONFIRMATION_INTERVAL,
    ResourceAvailability,
)
from aioinformer._core.listwatch.outcomes import Outcome

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def test_one_answer_without_the_resource_does_not_confirm_its_absence() -> None:
    absence = ResourceAvailability()

    assert absence.record(None, WIDGETS, 100.0) is Outcome.NOT_SERVED
    assert not absence.absence_confirmed


def test_two_answers_in_quick_succession_do_not_confirm_the_absence() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    absence.record(None, WIDGETS, 99.9 + CONFIRMATION_INTERVAL)

    assert not absence.absence_confirmed


def test_two_answers_some_seconds_apart_confirm_the_absence() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    absence.record(None, WIDGETS, 100.0 + CONFIRMATION_INTERVAL)

    assert absence.absence_confirmed


def test_an_answer_with_the_resource_ends_the_count() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    assert absence.record(WIDGETS, WIDGETS, 103.0) is Outcome.APPEARED
    absence.record(None, WIDGETS, 106.0)

    assert not absence.absence_confirmed
    assert absence.absent_since == 106.0


def test_a_resource_that_was_never_absent_is_served_and_has_not_appeared() -> None:
    assert ResourceAvailability().record(WIDGETS, WIDGETS, 100.0) is Outcome.SERVED


def test_short_names_that_discovery_adds_do_not_change_the_resource() -> None:
    known = replace(WIDGETS, short_names=("wd",))

    assert ResourceAvailability().record(known, WIDGETS, 100.0) is Outcome.SERVED


def test_another_version_is_a_changed_api_version() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)

    assert (
        absence.record(replace(WIDGETS, version="v2"), WIDGETS, 101.0)
        is Outcome.API_VERSION_CHANGED
    )
    assert absence.absent_since is None


def test_an_outdated_answer_does_not_confirm_the_absence() -> None:
    """After an hour of 503, the state in that hour is unknown."""
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    absence.record(None, WIDGETS, 3700.0)

    assert not absence.absence_confirmed


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.booleans()), max_size=30))
def test_the_absence_is_confirmed_only_after_an_interval_of_absence(
    answers: list[tuple[float, bool]],
) -> None:
    absence, now, absent_since = ResourceAvailability(), 0.0, None
    for pause, there in answers:
        now += pause
        absence.record(WIDGETS if there else None, WIDGETS, now)
        absent_since = None if there else now if absent_since is None else absent_since
        long = absent_since is not None and now - absent_since >= CONFIRMATION_INTERVAL
        assert absence.absence_confirmed is long


def test_the_repr_shows_the_known_state() -> None:
    absence = ResourceAvailability()
    assert repr(absence) == "<ResourceAvailability not absent>"
    absence.record(None, WIDGETS, 1.0)
    absence.record(None, WIDGETS, 31.0)
    assert repr(absence) == "<ResourceAvailability absent since 1.0 confirmed>"


def test_nothing_is_confirmed_before_the_first_answer() -> None:
    assert ResourceAvailability().absence_confirmed is False


def test_an_answer_counts_for_as_long_as_it_is_valid() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    absence.record(None, WIDGETS, 100.0 + ANSWER_VALIDITY)

    assert absence.absence_confirmed


def test_the_repr_names_only_a_confirmed_absence() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    assert repr(absence) == "<ResourceAvailability absent since 100.0>"
    absence.record(None, WIDGETS, 130.0)
    assert repr(absence) == "<ResourceAvailability absent since 100.0 confirmed>"

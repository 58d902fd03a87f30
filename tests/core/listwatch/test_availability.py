"""The state of a resource by the answers of discovery."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from aioinformer import Resource
from aioinformer._core.listwatch.availability import (
    ANSWER_VALIDITY,
    CONFIRMATION_INTERVAL,
    ResourceAvailability,
)
from aioinformer._core.listwatch.outcomes import Outcome

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def test_one_answer_without_it_is_not_enough() -> None:
    absence = ResourceAvailability()

    assert absence.record(None, WIDGETS, 100.0) is Outcome.NOT_SERVED
    assert not absence.absence_confirmed


def test_neither_are_two_in_quick_succession() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    absence.record(None, WIDGETS, 99.9 + CONFIRMATION_INTERVAL)

    assert not absence.absence_confirmed


def test_two_some_seconds_apart_are() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    absence.record(None, WIDGETS, 100.0 + CONFIRMATION_INTERVAL)

    assert absence.absence_confirmed


def test_one_that_shows_it_ends_the_count() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    assert absence.record(WIDGETS, WIDGETS, 103.0) is Outcome.APPEARED
    absence.record(None, WIDGETS, 106.0)

    assert not absence.absence_confirmed
    assert absence.absent_since == 106.0


def test_what_was_never_absent_has_not_appeared() -> None:
    assert ResourceAvailability().record(WIDGETS, WIDGETS, 100.0) is Outcome.SERVED


def test_what_discovery_adds_to_a_resource_makes_it_no_other_one() -> None:
    known = replace(WIDGETS, short_names=("wd",))

    assert ResourceAvailability().record(known, WIDGETS, 100.0) is Outcome.SERVED


def test_another_version_is_another_place() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)

    assert (
        absence.record(replace(WIDGETS, version="v2"), WIDGETS, 101.0)
        is Outcome.API_VERSION_CHANGED
    )
    assert absence.absent_since is None


def test_an_answer_of_long_ago_confirms_nothing() -> None:
    """After an hour of 503, the state in that hour is unknown."""
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    absence.record(None, WIDGETS, 3700.0)

    assert not absence.absence_confirmed


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.booleans()), max_size=30))
def test_it_is_certain_only_after_a_stretch_of_absence(answers: list[tuple[float, bool]]) -> None:
    absence, now, absent_since = ResourceAvailability(), 0.0, None
    for pause, there in answers:
        now += pause
        absence.record(WIDGETS if there else None, WIDGETS, now)
        absent_since = None if there else now if absent_since is None else absent_since
        long = absent_since is not None and now - absent_since >= CONFIRMATION_INTERVAL
        assert absence.absence_confirmed is long


def test_its_repr_says_what_is_known() -> None:
    absence = ResourceAvailability()
    assert repr(absence) == "<ResourceAvailability not absent>"
    absence.record(None, WIDGETS, 1.0)
    absence.record(None, WIDGETS, 9.0)
    assert repr(absence) == "<ResourceAvailability absent since 1.0 confirmed>"


def test_nothing_is_confirmed_before_the_first_answer() -> None:
    assert ResourceAvailability().absence_confirmed is False


def test_an_answer_counts_for_as_long_as_it_is_valid() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    absence.record(None, WIDGETS, 100.0 + ANSWER_VALIDITY)

    assert absence.absence_confirmed


def test_its_repr_names_a_confirmed_absence_only() -> None:
    absence = ResourceAvailability()
    absence.record(None, WIDGETS, 100.0)
    assert repr(absence) == "<ResourceAvailability absent since 100.0>"
    absence.record(None, WIDGETS, 110.0)
    assert repr(absence) == "<ResourceAvailability absent since 100.0 confirmed>"

"""The events of a change, and the reasons of removals."""

from __future__ import annotations

import pytest

from aioinformer._core.cache.comparison import append_change, removal_reason, without_traceback
from aioinformer._core.objects.kube_object import Added, Deleted, DeleteReason, Event, Updated
from aioinformer._core.objects.stored import ExcludedObject
from tests.core.builders import pod


@pytest.mark.parametrize(
    ("excluded", "reason"),
    [
        (ExcludedObject.of(pod("a", rv="2"), ValueError()), None),
        (ExcludedObject.of(pod("a", rv="2")), "dropped"),
        (ExcludedObject.of(pod("a", uid="another"), ValueError()), "vanished"),
        (ExcludedObject.of(pod("a", uid="another")), "vanished"),
    ],
)
def test_the_cached_object_stays_if_a_newer_version_of_it_is_rejected(
    excluded: ExcludedObject, reason: DeleteReason | None
) -> None:
    assert removal_reason(pod("a"), excluded) == reason


def test_an_object_with_another_uid_is_no_update() -> None:
    old, newer, another = pod("a"), pod("a", rv="2"), pod("a", uid="another")
    events: list[Event] = []
    append_change(old, newer, events)
    append_change(newer, another, events)

    assert events == [Updated(old, newer), Deleted(newer, "vanished"), Added(another)]


def test_an_error_without_its_tracebacks_keeps_nothing_alive() -> None:
    def fail() -> None:
        try:
            raise ValueError
        except ValueError as error:
            raise TypeError from error

    with pytest.raises(TypeError) as caught:
        fail()
    error = without_traceback(caught.value)

    assert error.__traceback__ is None
    assert error.__cause__ is not None
    assert error.__cause__.__traceback__ is None

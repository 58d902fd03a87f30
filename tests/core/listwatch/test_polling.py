"""The state of a reflector whose watches the server may refuse."""

from __future__ import annotations

import pytest

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.polling import MAX_POLLS_PER_WATCH, Polling


def lists_before_a_watch(polling: Polling) -> int:
    """Return the number of lists up to the next try of a watch."""
    lists = 1
    while not polling.finish_list():
        lists += 1
    return lists


def test_a_new_reflector_watches_after_each_list() -> None:
    polling = Polling()

    assert (polling.active, polling.listing) == (False, False)
    assert lists_before_a_watch(polling) == 1


def test_a_rejected_watch_counts_only_after_a_successful_list() -> None:
    polling = Polling()
    assert polling.is_refusal(Outcome.ACCESS_DENIED) is False

    polling.finish_list()
    assert polling.is_refusal(Outcome.ACCESS_DENIED)
    assert not polling.is_refusal(Outcome.NOT_SERVED)


def test_the_lists_between_two_tries_of_a_watch_double_up_to_a_maximum() -> None:
    polling, lists = Polling(), list[int]()
    for _ in range(6):
        polling.start()
        lists.append(lists_before_a_watch(polling))

    assert lists == [1, 2, 4, 8, 8, 8]
    assert lists[-1] == MAX_POLLS_PER_WATCH


def test_an_accepted_watch_ends_the_polling_and_its_history() -> None:
    polling = Polling()
    polling.finish_list()
    for _ in range(3):
        polling.start()
    polling.listing = True

    polling.open_watch()

    assert (polling.active, polling.listing) == (False, False)
    assert polling.is_refusal(Outcome.ACCESS_DENIED) is False
    polling.start()
    assert lists_before_a_watch(polling) == 1


def test_a_list_that_was_read_ends_the_need_for_a_list() -> None:
    polling = Polling()
    polling.listing = True
    polling.finish_list()

    assert polling.listing is False


@pytest.mark.parametrize(("jitter", "seconds"), [(0.0, 90.0), (0.5, 100.0), (1.0, 110.0)])
def test_the_interval_is_lengthened_or_shortened_by_a_tenth(jitter: float, seconds: float) -> None:
    assert Polling(100.0).delay(jitter) == pytest.approx(seconds)


def test_the_repr_shows_the_interval_and_the_lists_so_far() -> None:
    polling = Polling()
    assert repr(polling) == "<Polling every 60 s idle>"
    polling.start()
    polling.start()
    polling.finish_list()
    assert repr(polling) == "<Polling every 60 s active, 1 of 2 lists>"

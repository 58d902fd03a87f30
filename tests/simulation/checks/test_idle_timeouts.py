"""The time that an informer may wait in silence, on requests that are made up."""

from __future__ import annotations

import pytest

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.checks.idle_timeouts import judge_idle_timeouts
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import InformerSpec, Plan
from tests.simulation.records import Ending, History, Request, Transition


def silent_at_the_end(*, high_mark: int, bookmark_interval: float | None) -> History:
    """Return a watch with a bookmark, and one that has been silent for 200 s when all ends."""
    spec = InformerSpec(name="web", high_mark=high_mark)
    made = History(Plan(seed=0, informers=(spec,), steps=()), ending=Ending(4, 300.0))
    first, second = (
        Request(
            2 * number + 1,
            100.0 * number,
            "web",
            "watch",
            "",
            length=500.0,
            answered=100.0 * number,
            last_read=100.0 * number,
            awaited=number > 0,
        )
        for number in range(2)
    )
    first.ended, first.bookmarks = 100.0, [60.0]
    made.of(Request).extend([first, second])
    row = Phase.WATCH, Outcome.ENDED
    made.of(Transition).append(
        Transition(2, 100.0, "web", *row, 0.0, first, "1", bookmark_interval)
    )
    return made


@pytest.mark.parametrize(
    ("high_mark", "bookmark_interval"),
    [
        pytest.param(8, 60.0, id="the informer knows the interval"),
        pytest.param(10_000, None, id="its queue was never full, so that it must know it"),
    ],
)
def test_an_open_watch_that_is_idle_for_too_long_is_a_violation(
    high_mark: int, bookmark_interval: float | None
) -> None:
    history = silent_at_the_end(high_mark=high_mark, bookmark_interval=bookmark_interval)
    with pytest.raises(Violation, match=r"silence since 100\.000 s was noticed after 200\.000 s"):
        judge_idle_timeouts(history)


def test_an_informer_that_has_read_no_bookmark_in_time_may_wait() -> None:
    judge_idle_timeouts(silent_at_the_end(high_mark=8, bookmark_interval=None))

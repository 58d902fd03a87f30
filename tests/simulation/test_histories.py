"""The guarantees in hours of faults: 3 histories here, 1,000 under the mark ``simulation``.

A failure names the seed, the few steps that are needed, and the command that repeats the history.
Each row of the reflector's table is taken by at least one history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

import pytest

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.checks.violation import Violation
from tests.simulation.generator import draw
from tests.simulation.plan import (
    Fault,
    InformerSpec,
    Join,
    ListenerSpec,
    Plan,
    Put,
    ServerStep,
    Step,
)
from tests.simulation.runner import ROWS, Row, explain, judged, rows_taken, show_rows

BLOCK = 10
"""Histories in one test."""
TRIES = 100
"""Histories that may be tried to make a failure smaller, within the timeout of a test."""
FEW = (2, 9, 21, 22, 59, 79, 119)
"""Histories that together take the rows of ``OFTEN``. After a change of the generator or of the
library others may be needed, which ``EVEN_MORE`` has."""
EVEN_MORE = range(60)
MANY = range(1000, 2000)

QUIET_SECONDS = 2000.0
"""The time without bookmarks in the history that is made for a silent watch: all of it."""

RARE = (Outcome.SERVER_ERROR, Outcome.METHOD_NOT_ALLOWED, Outcome.SILENT_WATCH)
"""Ends of a watch that need a rare fault at the moment at which a watch is opened, and the end of a
watch that needs a quiet server without bookmarks."""

MADE = frozenset({(Phase.WATCH, Outcome.SILENT_WATCH)})
"""The row that no random history takes: faults and changes come more often than once in the minutes
of a silent watch. A history that is made for the row takes it."""

ELSEWHERE = frozenset({(Phase.WATCHLIST, Outcome.WATCHLIST_REFUSED)})
"""The row of a server that answers lists and refuses three WatchLists one after the other, which no
random history does. Histories of ``tests/promises/test_outages.py`` take it."""

OFTEN = {
    *(
        (Phase.WATCHLIST, each)
        for each in (Outcome.VERSION_TOO_LARGE, Outcome.UNREACHABLE, Outcome.CONNECTION_LOST)
    ),
    *(
        (Phase.WATCHLIST, each)
        for each in (Outcome.PROTOCOL_ERROR, Outcome.WATCHLIST_UNSUPPORTED, Outcome.BAD_REQUEST)
    ),
    *(
        (Phase.LIST, each)
        for each in (Outcome.EXPIRED, Outcome.VERSION_TOO_LARGE, Outcome.PROTOCOL_ERROR)
    ),
    *((Phase.LIST, each) for each in (Outcome.MORE, Outcome.COMPLETE, Outcome.BAD_REQUEST)),
    *((Phase.PAGE, each) for each in (Outcome.MORE, Outcome.COMPLETE)),
    *(row for row in ROWS if row[0] is Phase.WATCH and row[1] not in RARE),
    *(
        (Phase.FRESHNESS_CHECK, each)
        for each in (Outcome.COMPLETE, Outcome.REWOUND, Outcome.UNREACHABLE)
    ),
    *(
        (Phase.DISCOVERY, each)
        for each in (Outcome.SERVED, Outcome.APPEARED, Outcome.API_VERSION_CHANGED)
    ),
    (Phase.DISCOVERY, Outcome.NOT_SERVED),
}
"""The rows that a few histories are certain to take."""


@cache
def examined(seed: int) -> tuple[Violation | None, Counter[Row]]:
    """Return the violation in the history of a seed, and the rows that the history took."""
    violation, history = judged(draw(seed))
    return violation, rows_taken([history] if history else [])


def hold_in(seeds: Iterable[int]) -> None:
    """Fail with the report of the first history in which a promise was broken."""
    for seed in seeds:
        violation, _ = examined(seed)
        if violation is not None:
            pytest.fail(explain(draw(seed), violation, budget=TRIES), pytrace=False)


def rows_of(seeds: Iterable[int]) -> Counter[Row]:
    """Count how often these histories took each row."""
    return sum((examined(seed)[1] for seed in seeds), Counter[Row]())


@pytest.mark.parametrize(
    "seed",
    [*FEW[:3], *(pytest.param(seed, marks=pytest.mark.simulation) for seed in FEW[3:])],
)
def test_the_promises_hold_in_a_few_histories(seed: int) -> None:
    hold_in([seed])


@pytest.mark.simulation
def test_the_frequent_failures_occur_in_a_few_histories() -> None:
    taken = Counter[Row]()
    for seed in (*FEW, *EVEN_MORE):
        taken += examined(seed)[1]
        if taken.keys() >= OFTEN:
            return
    pytest.fail(show_rows(taken))


@pytest.mark.simulation
@pytest.mark.xdist_group("many histories")
@pytest.mark.parametrize("first", MANY[::BLOCK])
def test_the_promises_hold_in_many_more_histories_from(first: int) -> None:
    hold_in(range(first, first + BLOCK))


@pytest.mark.simulation
@pytest.mark.xdist_group("many histories")  # the process that has examined them
@pytest.mark.timeout(1800)  # alone, it has to live through all of them
def test_each_row_of_the_error_table_is_taken_in_many_histories() -> None:
    taken = rows_of(MANY)
    assert taken.keys() | MADE | ELSEWHERE == ROWS, show_rows(taken)


def test_a_restore_of_a_quiet_server_without_bookmarks_is_noticed() -> None:
    """The informer lists, and so has no end mark, which would be a bookmark."""
    steps: tuple[Step, ...] = (
        Fault(at=-1.0, kind="no_bookmarks", lasting=QUIET_SECONDS),
        *(Put(-1.0, "web", f"obj-{number}", "shop", "node-1", number) for number in range(3)),
        Join(0.0, ListenerSpec(name="all", informer="everything")),
        ServerStep(10.0, "back_up"),
        Put(20.0, "web", "obj-0", "shop", "node-2", 20),
        ServerStep(30.0, "restore"),
    )
    informer = InformerSpec(name="everything", watch_list=False)
    plan = Plan(seed=1, informers=(informer,), steps=steps)
    violation, history = judged(plan)
    assert violation is None, violation
    assert history is not None
    noticed = (Phase.FRESHNESS_CHECK, Outcome.REWOUND)
    assert rows_taken([history]).keys() >= {*MADE, noticed}

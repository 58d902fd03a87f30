"""The server's states of a selection, computed from its log of writes, and its rewinds.

Of a rewind, an informer can't know everything; some states are not judged therefore.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from aioinformer import ObjectKey
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.checks.oracle import Oracle, Rewinds
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import DROPPED, SHIFT, InformerSpec, Plan
from tests.simulation.records import (
    BackupMade,
    History,
    ProblemReported,
    Request,
    Restored,
    Transition,
    Version,
    Write,
)

A, B = ObjectKey("web", "a"), ObjectKey("db", "b")


def write(
    version: int, key: ObjectKey, app: str, *, uid: str = "1", deleted: bool = False
) -> Write:
    return Write(version * 10, float(version), version, key, uid, app, "node", deleted)


WRITES = [
    write(1, A, "shop"),
    write(2, B, "shop"),
    write(3, A, "blog"),
    write(4, A, "shop"),
    write(5, B, "", deleted=True),
    write(6, A, "", deleted=True),
    write(7, A, "shop", uid="2"),
]


def states(oracle: Oracle, *versions: int) -> list[dict[ObjectKey, Version]]:
    """On the last timeline."""
    cursor = oracle.cursors(until=10**6)[-1]
    return [dict(cursor.to(version)) for version in versions]


def test_everything_is_selected_without_a_selector() -> None:
    oracle = Oracle(WRITES, InformerSpec(name="all"))
    assert states(oracle, 0, 2, 3, 5, 7) == [
        {},
        {A: Version("1", 1), B: Version("1", 2)},
        {A: Version("1", 3), B: Version("1", 2)},
        {A: Version("1", 4)},
        {A: Version("2", 7)},
    ]
    assert oracle.final == {A: Version("2", 7)}
    assert repr(oracle) == "<Oracle timelines=1 final=1>"


def test_an_object_that_no_longer_matches_a_selector_is_removed_and_may_return() -> None:
    oracle = Oracle(WRITES, InformerSpec(name="shop", app="shop"))
    assert states(oracle, 2, 3, 4) == [
        {A: Version("1", 1), B: Version("1", 2)},
        {B: Version("1", 2)},
        {A: Version("1", 4), B: Version("1", 2)},
    ]
    assert (A, Version("1", 3)) not in oracle.stored
    assert oracle.left(A, Version("1", 1))
    assert oracle.left(A, Version("1", 4))
    assert not oracle.left(A, Version("1", 6)), "what its DELETED shows"
    assert not oracle.left(A, Version("1", 4), before=60)
    assert not oracle.left(A, Version("2", 7))


def test_the_oracle_of_a_namespace_contains_only_its_objects() -> None:
    oracle = Oracle(WRITES, InformerSpec(name="db", namespace="db"))
    assert states(oracle, 1, 2, 4, 7) == [{}, {B: Version("1", 2)}, {B: Version("1", 2)}, {}]


def test_an_object_that_a_transform_drops_is_absent_and_the_others_are_transformed() -> None:
    on = [replace(each, node=DROPPED if each.app == "blog" else "node") for each in WRITES]
    oracle = Oracle(on, InformerSpec(name="cut", transform="cuts"))
    assert states(oracle, 1, 3, 4) == [
        {A: Version("1", 1, SHIFT)},
        {B: Version("1", 2, SHIFT)},
        {A: Version("1", 4, SHIFT), B: Version("1", 2, SHIFT)},
    ]


BACKUP = BackupMade(45, 4.5, 4)
REWOUND = [
    *WRITES,
    Write(100, 10.0, 5, A, "1", "shop", "node", deleted=False, value=9),
    Write(110, 11.0, 6, B, "", "", "", deleted=True),
]
RESTORED = [Restored(95, 9.5, BACKUP, 7)]


def test_after_a_rewind_there_are_two_states_of_a_version() -> None:
    oracle = Oracle(REWOUND, InformerSpec(name="all"), RESTORED)
    before, after = oracle.cursors(until=1000)
    assert before.to(5) == {A: Version("1", 4)}
    assert after.to(4) == {A: Version("1", 4), B: Version("1", 2)}
    assert after.to(5) == {A: Version("1", 5, 9), B: Version("1", 2)}
    assert oracle.final == {A: Version("1", 5, 9)}
    assert after.backup_version == 4
    assert len(oracle.cursors(until=94)) == 1


def test_objects_that_a_backup_lacks_are_removed_at_the_rewind() -> None:
    oracle = Oracle(REWOUND, InformerSpec(name="all"), RESTORED)
    assert oracle.left(A, Version("2", 7))
    assert not oracle.left(A, Version("2", 7), before=95)
    assert oracle.left(B, Version("1", 2), before=60), "it was deleted before"
    assert not oracle.left(A, Version("1", 5, 9))
    assert oracle.made(A, Version("1", 5, 9)) == 100


# -- rewinds, as an informer can know them ------------------------------------------------------

BACKED_UP, RESTORE = 100, 1000
"""The moments of the backup at version 10 and of the restoration at version 50."""


def history(
    *,
    known: int,
    announced: int | None = None,
    passed: int | None = None,
    bookmark_interval: float | None,
) -> History:
    """Of an informer that knew a version when the server went back.

    Args:
        known: which one.
        announced: when it said so.
        passed: when the server gave out that version once more.
        bookmark_interval: how far apart it took bookmarks to be.
    """
    made = History(Plan(seed=0, informers=(), steps=()))
    backup = BackupMade(BACKED_UP, 1.0, 10)
    made.of(Restored).append(Restored(RESTORE, 10.0, backup, 50))
    made.of(Request).extend(
        Request(order, order / 100, "web", "watch", "") for order in (500, RESTORE + 10)
    )
    row = Phase.WATCH, Outcome.ENDED
    asked = made.of(Request)[0]
    made.of(Transition).append(
        Transition(RESTORE + 5, 10.0, "web", *row, 0.0, asked, str(known), bookmark_interval)
    )
    if announced is not None:
        made.of(ProblemReported).append(
            ProblemReported(announced, 20.0, "web", "rewind", "rewound", "")
        )
    for version in range(11, known + 1):
        order = (passed or RESTORE) - known + version
        if passed is not None:
            made.of(Write).append(
                Write(
                    order, 15.0, version, ObjectKey("web", "a"), "1", "shop", "node", deleted=False
                )
            )
    return made


@pytest.mark.parametrize(
    ("known", "announced", "passed", "bookmark_interval", "lost"),
    [
        pytest.param(40, 1500, None, 60.0, inf, id="it was announced"),
        pytest.param(40, 1500, 2000, 60.0, inf, id="in time"),
        pytest.param(40, 2000, 1500, 60.0, 1500, id="too late: its version was given out again"),
        pytest.param(40, None, 1500, 60.0, 1500, id="never: its version was given out again"),
        pytest.param(40, None, None, 60.0, inf, id="never, without any reason"),
        pytest.param(40, None, None, None, RESTORE, id="never: it has not seen a bookmark"),
        pytest.param(10, None, None, 60.0, inf, id="it knew nothing of what was undone"),
    ],
)
def test_an_informer_is_not_judged_after_a_rewind_that_it_could_not_detect(
    known: int,
    announced: int | None,
    passed: int | None,
    bookmark_interval: float | None,
    lost: float,
) -> None:
    made = history(
        known=known, announced=announced, passed=passed, bookmark_interval=bookmark_interval
    )
    assert Rewinds(made, "web").lost == lost


def test_a_state_is_undone_if_it_was_made_before_the_rewind_and_checked_after_its_report() -> None:
    rewinds = Rewinds(history(known=40, announced=1500, bookmark_interval=60.0), "web")
    assert rewinds.undone(900, 1600)
    assert not rewinds.undone(900, 1400), "the rewind was not announced yet"
    assert not rewinds.undone(1100, 1600), "it was made afterwards"
    assert (rewinds.by(1400), rewinds.by(1600)) == (0, 1)
    assert repr(rewinds) == "<Rewinds of web announced=1 lost=inf>"


def test_an_announcement_needs_a_rewind() -> None:
    Rewinds(history(known=40, announced=1500, bookmark_interval=60.0), "web").judge()
    with pytest.raises(Violation, match="a rewind is announced that did not happen"):
        Rewinds(history(known=40, announced=900, bookmark_interval=60.0), "web").judge()

"""The knowledge of an informer of a restored server, and the states that are not judged."""

from __future__ import annotations

from math import inf

import pytest

from aioinformer import ObjectKey
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.checks.oracle import Rewinds
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import Plan
from tests.simulation.records import (
    BackupMade,
    History,
    ProblemReported,
    Request,
    Restored,
    Transition,
    Write,
)

BACKUP, RESTORE = 100, 1000
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
    backup = BackupMade(BACKUP, 1.0, 10)
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
def test_what_cant_be_known_is_not_judged(
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


def test_what_was_undone_is_what_was_made_before_and_announced_after() -> None:
    rewinds = Rewinds(history(known=40, announced=1500, bookmark_interval=60.0), "web")
    assert rewinds.undone(900, 1600)
    assert not rewinds.undone(900, 1400), "nobody has said so yet"
    assert not rewinds.undone(1100, 1600), "it was made afterwards"
    assert (rewinds.by(1400), rewinds.by(1600)) == (0, 1)
    assert repr(rewinds) == "<Rewinds of web announced=1 lost=inf>"


def test_an_announcement_needs_a_rewind() -> None:
    Rewinds(history(known=40, announced=1500, bookmark_interval=60.0), "web").judge()
    with pytest.raises(Violation, match="a rewind is announced that did not happen"):
        Rewinds(history(known=40, announced=900, bookmark_interval=60.0), "web").judge()

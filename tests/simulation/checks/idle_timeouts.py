"""Checks of the time that an informer waits for bytes that will not come (guarantee 9).

The network records when a client was last ready for more bytes, and if it got none until the end of
the request. The informer's knowledge of the server's bookmarks is computed anew from those that
arrived.
"""

from __future__ import annotations

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import Phase
from aioinformer.testing.server.source import TIMEOUTS
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import InformerSpec
from tests.simulation.records import NEVER, History, Request, Transition

NOTICED_WITHIN = 80.0
"""Seconds within which silence is noticed if bookmarks are regular."""
REGULAR = 62.0
"""Seconds: bookmarks that are no further apart are regular. A server sends one a minute."""
STEADY = 8
"""Regular bookmarks in a row after which an irregular one, however late, no longer counts."""
REPEATED = 5.0
"""Seconds: a bookmark that follows another one sooner is that one again, or one of those before the
end of a watch. It says nothing about the interval."""
INITIAL_LIST_SILENCE = 32.0
"""The most seconds of silence in an initial state, with some to notice it."""
INITIAL_LIST_LIMIT = 332.0
"""Seconds that an initial state may take: five minutes, and the most seconds of silence."""
MINIMUM_IDLE_TIMEOUT = 15.0
"""Seconds of silence after which no watch may be replaced yet."""
ROOMY = 1000
"""Entries: a queue of so many is never full in a history."""
DRIFT = 1.0
"""Seconds by which times in a history may be off, in favour of the informer."""


def judge_idle_timeouts(history: History) -> None:
    """Check that silence is noticed in time, and that no live connection is replaced.

    Raises:
        Violation: one of these did not hold.
    """
    for spec in history.readers():
        last: Transition | None = None
        transitions = {
            id(each.request): each for each in history.of(Transition) if each.informer == spec.name
        }
        regularity = _Regularity()
        for request in history.of_informer(Request, spec.name):
            transition = transitions.get(id(request))
            # A watch that is open at the end has no transition: the last one shows what is known.
            last = transition or last
            if request.kind in ("watch", "watchlist") and request.answered < NEVER:
                regularity.add(request)
                regular = regularity.is_regular and not _reads_late(spec, last)
                _judge_end(request, transition, history, regular=regular)
            if transition is not None and transition.outcome is Outcome.IDLE_TIMEOUT:
                regularity.stop()


def _reads_late(spec: InformerSpec, last: Transition | None) -> bool:
    """Return True if a full queue kept the informer from reading, by its last transition.

    The informer can't know then when bookmarks arrived, and has counted none.
    """
    return spec.high_mark < ROOMY and last is not None and last.bookmark_interval is None


class _Regularity:
    """The regularity of the bookmarks that have arrived at one informer."""

    def __init__(self) -> None:
        self._owed: int | None = None

    def add(self, request: Request) -> None:
        """Count the bookmarks of one watch."""
        before = request.answered
        if request.initial_list_complete and self._owed is None:
            self._owed = 0  # the end mark of a WatchList is a bookmark
        for number, at in enumerate(request.bookmarks):
            if at - before > REGULAR:
                self._owed = STEADY
            elif self._owed is None:
                self._owed = 0
            elif number and at - before >= REPEATED:  # the time of the first one says nothing
                self._owed = max(0, self._owed - 1)
            before = at

    def stop(self) -> None:
        """Start again after a watch was replaced for its silence."""
        self._owed = STEADY

    @property
    def is_regular(self) -> bool:
        """True if bookmarks are regular."""
        return self._owed == 0


def _judge_end(
    request: Request, transition: Transition | None, history: History, *, regular: bool
) -> None:
    ended = request.ended if request.ended is not None else history.ending.time
    waited, streaming = (
        ended - request.last_read,
        transition is not None and transition.phase is Phase.WATCHLIST,
    )
    what = ""
    if (
        transition is not None
        and transition.outcome is Outcome.IDLE_TIMEOUT
        and waited < MINIMUM_IDLE_TIMEOUT - DRIFT
    ):
        what = f"a watch was replaced {waited:.3f} s after bytes arrived"
    elif streaming and ended - request.answered > INITIAL_LIST_LIMIT:
        what = f"{ended - request.answered:.0f} s passed in waiting for the end of an initial state"
    elif (streaming or request.awaited) and ended > _until(
        request, streaming=streaming, regular=regular
    ):
        what = f"silence since {request.last_read:.3f} s was noticed after {waited:.3f} s"
    if what:
        raise Violation(9, what, request, *([transition] if transition else []), time=ended)


def _until(request: Request, *, streaming: bool, regular: bool) -> float:
    """Return the time until which the informer may wait in silence."""
    if streaming:
        return request.last_read + INITIAL_LIST_SILENCE
    if regular:
        return request.last_read + NOTICED_WITHIN
    return request.answered + request.length + TIMEOUTS.grace + DRIFT

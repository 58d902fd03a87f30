"""How long an informer waits for bytes that will not come: promise 9, as far as it is about time.

The network writes down when a connection fell silent and when its client was last ready for more;
what the informer knew of the server's bookmarks is worked out anew from those that came through.
"""

from __future__ import annotations

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.checks.violation import Violation
from tests.simulation.network import GRACE
from tests.simulation.plan import InformerSpec
from tests.simulation.records import NEVER, History, Request, Transition

NOTICED_WITHIN = 80.0
"""Seconds within which silence is noticed where bookmarks flow."""
REGULAR = 62.0
"""Seconds: bookmarks that are no further apart flow. A server sends one a minute."""
STEADY = 8
"""Regular bookmarks in a row that make up for an irregular one, however late that was."""
INITIAL_LIST_SILENCE = 32.0
"""Seconds of silence in an initial state that are borne at most, and some to notice it."""
INITIAL_LIST_LIMIT = 332.0
"""Seconds that an initial state may take: five minutes, and once more what silence is borne."""
MINIMUM_IDLE_TIMEOUT = 15.0
"""Seconds of silence for which no watch is given up."""
ROOMY = 1000
"""Entries: a queue of so many is never full in a history."""
DRIFT = 1.0
"""Seconds by which times in a history may be off, in favour of the accused."""


def judge_idle_timeouts(history: History) -> None:
    """Silence is noticed in time, and nothing is given up that was alive.

    Raises:
        Violation: one of them wasn't.
    """
    for spec in history.plan.informers:
        asked = [each for each in history.of(Request) if each.informer == spec.name]
        transitions = {
            id(each.request): each for each in history.of(Transition) if each.informer == spec.name
        }
        flow = _Flow()
        for request in asked:
            if request.kind in ("watch", "watchlist") and request.answered < NEVER:
                flow.add(request)
                flows = flow.flows and not _reads_late(spec, transitions.get(id(request)))
                _judge_end(request, transitions.get(id(request)), history, flows=flows)
            if (
                found := transitions.get(id(request))
            ) is not None and found.outcome is Outcome.IDLE_TIMEOUT:
                flow.stop()


def _reads_late(spec: InformerSpec, transition: Transition | None) -> bool:
    """Whether its full queue has kept it from reading, so that it can't tell when bookmarks came:
    it has counted none.
    """
    return (
        spec.high_mark < ROOMY and transition is not None and transition.bookmark_interval is None
    )


class _Flow:
    """Whether bookmarks flow, as far as they have come through to one informer."""

    def __init__(self) -> None:
        self._owed: int | None = None

    def add(self, request: Request) -> None:
        """What one watch has brought."""
        before = request.answered
        for number, at in enumerate(request.bookmarks):
            if at - before > REGULAR:
                self._owed = STEADY
            elif self._owed is None:
                self._owed = 0
            elif number:  # how soon the first one comes says nothing
                self._owed = max(0, self._owed - 1)
            before = at

    def stop(self) -> None:
        """A watch was given up."""
        if self._owed is not None:
            self._owed = STEADY

    @property
    def flows(self) -> bool:
        """Whether it does."""
        return self._owed == 0


def _judge_end(
    request: Request, transition: Transition | None, history: History, *, flows: bool
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
        what = f"a watch was given up {waited:.3f} s after something came"
    elif streaming and ended - request.answered > INITIAL_LIST_LIMIT:
        what = f"{ended - request.answered:.0f} s were waited for the end of an initial state"
    elif (streaming or request.silent_since is not None) and ended > _until(
        request, streaming=streaming, flows=flows
    ):
        what = f"silence since {request.last_read:.3f} s was noticed after {waited:.3f} s"
    if what:
        raise Violation(
            9, what, time=ended, evidence=[request, *([transition] if transition else [])]
        )


def _until(request: Request, *, streaming: bool, flows: bool) -> float:
    """Until when silence may be borne."""
    if streaming:
        return request.last_read + INITIAL_LIST_SILENCE
    if flows:
        return request.last_read + NOTICED_WITHIN
    return request.answered + request.length + GRACE + DRIFT

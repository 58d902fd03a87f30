"""What one informer can know of a server that went back to a backup, and what it can't.

It is promised that this is noticed and announced, and that from then on everything holds again.
There are two things that no client can notice. A server that has given out its new versions up to
the one that the informer knows, before the informer could ask: every answer looks like progress
then. And silence, where the informer has never seen a bookmark: nothing says then that silence
means something. What follows one of these is not judged.
"""

from __future__ import annotations

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.records import NEVER, Restored, Taken
from aioinformer.testing.simulation.violation import Violation

__all__ = ["Rewinds"]


class Rewinds:
    """One informer's part in them."""

    def __init__(self, history: History, informer: str) -> None:
        """Find out what it announced, and what it could not know."""
        self.announced = [
            each.order
            for each in history.troubles
            if each.informer == informer and each.phase == "rewind"
        ]
        """When."""
        self.moved = [
            each.order
            for each in history.troubles
            if each.informer == informer and each.cause == "api_version_changed"
        ]
        """When the resource was found in another version: then all objects are told once more."""
        self._history = history
        self._informer = informer
        self._taken = [each for each in history.taken if each.informer == informer]
        self.lost = min((self._lost(each) for each in history.restores), default=NEVER)
        """From when on its state is not judged: the number of a moment, or ``inf``."""

    def by(self, order: int) -> int:
        """How often versions may have come again before a moment."""
        return sum(1 for each in (*self.announced, *self.moved) if each < order)

    def undone(self, made: int, order: int) -> bool:
        """Whether what was made at one moment had been undone, and announced so, at another."""
        restores = (each.order for each in self._history.restores if each.order > made)
        return any(since < said < order for since in restores for said in self.announced)

    def gone(self, order: int) -> bool:
        """Whether discovery had said, before a moment, that the resource isn't served."""
        looked = (each for each in self._taken if each.outcome is Outcome.NOT_SERVED)
        return any(each.order < order for each in looked)

    def judge(self) -> None:
        """Whether what was announced had happened.

        Raises:
            Violation: it had not.
        """
        for number, order in enumerate(self.announced, 1):
            if number > sum(1 for each in self._history.restores if each.order < order):
                raise Violation(10, "a rewind is announced that wasn't there", time=0.0)

    # -- what can't be known ------------------------------------------------------------------

    def _lost(self, restored: Restored) -> float:
        """When it was too late to notice; ``inf`` if it was not."""
        known = self._known_at(restored)
        if known <= restored.kept.version:
            return NEVER  # it had seen nothing of what was undone
        said = min((each for each in self.announced if each > restored.order), default=NEVER)
        again = min(
            (each.order for each in self._history.restores if each.order > restored.order),
            default=NEVER,
        )
        passed = min(
            (
                each.order
                for each in self._history.writes
                if restored.order < each.order < again and each.version >= known
            ),
            default=NEVER,
        )
        if said < NEVER or passed < NEVER:
            return NEVER if said < passed else passed
        blind = all(each.cadence is None for each in self._taken)
        return restored.order if blind else NEVER

    def _known_at(self, restored: Restored) -> int:
        """The last version that it had when it asked for the first time after that."""
        asked = min(
            (
                each.order
                for each in self._history.requests
                if each.informer == self._informer and each.order > restored.order
            ),
            default=NEVER,
        )
        before: list[Taken] = [each for each in self._taken if each.order < asked]
        return int(before[-1].version or 0) if before else 0

    def __repr__(self) -> str:
        return f"<Rewinds of {self._informer} announced={len(self.announced)} lost={self.lost}>"

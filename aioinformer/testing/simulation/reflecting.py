"""A reflector that writes down which rows of its table it takes.

The decisions are the library's own. ``make_cursor`` and ``make_reflector`` of an observed informer
are where a subclass with a planted bug goes in.
"""

from __future__ import annotations

from collections.abc import Callable

from aioinformer._core.codec.shape import Converter
from aioinformer._core.instrumentation import NoMetrics
from aioinformer._core.listwatch.backoff import Backoff
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.state_machine import ListWatchState, ScheduledRequest
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.plan import InformerSpec
from aioinformer.testing.simulation.records import Taken

__all__ = ["CountedFailures", "ObservedCursor", "ObservedReflector"]


class ObservedCursor(ListWatchState):
    """A cursor that writes down which rows of its table are looked up."""

    def __init__(
        self, spec: InformerSpec, history: History, *, backoff: Backoff | None = None
    ) -> None:
        """Make the cursor of an informer of ``spec``."""
        super().__init__(
            backoff=backoff, page_size=spec.page_size, watch_list=spec.watch_list, discovery=True
        )
        self._name = spec.name
        self._history = history

    def advance(
        self, outcome: Outcome, *, now: float, jitter: float, retry_after: float | None = None
    ) -> ScheduledRequest:
        """The request under way ended so; what comes next."""
        phase, known, cadence = self.phase, self.resource_version, self.profile.bookmark_interval
        step = super().advance(outcome, now=now, jitter=jitter, retry_after=retry_after)
        history = self._history
        asked = next(each for each in reversed(history.requests) if each.informer == self._name)
        order, time = history.stamp()
        history.taken.append(
            Taken(order, time, self._name, phase, outcome, step.delay, asked, known, cadence)
        )
        return step


class ObservedReflector(Reflector):
    """A reflector with such a cursor."""

    def __init__(
        self,
        source: ListerWatcher,
        queue: DeltaQueue,
        cursor: ObservedCursor,
        *,
        known: Callable[[KubeObject], KubeObject],
        reports: InformerReporter,
        liveness: LivenessPolicy | None = None,
        keep: Converter | None = None,
    ) -> None:
        """Make a reflector that goes where ``cursor`` says."""
        super().__init__(source, queue, known=known, reports=reports, liveness=liveness, keep=keep)
        self._state = cursor


class CountedFailures(NoMetrics):
    """Counts the failures that metrics are told of."""

    def __init__(self, history: History) -> None:
        """Count them in ``history``."""
        self._history = history

    def failed(self, informer: str, phase: str, error: str) -> None:
        """One more."""
        self._history.counted[informer, phase, error] += 1

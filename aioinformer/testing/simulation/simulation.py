"""Run a program through seeded histories of faults, and make a failing history small.

Each seed is one history: a new ``Cluster``, a schedule of faults, and an order of callbacks. If the
program raises, the runner repeats the history with fewer and fewer faults, as long as the same type
of exception is raised, and reports the faults that are needed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, TypeAlias, cast

from aioinformer._core.quantities import quantity
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.server_features import Features
from aioinformer.testing.faults.faults import Fault
from aioinformer.testing.server.source import ClusterSource
from aioinformer.testing.simulation.loop import Stuck, run
from aioinformer.testing.simulation.schedule import (
    FAULT_KINDS,
    FaultKind,
    ScheduledFault,
    draw_schedule,
)
from aioinformer.testing.simulation.shrink import shrink

TRACE_LINES = 30
"""Lines of the trace in a report: what happened last is what explains a failure."""


@dataclass(frozen=True, slots=True)
class _Settings:
    duration: float = 300.0
    settle: float = 120.0
    faults: int = 10
    kinds: tuple[FaultKind, ...] = FAULT_KINDS
    limit: float = 86_400.0
    cost: float = 0.0

    def __str__(self) -> str:
        """Return the keyword arguments that differ from the defaults."""
        changed = (each for each in fields(self) if getattr(self, each.name) != each.default)
        return "".join(f", {each.name}={getattr(self, each.name)!r}" for each in changed)


class Simulation:
    """One history, as its program sees it."""

    def __init__(self, seed: int, schedule: Sequence[ScheduledFault], settings: _Settings) -> None:
        """Make the history of a seed. There must be a running loop."""
        # The seed also decides if the server has WatchLists, and how soon it forgets old versions.
        traits = Random(f"{seed} cluster")
        self.seed = seed
        self.random = Random(f"{seed} program")
        """For the choices of the program, such as a workload: the same ones for the same seed."""
        self.cluster = Cluster(
            seed=seed,
            window=traits.choice((100, 10_000)),
            features=Features(watch_list=traits.random() < 0.5),
        )
        """The API server's storage. Faults don't concern what is written here directly."""
        self.source = ClusterSource(self.cluster)
        """For ``SharedInformerFactory(source)`` and ``source.api(...)``, with the faults."""
        self.trace: list[str] = []
        """The faults, the warnings that aioinformer logged, and the notes of the program."""
        self.unhandled: list[BaseException] = []
        """The exceptions that the event loop's exception handler was called with."""
        self._loop = asyncio.get_running_loop()
        self._settled_at = self._loop.time() + settings.duration + settings.settle
        self._loop.set_exception_handler(lambda _, context: self._note_unhandled(context))
        for fault in schedule:
            self._loop.call_at(self._loop.time() + fault.at, self._begin, fault)

    async def settled(self) -> None:
        """Wait until all faults have ended and ``settle`` seconds have passed since."""
        await asyncio.sleep(self._settled_at - self._loop.time())

    def note(self, text: str) -> None:
        """Add a line to the trace, with the virtual time."""
        self.trace.append(f"{self._loop.time():12.6f} {text}")

    def _begin(self, scheduled: ScheduledFault) -> None:
        self.note(f"fault begins, {scheduled}")
        fault = scheduled.begin(self.source)
        if fault is not None:
            self._loop.call_later(scheduled.lasting, self._end, scheduled, fault)

    def _end(self, scheduled: ScheduledFault, fault: Fault) -> None:
        fault.end()
        self.note(f"fault ends after {quantity(fault.hits, 'request')}: {scheduled.kind}")

    def _note_unhandled(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.note(f"event loop: {context['message']}: {error!r}")
        if isinstance(error, BaseException):
            self.unhandled.append(error)

    def __repr__(self) -> str:
        return f"<Simulation of seed {self.seed} at {self._loop.time():.6f} s>"


Program: TypeAlias = Callable[[Simulation], Coroutine[Any, Any, None]]
"""An async function that uses ``simulation.source`` and raises if something is wrong."""


class SimulationFailed(AssertionError):
    """A program that failed in a history. ``__cause__`` is the exception that it raised.

    The message names the seed and the faults that are needed, shows the end of the trace, and has
    the call that repeats the history.
    """

    def __init__(self, message: str, *, seed: int, keep: Sequence[int], trace: str) -> None:
        """Describe a failure: ``keep`` are the indexes of the faults that are needed."""
        super().__init__(message)
        self.seed = seed
        self.keep = list(keep)
        self.trace = trace


def simulate(
    program: Program,
    *,
    seeds: Iterable[int] = range(50),
    keep: Sequence[int] | None = None,
    duration: float = 300.0,
    settle: float = 120.0,
    faults: int = 10,
    kinds: Sequence[FaultKind] = FAULT_KINDS,
    limit: float = 86_400.0,
    cost: float = 0.0,
    attempts: int = 100,
) -> None:
    """Run a program through one history of faults for each seed, in virtual time.

    The program does no I/O of its own and uses no threads: it reaches its cluster through
    ``simulation.source``. The same seed gives the same history, as long as the program itself is
    deterministic (it draws from ``simulation.random`` or from the module ``random``, and doesn't
    iterate over sets of strings, whose order differs between processes).

    Don't call this inside a running event loop: a test that calls it is a plain ``def``.

    Args:
        program: called with a ``Simulation``. Usually it starts informers or a controller, writes
            to ``simulation.cluster``, awaits ``simulation.settled()``, and asserts what must hold.
        seeds: the histories.
        keep: the indexes of the faults to carry out; ``None`` for all. A report has them.
        duration: virtual seconds in which all faults begin and end.
        settle: further seconds until ``settled()`` returns: as long as the program may need to
            recover. Backoffs go up to a minute, and a dead connection is noticed after 80 s.
        faults: faults of a history. Some of them come with broken watches, which count extra.
        kinds: the faults to draw from.
        limit: virtual seconds after which the program is taken not to end.
        cost: seconds that may pass between two looks at the clock, at most (see ``run``).
        attempts: how many histories may be tried to make a failing one smaller.

    Raises:
        SimulationFailed: the program raised, or did not end, in one of the histories.
    """
    __tracebackhide__ = True  # pytest shows the caller's line instead of these frames
    settings = _Settings(duration, settle, faults, tuple(kinds), limit, cost)
    for seed in seeds:
        history = _History(program, seed, settings)
        result = history.run(keep)
        if result.error is not None:
            raise history.explain(result, keep, attempts)


@dataclass(slots=True)
class _RunResult:
    error: BaseException | None = None
    trace: list[str] = field(default_factory=list[str])


class _History:
    def __init__(self, program: Program, seed: int, settings: _Settings) -> None:
        self._program = program
        self._seed = seed
        self._settings = settings
        self._schedule = draw_schedule(
            Random(f"{seed} faults"),
            kinds=settings.kinds,
            count=settings.faults,
            duration=settings.duration,
        )

    def run(self, keep: Sequence[int] | None) -> _RunResult:
        """Run the program with these faults of the schedule, or with all."""
        result = _RunResult()
        settings = self._settings
        try:
            run(
                self._main(keep, result),
                seed=self._seed,
                cost=settings.cost,
                horizon=settings.limit,
            )
        except Stuck as stuck:
            result.error = stuck
        return result

    async def _main(self, keep: Sequence[int] | None, result: _RunResult) -> None:
        schedule = self._schedule if keep is None else [self._schedule[index] for index in keep]
        simulation = Simulation(self._seed, schedule, self._settings)
        result.trace = simulation.trace
        with recorded_logs(lambda record: simulation.note(_log_line(record))):
            # In a task of its own, so that a program that is cancelled doesn't cancel the runner.
            task = asyncio.ensure_future(self._program(simulation))
            await asyncio.wait({task})
            if sys.version_info >= (3, 13):
                gc.collect()  # a forgotten task that failed is in a cycle with its frames there
            if task.cancelled():
                result.error = asyncio.CancelledError("the program was cancelled")
            else:
                result.error = task.exception() or next(iter(simulation.unhandled), None)

    def explain(
        self, result: _RunResult, keep: Sequence[int] | None, attempts: int
    ) -> SimulationFailed:
        """Make the history smaller unless the caller chose its faults; return the report."""
        advice = "repeat it:"
        if keep is None:
            keep = self._shrink(result, attempts)
            again = self.run(keep)
            if again.error is None:
                advice = "a second run did not fail, so the program is not deterministic:"
            else:
                result = again
        schedule = self._schedule
        enough = "are enough" if len(keep) > 1 else "is enough" if keep else "are needed"
        hidden = max(0, len(result.trace) - TRACE_LINES)
        lines = [
            f"seed {self._seed}: {type(result.error).__name__}: {result.error}",
            f"{len(keep)} of {quantity(len(schedule), 'fault')} {enough}:",
            *(f"    {schedule[index]}" for index in keep),
            f"the end of the trace ({hidden} lines before):",
            *(f"    {line}" for line in result.trace[hidden:]),
            advice,
            f"    simulate({_name(self._program)}, seeds=[{self._seed}], keep={list(keep)}"
            f"{self._settings})",
        ]
        failed = SimulationFailed(
            "\n".join(lines), seed=self._seed, keep=keep, trace="\n".join(result.trace)
        )
        failed.__cause__ = result.error
        return failed

    def _shrink(self, result: _RunResult, attempts: int) -> list[int]:
        wanted = _kinds_of(result.error)

        def fails(kept: Sequence[int]) -> bool:
            return _kinds_of(self.run(kept).error) == wanted

        return shrink(range(len(self._schedule)), fails, budget=attempts)


def _kinds_of(error: BaseException | None) -> set[type[BaseException]]:
    """Return the types of an exception, or of all exceptions in a group."""
    if error is None:
        return set()
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return {kind for each in group.exceptions for kind in _kinds_of(each)}
    return {type(error)}


def _name(program: Program) -> str:
    name: str = getattr(program, "__qualname__", repr(program))
    return name.rpartition("<locals>.")[2]


def _log_line(record: logging.LogRecord) -> str:
    return f"log {record.levelname}: {record.getMessage()}"


class _LogRecorder(logging.Handler):
    def __init__(self, level: int, record: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(level)
        self._record = record

    def emit(self, record: logging.LogRecord) -> None:
        self._record(record)


@contextmanager
def recorded_logs(
    record: Callable[[logging.LogRecord], None], *, level: int = logging.WARNING
) -> Generator[None]:
    """Record aioinformer's log from ``level`` on, in place of all other handlers."""
    logger = logging.getLogger("aioinformer")
    before = logger.level, logger.propagate
    handler = _LogRecorder(level, record)
    logger.setLevel(level)
    # A history that fails is run a hundred times: its log belongs in the report only.
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]

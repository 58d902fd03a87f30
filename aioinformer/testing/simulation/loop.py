"""An asyncio event loop in virtual time, with a seeded order of callbacks.

When no callback is ready, the loop sets its time to that of the next timer. An hour of waiting
takes no time, and every run with the same seed is the same. The loop has no I/O and no threads. A
program that waits for something that can't come ends with ``Stuck``, which names every task.

**Order.** asyncio runs callbacks in the order of registration, and a correct program may rely on
that order for callbacks that one task or callback registered: they keep their order. Callbacks that
different steps registered in the same turn are merged at random, and so are timers that are due
together, because sockets and the machine decide their order in reality. No callback is postponed to
a later turn. ``order="fifo"`` switches this off.

**Work.** Real code takes time, and long work looks at the clock in order to yield to the loop.
``cost`` advances the time at random between two looks at the clock.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import random
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, Literal, TypeAlias, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Order: TypeAlias = Literal["shuffled", "fifo"]

if sys.version_info >= (3, 12):
    _Work: TypeAlias = Coroutine[Any, Any, T]
else:  # asyncio still takes the coroutines of Python 3.4
    _Work: TypeAlias = Generator[Any, None, T] | Coroutine[Any, Any, T]

HORIZON = 1_000_000.0
"""Virtual seconds after which the loop takes a program not to end: 11 days."""

TURNS = 100_000
"""Turns of the loop at one moment after which it takes the program to spin. A program that works
needs a few dozen."""

_LOOKS = 4
"""One look at the clock in so many advances the time by up to ``cost``: work comes in lumps."""


class Stuck(RuntimeError):
    """The program can't go on, or doesn't end. The message names every task and where it waits."""


class _Ready(asyncio.Handle):
    """``source`` is the number of the step that registered the callback."""

    __slots__ = ("source",)
    source: int

    run = asyncio.Handle._run  # not a call of it: that frame would keep the handle


class _Timer(asyncio.TimerHandle):
    __slots__ = ("source",)
    source: int

    run = asyncio.Handle._run  # not a call of it: that frame would keep the handle


class _Task(asyncio.Task[T]):
    """A task whose hash is its number.

    Task groups cancel their tasks in the order of a set, which otherwise depends on memory
    addresses.
    """

    number: int = 0

    def __hash__(self) -> int:
        return self.number

    def set_name(self, value: object, /) -> None:
        """Set the name. Python 3.13.0 to 3.13.2 set ``None`` where the program gave no name."""
        if value is not None:
            super().set_name(value)


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop that runs callbacks in virtual time. ``run`` creates one."""

    def __init__(
        self, *, seed: int, order: Order = "shuffled", cost: float = 0.0, horizon: float = HORIZON
    ) -> None:
        """Create a loop at the time 0. The arguments are those of ``run``."""
        super().__init__()
        self.set_task_factory(self._make_task)
        self._random = random.Random(seed)
        self._order: Order = order
        self._cost = cost
        self._horizon = horizon
        self._now = 0.0
        self._turns = 0
        self._tasks = 0
        self._steps = 0
        self._source = 0
        self._soon: list[_Ready | _Timer] = []
        self._later: list[tuple[float, float, int, _Timer]] = []

    # -- the clock ----------------------------------------------------------------------------

    def time(self) -> float:
        """Return the virtual seconds since the loop was created."""
        if self._cost and self._random.random() * _LOOKS < 1:
            self._now += self._random.random() * self._cost
        return self._now

    # -- registering --------------------------------------------------------------------------

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run the callback in the next turn."""
        self._check_closed()
        handle = _Ready(callback, args, self, context)
        handle.source = self._source
        self._soon.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run the callback in the next turn, as ``call_soon`` does: the loop has no threads."""
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run the callback at a virtual time. ``call_later`` calls this as well."""
        self._check_closed()
        handle = _Timer(when, callback, args, self, context)
        self._steps += 1
        handle.source = self._steps
        chance = self._random.random() if self._order == "shuffled" else 0.0
        heapq.heappush(self._later, (when, chance, self._steps, handle))
        return handle

    def _make_task(
        self, _: asyncio.AbstractEventLoop, work: _Work[T], /, **options: Any
    ) -> asyncio.Task[T]:
        """Create a task. Python 3.13.3 and later pass the name; earlier versions set it."""
        self._tasks += 1
        options["name"] = options.get("name") or f"task {self._tasks}"
        task = _Task(work, loop=self, **options)
        task.number = self._tasks
        return task

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Raise ``Stuck``: the time of a thread is not simulated."""
        raise Stuck(f"{func} was given to a thread, whose time isn't simulated")

    # -- running ------------------------------------------------------------------------------

    def _run_once(self) -> None:
        """Run all callbacks that are ready now. asyncio's ``run_forever`` calls this."""
        self._collect_due()
        if not self._soon:
            self._jump()
            self._collect_due()
        self._turns += 1
        if self._turns > TURNS:
            # Cleaning up after this error takes turns as well.
            self._turns = 0
            raise Stuck(f"{TURNS} turns at {self._now:.6f} s, and time stands still{self._waits()}")
        batch, self._soon = self._soon, []
        handle = None
        for handle in self._ordered(batch):
            if not handle.cancelled():
                self._steps += 1
                self._source = self._steps
                handle.run()
        self._source = 0
        del batch, handle  # the traceback of an exception may refer to this frame

    def _collect_due(self) -> None:
        while self._later and (self._later[0][0] <= self._now or self._later[0][3].cancelled()):
            handle = heapq.heappop(self._later)[3]
            if not handle.cancelled():
                self._soon.append(handle)

    def _jump(self) -> None:
        if not self._later:
            raise Stuck(f"nothing is ready and no timer is set at {self._now:.6f} s{self._waits()}")
        when = self._later[0][0]
        if when > self._horizon:
            raise Stuck(f"not at an end after {self._horizon:g} virtual seconds{self._waits()}")
        self._now = when
        self._turns = 0

    def _ordered(self, batch: list[_Ready | _Timer]) -> list[_Ready | _Timer]:
        """Return a random merge of the callbacks; those of one source keep their order."""
        if len(batch) < 2 or self._order == "fifo":
            return batch
        sources = [handle.source for handle in batch]
        if len(set(sources)) < 2:
            return batch
        queues: dict[int, deque[_Ready | _Timer]] = {}
        for handle in batch:
            queues.setdefault(handle.source, deque()).append(handle)
        self._random.shuffle(sources)
        return [queues[source].popleft() for source in sources]

    def _waits(self) -> str:
        tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, _Task)]
        lines = [f"\n  {_where(task)}" for task in sorted(tasks, key=lambda task: task.number)]
        return "; tasks:" + "".join(lines)

    def _check_closed(self) -> None:
        if self.is_closed():
            raise RuntimeError("the simulated loop is closed")

    def __repr__(self) -> str:
        return f"<SimulatedLoop at {self._now:.6f} s ready={len(self._soon)} {self._order}>"


def _where(task: asyncio.Task[Any]) -> str:
    stack = task.get_stack(limit=1)
    place = f"{stack[-1].f_code.co_qualname} line {stack[-1].f_lineno}" if stack else "its end"
    return f"{task.get_name()}: at {place}"


def run(
    main: Coroutine[Any, Any, T],
    *,
    seed: int,
    order: Order = "shuffled",
    cost: float = 0.0,
    horizon: float = HORIZON,
) -> T:
    """Run a coroutine to its end in virtual time and return its result.

    The module ``random``, from which jitter is drawn, is seeded during the run and restored
    afterwards. The garbage collector is switched off meanwhile, because the moments at which it
    finalises objects depend on what ran before.

    Args:
        main: the coroutine. Tasks that it leaves behind are cancelled.
        seed: decides the order of independent callbacks, the costs, and ``random``.
        order: ``"shuffled"``, or ``"fifo"`` for asyncio's own order.
        cost: the most virtual seconds between two looks at the clock; 0 for none.
        horizon: the virtual seconds that the coroutine may take.

    Raises:
        Stuck: the coroutine waits for something that can't come, or doesn't end.
    """
    before, collecting = random.getstate(), gc.isenabled()
    random.seed(seed)
    gc.disable()
    try:
        with asyncio.Runner(
            loop_factory=lambda: SimulatedLoop(seed=seed, order=order, cost=cost, horizon=horizon)
        ) as runner:
            return runner.run(main)
    finally:
        random.setstate(before)
        if collecting:
            gc.enable()

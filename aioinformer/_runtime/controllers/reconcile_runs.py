"""Runs of a reconciler: one call, in a task of its own, to its end.

A task of its own has a copy of the context, so that what one run sets in it doesn't reach the
next; it can be cancelled when its time is up, or when everything ends; and a run that cancels its
own task hurts nobody else. Whoever started a run stays until it has ended, whatever happens: two
runs of one key at once can't be.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextvars import Context
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol

from aioinformer._core.callables import check_signature
from aioinformer._core.controllers.reconcile import ReconcileContext, Result
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.controllers.options import ControllerOptions
from aioinformer._runtime.delivery.handlers import handler_name
from aioinformer._runtime.reporting.health import describe_error
from aioinformer._runtime.reporting.safe_tracing import await_in_span, reconcile_span_factory
from aioinformer.errors import HandlerCancelled, ReconcileTimeout

__all__ = ["Reconcile", "ReconcileRuns"]

log = logging.getLogger("aioinformer.controller")

CANCEL_WARNING_INTERVAL = 10.0
"""Seconds between two warnings of a run that doesn't end although it was cancelled."""


class Reconcile(Protocol):
    """Brings what a key stands for into the state that it should have."""

    def __call__(self, key: ObjectKey, ctx: ReconcileContext, /) -> Awaitable[Result | None]:
        """``async def reconcile(key, ctx)``. What it raises is a failure, and tried again."""
        ...


@dataclass(slots=True, eq=False)
class _Run:
    task: asyncio.Task[Result | None]
    since: float
    cancelled: bool = False
    """Whether it was told to end."""

    def cancel(self) -> None:
        """Once: a second time would break off its cleaning up."""
        if not self.cancelled:
            self.cancelled = True
            self.task.cancel()


class ReconcileRuns:
    """The runs of one controller that are under way."""

    def __init__(self, reconcile: Reconcile, options: ControllerOptions) -> None:
        """Hold no run yet.

        Raises:
            TypeError: ``reconcile`` is not a function of a key and a context.
        """
        if isinstance(reconcile, type) or not callable(reconcile):
            raise TypeError(f"reconcile is an async function of a key and a context: {reconcile!r}")
        check_signature(reconcile, handler_name(reconcile), "key", "ctx")
        self.context = Context()
        """What each run gets a copy of."""
        self._name = options.name
        self._reconcile, self._reconcile_name = reconcile, handler_name(reconcile)
        self._timeout = options.timeout
        self._begin_span = reconcile_span_factory(options.tracing, options.name)
        self._runs: dict[ObjectKey, _Run] = {}

    async def run(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        """Call the reconciler; what it answers.

        Cancelled, this cancels the run and waits for its end.

        Raises:
            ReconcileTimeout: it took too long, was cancelled, and has ended.
            HandlerCancelled: it raised a CancelledError of its own, or cancelled its task.
            Exception: what it raised.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(
            self._call(key, ctx), name=f"{self._name}: {key}", context=self.context.copy()
        )
        run = self._runs[key] = _Run(task, loop.time())
        try:
            late = await self._wait_ended(key, run)
        except asyncio.CancelledError:
            run.cancel()
            await self._wait_cancelled(key, run)
            self._log_cancel_error(key, task)
            raise
        finally:
            del self._runs[key]
        if late is not None:
            raise late from _exception_of(task)
        return self._result_of(task)

    async def _call(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        """In the run's own task and context."""
        answer = self._reconcile(key, ctx)
        if not isawaitable(answer):
            raise TypeError(f"{self._reconcile_name} must be async: it returned {answer!r}")
        begin = self._begin_span
        result = await (answer if begin is None else await_in_span(answer, begin()))
        if not _is_result(result):
            raise TypeError(f"{self._reconcile_name} must return a Result or None, not {result!r}")
        return result

    async def _wait_ended(self, key: ObjectKey, run: _Run) -> ReconcileTimeout | None:
        """Wait for the end of a run; why it was cancelled, if its time ran out."""
        done, _ = await asyncio.wait({run.task}, timeout=self._timeout)
        if done:
            return None
        late = ReconcileTimeout(
            f"{self._name}: the run of {key} took longer than {self._timeout:g} s; cancelled"
        )
        run.cancel()
        while not done:
            done, _ = await asyncio.wait({run.task}, timeout=CANCEL_WARNING_INTERVAL)
            if not done:
                self._warn_still_running(key, run)
        return late

    async def _wait_cancelled(self, key: ObjectKey, run: _Run) -> None:
        """Wait for the end of a cancelled run; who is cancelled meanwhile waits all the same."""
        while not run.task.done():
            try:
                done, _ = await asyncio.wait({run.task}, timeout=CANCEL_WARNING_INTERVAL)
            except asyncio.CancelledError:
                continue
            if not done:
                self._warn_still_running(key, run)

    def _result_of(self, task: asyncio.Task[Result | None]) -> Result | None:
        error = _exception_of(task)
        if error is None:
            return task.result()
        if isinstance(error, Exception):
            raise error
        # A KeyboardInterrupt has ended the loop by itself; here it is as good as any other.
        raise HandlerCancelled(
            f"{self._name} raised a {type(error).__name__} of its own"
        ) from error

    def _warn_still_running(self, key: ObjectKey, run: _Run) -> None:
        took = asyncio.get_running_loop().time() - run.since
        log.warning(
            "%s: the run of %s goes on after %.0f s, although it was cancelled: its worker, and "
            "whatever comes for the key, wait for it",
            self._name,
            key,
            took,
        )

    def _log_cancel_error(self, key: ObjectKey, task: asyncio.Task[Result | None]) -> None:
        """A run was cancelled from outside: what it raised then is said, and has no effect."""
        error = _exception_of(task)
        if error is not None and not isinstance(error, asyncio.CancelledError):
            said = describe_error(error)
            log.warning("%s: the run of %s raised as it was cancelled: %s", self._name, key, said)

    def cancel_all(self) -> None:
        """Have all of them end at once: each at its next await."""
        for run in self._runs.values():
            run.cancel()

    @property
    def keys(self) -> tuple[ObjectKey, ...]:
        """The keys that are being reconciled."""
        return tuple(self._runs)

    def durations(self, now: float) -> dict[ObjectKey, float]:
        """How long each has taken by now."""
        return {key: now - run.since for key, run in list(self._runs.items())}

    def __repr__(self) -> str:
        return f"<ReconcileRuns of {self._name}: {len(self._runs)} under way>"


def _is_result(result: object) -> bool:
    """Whether a reconciler may return this; a program need not be type-checked."""
    return result is None or isinstance(result, Result)


def _exception_of(task: asyncio.Task[Any]) -> BaseException | None:
    """With what a task has ended."""
    if task.cancelled():
        try:
            task.result()
        except asyncio.CancelledError as error:
            return error
    return task.exception()

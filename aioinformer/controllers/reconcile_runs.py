"""Runs of a reconciler: each is one call, in a task of its own.

So context variables that one run sets don't reach the next run, the run can be cancelled after the
timeout or at the shutdown, and a run that cancels its own task affects nothing else. A worker waits
until its run has ended, even if the worker is cancelled: two runs of one key never overlap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass
from datetime import timedelta
from inspect import isawaitable, iscoroutinefunction, unwrap
from typing import Any, Protocol, cast

from aioinformer._core.callables import check_signature
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.delivery.handlers import handler_name
from aioinformer._runtime.delivery.thread_pool import HandlerThreads
from aioinformer._runtime.reporting.error_copy import copy_to_raise
from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer._runtime.reporting.safe_tracing import await_in_span, reconcile_span_factory
from aioinformer._runtime.tasks.blocking import time_steps
from aioinformer._runtime.tasks.event_loop import loop_clock
from aioinformer.controllers.options import ControllerOptions
from aioinformer.controllers.reconcile_context import ReconcileContext
from aioinformer.controllers.state.reconcile import Result
from aioinformer.errors import HandlerCancelled, ReconcileTimeout

log = logging.getLogger("aioinformer.controller")

CANCEL_WARNING_INTERVAL = 10.0
"""Seconds between two warnings about a run that was cancelled and doesn't end."""


class Reconcile(Protocol):
    """A function that brings the object of a key into its wanted state."""

    def __call__(self, key: ObjectKey, ctx: ReconcileContext, /) -> Awaitable[Result | None]:
        """Reconcile ``key``: ``async def reconcile(key, ctx)``.

        An exception is a failure, and is retried with backoff: a programming error such as a
        TypeError too, as in controller-runtime and kopf, since the next form of the object may not
        raise it. ``PermanentError`` ends the retries of a key, and ``TemporaryError`` names a delay
        in place of the backoff.
        """
        ...


class BlockingReconcile(Protocol):
    """A plain function that may block, for ``run_in_thread=True``."""

    def __call__(self, key: ObjectKey, ctx: ReconcileContext, /) -> Result | None:
        """Reconcile ``key`` in a thread: ``def reconcile(key, ctx)``."""
        ...


class ReconcileFunction:
    """A reconciler or a cleanup of the program, checked, and called in the loop or in a thread."""

    def __init__(
        self,
        function: Reconcile | BlockingReconcile,
        options: ControllerOptions,
        *,
        what: str,
        rejection: Callable[[ObjectKey], Exception | None] = lambda _: None,
    ) -> None:
        """Check the function. Raises a ``TypeError`` that names it as ``what``.

        ``rejection`` returns the error for which the cache lacks the newest state of an object: the
        function would decide by an older one.
        """
        self._rejection = rejection
        if isinstance(function, type) or not callable(function):
            raise TypeError(
                f"{what} must be an async function of a key and a context, not {function!r}"
            )
        self.name = handler_name(function)
        check_signature(function, self.name, "key", "ctx")
        is_async = _is_async(function)
        if is_async and options.run_in_thread:
            raise TypeError(f"{self.name} is async; run_in_thread=True is for plain functions")
        if not is_async and not options.run_in_thread:
            raise TypeError(
                f"{self.name} is a plain function, which would block the event loop: write "
                f"'async def', or pass run_in_thread=True to run {what} in threads"
            )
        self._threads: HandlerThreads | None = None
        if options.run_in_thread:
            self._threads = HandlerThreads(
                function, max_threads=options.concurrency, name=options.name
            )
        self._function: Callable[..., Awaitable[Any]] = cast("Any", self._threads or function)

    async def __call__(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        """Call the function.

        Raises:
            TypeError: the function returned something else than a ``Result`` or ``None``.
            Exception: an exception of the function, or that of ``rejection``.
        """
        if (rejection := self._rejection(key)) is not None:
            raise copy_to_raise(rejection)
        result = await self._function(key, ctx)
        if not _is_result(result):
            raise TypeError(
                f"{self.name} must return a Result or None, not {result!r}: {_advice(result)}"
            )
        return cast("Result | None", result)

    def give_up(self) -> None:
        """Stop waiting for threads that don't return."""
        if self._threads is not None:
            self._threads.give_up()

    def close(self) -> None:
        """End the threads: no further call follows."""
        if self._threads is not None:
            self._threads.close()

    def __repr__(self) -> str:
        return f"<ReconcileFunction {self.name}>"


def compile_functions(
    reconcile: Reconcile | BlockingReconcile,
    options: ControllerOptions,
    rejection: Callable[[ObjectKey], Exception | None] = lambda _: None,
) -> tuple[ReconcileFunction, ReconcileFunction | None]:
    """Return the checked reconciler and cleanup; raise a ``TypeError`` if one is unusable.

    ``rejection`` is for the reconciler alone: a cleanup is never skipped.
    """
    cleanup = options.cleanup
    return (
        ReconcileFunction(reconcile, options, what="reconcile", rejection=rejection),
        None if cleanup is None else ReconcileFunction(cleanup, options, what="cleanup"),
    )


def _is_async(function: object) -> bool:
    """Return True for an async function, an object with an async ``__call__``, and a decorated
    async function, whose wrapper may be a plain function that returns the coroutine.
    """
    candidates = (function, unwrap(cast("Any", function)), type(function).__call__)
    return any(map(iscoroutinefunction, candidates))


@dataclass(slots=True, eq=False)
class _Run:
    task: asyncio.Task[Result | None]
    since: float
    cancelled: bool = False
    """True if the run was cancelled from here."""

    def cancel(self) -> None:
        """Cancel the task once: a second cancellation would interrupt its cleanup."""
        if not self.cancelled:
            self.cancelled = True
            self.task.cancel()


class ReconcileRuns:
    """The runs of one controller that are under way."""

    def __init__(
        self,
        reconcile: Reconcile,
        options: ControllerOptions,
        report_blocking: Callable[[float], None] | None = None,
    ) -> None:
        """Hold no run yet.

        Args:
            reconcile: the checked function of the program, or what adds finalizers before it.
            options: those of the controller.
            report_blocking: called after each step of a run that held the event loop, with its
                seconds; ``None`` if steps are not timed.
        """
        self._context = Context()
        self._report_blocking = report_blocking
        self._name = options.name
        self._reconcile = reconcile
        self._timeout = options.timeout
        self._begin_span = reconcile_span_factory(options.tracing, options.name)
        self._runs: dict[ObjectKey, _Run] = {}

    def use_context(self, context: Context) -> None:
        """Give each run from now on a copy of ``context``."""
        self._context = context

    async def run(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        """Call the reconciler and return its result. If this is cancelled, the run is cancelled and
        awaited.

        Raises:
            ReconcileTimeout: the run took too long, was cancelled, and has ended.
            HandlerCancelled: the run raised a CancelledError itself, or cancelled its task.
            Exception: an exception of the run.
        """
        loop = asyncio.get_running_loop()
        work = time_steps(self._call(key, ctx), self._report_blocking, loop_clock())
        task = loop.create_task(work, name=f"{self._name}: {key}", context=self._context.copy())
        run = self._runs[key] = _Run(task, loop.time())
        try:
            late = await self._wait_ended(key, run)
        except asyncio.CancelledError:
            # The run has a task of its own, so the cancellation of this task doesn't reach it.
            run.cancel()
            await self._wait_cancelled(key, run)
            self._log_cancel_error(key, task)
            raise
        finally:
            del self._runs[key]  # the run has ended in every case
        try:
            if late is not None:
                # Even if the run finished after its timeout: the key is retried.
                raise late from _exception_of(task)
            return self._result_of(task)
        finally:
            del task, run, late  # the traceback of their exception refers to this frame

    async def _call(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        """Call the reconciler, in the run's own task and context."""
        answer, begin = self._reconcile(key, ctx), self._begin_span
        return await (answer if begin is None else await_in_span(answer, begin()))

    async def _wait_ended(self, key: ObjectKey, run: _Run) -> ReconcileTimeout | None:
        """Wait for the end of a run. Return an error if it was cancelled because of the timeout."""
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
        """Wait for the end of a cancelled run, also if this is cancelled meanwhile."""
        while not run.task.done():
            try:
                done, _ = await asyncio.wait({run.task}, timeout=CANCEL_WARNING_INTERVAL)
            except asyncio.CancelledError:
                continue  # the caller raises its first cancellation when the run has ended
            if not done:
                self._warn_still_running(key, run)

    def _result_of(self, task: asyncio.Task[Result | None]) -> Result | None:
        error = _exception_of(task)
        try:
            if error is None:
                return task.result()
            if isinstance(error, Exception):
                raise error
            # A worker handles Exceptions only. A KeyboardInterrupt has ended the loop already.
            raise HandlerCancelled(f"{self._name} raised {type(error).__name__} itself") from error
        finally:
            del error, task  # the traceback refers to this frame

    def _warn_still_running(self, key: ObjectKey, run: _Run) -> None:
        took = asyncio.get_running_loop().time() - run.since
        log.warning(
            "%s: the run of %s has not ended after %.0f s, although it was cancelled; its worker "
            "and further runs of the key wait for it",
            self._name,
            key,
            took,
        )

    def _log_cancel_error(self, key: ObjectKey, task: asyncio.Task[Result | None]) -> None:
        """Log an exception of a run that was cancelled from outside; it has no other effect."""
        error = _exception_of(task)
        if error is not None and not isinstance(error, asyncio.CancelledError):
            text = describe_error(error)
            log.warning("%s: the run of %s raised when it was cancelled: %s", self._name, key, text)

    def cancel_all(self) -> None:
        """Cancel all runs. Each ends at its next await."""
        for run in self._runs.values():
            run.cancel()

    @property
    def keys(self) -> tuple[ObjectKey, ...]:
        """The keys that are being reconciled."""
        return tuple(self._runs)

    def durations(self, now: float) -> dict[ObjectKey, float]:
        """Return the duration of each run by now."""
        return {key: now - run.since for key, run in list(self._runs.items())}

    def __repr__(self) -> str:
        return f"<ReconcileRuns of {self._name}: {len(self._runs)} under way>"


def _is_result(result: object) -> bool:
    """Return True if a reconciler may return this; the program may not be type-checked."""
    return result is None or isinstance(result, Result)


def _advice(result: object) -> str:
    """Return what a reconciler may return in place of ``result``."""
    if isawaitable(result):
        return "await it first"
    if isinstance(result, bool):
        return "return Result(requeue=True) for another run with backoff, and None for none"
    if isinstance(result, int | float | timedelta):
        return f"return Result(requeue_after={result!r}) for another run after that time"
    return "return Result(requeue_after=30) for another run after 30 s, and None for none"


def _exception_of(task: asyncio.Task[Any]) -> BaseException | None:
    """Return the exception of a task that has ended, a CancelledError included."""
    if task.cancelled():
        try:
            task.result()
        except asyncio.CancelledError as error:
            return error
    return task.exception()

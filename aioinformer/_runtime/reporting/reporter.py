"""Where everything that goes wrong is told: health, log, metrics and the program's error hook.

A reflector says what it does and how it ended; here that becomes a ``ReflectorStatus`` for health, one
log line for each attempt that failed, numbers for metrics, and a ``Problem`` for the hook. The
listeners' failures come to the same hook. What to do about a failure is the cursor's to decide.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TypeAlias

from aioinformer._core.instrumentation import InformerTrace, Metrics
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.listwatch.requests import AnyRequest, Verb
from aioinformer._core.listwatch.transitions import Learn, LogLevel, NextRequest, Transition
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.reporting.health import InformerState, ReflectorStatus, describe_error
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer._runtime.reporting.safe_tracing import NoTrace
from aioinformer.errors import CacheDiffers, FetchError

__all__ = ["InformerReporter", "OnError", "Problem", "call_hook", "check_hook"]

log = logging.getLogger("aioinformer.reflector")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something went wrong, and the informer goes on."""

    informer: str
    """The name of the informer."""
    phase: str
    """During what: ``list``, ``watchlist``, ``watch``, ``probe``, ``lookup``, ``rewind``,
    ``verify``, ``object``, ``handler``, or ``reconcile`` and ``trigger`` of a controller."""
    cause: str
    """What it was taken for, in one word: ``denied``, ``expired``, ``unreachable``, ``silent``...
    (the names of ``Outcome``), ``object_rejected`` of an object, ``differs`` of a cache that was
    compared; for a handler or a controller, its name."""
    error: Exception
    """The exception, with the server's Status in it if there is one."""
    retry_in: float | None = None
    """Seconds to the next attempt; ``None`` where nothing is tried again."""
    key: ObjectKey | None = None
    """Which object a controller failed to reconcile."""

    def __str__(self) -> str:
        again = "" if self.retry_in is None else f"; next attempt in {self.retry_in:.1f} s"
        of = "" if self.key is None else f" of {self.key}"
        return (
            f"{self.informer}: {self.phase}{of} {self.cause}: {describe_error(self.error)}{again}"
        )


OnError: TypeAlias = Callable[[Problem], None]
"""Is told of every problem, in the event loop: it must be quick and not wait. What it raises is
logged and has no effect."""


def check_hook(on_error: object) -> None:
    """Raise unless this may be told of problems.

    Raises:
        TypeError: it is no function, or async: nobody would await it.
    """
    if on_error is None:
        return
    if isinstance(on_error, type) or not callable(on_error):
        raise TypeError(f"on_error is a function of a Problem, not {on_error!r}")
    if iscoroutinefunction(on_error) or iscoroutinefunction(type(on_error).__call__):
        raise TypeError(f"on_error is called, not awaited: {on_error!r} must not be async")


def call_hook(on_error: OnError | None, problem: Problem, log: logging.Logger) -> None:
    """Tell a program's hook, if there is one; what it raises goes to ``log``."""
    if on_error is None:
        return
    try:
        on_error(problem)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        log.exception("the error hook raised when it was told of %s", problem)


_LEVELS: dict[LogLevel, int] = {"info": logging.INFO, "warning": logging.WARNING}

_REQUEST_STATES: dict[Verb, InformerState] = {"list": "listing", "watchlist": "listing"}
"""What the informer does while a request is under way. A watch counts when it is open."""


class InformerReporter:
    """Tells of one informer."""

    def __init__(
        self,
        informer: str,
        *,
        label: str = "",
        metrics: Metrics | None = None,
        trace: InformerTrace | None = None,
        on_error: OnError | None = None,
    ) -> None:
        """Nothing to tell yet.

        Args:
            informer: its name, for logs and problems.
            label: its name in metrics; the same by default.
            metrics: what to feed.
            trace: what makes spans of its requests; must not raise.
            on_error: what to tell of problems.

        Raises:
            TypeError: ``on_error`` is no function, or async.
        """
        self.status = ReflectorStatus()
        """What the reflector does now, and what went wrong last."""
        check_hook(on_error)
        self.metrics = wrap_metrics(metrics)
        self.trace: InformerTrace = trace or NoTrace()
        self.label = label or informer
        self.rewinds = 0
        """How many times the server has gone back in time."""
        self._informer = informer
        self._on_error = on_error
        self._clock: Callable[[], float] = float
        self._requested_at = 0.0
        self._verb: Verb = "list"

    def start(self, clock: Callable[[], float]) -> None:
        """The reflector has started; ``clock`` gives monotonic seconds."""
        self._clock = clock
        self.status.start(clock)

    # -- one request ---------------------------------------------------------------------------

    def request_started(self, request: AnyRequest) -> None:
        """A request is about to be sent."""
        self._verb, self._requested_at = request.verb, self._clock()
        if state := _REQUEST_STATES.get(self._verb):
            self.status.set_state(state)
        self.metrics.request_started(self.label, self._verb)
        self.trace.asked(self._verb)

    def watch_opened(self) -> None:
        """A watch is open, and the state before it complete."""
        self.status.set_state("watching")
        self.status.clear_error()
        self.trace.complete()

    def received(self, size: int, events: int) -> None:
        """A chunk came: so many bytes, so many events or objects complete."""
        self.metrics.received(self.label, self._verb, size, events)
        self.trace.received(size, events)

    def mark_fresh(self, now: float) -> None:
        """The server has just shown that what was read is up to date."""
        self.status.fresh_at = now

    def request_ended(self, end: RequestEnd, transition: Transition, delay: float) -> None:
        """Record that a request has ended.

        Args:
            end: the outcome, and the error to report.
            transition: the table row of the outcome.
            delay: seconds to the next request.
        """
        cause, error = end.outcome.name.lower(), end.error
        seconds = self._clock() - self._requested_at
        self.metrics.request_ended(self.label, self._verb, cause, seconds)
        self.trace.ended(cause, error)
        if end.outcome is Outcome.COMPLETE and self._verb == "list":
            self.trace.complete()
        if error is not None:
            self._log_end(error, transition)
            self.status.record_error(error)
            self._report(self._verb, cause, error, delay)
        elif transition.ending.healthy:
            self.status.clear_error()
        if Learn.SERVED in transition.learn:
            self.status.absent = False
        if delay:
            self.status.schedule_retry(delay)

    def _log_end(self, error: FetchError, transition: Transition) -> None:
        if transition.next_request is NextRequest.LIST:
            said = "%s: WatchList is not available, falling back to LIST: %s"
        else:
            said = "%s: %s"
        log.log(_LEVELS[transition.log], said, self._informer, describe_error(error))

    def request_cancelled(self) -> None:
        """A request was cut short, since the informer ends."""
        seconds = self._clock() - self._requested_at
        self.metrics.request_ended(self.label, self._verb, "cancelled", seconds)
        self.trace.ended("cancelled", None)

    def resource_absent(self, *, confirmed: bool) -> None:
        """The resource isn't served; whether that is certain."""
        self.status.absent = True
        if confirmed:
            log.warning("%s: the server serves no such resource any more", self._informer)

    def resource_moved(self, error: FetchError) -> None:
        """The resource is served in another version now, and read in that one."""
        log.warning("%s: %s", self._informer, error)
        self._report("lookup", Outcome.API_VERSION_CHANGED.name.lower(), error, None)

    def server_rewound(self, error: FetchError) -> None:
        """The server was found to show an older state than before."""
        self.rewinds += 1
        log.warning("%s: %s", self._informer, error)
        self._report("rewind", Outcome.REWOUND.name.lower(), error, None)

    # -- the cache -----------------------------------------------------------------------------

    def object_rejected(self, error: Exception) -> None:
        """A version of an object was not cached, or several were for the same reason. The cache
        has logged it.
        """
        self._report("object", "rejected", error, None)

    def verification_failed(self, cause: str, error: Exception) -> None:
        """The cache differs from the server, or could not be compared with it."""
        level = logging.ERROR if isinstance(error, CacheDiffers) else logging.WARNING
        log.log(level, "%s: verifying: %s: %s", self._informer, type(error).__name__, error)
        self._report("verify", cause, error, None)

    # -- listeners -----------------------------------------------------------------------------

    def listener_label(self, name: str) -> str:
        """What to call a listener in metrics. Its name ends with the informer's, and so with
        selectors, which may name an object; this with the informer's label.
        """
        own = name.removesuffix(f" of {self._informer}")
        return name if own == name else f"{own} of {self.label}"

    def handler_failed(self, listener: str, error: Exception) -> None:
        """A handler raised, timed out or overflowed; the listener has logged it."""
        self.metrics.handler_failed(self.label, self.listener_label(listener), type(error).__name__)
        self._call_hook("handler", listener, error, None)

    def _report(self, phase: str, cause: str, error: Exception, retry_in: float | None) -> None:
        self.metrics.failed(self.label, phase, type(error).__name__)
        self._call_hook(phase, cause, error, retry_in)

    def _call_hook(self, phase: str, cause: str, error: Exception, retry_in: float | None) -> None:
        problem = Problem(
            informer=self._informer, phase=phase, cause=cause, error=error, retry_in=retry_in
        )
        call_hook(self._on_error, problem, log)

    def __repr__(self) -> str:
        return f"<InformerReporter of {self._informer} {self.status!r}>"

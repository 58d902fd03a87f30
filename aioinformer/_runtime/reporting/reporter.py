"""Reports of one informer: health, log lines, metrics, spans and the program's error hook.

The parts of an informer say what happened; the reporter turns that into a ``ReflectorStatus`` for
health, one log record for each request that failed, numbers for metrics, spans for tracing, and a
``Problem`` for the error hook. The list-watch state machine decides whether a request is retried.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from aioinformer._core.instrumentation import InformerTrace, Metrics, Tracing
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.listwatch.reflector_requests import AnyRequest, Verb
from aioinformer._core.listwatch.transitions import Learn, LogLevel, NextRequest, Transition
from aioinformer._runtime.reporting.error_hook import FailureLog, Outage, call_hook, check_hook
from aioinformer._runtime.reporting.error_texts import cut_watches_text, describe_error
from aioinformer._runtime.reporting.reflector_status import ReflectorStatus
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer._runtime.reporting.safe_tracing import (
    SafeSpan,
    handler_span_factory,
    make_informer_trace,
)
from aioinformer.errors import FetchError

if TYPE_CHECKING:  # for programs that read the health, or have an error hook
    from aioinformer._runtime.reporting.health import InformerState
    from aioinformer._runtime.reporting.problem import OnError

log = logging.getLogger("aioinformer.reflector")


_LEVELS: dict[LogLevel, int] = {"info": logging.INFO, "warning": logging.WARNING}

CUT_WATCHES = frozenset({Outcome.CONNECTION_LOST, Outcome.SHORT_WATCH})

_REQUEST_STATES: dict[Verb, InformerState] = {"list": "listing", "watchlist": "listing"}
"""The state that a request under way puts the informer in. A watch does so once it is open."""


class InformerReporter:
    def __init__(
        self,
        informer: str,
        *,
        label: str = "",
        resource: str = "",
        metrics: Metrics | None = None,
        tracing: Tracing | None = None,
        on_error: OnError | None = None,
    ) -> None:
        """Make the reporter of an informer that has not started.

        ``label`` is the informer's name in metrics and spans; ``informer`` by default.

        Raises:
            TypeError: ``on_error`` is no function, or it is async.
        """
        check_hook(on_error)
        self._make_part = partial(
            InformerReporter, resource=resource, metrics=metrics, tracing=tracing, on_error=on_error
        )
        self.status = ReflectorStatus()
        self.has_telemetry = metrics is not None or tracing is not None
        """True if there are metrics or traces. The reflector reads this for every chunk of a watch,
        so that informers without them make no call."""
        self.metrics = wrap_metrics(metrics)
        """The metrics to call; a call never raises."""
        self.label = label or informer
        """The informer's name in metrics and spans."""
        self.trace: InformerTrace = make_informer_trace(tracing, self.label, resource)
        """The spans of the requests; a call never raises."""
        self.on_request_failed: Callable[[FetchError, float], None] | None = None
        """Called with the error of a request, and the seconds to the next one."""
        self.rewinds = 0
        self.informer = informer
        self._on_error = on_error
        self._hook_failures = FailureLog(log)
        self._tracing = tracing
        self._measured = metrics is not None
        self._clock: Callable[[], float] = float
        self._requested_at = 0.0
        self._ignored_reported = False
        """True if an ignored event of the watch under way was reported."""
        self._excluded_logged = False
        """True if the log says that the server sends objects that the filter drops."""
        self._outage, self._refusal = Outage(log), Outage(log)
        self._absence_logged = False
        """True if the log says that the server has no WatchList."""
        self._verb: Verb = "list"
        self._silence: tuple[Verb, FetchError] | None = None
        """The idle timeout of a watch whose server is being checked."""

    def make_part(self, scope: str) -> InformerReporter:
        return self._make_part(f"{self.informer} ({scope})", label=self.label)

    def start(self, clock: Callable[[], float]) -> None:
        self._clock, self._silence = clock, None
        self.status.start(clock)

    def close(self) -> None:
        """End the reports: end the trace, and keep no frame of an error alive."""
        self.trace.closed()
        self._hook_failures.flush()
        if self.status.error is not None:
            from aioinformer._runtime.reporting.error_copy import copy_error  # rarely needed

            self.status.replace_error(copy_error)

    # -- one request ---------------------------------------------------------------------------

    def request_started(self, request: AnyRequest) -> None:
        self._verb, self._requested_at = request.verb, self._clock()
        self._ignored_reported = False
        state = _REQUEST_STATES.get(self._verb)
        if state is not None and self.status.watch_refusal is None:
            self.status.set_state(state)
        self.metrics.request_started(self.label, self._verb)
        self.trace.asked(self._verb)

    def watch_opened(self) -> None:
        self.status.absent = False
        self.status.set_state("watching")
        self._refusal.end("%s: watches again", self.informer)
        self._outage.end("%s: fresh again", self.informer)
        self.status.watch_refusal = None
        self.status.clear_error()
        self.trace.complete()

    def received(self, size: int, events: int) -> None:
        if self.has_telemetry:
            self.metrics.received(self.label, self._verb, size, events)
            self.trace.received(size, events)

    def mark_fresh(self, now: float) -> None:
        self.status.fresh_at = now

    def request_ended(self, end: RequestEnd, transition: Transition, delay: float) -> None:
        """Record that a request has ended; the next one follows after ``delay`` seconds."""
        cause, error = end.outcome.name.lower(), end.error
        seconds = self._clock() - self._requested_at
        self.metrics.request_ended(self.label, self._verb, cause, seconds)
        self.trace.ended(cause, error)
        if end.outcome in (Outcome.COMPLETE, Outcome.POLLED) and self._verb == "list":
            self.trace.complete()
        if self._verb in ("watch", "watchlist"):
            self._record_watch_end(seconds, cut=end.outcome in CUT_WATCHES)
        self._report_silence(alive=end.outcome is Outcome.ALIVE)
        if end.outcome is Outcome.IDLE_TIMEOUT:
            # The check that follows at once shows if anything is wrong.
            self._silence = None if error is None else (self._verb, error)
            return
        if error is not None:
            self._log_end(end, error, transition)
        if error is not None and transition.is_problem:
            self.status.record_error(error)
            if end.outcome is Outcome.WATCH_REFUSED:
                self.status.watch_refusal = error
            if not end.known:
                self._report(self._verb, cause, error, delay)
            if self.on_request_failed is not None:
                self.on_request_failed(error, delay)
        elif transition.ending.healthy:
            self.status.clear_error()
            if end.outcome is Outcome.POLLED:
                self._outage.end("%s: fresh again", self.informer)
        if Learn.SERVED in transition.learn:
            self.status.absent = False
        if delay:
            self.status.schedule_retry(delay)

    def _record_watch_end(self, seconds: float, *, cut: bool) -> None:
        known = self.status.watches_cut_after
        self.status.record_watch_end(seconds, cut=cut)
        found = self.status.watches_cut_after
        if found is not None and known is None:
            log.warning("%s: %s", self.informer, cut_watches_text(found))
        elif found is None and known is not None:
            log.info("%s: the watches are no longer cut after %.0f s", self.informer, known)

    def _report_silence(self, *, alive: bool) -> None:
        """Report the idle timeout of the last watch, unless its server is found ``alive``."""
        silence, self._silence = self._silence, None
        if silence is None:
            return
        verb, error = silence
        if alive:
            text = "%s: the server is alive and had nothing to send: %s"
            log.info(text, self.informer, describe_error(error))
            return
        log.warning("%s: %s", self.informer, describe_error(error))
        self._outage.begin()
        self.status.record_error(error)
        self._report(verb, Outcome.IDLE_TIMEOUT.name.lower(), error, 0.0)
        if self.on_request_failed is not None:
            self.on_request_failed(error, 0.0)

    def _log_end(self, end: RequestEnd, error: FetchError, transition: Transition) -> None:
        if transition.next_request is NextRequest.LIST:
            message = "%s: WatchList is not available, falling back to LIST: %s"
        elif end.outcome is Outcome.WATCH_REFUSED:
            message = "%s: the server refuses watches, lists refresh the cache: %s"
        else:
            message = "%s: %s"
        level = logging.INFO if end.known else _LEVELS[transition.log]
        if not transition.is_problem:
            # The WatchList is tried again now and then, and its absence is known by then.
            level = logging.DEBUG if self._absence_logged else level
            self._absence_logged = True
        if level >= logging.WARNING:
            (self._refusal if end.outcome is Outcome.WATCH_REFUSED else self._outage).begin()
        log.log(level, message, self.informer, describe_error(error))

    def request_cancelled(self) -> None:
        seconds = self._clock() - self._requested_at
        self.metrics.request_ended(self.label, self._verb, "cancelled", seconds)
        self.trace.ended("cancelled", None)

    def events_ignored(self, error: FetchError, count: int) -> None:
        """Record that ``count`` events were ignored, whose objects must not be cached.

        Log and report the first of each watch: a broken proxy may send thousands a second.
        """
        self.status.ignored += count
        if not self._ignored_reported:
            self._ignored_reported = True
            log.warning("%s: the event is ignored: %s", self.informer, error)
            self._report(self._verb, "ignored", error, None)

    def objects_excluded(self, count: int) -> None:
        self.status.excluded += count
        self.metrics.other_shards(self.label, count)
        if not self._excluded_logged:
            self._excluded_logged = True
            log.info(
                "%s: objects of other shards arrive and are dropped: the server does not select "
                "shards (ShardedListAndWatch), or the shards have too many ranges for a selector",
                self.informer,
            )

    def resource_absent(self, *, confirmed: bool) -> None:
        """Record that the server doesn't serve the resource; log that if it is ``confirmed``."""
        self.status.absent = True
        if confirmed:
            log.warning("%s: the server no longer serves this resource", self.informer)
            self._outage.begin()

    def resource_moved(self, error: FetchError) -> None:
        log.warning("%s: %s", self.informer, error)
        self._report("discovery", Outcome.API_VERSION_CHANGED.name.lower(), error, None)

    def server_rewound(self, error: FetchError) -> None:
        self.rewinds += 1
        log.warning("%s: %s", self.informer, error)
        self._report("rewind", Outcome.REWOUND.name.lower(), error, None)

    # -- the cache -----------------------------------------------------------------------------

    def object_rejected(self, error: Exception) -> None:
        """Report that versions of one or more objects were rejected; the pump has logged that."""
        self._report("object", "rejected", error, None)

    # -- listeners -----------------------------------------------------------------------------

    def listener_label(self, name: str) -> str:
        """Return a listener's name for metrics.

        The name of a listener ends with the informer's name and so with its selectors, which may
        name an object. The informer's label replaces them.
        """
        own = name.removesuffix(f" of {self.informer}")
        return name if own == name else f"{own} of {self.label}"

    def handler_timer(self, listener: str) -> Callable[[float, int], None] | None:
        """Return a function that records the seconds and number of a handler's calls; ``None``
        without
        metrics, so that nobody reads the clock.
        """
        if not self._measured:
            return None
        return partial(self.metrics.handled, self.label, self.listener_label(listener))

    def blocking_timer(self, listener: str) -> Callable[[float], None]:
        """Return a function that records the seconds for which a handler has held the loop."""
        return partial(self.metrics.handler_blocked, self.label, self.listener_label(listener))

    def handler_spans(self, listener: str) -> Callable[[str], SafeSpan] | None:
        """Return a function that begins the span of a handler's call; ``None`` for no spans."""
        own = listener.removesuffix(f" of {self.informer}")  # without the selectors
        return handler_span_factory(self._tracing, self.label, own)

    def handler_failed(self, listener: str, error: Exception) -> None:
        """Report that a handler raised, timed out or overflowed, which its listener has logged."""
        self.metrics.handler_failed(self.label, self.listener_label(listener), type(error).__name__)
        self._call_hook("handler", listener, error, None)

    # -- problems ------------------------------------------------------------------------------

    def _report(self, phase: str, cause: str, error: Exception, retry_in: float | None) -> None:
        self.metrics.failed(self.label, phase, type(error).__name__)
        self._call_hook(phase, cause, error, retry_in)

    def _call_hook(self, phase: str, cause: str, error: Exception, retry_in: float | None) -> None:
        if self._on_error is None:
            return
        from aioinformer._runtime.reporting.problem import Problem  # for programs with a hook

        problem = Problem(
            informer=self.informer, phase=phase, cause=cause, error=error, retry_in=retry_in
        )
        call_hook(self._on_error, self._hook_failures, problem)

    def __repr__(self) -> str:
        return f"<InformerReporter of {self.informer} {self.status!r}>"

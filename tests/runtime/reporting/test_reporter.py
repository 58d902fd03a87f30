"""The reporter of an informer: health, log, metrics, problems."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest

from aioinformer import ListRequest, Metrics, Problem, WatchRequest
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.listwatch.reflector_requests import DiscoveryRequest, Verb
from aioinformer._core.listwatch.transitions import TRANSITIONS, Phase
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer.errors import ConnectionFailed, FetchError, ServerRewound

REFUSED = ConnectionFailed("https://10.0.0.1:6443: connection refused", phase="list")


@dataclass
class Counted(Metrics):
    """Metrics that record their calls."""

    reported: list[str] = field(default_factory=list[str])

    def request_started(self, informer: str, verb: Verb) -> None:
        self.reported.append(f"{informer}: {verb}")

    def request_ended(self, informer: str, verb: Verb, cause: str, seconds: float) -> None:
        self.reported.append(f"{informer}: {verb} {cause} after {seconds:g} s")

    def received(self, informer: str, verb: Verb, size: int, events: int) -> None:
        self.reported.append(f"{informer}: {verb} {size} B {events} events")

    def failed(self, informer: str, phase: str, error: str) -> None:
        self.reported.append(f"{informer}: {phase} {error}")

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        self.reported.append(f"{informer}: {listener} {error}")


@dataclass
class Recorder:
    """A reporter, and everything that it reports."""

    now: float = 100.0
    metrics: Counted = field(default_factory=Counted)
    problems: list[Problem] = field(default_factory=list[Problem])

    def reports(self) -> InformerReporter:
        reports = InformerReporter(
            "pods where app=shop",
            label="pods (selected)",
            metrics=self.metrics,
            on_error=self.problems.append,
        )
        reports.start(lambda: self.now)
        return reports


def end(
    reports: InformerReporter,
    phase: Phase,
    outcome: Outcome,
    error: FetchError | None,
    delay: float,
) -> None:
    """Let the request under way end, in this phase of the state machine."""
    reports.request_ended(RequestEnd(outcome, error), TRANSITIONS[phase][outcome], delay)


def test_a_failure_reaches_health_log_metrics_and_the_hook(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reported = Recorder()
    reports = reported.reports()
    reports.request_started(ListRequest())
    reported.now += 2.0

    end(reports, Phase.LIST, Outcome.UNREACHABLE, REFUSED, 0.75)

    assert reports.status.error is REFUSED
    assert (reports.status.state, reports.status.retry_in) == ("waiting", 0.75)
    assert [record.getMessage() for record in caplog.records] == [
        "pods where app=shop: ConnectionFailed: https://10.0.0.1:6443: connection refused"
    ]
    assert reported.metrics.reported == [
        "pods (selected): list",
        "pods (selected): list unreachable after 2 s",
        "pods (selected): list ConnectionFailed",
    ]
    assert reported.problems == [
        Problem(
            informer="pods where app=shop",
            phase="list",
            cause="unreachable",
            error=REFUSED,
            retry_in=0.75,
        )
    ]


@pytest.mark.parametrize(
    "outcome", [Outcome.BAD_REQUEST, Outcome.ERROR_EVENT, Outcome.WATCHLIST_TIMEOUT]
)
def test_a_server_without_watch_lists_is_reported_without_a_warning(
    outcome: Outcome, caplog: pytest.LogCaptureFixture
) -> None:
    reported = Recorder()
    reports = reported.reports()
    reports.request_started(WatchRequest("", 300, initial=True))

    with caplog.at_level(logging.INFO):
        end(reports, Phase.WATCHLIST, outcome, REFUSED, 0.0)

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "INFO",
            "pods where app=shop: WatchList is not available, falling back to LIST: "
            "ConnectionFailed: https://10.0.0.1:6443: connection refused",
        )
    ]
    assert reports.status.error is REFUSED
    assert reported.metrics.reported[-1] == "pods (selected): watchlist ConnectionFailed"
    assert [problem.phase for problem in reported.problems] == ["watchlist"]


@pytest.mark.parametrize(
    ("outcome", "complete"),
    [(Outcome.UNREACHABLE, False), (Outcome.ACCESS_DENIED, False), (Outcome.ERROR_EVENT, True)],
)
def test_any_other_end_of_a_watch_list_is_a_warning(
    outcome: Outcome, complete: bool, caplog: pytest.LogCaptureFixture
) -> None:
    reports = Recorder().reports()
    reports.request_started(WatchRequest("", 300, initial=True))
    if complete:
        reports.watch_opened()

    end(reports, Phase.WATCH if complete else Phase.WATCHLIST, outcome, REFUSED, 0.0)

    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_successful_end_is_reported_to_metrics_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reported = Recorder()
    reports = reported.reports()
    reports.status.record_error(REFUSED)
    reports.request_started(WatchRequest("10", 300))
    reports.received(1000, 3)

    end(reports, Phase.WATCH, Outcome.ENDED, None, 0.0)

    assert reports.status.error is None
    assert reported.problems == []
    assert caplog.records == []
    assert reported.metrics.reported[1:] == [
        "pods (selected): watch 1000 B 3 events",
        "pods (selected): watch ended after 0 s",
    ]


def test_a_cancelled_request_is_counted_as_cancelled() -> None:
    reported = Recorder()
    reports = reported.reports()
    reports.request_started(WatchRequest("", 300, initial=True))
    reported.now += 5.0

    reports.request_cancelled()

    assert reported.metrics.reported[-1] == "pods (selected): watchlist cancelled after 5 s"


@pytest.mark.parametrize(
    ("request_", "state"),
    [
        (ListRequest(), "listing"),
        (WatchRequest("", 300, initial=True), "listing"),
        (WatchRequest("10", 300), "new"),
        (ListRequest("", 1, freshness_check=True), "new"),
        (DiscoveryRequest(), "new"),
    ],
    ids=["list", "watchlist", "watch", "freshness_check", "discovery"],
)
def test_the_state_of_an_informer_follows_its_request(
    request_: ListRequest | WatchRequest | DiscoveryRequest, state: str
) -> None:
    reports = Recorder().reports()
    reports.request_started(request_)

    assert reports.status.state == state


def test_the_failure_of_a_handler_is_reported_as_a_problem_and_to_metrics() -> None:
    reported = Recorder()
    error = ValueError("mine")

    reported.reports().handler_failed("audit of pods where app=shop", error)

    assert [(each.phase, each.cause, each.error) for each in reported.problems] == [
        ("handler", "audit of pods where app=shop", error)
    ]
    # What selects them may name an object, and is no label.
    assert reported.metrics.reported == ["pods (selected): audit of pods (selected) ValueError"]


def test_a_rewind_of_the_server_is_counted_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reported = Recorder()
    reports = reported.reports()
    with caplog.at_level(logging.WARNING):
        reports.server_rewound(ServerRewound("pods", "7"))

    assert reports.rewinds == 1
    assert [each.phase for each in reported.problems] == ["rewind"]
    assert "the restore of a backup" in caplog.text


def test_the_state_is_absent_until_the_resource_is_served_again() -> None:
    reports = Recorder().reports()
    reports.request_started(DiscoveryRequest())
    reports.resource_absent(confirmed=False)
    end(reports, Phase.DISCOVERY, Outcome.NOT_SERVED, None, 3.0)
    states = [reports.status.state]

    reports.request_started(DiscoveryRequest())
    end(reports, Phase.DISCOVERY, Outcome.APPEARED, None, 0.0)
    reports.request_started(ListRequest())
    states.append(reports.status.state)
    end(reports, Phase.LIST, Outcome.UNREACHABLE, REFUSED, 3.0)
    states.append(reports.status.state)

    assert states == ["absent", "listing", "waiting"]


def test_the_state_absent_ends_with_a_complete_watch_list() -> None:
    reports = Recorder().reports()
    reports.resource_absent(confirmed=False)
    reports.watch_opened()

    assert not reports.status.absent


def test_an_object_with_the_methods_of_metrics_is_accepted() -> None:
    metrics: Metrics = Counted()
    assert metrics is not None


def test_a_namespace_has_a_status_of_its_own_and_shares_the_rest() -> None:
    recorder = Recorder()
    whole = recorder.reports()
    part = whole.make_part("web")
    part.start(lambda: recorder.now)
    failed: list[tuple[FetchError, float]] = []
    part.on_request_failed = lambda error, delay: failed.append((error, delay))
    part.request_started(ListRequest())
    transition = TRANSITIONS[Phase.LIST][Outcome.UNREACHABLE]
    part.request_ended(RequestEnd(Outcome.UNREACHABLE, REFUSED), transition, 4.0)
    assert failed == [(REFUSED, 4.0)]
    assert (part.status.error, whole.status.error) == (REFUSED, None)
    [problem] = recorder.problems
    assert problem.informer == "pods where app=shop (web)"
    assert {line.split(":")[0] for line in recorder.metrics.reported} == {"pods (selected)"}

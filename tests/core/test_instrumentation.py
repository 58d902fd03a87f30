"""The interfaces by which informers are measured and traced."""

from __future__ import annotations

from typing import get_args

from aioinformer._core.instrumentation import (
    InformerTrace,
    Levels,
    Metrics,
    QueueStatistics,
)
from aioinformer._core.listwatch.reflector_requests import (
    AnyRequest,
    DiscoveryRequest,
    ListRequest,
    Verb,
    WatchRequest,
)


def levels() -> Levels:
    raise AssertionError("these metrics read nothing")


def numbers() -> QueueStatistics:
    raise AssertionError("these metrics read nothing")


def test_metrics_that_override_nothing_record_nothing() -> None:
    metrics = Metrics()
    metrics.request_started("pods/web", "list")
    metrics.request_ended("pods/web", "list", "complete", 0.5)
    metrics.received("pods/web", "watch", 4096, 3)
    metrics.failed("pods/web", "watch", "ConnectionLost")
    metrics.handled("pods/web", "print", 0.001, 1)
    metrics.handler_failed("pods/web", "print", "ValueError")
    metrics.informer_started("pods/web", levels)
    metrics.informer_ended("pods/web", levels)
    metrics.queue_started("pods", numbers)
    metrics.queue_ended("pods", numbers)
    metrics.worked("pods", 0.5, 0.1)
    metrics.reconciled("pods", "success", 0.1)
    metrics.leadership("web/controller", True)
    assert repr(metrics) == "<Metrics>"


def test_a_trace_that_overrides_nothing_records_nothing() -> None:
    trace = InformerTrace()
    trace.asked("list")
    trace.received(1, 1)
    trace.complete()
    trace.ended("complete", None)
    trace.closed()
    assert repr(trace) == "<InformerTrace>"


def test_every_request_has_a_verb_of_the_fixed_set() -> None:
    requests: list[AnyRequest] = [
        ListRequest(),
        ListRequest("", 1, freshness_check=True),
        WatchRequest("7", 300),
        WatchRequest("", 300, initial=True),
        DiscoveryRequest(),
    ]
    assert {request.verb for request in requests} == set(get_args(Verb))

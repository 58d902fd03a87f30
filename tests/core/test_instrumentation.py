"""The protocol by which informers are measured, and the silence that is its default."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

from aioinformer._core.controllers.queue_items import QueueStatistics
from aioinformer._core.instrumentation import Levels, Metrics, NoMetrics
from aioinformer._core.listwatch.requests import (
    AnyRequest,
    DiscoveryRequest,
    ListRequest,
    Verb,
    WatchRequest,
)

TOLD = [name for name, each in vars(Metrics).items() if inspect.isfunction(each) and name[0] != "_"]


def silent(metrics: Metrics) -> Metrics:
    """``metrics``: type checkers see here that it is one."""
    return metrics


def levels() -> Levels:
    raise AssertionError("nobody measures, so nobody reads")


def numbers() -> QueueStatistics:
    raise AssertionError("nobody measures, so nobody reads")


def test_who_measures_nothing_may_be_told_everything() -> None:
    metrics = silent(NoMetrics())
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
    assert repr(metrics) == "<NoMetrics>"


@pytest.mark.parametrize("name", TOLD)
def test_the_silent_default_takes_what_the_protocol_gives(name: str) -> None:
    asked, given = (inspect.signature(getattr(each, name)) for each in (Metrics, NoMetrics))
    assert asked == given


def test_every_request_has_a_verb_of_the_fixed_set() -> None:
    requests: list[AnyRequest] = [
        ListRequest(),
        ListRequest("", 1, freshness_check=True),
        WatchRequest("7", 300),
        WatchRequest("", 300, initial=True),
        DiscoveryRequest(),
    ]
    assert {request.verb for request in requests} == set(get_args(Verb))

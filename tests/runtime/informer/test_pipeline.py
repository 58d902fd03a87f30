"""The pipeline of one informer: its parts, its only run, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from aioinformer import Metrics, SharedInformer
from aioinformer._core.codec.shape import Shape
from aioinformer._core.instrumentation import Levels
from aioinformer.errors import Forbidden, NotRunning, UsageError
from aioinformer.testing import ClusterSource, Faults
from aioinformer.testing.simulation import run
from tests.runtime.informer.pipelines import make_pipeline, running_pipeline
from tests.runtime.informers import cluster_with_pods, running_in_background
from tests.runtime.scripted_source import PODS, ErrorResponse, ScriptedListerWatcher


class Named(Struct):
    """A model of a pod."""


class RecordedMetrics(Metrics):
    """The begin and the end of informers."""

    def __init__(self) -> None:
        self.calls = list[tuple[str, str]]()
        self.levels: Callable[[], Levels] | None = None

    def informer_started(self, informer: Any, levels: Callable[[], Levels]) -> None:
        self.calls.append(("started", informer))
        self.levels = levels

    def informer_ended(self, informer: Any, levels: Callable[[], Levels]) -> None:
        self.calls.append(("ended", informer))


def test_an_informer_keeps_the_servers_bodies_only_without_a_shape() -> None:
    source = ClusterSource(cluster_with_pods("a")).lister_watcher(PODS)

    assert SharedInformer(source).keeps_bodies
    assert SharedInformer(source, shape=Shape.of(convert=repr)).keeps_bodies
    assert not SharedInformer(source, shape=Shape.of(model=Named)).keeps_bodies
    assert repr(make_pipeline(cluster_with_pods("a"))) == "<InformerPipeline of pods>"


def test_a_pipeline_runs_once() -> None:
    async def main() -> None:
        pipeline = make_pipeline(cluster_with_pods("a"))
        async with running_pipeline(pipeline):
            assert len(pipeline.reader.snapshot()) == 1
        with pytest.raises(UsageError, match="the informer of pods was started before; make anoth"):
            await pipeline.run(None)

    run(main(), seed=1)


def test_the_metrics_learn_of_the_begin_and_the_end_of_a_run() -> None:
    metrics = RecordedMetrics()

    async def main() -> None:
        async with running_pipeline(make_pipeline(cluster_with_pods("a", "b"), metrics=metrics)):
            assert metrics.levels is not None
            assert metrics.levels().objects == 2

    run(main(), seed=1)
    assert metrics.calls == [("started", "pods"), ("ended", "pods")]


def test_an_informer_that_is_cancelled_is_stopped_and_waits_end() -> None:
    async def main() -> None:
        pipeline = make_pipeline(cluster_with_pods("a"))
        async with running_pipeline(pipeline):
            waiting = asyncio.create_task(
                pipeline.reader.wait_until(
                    next(iter(pipeline.reader.snapshot())), lambda obj: obj is None, None
                )
            )
            await asyncio.sleep(1)
        with pytest.raises(NotRunning):
            await waiting
        assert pipeline.status.health().state == "stopped"

    run(main(), seed=1)


def test_a_fatal_error_is_reported_at_once_raised_without_a_group_and_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        faults, reported = Faults(), list[Exception]()
        faults.forbid()
        pipeline = make_pipeline(cluster_with_pods("a"), faults=faults, fail_fast=(Forbidden,))
        with pytest.raises(Forbidden) as caught:
            await pipeline.run(reported.append)
        assert reported == [caught.value]
        health = pipeline.status.health()
        assert (health.state, type(health.error)) == ("failed", Forbidden)
        assert health.error is not caught.value  # whose traceback would keep the cache
        assert caught.value.__context__ is None

    run(main(), seed=1)
    (critical,) = [each for each in caplog.records if each.levelno == logging.CRITICAL]
    assert critical.getMessage().startswith("the informer of pods failed: Forbidden: ")
    assert critical.exc_info is None  # the error names the request: no traceback helps


def test_an_error_that_no_request_raises_is_logged_with_its_traceback_and_keeps_its_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        error = LookupError("a bug")
        error.__cause__ = KeyError("the cause")
        source = ScriptedListerWatcher(deque([ErrorResponse(error)]))
        pipeline = make_pipeline(cluster_with_pods(), source=source, watch_list=False)
        with pytest.raises(LookupError) as caught:
            await pipeline.run(None)
        assert repr(caught.value.__cause__) == "KeyError('the cause')"
        assert repr(pipeline.status.health().error) == "LookupError('a bug')"

    run(main(), seed=1)
    (critical,) = [each for each in caplog.records if each.levelno == logging.CRITICAL]
    assert critical.getMessage() == "the informer of pods failed"
    assert critical.exc_info is not None


def test_the_tasks_of_a_pipeline_are_named_after_its_informer() -> None:
    async def main() -> set[str]:
        pipeline = make_pipeline(cluster_with_pods("a"))
        async with running_in_background(pipeline.run(None)):
            await pipeline.reader.wait_synced(timeout=10)
            return {task.get_name() for task in asyncio.all_tasks()}

    assert run(main(), seed=1) >= {"reflector of pods", "pump of pods"}

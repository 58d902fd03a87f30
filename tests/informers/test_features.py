"""Features of a program: what they may do, and what follows if one raises."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from aioinformer import Event, Health
from aioinformer._core.objects.deltas import Replaced
from aioinformer.errors import UsageError
from aioinformer.lowlevel import Feature, InformerOptions, InformerParts
from aioinformer.sharding.state.shard import Shard
from tests.runtime.informers import cluster_with_pods, pod_informer, running_informer


class Recorded(Feature):
    """Records the calls of its methods, one of which may raise."""

    def __init__(self, name: str, calls: list[str], raises: str = "") -> None:
        self._name = name
        self._calls = calls
        self._raises = raises

    def _call(self, method: str) -> None:
        self._calls.append(f"{method} {self._name}")
        if method == self._raises:
            raise LookupError(f"{method} of {self._name}")

    def attach(self, parts: InformerParts) -> None:
        self._call("attach")

    def start(self, tasks: object) -> None:
        self._call("start")

    async def close(self) -> None:
        self._call("close")

    def summarize(self, health: Health) -> Health:
        if self._raises == "summarize":
            self._call("summarize")
        return replace(health, ignored=health.ignored + 1)

    def record(self, events: Sequence[Event]) -> None:
        self._call("record")

    def record_list(self, batches: Sequence[Sequence[Event]], kind: Replaced) -> None:
        self._call("record_list")


def features(calls: list[str], **raises: str) -> tuple[Any, ...]:
    return tuple(lambda name=name: Recorded(name, calls, raises[name]) for name in raises)


async def test_features_start_in_their_order_and_close_in_the_reverse_one() -> None:
    calls = list[str]()
    informer = pod_informer(cluster_with_pods("a"), features=features(calls, one="", two=""))
    assert informer.health.ignored == 2
    async with running_informer(informer):
        pass
    assert [each for each in calls if not each.startswith("record")] == [
        *("attach one", "attach two", "start one", "start two", "close two", "close one")
    ]
    assert informer.health.ignored == 2


async def test_a_feature_that_raises_at_the_end_does_not_keep_the_others_from_closing() -> None:
    calls = list[str]()
    chosen = features(calls, one="close", two="close", three="")
    informer = pod_informer(cluster_with_pods("a"), features=chosen)
    with pytest.raises(LookupError, match="close of one"):
        async with running_informer(informer):
            pass
    assert calls[-3:] == ["close three", "close two", "close one"]
    assert informer.health.state == "stopped"


@pytest.mark.parametrize("method", ["start", "record", "record_list"])
async def test_a_feature_that_raises_while_the_informer_runs_ends_it_as_failed(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    calls, cluster, fatal = list[str](), cluster_with_pods("a"), list[Exception]()
    informer = pod_informer(cluster, features=features(calls, one=method, two=""))
    task = asyncio.ensure_future(informer.run(on_fatal=fatal.append))
    if method == "record":
        await informer.wait_synced(timeout=10)
        cluster.create("pods", {"metadata": {"name": "b"}})
    with pytest.raises(LookupError, match=f"{method} of one"):
        await asyncio.wait_for(task, timeout=10)
    assert informer.health.state == "failed"
    assert "the informer of pods failed" in caplog.text
    assert [str(each) for each in fatal] == [f"{method} of one"]
    assert calls[-2:] == ["close two", "close one"]


def test_features_are_a_tuple_of_functions() -> None:
    with pytest.raises(TypeError, match="features must be a tuple of functions that return a Feat"):
        InformerOptions(features=Feature)  # type: ignore[arg-type]  # what a program may pass
    with pytest.raises(TypeError, match="features must be a tuple of functions that return a Feat"):
        InformerOptions(features=(Feature(),))  # type: ignore[arg-type]  # what a program may pass


async def test_two_features_can_not_both_filter_the_objects_that_are_read() -> None:
    class Evens(Feature):
        def select(self, resource: Any, queue: Any) -> Any:
            from aioinformer.sharding.feature import read_shard

            return read_shard(Shard(1, 3), resource, queue)

    with pytest.raises(UsageError, match="ShardFeature and Evens select objects"):
        pod_informer(cluster_with_pods("a"), features=(Evens,), shard=Shard(0, 2))

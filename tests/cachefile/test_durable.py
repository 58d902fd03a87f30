"""Durable handlers and streams."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from aioinformer import CacheFile, Event, SharedInformerFactory
from aioinformer.errors import ShutdownIncomplete, UsageError
from aioinformer.testing import Cluster, ClusterSource
from tests.cachefile.programs import (
    INTERVAL,
    Program,
    crash_file,
    pods_are_stored,
    running,
    text_of,
    until,
)
from tests.runtime.informers import cluster_with_pods, label_pod


@pytest.fixture(name="path")
def a_path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


async def test_a_durable_handler_receives_the_changes_since_its_last_return(
    path: Path,
) -> None:
    cluster = cluster_with_pods("kept", "changed", "removed")
    label_pod(cluster, "changed", "old")
    async with running(cluster, path, durable="audit") as first:
        await until(lambda: len(first.heard) == 3)
        assert sorted(first.heard) == ["= changed", "= kept", "= removed"]
    label_pod(cluster, "changed", "new")
    cluster.delete("pods", "removed")
    cluster.create("pods", {"metadata": {"name": "added"}})
    async with running(cluster, path, durable="audit") as second:
        await until(lambda: len(second.heard) == 3)
        assert second.heard == ["~ changed old->new", "- removed deleted", "+ added"]
    async with running(cluster, path, durable="audit") as third:
        label_pod(cluster, "kept", "last")
        await until(lambda: third.heard)
        assert third.heard == ["~ kept ->last"], "and no repetition"


async def test_after_410_a_durable_handler_receives_the_difference(path: Path) -> None:
    cluster = cluster_with_pods("kept", "changed", "removed")
    async with running(cluster, path, durable="audit") as first:
        await until(lambda: len(first.heard) == 3)
    label_pod(cluster, "changed", "new")
    cluster.delete("pods", "removed")
    cluster.create("pods", {"metadata": {"name": "added"}})
    cluster.compact()
    async with running(cluster, path, durable="audit") as second:
        await until(lambda: len(second.heard) == 3)
        assert sorted(second.heard) == ["+ added", "- removed vanished", "~ changed ->new"]


async def test_a_new_durable_name_starts_with_all_objects_or_with_later_changes(path: Path) -> None:
    cluster = cluster_with_pods("a")
    now: list[str] = []

    def add_now(program: Program) -> None:
        program.pods.add_handler(
            lambda event: now.append(text_of(event)), durable="now", durable_since="now"
        )

    async with running(cluster, path, setup=add_now):
        pass
    async with running(cluster, path, durable="everything", setup=add_now) as program:
        await until(lambda: program.heard == ["= a"])
        label_pod(cluster, "a", "1")
        await until(lambda: now)
    assert now == ["~ a ->1"]


async def test_a_handler_that_hangs_holds_back_the_file(path: Path) -> None:
    cluster = cluster_with_pods("a")
    handled: list[str] = []
    hang = asyncio.Event()

    async def slow(event: Event) -> None:
        if event.obj.name == "b" and not hang.is_set():
            await asyncio.sleep(3600)
        handled.append(text_of(event))

    def add_slow(program: Program) -> None:
        program.pods.add_handler(slow, durable="slow")

    async def run_until_it_hangs() -> None:
        async with running(
            cluster, path, durable="quick", setup=add_slow, shutdown_timeout=0.2
        ) as first:
            await until(lambda: handled == ["= a"])
            await until(lambda: pods_are_stored(cluster, path, "default"))
            cluster.create("pods", {"metadata": {"name": "b"}})
            await until(lambda: "+ b" in first.heard)
            for value in "123":
                label_pod(cluster, "a", value)
            await until(lambda: "~ a 2->3" in first.heard)
            await asyncio.sleep(INTERVAL * 5)

    with pytest.raises(ShutdownIncomplete, match="at Added of default/b"):
        await run_until_it_hangs()
    hang.set()
    async with running(cluster, path, durable="quick", setup=add_slow) as second:
        await until(lambda: handled[-1:] == ["~ a 2->3"])
        await until(lambda: len(second.heard) == 4)
    assert handled == ["= a", "+ b", "~ a ->1", "~ a 1->2", "~ a 2->3"]
    assert second.heard == handled[1:], "the quick one shares the state of the file"


async def test_a_handler_under_constant_load_lets_the_file_advance(path: Path) -> None:
    cluster = cluster_with_pods("a")
    async with running(cluster, path, durable="audit") as program:
        for value in range(60):
            label_pod(cluster, "a", str(value))
            await asyncio.sleep(INTERVAL / 4)
        await until(lambda: any(each.endswith("->59") for each in program.heard[-1:]))
        size = len(program.heard)
    async with running(cluster, path, durable="audit") as again:
        label_pod(cluster, "a", "end")
        await until(lambda: again.heard)
        assert again.heard == ["~ a 59->end"]
    assert size == 61


async def test_a_call_with_fail_fast_that_raises_is_repeated_after_the_restart(path: Path) -> None:
    cluster = cluster_with_pods("a")
    failing, heard = True, list[str]()

    async def fragile(event: Event) -> None:
        if failing and event.obj.name == "b":
            raise ValueError("no space left")
        heard.append(text_of(event))

    def add_fragile(program: Program) -> None:
        program.pods.add_handler(fragile, durable="audit", fail_fast=True)

    async def run_until_it_fails() -> None:
        async with running(cluster, path, setup=add_fragile):
            await until(lambda: heard == ["= a"] and pods_are_stored(cluster, path, "default"))
            cluster.create("pods", {"metadata": {"name": "b"}})
            await asyncio.sleep(10)

    with pytest.raises(ValueError, match="no space left"):
        await run_until_it_fails()
    failing = False
    async with running(cluster, path, setup=add_fragile):
        await until(lambda: heard == ["= a", "+ b"])


async def test_a_durable_name_that_was_discarded_starts_with_all_objects(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = cluster_with_pods("a")
    async with running(cluster, path, durable="audit") as first:
        await until(lambda: first.heard == ["= a"])
    async with running(cluster, path) as second:
        await until(lambda: second.heard == ["= a"])
    assert "no listener is called durable='audit' any more" in caplog.text
    async with running(cluster, path, durable="audit") as third:
        await until(lambda: third.heard == ["= a"])


async def test_a_stream_acknowledges_by_its_next_iteration_or_by_done(path: Path) -> None:
    cluster = cluster_with_pods("a", "b", "c")

    async def read(count: int, *, done: bool) -> list[str]:
        found: list[str] = []
        cache = CacheFile(path, interval=INTERVAL)
        async with SharedInformerFactory(ClusterSource(cluster), cache=cache) as factory:
            pods = factory.informer("pods")
            async with pods.events(durable="feed") as events:
                async for event in events:
                    found.append(text_of(event))
                    if len(found) == count:
                        break
                if done:
                    await events.done()
        return found

    assert sorted(await read(3, done=False)) == ["= a", "= b", "= c"]
    assert sorted(await read(3, done=True)) == ["= a", "= b", "= c"], "c was not acknowledged"
    label_pod(cluster, "a", "1")
    assert await read(1, done=False) == ["~ a ->1"]
    assert await read(1, done=True) == ["~ a ->1"]
    label_pod(cluster, "a", "2")
    assert await read(1, done=True) == ["~ a 1->2"]


async def test_health_names_a_durable_stream_that_was_left_and_prevents_writes_of_the_file(
    path: Path,
) -> None:
    cluster = cluster_with_pods("a")
    cache = CacheFile(path, interval=INTERVAL)
    async with SharedInformerFactory(ClusterSource(cluster), cache=cache) as factory:
        pods = factory.informer("pods")
        async with pods.events(durable="feed") as events:
            async for _ in events:
                await events.done()
                break
        label_pod(cluster, "a", "1")
        await until(lambda: pods.lister["default/a"].labels.get("value") == "1")
        assert "is held back by stream of pods, which was closed" in pods.health.cache_problem
        await asyncio.sleep(INTERVAL * 5)
    async with (
        SharedInformerFactory(ClusterSource(cluster), cache=cache) as factory,
        factory.informer("pods").events(durable="feed") as events,
    ):
        assert text_of(await anext(events)) == "~ a ->1"


async def test_a_durable_handler_that_comes_too_late_or_twice_is_an_error(path: Path) -> None:
    async with running(cluster_with_pods("a"), path, durable="audit") as program:
        with pytest.raises(UsageError, match="comes too late: the informer of pods runs"):
            program.pods.add_handler(print, durable="late")
    pods = SharedInformerFactory(
        ClusterSource(Cluster()), cache=CacheFile(path, interval=INTERVAL)
    ).informer("pods")
    pods.add_handler(print, durable="audit")
    with pytest.raises(UsageError, match="is the name of another listener"):
        pods.add_handler(print, durable="audit")
    with pytest.raises(UsageError, match="has concurrency=1"):
        pods.add_handler(print, durable="two", concurrency=2)
    with pytest.raises(TypeError, match="durable must be a name"):
        pods.add_handler(print, durable="")
    with pytest.raises(ValueError, match="durable_since must be"):
        pods.add_handler(print, durable="x", durable_since="then")  # type: ignore[arg-type]


async def test_a_factory_that_ends_delivers_pending_events_and_none_is_repeated_later(
    path: Path,
) -> None:
    cluster = cluster_with_pods(*"abc")
    heard: list[str] = []

    async def slow(event: Event) -> None:
        await asyncio.sleep(0.05)
        heard.append(text_of(event))

    def add_slow(program: Program) -> None:
        program.pods.add_handler(slow, durable="audit")

    async with running(cluster, path, setup=add_slow):
        await until(lambda: heard)  # left between two objects
    assert heard == ["= a", "= b", "= c"]
    async with running(cluster, path, setup=add_slow):
        label_pod(cluster, "a", "1")
        await until(lambda: "~ a ->1" in heard)
    assert heard == ["= a", "= b", "= c", "~ a ->1"]


class AuditedPods:
    """A durable handler's own record of the pods, which outlives the crashes of its program."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.versions: dict[str, str] = {}
        self.calls = self.repeated = 0
        self.alive = True
        self._handled: set[tuple[str, str, str]] = set()

    def handle(self, event: Event) -> None:
        if not self.alive:  # the program was killed before this call
            return
        pod, kind = event.obj, type(event).__name__
        call = (kind, pod.uid, pod.resource_version)
        self.calls += 1
        self.repeated += call in self._handled
        self._handled.add(call)
        if kind == "Deleted":
            self.versions.pop(pod.uid, None)
        else:
            self.versions[pod.uid] = pod.resource_version

    @property
    def complete(self) -> bool:
        """True if the record is the state of the server, so that no deletion was missed either."""
        pods = [pod["metadata"] for pod in self.cluster.objects("pods")]
        return self.versions == {pod["uid"]: pod["resourceVersion"] for pod in pods}


def change_pods(random: Random, cluster: Cluster) -> int:
    """Create, change and delete pods. Return the number of those deleted."""
    deleted = 0
    for number in random.sample(range(12), 4):
        present = {pod["metadata"]["name"] for pod in cluster.objects("pods")}
        if f"p{number}" not in present:
            cluster.create("pods", {"metadata": {"name": f"p{number}"}})
        elif random.random() < 0.5:
            label_pod(cluster, f"p{number}", str(random.random()))
        else:
            cluster.delete("pods", f"p{number}")
            deleted += 1
    return deleted


@pytest.mark.parametrize("crashes", [12, pytest.param(1000, marks=pytest.mark.simulation)])
@pytest.mark.timeout(580)
async def test_a_durable_handler_misses_no_change_after_a_crash_at_any_moment(
    tmp_path: Path, crashes: int
) -> None:
    # A loss of power may leave the first state of the file. With the server's history since then,
    # nothing is missed.
    random, cluster, deleted = Random(9), Cluster(window=1_000_000), 0
    audit, path = AuditedPods(cluster), tmp_path / "first.db"

    def add_audit(program: Program) -> None:
        program.pods.add_handler(audit.handle, durable="audit")

    async with running(cluster, path, setup=add_audit):
        change_pods(random, cluster)
    for crash in range(crashes):
        crashed = tmp_path / f"{crash}.db"
        deleted += change_pods(random, cluster)
        async with running(cluster, path, setup=add_audit):
            for _ in range(random.randrange(4)):
                change_pods(random, cluster)
                await asyncio.sleep(3 * INTERVAL * random.random())
            audit.alive = False  # what the program does from here on has not happened
            crash_file(random, path, crashed)
        audit.alive, path = True, crashed
    async with running(cluster, path, setup=add_audit):
        await until(lambda: audit.complete)
    assert deleted > crashes / 4, "pods were deleted while the program was down"
    assert 0 < audit.repeated < audit.calls, f"{audit.repeated} of {audit.calls} came twice"

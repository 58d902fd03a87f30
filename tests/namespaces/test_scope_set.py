"""The namespaces of one informer, each with its own reflector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, NoReturn

import pytest

from aioinformer import (
    Added,
    Deleted,
    Event,
    InformerTrace,
    KubeObject,
    Metrics,
    ObjectKey,
    Problem,
    Scope,
    SharedInformer,
    SharedInformerFactory,
    Updated,
    labelled,
)
from aioinformer.errors import Forbidden, NotRunning, SyncTimeout, UsageError
from aioinformer.namespaces.state.scopes import Namespaces
from aioinformer.testing import Cluster, ClusterSource, Faults
from aioinformer.testing.simulation.loop import run
from tests.cpu_time import short_turns
from tests.namespaces.refusing_source import RefusingSource
from tests.runtime.informers import FAST_BACKOFF, SLOW_BACKOFF
from tests.runtime.scripted_source import wait_until, yield_to_loop


def put(cluster: Cluster, *keys: str, app: str = "shop") -> None:
    """Create pods."""
    for key in keys:
        namespace, _, name = key.partition("/")
        metadata = {"name": name, "labels": {"app": app}}
        cluster.create("pods", {"metadata": metadata}, namespace=namespace)


def name_of(obj: KubeObject) -> str:
    return obj.name


async def ignore(event: Event) -> None:
    pass


def change(cluster: Cluster, key: str, value: str) -> None:
    namespace, _, name = key.partition("/")
    patch = {"metadata": {"labels": {"value": value}}}
    cluster.merge_patch("pods", name, patch, namespace=namespace)


@asynccontextmanager
async def reading(
    source: RefusingSource | ClusterSource, **request: Any
) -> AsyncGenerator[tuple[SharedInformerFactory, SharedInformer]]:
    """Run an informer of pods, and yield it with its factory."""
    async with SharedInformerFactory(source, backoff=FAST_BACKOFF) as informers:
        yield informers, informers.informer("pods", **request)


def cached(pods: SharedInformer) -> list[str]:
    return sorted(map(str, pods.lister.unsynced.keys()))


async def take(events: AsyncIterator[Event], count: int) -> list[str]:
    """Return the next events as text."""
    found: list[str] = []
    async with asyncio.timeout(10):
        for _ in range(count):
            match await anext(events):
                case Added(obj, initial):
                    found.append(f"{'=' if initial else '+'} {obj.key}")
                case Updated(_, new):
                    found.append(f"~ {new.key}")
                case Deleted(obj, reason):
                    found.append(f"- {obj.key} {reason}")
    return found


# -- one cache of several namespaces -----------------------------------------------------------


async def test_the_namespaces_are_one_cache_with_requests_of_their_own() -> None:
    source = RefusingSource(Cluster(), refused={""})
    put(source.cluster, "a/x", "b/x", "c/x")
    async with reading(source, namespaces=["b", "a", "a"]) as (informers, pods):
        await informers.wait_synced(30)
        assert pods.namespaces == ("a", "b")
        assert pods.name == "pods in a, b"
        assert cached(pods) == ["a/x", "b/x"]
        assert pods.lister["a/x"].namespace == "a"
        assert [obj.namespace for obj in pods.lister.list(namespace="b")] == ["b"]
        assert {namespace for namespace, _ in source.requests} == {"a", "b"}
        async with pods.events() as events:
            assert sorted(await take(events, 2)) == ["= a/x", "= b/x"]
            change(source.cluster, "a/x", "1")
            put(source.cluster, "b/y", "c/y")
            source.cluster.delete("pods", "x", namespace="b")
            assert sorted(await take(events, 3)) == ["+ b/y", "- b/x deleted", "~ a/x"]
        assert await pods.verify(contents=True)


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("returns", [False, True])
async def test_a_verification_leaves_out_namespaces_that_leave_meanwhile(
    *, repair: bool, returns: bool
) -> None:
    source = RefusingSource(Cluster(), refused=set())
    put(source.cluster, "a/x", "b/x", "c/x")
    async with reading(source, namespaces=["a", "b", "c"]) as (informers, pods):
        await informers.wait_synced(30)
        for turns in range(40):
            verifying = asyncio.create_task(pods.verify(repair=repair, timeout=10))
            for _ in range(turns):
                await asyncio.sleep(0)
            pods.remove_namespace("b")
            if turns % 2:
                source.refused.add("b")  # as where the permission goes with the namespace
            if returns:
                pods.add_namespace("b")
            found = await verifying
            assert found, str(found)
            assert found.objects in (2, 3)
            source.refused.clear()
            if not returns:
                pods.add_namespace("b")
            await wait_until(lambda: cached(pods) == ["a/x", "b/x", "c/x"])
        for namespace in "abc":
            pods.remove_namespace(namespace)
        assert await pods.verify(), "there is nothing to compare"


async def test_every_namespace_may_have_its_own_selector() -> None:
    cluster = Cluster()
    put(cluster, "a/shop", "b/shop", "c/shop")
    put(cluster, "a/tool", "b/tool", "c/tool", app="tool")
    scopes = {"a": Scope(labels={"app": "shop"}), "b": Scope(fields="metadata.name=tool")}
    async with reading(ClusterSource(cluster), namespaces={**scopes, "c": Scope()}) as (all_, pods):
        await all_.wait_synced(30)
        assert cached(pods) == ["a/shop", "b/tool", "c/shop", "c/tool"]
    request = {"namespaces": {**scopes, "c": Scope()}, "labels": "app=tool"}
    async with reading(ClusterSource(cluster), **request) as (all_, pods):
        await all_.wait_synced(30)
        assert cached(pods) == ["a/shop", "b/tool", "c/tool"]
        assert pods.name == "pods in a, b, c where app=tool"


async def test_an_index_covers_all_namespaces_and_can_be_added_later() -> None:
    cluster = Cluster()
    put(cluster, "a/x", "b/x", "b/y")
    async with reading(
        ClusterSource(cluster), namespaces=["a", "b"], indexers={"name": name_of}
    ) as (informers, pods):
        await informers.wait_synced(30)
        assert len(pods.lister.by_index("name", "x")) == 2
        await pods.add_index("namespace", lambda obj: obj.namespace)
        assert pods.lister.index_counts("namespace") == {"a": 1, "b": 2}
        async with pods.snapshot_and_events() as (snapshot, _):
            assert sorted(map(str, snapshot)) == ["a/x", "b/x", "b/y"]


async def test_a_relist_of_one_namespace_does_not_change_the_others() -> None:
    source = RefusingSource(Cluster())
    put(source.cluster, "a/x", "a/y", "b/x")
    async with reading(source, namespaces=["a", "b"]) as (informers, pods):
        await informers.wait_synced(30)
        before = pods.lister["b/x"]
        async with pods.events() as events:
            await take(events, 3)
            source.end_watches("a")
            source.cluster.delete("pods", "x", namespace="a")
            source.cluster.compact()
            source.cluster.empty_watch_cache()
            assert await take(events, 1) == ["- a/x vanished"]
        assert pods.lister["b/x"] is before
        assert len(source.sent("b")) == 1


async def test_wait_for_uses_the_version_of_the_namespace_of_the_object() -> None:
    cluster = Cluster()
    put(cluster, "a/x", "b/x")
    async with reading(ClusterSource(cluster), namespaces=["a", "b"]) as (informers, pods):
        await informers.wait_synced(30)
        written = cluster.create("pods", {"metadata": {"name": "y"}}, namespace="b")
        found = await pods.wait_for(written, timeout=10)
        assert found is not None
        assert found.key == ObjectKey("b", "y")
        elsewhere = cluster.create("pods", {"metadata": {"name": "y"}}, namespace="z")
        with pytest.raises(UsageError, match="in another namespace"):
            await pods.wait_for(elsewhere, timeout=10)


async def test_the_informer_of_a_selection_is_shared() -> None:
    cluster = Cluster()
    async with SharedInformerFactory(ClusterSource(cluster), namespace="default") as informers:
        pods = informers.informer("pods", namespaces=["a", "b"])
        assert informers.informer("po", namespaces={"b": Scope(), "a": Scope()}) is pods
        assert informers.informer("pods", namespaces=["a"]) is not pods
        optional = {"a": Scope(optional=True), "b": Scope()}
        assert informers.informer("pods", namespaces=optional) is not pods


async def test_an_informer_without_namespaces_is_synced_and_empty() -> None:
    async with reading(ClusterSource(Cluster()), namespaces=[]) as (informers, pods):
        await informers.wait_synced(30)
        assert (cached(pods), pods.name) == ([], "pods in 0 namespaces")
        assert pods.health.state == "watching"
        assert await pods.verify()


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        ({"namespaces": "a"}, TypeError, "for one namespace pass namespace="),
        ({"namespaces": ["a", ""]}, UsageError, "ALL_NAMESPACES"),
        ({"namespaces": [1]}, TypeError, "a text, not 1"),
        ({"namespaces": {"a": "app=shop"}}, TypeError, r"needs a Scope, .*not 'app=shop'"),
        ({"namespaces": 1}, TypeError, "not 1"),
        ({"namespaces": ["a"], "namespace": "b"}, UsageError, "exclude each other"),
        ({"namespaces": ["A b"]}, ValueError, "DNS label"),
        ({"namespaces": ["a"], "labels": "a in ("}, ValueError, "a in"),
    ],
    ids=str,
)
async def test_a_wrong_selection_is_rejected_at_once(
    request_: dict[str, Any], error: type[Exception], message: str
) -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    with pytest.raises(error, match=message):
        informers.informer("pods", **request_)
    assert not list(informers)


async def test_a_selection_of_namespaces_is_rejected_for_a_cluster_scoped_resource() -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    with pytest.raises(UsageError, match="nodes are in no namespace"):
        informers.informer("nodes", namespaces=["a"])


# -- namespaces that are refused ---------------------------------------------------------------


async def test_a_forbidden_namespace_is_named_and_does_not_stop_the_others() -> None:
    problems: list[Problem] = []
    source = RefusingSource(Cluster(), refused={"b"})
    put(source.cluster, "a/x", "b/x")
    async with SharedInformerFactory(
        source, backoff=FAST_BACKOFF, on_error=problems.append
    ) as informers:
        pods = informers.informer("pods", namespaces=["a", "b"])
        await wait_until(lambda: cached(pods) == ["a/x"])
        await wait_until(lambda: pods.health.scopes[1].error is not None)
        with pytest.raises(
            SyncTimeout, match=r"namespace b: .*forbidden in the namespace"
        ) as error:
            await informers.wait_synced(0.05)
        assert "namespace a" not in str(error.value)
        first, second = pods.health.scopes
        assert (first.namespace, first.synced, first.error) == ("a", True, None)
        assert (second.namespace, second.synced) == ("b", False)
        assert isinstance(second.error, Forbidden)
        assert isinstance(pods.health.error, Forbidden)
        assert pods.health.fresh is None
        assert {problem.informer for problem in problems} == {"pods in a, b (b)"}

        source.refused.clear()
        await informers.wait_synced(30)
        await wait_until(lambda: pods.health.error is None)
        assert cached(pods) == ["a/x", "b/x"]
        assert "2 of 2 namespaces are watched" in str(pods.health)


async def test_a_namespace_that_becomes_forbidden_keeps_its_objects() -> None:
    source = RefusingSource(Cluster())
    put(source.cluster, "a/x", "b/x")
    async with reading(source, namespaces=["a", "b"]) as (informers, pods):
        await informers.wait_synced(30)
        source.refused.add("b")
        source.end_watches("b")
        await wait_until(lambda: isinstance(pods.health.error, Forbidden))
        put(source.cluster, "a/y", "b/y")
        await pods.wait_until("a/y", lambda pod: pod is not None, timeout=10)
        assert cached(pods) == ["a/x", "a/y", "b/x"]
        assert pods.synced
        assert [each.synced for each in pods.health.scopes] == [True, True]
        source.refused.clear()
        await pods.wait_until("b/y", lambda pod: pod is not None, timeout=10)


async def test_an_optional_namespace_does_not_delay_the_sync_while_it_is_forbidden() -> None:
    source = RefusingSource(Cluster(), refused={"b"})
    put(source.cluster, "a/x", "b/x")
    scopes = {"a": Scope(), "b": Scope(optional=True)}
    handled: list[str] = []
    async with reading(source, namespaces=scopes) as (informers, pods):

        @pods.on_add
        async def added(obj: KubeObject, *, initial: bool) -> None:
            handled.append(f"{obj.key} {initial}")

        await informers.wait_synced(30)
        [registration] = pods.registrations
        await registration.wait_synced(30)
        assert handled == ["a/x True"]
        assert pods.health.state == "watching"
        assert pods.health.error is None
        assert pods.health.fresh is not None
        assert pods.health.scopes[1].optional
        assert isinstance(pods.health.scopes[1].error, Forbidden)
        source.refused.clear()
        await pods.wait_until("b/x", lambda pod: pod is not None, timeout=10)
        await wait_until(lambda: handled == ["a/x True", "b/x True"])


async def test_an_optional_namespace_whose_watch_lists_alone_are_refused_is_waited_for() -> None:
    """A list follows the refusal at once."""
    source = RefusingSource(Cluster(), faults={"b": Faults()})
    put(source.cluster, "a/x", "b/x")
    faults = source.faults["b"]
    scopes = {"a": Scope(), "b": Scope(optional=True)}
    with faults.status(403, verb="watch_list"), faults.latency(0.2, verb="list"):
        async with reading(source, namespaces=scopes) as (informers, pods):
            await informers.wait_synced(30)
            assert cached(pods) == ["a/x", "b/x"]


async def test_a_removed_namespace_is_not_waited_for_although_a_handler_blocks() -> None:
    source, released = RefusingSource(Cluster(), refused={"b"}), asyncio.Event()
    put(source.cluster, "a/x")

    async def wait(event: Event) -> None:
        await released.wait()

    async with reading(source, namespaces=["a", "b"]) as (_, pods):
        pods.add_handler(wait, overflow="block", limit=1)
        await wait_until(lambda: cached(pods) == ["a/x"])
        put(source.cluster, "a/y", "a/z", "a/zz")
        await wait_until(lambda: bool(pods.health.blocked_by))
        pods.remove_namespace("b")
        await pods.wait_synced(5)
        released.set()


async def test_an_optional_namespace_that_is_permitted_is_waited_for() -> None:
    cluster = Cluster()
    put(cluster, "a/x")
    async with reading(ClusterSource(cluster), namespaces={"a": Scope(optional=True)}) as (all_, p):
        await all_.wait_synced(30)
        assert cached(p) == ["a/x"]


async def test_forbidden_optional_namespaces_alone_give_an_empty_synced_cache() -> None:
    source = RefusingSource(Cluster(), refused={"a", "b"})
    scopes = dict.fromkeys("ab", Scope(optional=True))
    async with reading(source, namespaces=scopes) as (informers, pods):
        registration = pods.add_handler(ignore)
        await informers.wait_synced(30)
        await registration.wait_synced(30)
        assert cached(pods) == []
        assert pods.health.fresh is None


async def test_fail_fast_ends_the_informer_unless_the_namespace_is_optional() -> None:
    source = RefusingSource(Cluster(), refused={"a", "b"})
    options: dict[str, Any] = {"fail_fast": (Forbidden,), "backoff": FAST_BACKOFF}
    async with SharedInformerFactory(source, **options) as informers:
        pods = informers.informer("pods", namespaces={"a": Scope(optional=True)})
        await pods.wait_synced(30)
    failing = SharedInformerFactory(source, **options)
    failing.informer("pods", namespaces=["a", "b"])
    with pytest.raises(Forbidden):
        await failing.run()


# -- namespaces that come and go ---------------------------------------------------------------


async def test_an_added_namespace_is_initial_and_a_removed_one_leaves() -> None:
    source = RefusingSource(Cluster())
    put(source.cluster, "a/x", "b/x", "b/y")
    async with reading(source, namespaces=["a"]) as (informers, pods):
        await informers.wait_synced(30)
        async with pods.events() as events:
            assert await take(events, 1) == ["= a/x"]
            pods.add_namespace("b", Scope(fields="metadata.name=y"))
            assert pods.namespaces == ("a", "b")
            assert pods.synced
            assert await take(events, 1) == ["= b/y"]
            pods.remove_namespace("a")
            put(source.cluster, "a/late")
            assert await take(events, 1) == ["- a/x scope_removed"]
            pods.add_namespace("a")
            assert sorted(await take(events, 2)) == ["= a/late", "= a/x"]
        assert [each.namespace for each in pods.health.scopes] == ["a", "b"]
        assert await pods.verify(contents=True)


async def test_a_removed_namespace_sends_no_more_requests() -> None:
    source = RefusingSource(Cluster(), refused={"b"})
    async with reading(source, namespaces=["a", "b"]) as (informers, pods):
        await wait_until(lambda: len(source.sent("b")) > 2)
        pods.remove_namespace("b")
        await informers.wait_synced(30)
        count = len(source.sent("b"))
        await asyncio.sleep(0.05)  # several of the waits between attempts
        assert len(source.sent("b")) == count
        assert pods.health.error is None


async def test_waiting_for_an_object_of_a_removed_namespace_ends() -> None:
    cluster = Cluster()
    put(cluster, "b/x")
    async with reading(ClusterSource(cluster), namespaces=["a", "b"]) as (informers, pods):
        await informers.wait_synced(30)
        ahead = cluster.get("pods", "x", namespace="b")
        ahead["metadata"]["resourceVersion"] = "999999"
        waiting = asyncio.create_task(pods.wait_for(ahead, timeout=10))
        await yield_to_loop()
        pods.remove_namespace("b")
        assert await waiting is None


async def test_a_namespace_that_is_added_before_the_first_sync_is_waited_for() -> None:
    source = RefusingSource(Cluster(), refused={"b"})
    async with reading(source, namespaces=["a"]) as (informers, pods):
        pods.add_namespace("b")
        with pytest.raises(SyncTimeout, match="namespace b"):
            await informers.wait_synced(0.05)
        pods.remove_namespace("b")
        await informers.wait_synced(30)


async def test_namespaces_can_be_added_and_removed_before_the_start() -> None:
    cluster = Cluster()
    put(cluster, "a/x", "b/x")
    informers = SharedInformerFactory(ClusterSource(cluster))
    pods = informers.informer("pods", namespaces=["a"])
    pods.add_namespace("b")
    pods.remove_namespace("a")
    async with informers:
        await informers.wait_synced(30)
        assert cached(pods) == ["b/x"]


async def test_wrong_changes_of_namespaces_are_rejected() -> None:
    async with SharedInformerFactory(ClusterSource(Cluster())) as informers:
        pods = informers.informer("pods", namespaces=["a"])
        with pytest.raises(UsageError, match="reads the namespace 'a' already"):
            pods.add_namespace("a", Scope(labels="x=y"))
        with pytest.raises(UsageError, match=r"doesn't read the namespace 'b'; its namespaces: a"):
            pods.remove_namespace("b")
        with pytest.raises(TypeError, match="needs a Scope"):
            pods.add_namespace("b", "app=shop")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="DNS label"):
            pods.add_namespace("B c")
        assert pods.namespaces == ("a",)
        single = informers.informer("pods", namespace="a")
        assert single.namespaces is None
        with pytest.raises(UsageError, match="made without namespaces="):
            single.add_namespace("b")
        followed = informers.informer("pods", namespaces=labelled("team=shop"))
        with pytest.raises(UsageError, match="follows the namespaces that match"):
            followed.remove_namespace("a")
    with pytest.raises(NotRunning):
        pods.add_namespace("b")


async def test_a_slow_handler_gets_every_change_of_namespaces_that_come_and_go() -> None:
    cluster = Cluster()
    namespaces = [f"n{number}" for number in range(20)]
    put(cluster, *[f"{namespace}/{name}" for namespace in namespaces for name in "xyz"])
    view: dict[ObjectKey, KubeObject] = {}
    async with reading(ClusterSource(cluster), namespaces=namespaces[:10]) as (informers, pods):
        stream = pods.events(limit=2)
        async with stream as events:
            await informers.wait_synced(30)
            for old, new in zip(namespaces[:10], namespaces[10:], strict=True):
                pods.remove_namespace(old)
                pods.add_namespace(new)
            await wait_until(lambda: len(pods.lister) == 30)
            while set(view) != set(pods.lister.keys()):
                match await asyncio.wait_for(anext(events), 10):
                    case Added(obj, _) | Updated(_, obj):
                        view[obj.key] = obj
                    case Deleted(obj, _):
                        del view[obj.key]


@pytest.mark.parametrize("overflow", ["error", "block"])
async def test_many_namespaces_that_are_read_at_once_do_not_end_a_limited_listener(
    overflow: Literal["error", "block"],
) -> None:
    cluster = Cluster()
    namespaces = [f"n{number}" for number in range(20)]
    put(cluster, *[f"{namespace}/{name}" for namespace in namespaces for name in "xyz"])
    async with (
        reading(ClusterSource(cluster), namespaces=namespaces) as (informers, pods),
        pods.events(limit=1, overflow=overflow) as events,
    ):
        if overflow == "error":
            await informers.wait_synced(30)
        assert len(await take(events, 60)) == 60


async def test_metrics_of_all_namespaces_have_one_label() -> None:
    labels: set[str] = set()

    class Recorder(Metrics):
        def request_started(self, informer: str, verb: str) -> None:
            labels.add(informer)

    namespaces = [f"n{number}" for number in range(5)]
    factory = SharedInformerFactory(ClusterSource(Cluster()), metrics=Recorder())
    async with factory as informers:
        informers.informer("pods", namespaces=namespaces)
        await informers.wait_synced(30)
    assert labels == {"pods in 5 namespaces"}


async def test_an_informer_that_is_used_for_a_block_stops_its_namespaces() -> None:
    source = RefusingSource(Cluster())
    async with SharedInformerFactory(source, backoff=SLOW_BACKOFF) as informers:
        async with informers.use("pods", namespaces=labelled("team=shop")) as pods:
            await pods.wait_synced(30)
            assert [each.name for each in informers] == ["namespaces", pods.name]
        assert not list(informers)


class RecordingTracing:
    """Counts the traces that were made and not closed yet."""

    def __init__(self) -> None:
        self.open: list[InformerTrace] = []

    def informer(self, informer: str, resource: str) -> InformerTrace:
        trace = RecordingTrace(self)
        self.open.append(trace)
        return trace

    def handler(self, informer: str, listener: str) -> None:
        return None

    def reconcile(self, controller: str) -> NoReturn:
        raise AssertionError("there is no controller")


class RecordingTrace(InformerTrace):
    def __init__(self, owner: RecordingTracing) -> None:
        self.owner = owner

    def closed(self) -> None:
        self.owner.open.remove(self)


async def test_the_trace_of_a_namespace_ends_with_it() -> None:
    tracing = RecordingTracing()
    async with SharedInformerFactory(ClusterSource(Cluster()), tracing=tracing) as informers:
        pods = informers.informer("pods", namespaces=["a", "b"])
        await informers.wait_synced(30)
        assert len(tracing.open) == 3, "one of each namespace, and the informer's own"
        pods.remove_namespace("a")
        await wait_until(lambda: len(tracing.open) == 2)
    assert not tracing.open
    assert [each.state for each in pods.health.scopes] == ["stopped"]


async def test_removed_namespaces_leave_no_objects_and_tasks() -> None:
    cluster = Cluster()
    names = [f"n{number}" for number in range(50)]
    put(cluster, *[f"{name}/x" for name in names])
    async with reading(ClusterSource(cluster), namespaces=["stays"]) as (informers, pods):
        await informers.wait_synced(30)
        tasks = len(asyncio.all_tasks())
        for name in names:
            pods.add_namespace(name)
        for name in names:
            await pods.wait_until(f"{name}/x", lambda pod: pod is not None, timeout=10)
            pods.remove_namespace(name)
        await wait_until(lambda: not len(pods.lister) and len(asyncio.all_tasks()) == tasks)
        assert pods.namespaces == ("stays",)
        assert await pods.verify()


async def test_hundreds_of_namespaces_limit_their_concurrent_initial_lists() -> None:
    source = ClusterSource(Cluster())
    names = [f"n{number}" for number in range(300)]
    put(source.cluster, *[f"{name}/x" for name in names])
    source.faults.latency(0.001)  # so that the requests overlap
    async with reading(source, namespaces=names) as (_, pods):
        most = 0
        while not pods.synced:
            most = max(most, source.traffic.initial_lists)
            await asyncio.sleep(0)
        assert len(pods.lister) == 300
        assert most == source.traffic.limits.lists
        assert source.traffic.initial_lists == source.traffic.waiting == 0


@pytest.mark.parametrize(
    "namespaces",
    [[f"n{number}" for number in range(300)], labelled("team=shop")],
    ids=["named", "followed"],
)
def test_a_turn_of_the_loop_starts_few_of_hundreds_of_reflectors(namespaces: Namespaces) -> None:
    source = ClusterSource(Cluster())
    for number in range(300):
        metadata = {"name": f"n{number}", "labels": {"team": "shop"}}
        source.cluster.create("namespaces", {"metadata": metadata})

    async def start() -> None:
        async with reading(source, namespaces=namespaces) as (_, pods):
            # A few more tasks than reflectors: some start tasks of their own in their first step.
            async with short_turns(40, lambda: len(asyncio.all_tasks())):
                await pods.wait_synced(60)
            assert pods.namespaces is not None
            assert len(pods.namespaces) == 300

    # In virtual time no time slice ends, so the limit doesn't depend on the speed of the machine.
    run(start(), seed=0, order="fifo")


async def test_the_health_can_be_read_while_the_namespaces_end_and_a_call_goes_on() -> None:
    states, called, release = list[str](), asyncio.Event(), asyncio.Event()

    async def hold(event: Event) -> None:
        called.set()
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    cluster = Cluster()
    put(cluster, "a/x")
    informers = SharedInformerFactory(ClusterSource(cluster))
    pods = informers.informer("pods", namespaces=["a", "b"])
    pods.add_handler(hold)
    task = asyncio.create_task(informers.run())
    await asyncio.wait_for(called.wait(), timeout=10)
    task.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
        states.append(pods.health.state)
    release.set()
    with suppress(asyncio.CancelledError):
        await task
    assert states[-1] == pods.health.state == "stopped"

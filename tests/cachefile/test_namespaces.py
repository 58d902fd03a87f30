"""Durable handlers, and informers whose namespaces leave and return."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aioinformer import (
    CacheFile,
    Deleted,
    Event,
    KubeObject,
    Scope,
    SharedInformer,
    SharedInformerFactory,
    labelled,
)
from aioinformer.errors import UsageError
from aioinformer.testing import Cluster, ClusterSource
from tests.cachefile.programs import (
    INTERVAL,
    Program,
    RequestLog,
    crash_file,
    pods_are_stored,
    running,
    send_bookmarks_often,
    text_of,
    until,
)

NAMESPACES = ("a", "b", "c")


@pytest.fixture(name="path")
def a_path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def cluster_with_namespaces() -> Cluster:
    """Return a cluster with a pod in each namespace, all of which are followed."""
    cluster = Cluster(window=1_000_000)
    for name in NAMESPACES:
        cluster.create("namespaces", {"metadata": {"name": name, "labels": {"team": "shop"}}})
        cluster.create("pods", {"metadata": {"name": f"in-{name}"}}, namespace=name)
    send_bookmarks_often(cluster)
    return cluster


def follow(cluster: Cluster, name: str, *, followed: bool) -> None:
    labels = {"team": "shop" if followed else "none"}
    cluster.merge_patch("namespaces", name, {"metadata": {"labels": labels}})


class View:
    """What a durable handler knows, which outlives its program, and whether it was alive."""

    def __init__(self, *, since: str = "everything") -> None:
        self.uids: set[str] = set()
        self.heard: list[str] = []
        self.since = since
        self.alive = True

    def handle(self, event: Event) -> None:
        if not self.alive:
            return
        pod = event.obj
        self.heard.append(f"{type(event).__name__} {pod.name}")
        if isinstance(event, Deleted):
            self.uids.discard(pod.uid)
        else:
            self.uids.add(pod.uid)

    def add(self, program: Program) -> None:
        since: Any = self.since
        program.pods.add_handler(self.handle, durable="audit", durable_since=since)

    def is_right(self, cluster: Cluster, namespaces: Sequence[str]) -> bool:
        """Return True if the handler knows exactly the pods of these namespaces."""
        pods = [pod for each in namespaces for pod in cluster.objects("pods", namespace=each)]
        return self.uids == {pod["metadata"]["uid"] for pod in pods}


async def test_a_namespace_that_leaves_and_returns_in_one_run_is_delivered_again(
    path: Path,
) -> None:
    cluster, view = cluster_with_namespaces(), View(since="now")
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add) as program:
        program.pods.remove_namespace("b")
        await until(lambda: view.heard == ["Deleted in-b"])
        program.pods.add_namespace("b")
        await until(lambda: view.heard == ["Deleted in-b", "Added in-b"])


async def test_a_namespace_that_is_added_is_delivered_to_a_handler_that_began_now(
    path: Path,
) -> None:
    cluster, view = cluster_with_namespaces(), View(since="now")
    async with running(cluster, path, namespaces=["a"], setup=view.add) as program:
        program.pods.add_namespace("b")
        await until(lambda: view.heard == ["Added in-b"])
    async with running(cluster, path, namespaces=["a", "b", "c"], setup=view.add):
        await until(lambda: view.heard == ["Added in-b", "Added in-c"])


@pytest.mark.parametrize("since", ["everything", "now"])
async def test_a_namespace_that_left_in_an_earlier_run_is_delivered_when_it_returns(
    path: Path, since: str
) -> None:
    cluster, view = cluster_with_namespaces(), View(since=since)
    async with running(cluster, path, namespaces=["b"], setup=view.add) as first:
        await until(lambda: pods_are_stored(cluster, path, "b"))
        first.pods.remove_namespace("b")
        await until(lambda: view.heard[-1:] == ["Deleted in-b"])
    cluster.create("pods", {"metadata": {"name": "late"}}, namespace="b")
    cluster.delete("pods", "in-b", namespace="b")
    view.heard.clear()
    async with running(cluster, path, namespaces=["b"], setup=view.add):
        await until(lambda: view.heard)
        await asyncio.sleep(INTERVAL * 3)
    assert view.heard == ["Added late"], "and in-b is not deleted once more"


async def test_a_namespace_that_returns_is_stored_again(path: Path) -> None:
    cluster, view = cluster_with_namespaces(), View()
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add) as first:
        first.pods.remove_namespace("b")
        first.pods.add_namespace("b")
        await until(lambda: view.heard.count("Added in-b") == 2)
    view.heard.clear()
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add) as second:
        assert second.requests.verbs.count("freshness_check") == 2
        assert "watchlist" not in second.requests.verbs
        cluster.delete("pods", "in-b", namespace="b")
        await until(lambda: view.heard)
    assert view.heard == ["Deleted in-b"]


@pytest.mark.parametrize("durable", [None, "new"])
async def test_a_namespace_that_leaves_between_two_runs_is_deleted_and_delivered_anew(
    path: Path, durable: str | None
) -> None:
    cluster, view = cluster_with_namespaces(), View()
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add):
        await until(lambda: view.is_right(cluster, ["a", "b"]))
    view.heard.clear()
    options: dict[str, Any] = {"namespaces": ["a"], "durable": durable}
    async with running(cluster, path, setup=view.add, **options) as second:
        await until(lambda: view.heard == ["Deleted in-b"] and second.heard)
    assert second.heard == ["= in-a"], "this handler never knew in-b"
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add):
        await until(lambda: view.heard == ["Deleted in-b", "Added in-b"])


async def test_a_followed_namespace_that_stops_matching_between_two_runs_is_deleted(
    path: Path,
) -> None:
    cluster, view = cluster_with_namespaces(), View()
    options: dict[str, Any] = {"namespaces": labelled("team=shop"), "setup": view.add}
    async with running(cluster, path, **options):
        await until(lambda: view.is_right(cluster, NAMESPACES))
    follow(cluster, "b", followed=False)
    cluster.delete("pods", "in-c", namespace="c")
    cluster.delete("namespaces", "c")
    view.heard.clear()
    async with running(cluster, path, **options):
        await until(lambda: view.is_right(cluster, ["a"]))
    assert sorted(view.heard) == ["Deleted in-b", "Deleted in-c"]
    follow(cluster, "b", followed=True)
    async with running(cluster, path, **options):
        await until(lambda: view.is_right(cluster, ["a", "b"]))


async def test_a_namespace_with_other_selectors_than_in_the_last_run_is_delivered_anew(
    path: Path,
) -> None:
    cluster, view = cluster_with_namespaces(), View()
    cluster.create("pods", {"metadata": {"name": "web", "labels": {"app": "web"}}}, namespace="a")
    async with running(cluster, path, namespaces=["a"], setup=view.add):
        await until(lambda: view.is_right(cluster, ["a"]))
    view.heard.clear()
    selected = {"a": Scope(labels="app=web")}
    async with running(cluster, path, namespaces=selected, setup=view.add):
        await until(lambda: len(view.heard) == 3)
    assert sorted(view.heard[:2]) == ["Deleted in-a", "Deleted web"]
    assert view.heard[2:] == ["Added web"]
    async with running(cluster, path, namespaces=["a"], setup=view.add):
        await until(lambda: view.is_right(cluster, ["a"]))


@pytest.mark.parametrize(
    "options", [{"managed_fields": True}, {"transform": KubeObject.to_dict}, {"labels": "!app"}]
)
async def test_an_informer_of_another_stored_form_or_selector_begins_anew_for_its_durable_handlers(
    path: Path, options: dict[str, Any]
) -> None:
    cluster, view = cluster_with_namespaces(), View()
    for each in ({}, options):
        async with running(cluster, path, namespaces=["a"], setup=view.add, **each) as program:
            await until(lambda: view.is_right(cluster, ["a"]))
            assert program.requests.verbs[0] == "watchlist"
    assert view.heard == ["Added in-a", "Added in-a"], "and no removal of the other's objects"


async def test_a_removal_that_was_handled_before_a_crash_is_delivered_again_with_the_objects(
    path: Path,
) -> None:
    cluster, view = cluster_with_namespaces(), View()
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add):
        await until(lambda: view.is_right(cluster, ["a", "b"]))
    crashed, slow = path.with_name("crashed.db"), CacheFile(path, interval=60)
    view.heard.clear()
    async with running(cluster, path, cache=slow, namespaces=["a", "b"], setup=view.add) as program:
        program.pods.remove_namespace("b")
        await until(lambda: view.heard == ["Deleted in-b"])
        crash_file(Random(), path, crashed, cut=False)
    async with running(cluster, crashed, namespaces=["a", "b"], setup=view.add):
        await until(lambda: view.heard == ["Deleted in-b", "Deleted in-b", "Added in-b"])


async def test_two_informers_of_several_namespaces_have_no_durable_name_in_common(
    path: Path,
) -> None:
    source = ClusterSource(cluster_with_namespaces())
    cache = CacheFile(path, interval=INTERVAL)
    factory = SharedInformerFactory(source, cache=cache)
    factory.informer("pods", namespaces=["a"]).add_handler(print, durable="audit")
    other = factory.informer("pods", namespaces=["b"])
    with pytest.raises(UsageError, match="is the name of a listener of another informer of pods"):
        other.add_handler(print, durable="audit")
    other.add_handler(print, durable="mirror")


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("since", ["everything", "now"])
@pytest.mark.parametrize("runs", [4, pytest.param(60, marks=pytest.mark.simulation)])
@pytest.mark.timeout(580)
async def test_a_durable_handler_knows_the_pods_of_the_namespaces_after_any_crash(
    tmp_path: Path, runs: int, since: str, *, followed: bool
) -> None:
    random, cluster = Random(runs), cluster_with_namespaces()
    view, path = View(since=since), tmp_path / "first.db"
    read = set(NAMESPACES)

    def change(program: Program | None) -> None:
        """Change pods and namespaces, through the informer of a program that runs."""
        namespace = random.choice(NAMESPACES)
        pods = [pod["metadata"]["name"] for pod in cluster.objects("pods", namespace=namespace)]
        choice = random.random()
        if choice < 0.2:
            name = f"p{random.randrange(1_000_000)}"
            cluster.create("pods", {"metadata": {"name": name}}, namespace=namespace)
        elif choice < 0.4 and pods:
            cluster.delete("pods", random.choice(pods), namespace=namespace)
        elif namespace in read:
            read.discard(namespace)
            if followed:
                follow(cluster, namespace, followed=False)
            elif program is not None:
                program.pods.remove_namespace(namespace)
        else:
            read.add(namespace)
            if followed:
                follow(cluster, namespace, followed=True)
            elif program is not None:
                program.pods.add_namespace(namespace)

    def start() -> Any:
        namespaces = labelled("team=shop") if followed else sorted(read)
        return running(cluster, path, namespaces=namespaces, setup=view.add)

    async with start():
        pass
    if since == "now":  # the handler knows nothing yet; its program does
        view.uids = {
            pod["metadata"]["uid"]
            for each in NAMESPACES
            for pod in cluster.objects("pods", namespace=each)
        }
    for number in range(runs):
        for _ in range(random.randrange(4)):
            change(None)
        crashed, crashes = tmp_path / f"{number}.db", random.random() < 0.5
        async with AsyncExitStack() as stack:
            program = await stack.enter_async_context(start())
            for _ in range(random.randrange(6)):
                change(program)
                await asyncio.sleep(3 * INTERVAL * random.random())
            if crashes:
                # What was handled since the last write comes again.
                crash_file(random, path, crashed, cut=False)
                view.alive = False
        if crashes:
            view.alive, path = True, crashed
            # A pod that the file does not have yet is unknown to the next run.
            known = [pod for each in NAMESPACES for pod in cluster.objects("pods", namespace=each)]
            view.uids &= {pod["metadata"]["uid"] for pod in known}
    async with start():
        await until(lambda: view.is_right(cluster, sorted(read)))


Heard = dict[str, list[str]]


def recorder(heard: list[str]) -> Callable[[Event], None]:
    return lambda event: heard.append(text_of(event))


async def run_overlapping(
    cluster: Cluster, path: Path, order: Sequence[str], *, durable: bool
) -> tuple[Heard, list[str]]:
    """Run two informers that both read the namespace b; return what their handlers receive, and the
    kinds of the requests.
    """
    heard: Heard = {"ab": [], "bc": []}
    requests, cache = RequestLog(), CacheFile(path, interval=INTERVAL)
    async with SharedInformerFactory(
        ClusterSource(cluster), cache=cache, metrics=requests
    ) as factory:
        informers = list[SharedInformer]()
        for each in order:
            pods = factory.informer("pods", namespaces=list(each))
            pods.add_handler(recorder(heard[each]), durable=each if durable else None)
            informers.append(pods)
        await factory.wait_synced(timeout=30)
        assert [each.health.cache_problem for each in informers] == ["", ""]
        await asyncio.sleep(INTERVAL * 5)
    return {each: sorted(events) for each, events in heard.items()}, requests.verbs


@pytest.mark.parametrize("durable", [False, True])
async def test_two_informers_with_a_common_namespace_share_a_file(
    path: Path, *, durable: bool
) -> None:
    cluster = cluster_with_namespaces()
    await run_overlapping(cluster, path, ["ab", "bc"], durable=durable)
    cluster.delete("pods", "in-b", namespace="b")
    for order in (["bc", "ab"], ["ab", "bc"]):
        heard, verbs = await run_overlapping(cluster, path, order, durable=durable)
        assert "watchlist" not in verbs
        if durable:
            first = order == ["bc", "ab"]
            assert heard == dict.fromkeys(("ab", "bc"), ["- in-b deleted"] if first else [])


async def test_a_durable_listener_keeps_its_state_beside_a_new_informer_of_the_same_objects(
    path: Path,
) -> None:
    cluster, view = cluster_with_namespaces(), View()
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add):
        await until(lambda: view.is_right(cluster, ["a", "b"]))
    cluster.delete("pods", "in-b", namespace="b")

    def add_other(program: Program) -> None:
        program.factory.informer("pods", namespaces=["c", "b", "a"])
        view.add(program)

    async with running(cluster, path, namespaces=["a", "b"], setup=add_other):
        await until(lambda: view.is_right(cluster, ["a", "b"]))
    assert view.heard[-1] == "Deleted in-b"


async def test_two_informers_of_the_same_objects_have_no_durable_name_in_common(
    path: Path,
) -> None:
    source, cache = ClusterSource(cluster_with_namespaces()), CacheFile(path, interval=INTERVAL)
    async with (
        SharedInformerFactory(source, cache=cache) as first,
        SharedInformerFactory(source, cache=cache) as second,
    ):
        for each in (first, second):
            each.informer("pods").add_handler(print, durable="audit")
            await each.wait_synced(timeout=10)
        problems = [each.informer("pods").health.cache_problem for each in (first, second)]
    assert problems[0] == ""
    assert "for a durable listener of the same name" in problems[1]


async def test_two_factories_keep_the_same_objects_in_one_file(path: Path) -> None:
    source, cache = ClusterSource(cluster_with_namespaces()), CacheFile(path, interval=INTERVAL)
    async with (
        SharedInformerFactory(source, cache=cache) as first,
        SharedInformerFactory(source, cache=cache) as second,
    ):
        informers = [each.informer("pods", namespace="a") for each in (first, second)]
        for each in informers:
            await each.wait_synced(timeout=10)
        assert [each.health.cache_problem for each in informers] == ["", ""]


@pytest.mark.parametrize("turns", [2, 12, 22])
async def test_a_namespace_that_leaves_while_the_file_is_opened_does_not_mix_two_states(
    path: Path, turns: int
) -> None:
    cluster, view = cluster_with_namespaces(), View()
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add):
        await until(lambda: view.is_right(cluster, ["a", "b"]))
    cluster.delete("pods", "in-b", namespace="b")
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add, wait=False) as second:
        for _ in range(turns):
            await asyncio.sleep(0)
        second.pods.remove_namespace("a")
        await second.pods.wait_synced(timeout=10)
        second.pods.add_namespace("a")
        await until(lambda: all(each.synced for each in second.pods.health.scopes))
        await until(lambda: [pod.name for pod in second.pods.lister.list()] == ["in-a"])
        await until(lambda: view.is_right(cluster, ["a"]))
        await asyncio.sleep(20 * INTERVAL)  # so that the new state of the namespace is written
    async with running(cluster, path, namespaces=["a", "b"], setup=view.add) as third:
        assert [pod.name for pod in third.pods.lister.list()] == ["in-a"]
        assert "watchlist" not in third.requests.verbs

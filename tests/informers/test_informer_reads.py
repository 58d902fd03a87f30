"""Reads of an informer, and waits for its cache."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Any, cast

import msgspec
import pytest

from aioinformer import (
    Client,
    KubeObject,
    LabelSelector,
    ListRequest,
    ObjectKey,
    Resource,
    Scope,
    Shape,
    SharedInformer,
    SharedInformerFactory,
    WatchRequest,
    label_index,
    labelled,
    where,
)
from aioinformer.conditions import (
    all_of,
    any_of,
    condition_true,
    deleted,
    exists,
    job_complete,
    negate,
)
from aioinformer.errors import (
    CacheWaitTimeout,
    Expired,
    Forbidden,
    IndexFailed,
    NotRunning,
    NotSynced,
    ProtocolError,
    SyncTimeout,
    UsageError,
)
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Faults
from aioinformer.testing.server.source import ClusterListerWatcher
from tests.cpu_time import short_turns
from tests.runtime.informers import (
    FAST_BACKOFF,
    SLOW_BACKOFF,
    cluster_with_pods,
    label_pod,
    names,
    pod_informer,
    running_in_background,
    running_informer,
)
from tests.runtime.scripted_source import (
    PODS,
    body,
    bookmark,
    error_response,
    list_response,
    scripted_lister_watcher,
    wait_until,
    watch_response,
    yield_to_loop,
)

MANY = 10_000
LONG_TURN = 0.2
"""Seconds of CPU time of a turn of the loop; the promise is 0.01."""


def by_value(obj: KubeObject) -> str | None:
    return obj.labels.get("value")


def patched(cluster: Cluster, name: str, value: str) -> dict[str, Any]:
    """Change a pod and return the server's answer."""
    return cluster.merge_patch("pods", name, {"metadata": {"labels": {"value": value}}})


# -- indexes that come late --------------------------------------------------------------------


@pytest.mark.client_go(49)
async def test_an_index_can_be_added_while_the_cache_is_in_use() -> None:
    cluster = cluster_with_pods(*(f"p-{number}" for number in range(300)))
    async with running_informer(pod_informer(cluster)) as informer:
        adding = asyncio.create_task(informer.add_index("value", by_value))
        for number in range(0, 300, 7):
            label_pod(cluster, f"p-{number}", "odd" if number % 2 else "even")
            await yield_to_loop(2)
        await adding
        await wait_until(lambda: informer.lister.resource_version == str(cluster.resource_version))
        counts = informer.lister.index_counts("value")

        assert counts == {"odd": 21, "even": 22}
        await informer.add_index("value", by_value)
        assert informer.lister.indexers == ("value",)


async def test_no_step_is_long_when_an_index_is_added_and_when_the_cache_is_verified() -> None:
    """A generous bound; ``test_step_duration`` measures exactly."""
    state = list_response(*(body(f"web-{number}", 5) for number in range(MANY)), version="10")
    informer = SharedInformer(
        scripted_lister_watcher(state, watch_response(never_ends=True), state)
    )
    async with short_turns(LONG_TURN), running_informer(informer):
        await informer.add_index("all", lambda obj: ["all", obj.name])
        assert len(informer.lister.by_index("all", "all")) == MANY
        assert await informer.verify(contents=True)
        assert sum([1 async for _ in informer.lister.scan(labels="!app")]) == MANY


@pytest.mark.client_go(49)
async def test_an_index_can_be_added_before_anything_is_cached() -> None:
    informer = pod_informer(cluster_with_pods("a"))
    await informer.add_index("labels", label_index())
    async with running_informer(informer):
        assert informer.lister.indexers == ("labels",)


async def test_an_index_whose_function_raises_is_not_added() -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        with pytest.raises(IndexFailed, match=r"'bad'.*pods default/a: KeyError"):
            await informer.add_index("bad", lambda obj: str(obj["spec"]["nothing"]))
        assert informer.lister.indexers == ()
        await informer.add_index("bad", by_value)


async def test_a_cancelled_add_index_adds_no_index_and_calls_its_function_no_more() -> None:
    cluster, asked = cluster_with_pods(*(f"p-{number}" for number in range(300))), 0

    def slow(obj: KubeObject) -> str:
        nonlocal asked
        asked += 1
        time.sleep(0.0002)
        return obj.name

    async with running_informer(pod_informer(cluster)) as informer:
        adding = asyncio.create_task(informer.add_index("slow", slow))
        await wait_until(lambda: asked > 0)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        before = asked
        assert 0 < before < 300
        label_pod(cluster, "p-0", "x")
        await wait_until(lambda: informer.lister.resource_version == str(cluster.resource_version))

        assert asked == before
        assert informer.lister.indexers == ()


async def test_a_factory_names_add_index_after_objects_are_cached() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods("a"))) as informers:
        informers.informer("pods")
        await informers.wait_synced(5)
        with pytest.raises(UsageError, match=r"await informer\.add_index"):
            informers.informer("pods", indexers={"value": by_value})


# -- one's own writes --------------------------------------------------------------------------


@pytest.mark.client_go(129)
async def test_wait_for_returns_the_object_of_a_write() -> None:
    cluster = cluster_with_pods("a")
    async with running_informer(pod_informer(cluster)) as informer:
        for number in range(20):
            answer = patched(cluster, "a", str(number))
            shown = await informer.wait_for(answer, timeout=5)

            assert shown is informer.lister.get("default/a")
            assert shown is not None
            assert shown.labels["value"] == str(number)


async def test_wait_for_returns_a_new_object_and_none_for_a_deleted_one() -> None:
    cluster = cluster_with_pods()
    async with running_informer(pod_informer(cluster)) as informer:
        answer = cluster.create("pods", {"metadata": {"name": "a"}})
        shown = await informer.wait_for(answer, timeout=5)
        assert shown is not None
        assert await informer.wait_for(shown, timeout=5) is shown
        answer = patched(cluster, "a", "1")
        cluster.delete("pods", "a")
        await informer.wait_until("default/a", lambda obj: obj is None, timeout=5)
        assert await informer.wait_for(answer, timeout=5) is None


async def test_many_tasks_can_wait_for_their_writes_at_once() -> None:
    cluster = cluster_with_pods(*(f"p-{number}" for number in range(50)))
    async with running_informer(pod_informer(cluster)) as informer:
        answers = [patched(cluster, f"p-{number}", "1") for number in range(50)]
        shown = await asyncio.gather(*(informer.wait_for(each, timeout=5) for each in answers))

        assert all(each is not None and each.labels["value"] == "1" for each in shown)


async def test_wait_for_returns_an_object_of_a_relist() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 3)),
        error_response(410, "Expired"),
        list_response(body("a", 23), version="30"),
    )
    informer = SharedInformer(source, backoff=FAST_BACKOFF)
    async with running_in_background(informer.run()):
        newer = {"metadata": {"name": "a", "namespace": "web", "uid": "u", "resourceVersion": "23"}}
        assert await informer.wait_for(newer, timeout=5) is None
        newer["metadata"]["uid"] = "uid-a"
        assert await informer.wait_for(newer, timeout=5) is informer.lister["web/a"]


async def test_the_timeout_of_wait_for_contains_the_version_and_the_error_of_the_cache() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 3)), error_response(500, "InternalError", "etcd is away")
    )
    informer = SharedInformer(source, name="pods in web", backoff=SLOW_BACKOFF)
    async with running_informer(informer):
        await wait_until(lambda: informer.health.error is not None)
        newer = {"metadata": {"name": "a", "namespace": "web", "uid": "u", "resourceVersion": "9"}}
        # It is at 10, and so past that.
        assert await informer.wait_for(newer, timeout=0.01) is None
        newer["metadata"]["resourceVersion"] = "11"
        with pytest.raises(CacheWaitTimeout) as caught:
            await informer.wait_for(newer, timeout=0.01)
    assert isinstance(caught.value, TimeoutError)
    assert "CancelledError" not in "".join(format_exception(caught.value))
    assert caught.value.resource_version == "10"
    assert str(caught.value).startswith(
        "the cache of pods in web doesn't show web/a at resourceVersion 11 after 0.01 s: "
        "it is at resourceVersion 10; waiting for "
    )
    assert "etcd is away" in str(caught.value)


async def test_the_timeout_of_a_wait_before_the_initial_list_mentions_the_missing_state() -> None:
    informer = SharedInformer(scripted_lister_watcher())
    async with running_in_background(informer.run()):
        await wait_until(lambda: informer.health.state == "listing")
        with pytest.raises(CacheWaitTimeout, match="it holds no state; listing"):
            await informer.wait_until("web/a", lambda obj: obj is None, timeout=0.001)


async def test_wait_for_rejects_an_object_of_another_namespace_or_kind() -> None:
    informer = SharedInformer(scripted_lister_watcher(), namespace="web")
    metadata = {"name": "a", "namespace": "other", "uid": "u", "resourceVersion": "9"}
    with pytest.raises(UsageError, match="another namespace"):
        await informer.wait_for({"metadata": metadata})
    with pytest.raises(UsageError, match="is a ConfigMap; this is the informer of pods"):
        await informer.wait_for({"kind": "ConfigMap", "metadata": metadata})


async def test_the_end_of_the_informer_ends_a_wait() -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        waiting = asyncio.create_task(informer.wait_until("default/b", bool))
        await yield_to_loop()
    with pytest.raises(NotRunning):
        await waiting


async def test_a_blocking_handler_may_not_wait_for_the_watch() -> None:
    errors: list[BaseException] = []
    informer = pod_informer(cluster_with_pods("a"))

    async def handle(_event: object) -> None:
        for work in (
            lambda: informer.wait_until("default/b", bool, timeout=1),
            lambda: informer.wait_for(informer.lister["default/a"], timeout=1),
            lambda: informer.verify(timeout=1),
        ):
            try:
                await work()
            except UsageError as error:
                errors.append(error)

    informer.add_handler(handle, overflow="block")
    async with running_informer(informer):
        await wait_until(lambda: len(errors) == 3)
    assert "overflow='block'" in str(errors[0])


async def test_a_handler_with_merging_may_wait_for_its_own_write() -> None:
    cluster, shown = cluster_with_pods("a"), list[KubeObject | None]()
    informer = pod_informer(cluster)

    async def handle(obj: KubeObject, *, initial: bool) -> None:
        shown.append(await informer.wait_for(patched(cluster, obj.name, "mine"), timeout=5))

    informer.on_add(handle)
    async with running_informer(informer):
        await wait_until(lambda: len(shown) == 1)
    assert shown[0] is not None
    assert shown[0].labels["value"] == "mine"


# -- conditions --------------------------------------------------------------------------------


async def test_a_condition_of_an_object_is_waited_for() -> None:
    cluster = cluster_with_pods("a")
    async with running_informer(pod_informer(cluster)) as informer:
        waiting = asyncio.create_task(
            informer.wait_until(
                ObjectKey("default", "a"),
                lambda obj: obj is not None and obj.labels.get("value") == "3",
                timeout=5,
            )
        )
        for number in range(4):
            label_pod(cluster, "a", str(number))
            await yield_to_loop(5)
        shown = await waiting

        assert shown is not None
        assert shown.labels["value"] == "3"
        cluster.delete("pods", "a")
        assert await informer.wait_until("default/a", lambda obj: obj is None, timeout=5) is None


async def test_a_timeout_error_of_the_predicate_is_raised_as_it_is() -> None:
    def broken(_obj: KubeObject | None) -> bool:
        raise TimeoutError("mine")

    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        with pytest.raises(TimeoutError, match="mine") as caught:
            await informer.wait_until("default/a", broken, timeout=5)
    assert not isinstance(caught.value, CacheWaitTimeout)


async def test_wait_until_waits_for_an_object_that_does_not_exist_yet() -> None:
    cluster = cluster_with_pods()
    async with running_informer(pod_informer(cluster)) as informer:
        waiting = asyncio.create_task(
            informer.wait_until("default/a", where("status.phase", "Running"), timeout=5)
        )
        await yield_to_loop(5)
        cluster.create("pods", {"metadata": {"name": "a"}, "status": {"phase": "Pending"}})
        await yield_to_loop(5)
        assert not waiting.done()
        cluster.merge_patch("pods", "a", {"status": {"phase": "Running"}})
        found = await waiting

    assert found is not None
    assert found["status"]["phase"] == "Running"


async def test_a_condition_is_waited_for_and_named_when_the_time_is_over() -> None:
    cluster = cluster_with_pods("a")
    async with running_informer(pod_informer(cluster)) as informer:
        with pytest.raises(
            CacheWaitTimeout,
            match=r"doesn't show default/a in a state that passes condition_true\('Ready'\)",
        ):
            await informer.wait_until("default/a", condition_true("Ready"), timeout=0.01)
        waiting = asyncio.create_task(informer.wait_until("default/a", deleted, timeout=5))
        await yield_to_loop(5)
        cluster.delete("pods", "a")

        assert await waiting is None


async def test_a_selector_for_nothing_selects_nothing_from_a_server_and_from_a_cache() -> None:
    cluster, nothing = cluster_with_pods("a", "b"), LabelSelector.nothing()
    async with (
        ApiServer(cluster) as server,
        Client(server.url) as client,
        SharedInformerFactory(client) as informers,
    ):
        pods = informers.informer("pods", indexers={"labels": label_index("nothing")})
        none = informers.informer("pods", labels=nothing)
        several = informers.informer("pods", namespaces={"default": Scope(labels=nothing)})
        await informers.wait_synced(timeout=30)
        assert len(pods.lister) == 2
        assert pods.lister.list(labels=nothing) == []
        assert pods.lister.list(where=labelled(nothing)) == []
        assert len(none.lister) == len(several.lister) == 0
        assert list(await client.api("pods", namespace="default").list(labels=nothing)) == []


def fails(obj: KubeObject | None) -> bool:
    return False


def ready_entry(message: str = "") -> dict[str, Any]:
    return {"type": "Ready", "status": "False", "reason": "Starting", "message": message}


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        pytest.param(
            condition_true("Ready"), "condition Ready is False (Starting, a b)", id="type"
        ),
        pytest.param(
            any_of(condition_true("Ready"), job_complete),
            "condition Ready is False (Starting, a b); the object has no condition Complete",
            id="any_of",
        ),
        pytest.param(
            all_of(exists, condition_true("Ready"), where("kind", "Pod")),
            "condition Ready is False (Starting, a b)",
            id="all_of",
        ),
        pytest.param(deleted, "no deletion was requested", id="deleted"),
        pytest.param(negate(condition_true("Up")), "condition Up is True", id="negate"),
        pytest.param(where("status.phase", "Running"), "", id="a predicate"),
        pytest.param(fails, "", id="a function"),
    ],
)
async def test_a_wait_that_times_out_says_how_far_the_object_came(
    condition: Any, reason: str
) -> None:
    cluster, entries = (
        cluster_with_pods("a"),
        [ready_entry("a\nb"), {"type": "Up", "status": "True"}],
    )
    cluster.merge_patch("pods", "a", {"status": {"conditions": entries}})
    async with running_informer(pod_informer(cluster)) as informer:
        await informer.wait_synced(timeout=5)
        with pytest.raises(CacheWaitTimeout) as caught:
            await informer.wait_until("default/a", condition, timeout=0.01)
        assert caught.value.reason == reason
        assert (f" ({reason}) after 0.01 s" if reason else " after 0.01 s") in str(caught.value)
        if reason:
            with pytest.raises(CacheWaitTimeout) as caught:
                await informer.wait_until_all(condition, timeout=0.01)
            assert f"(not yet: default/a: {reason}) after" in str(caught.value)


async def test_a_wait_that_times_out_says_that_the_object_was_deleted_meanwhile() -> None:
    cluster, reasons = cluster_with_pods("a", "b"), dict[str, str]()

    async def wait(name: str) -> None:
        with pytest.raises(CacheWaitTimeout) as caught:
            await informer.wait_until(f"default/{name}", condition_true("Ready"), timeout=0.1)
        reasons[name] = caught.value.reason

    async with running_informer(pod_informer(cluster)) as informer:
        await informer.wait_synced(timeout=5)
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "absent"):
                group.create_task(wait(name))
            await yield_to_loop(5)
            cluster.delete("pods", "a")
            cluster.delete("pods", "b")
            cluster.create("pods", {"metadata": {"name": "b"}})
    assert reasons == {
        "a": "the object was deleted meanwhile",
        "b": "the object was deleted and created again meanwhile; the object has no condition "
        "Ready",
        "absent": "the object does not exist",
    }


async def test_an_async_predicate_is_an_error_at_the_call() -> None:
    async def ready(obj: KubeObject | None) -> bool:
        return obj is not None

    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        with pytest.raises(TypeError, match=r"wait_until: .*ready is async"):
            await informer.wait_until("default/a", ready)
        with pytest.raises(TypeError, match=r"wait_until_all: .*ready is async"):
            await informer.wait_until_all(ready)
        with pytest.raises(TypeError, match=r"where=.*ready is async"):
            informer.lister.list(where=ready)
        with pytest.raises(TypeError, match="needs a function or a condition, not True"):
            await informer.wait_until("default/a", cast("Any", True))


async def test_a_condition_of_content_needs_the_json_that_a_model_does_not_keep() -> None:
    class Slim(msgspec.Struct, frozen=True):
        kind: str = ""

    cluster = cluster_with_pods("a")
    informer = SharedInformer(
        ClusterSource(cluster).lister_watcher(PODS),
        backoff=FAST_BACKOFF,
        shape=Shape.of(model=Slim),
    )
    async with running_informer(informer):
        with pytest.raises(UsageError, match=r"wait_until: condition_true\('Ready'\) reads an obj"):
            await informer.wait_until("default/a", condition_true("Ready"))
        assert await informer.wait_until("default/a", exists, timeout=5) == Slim("Pod")
        for wait in (
            informer.wait_until("default/a", deleted, timeout=0.01),
            informer.wait_until_all(deleted, timeout=0.01),
        ):
            with pytest.raises(CacheWaitTimeout):
                await wait


# -- all objects -------------------------------------------------------------------------------

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


async def test_all_objects_are_waited_for() -> None:
    cluster = cluster_with_pods("a", "b")
    async with running_informer(pod_informer(cluster)) as informer:
        waiting = asyncio.create_task(
            informer.wait_until_all(condition_true("Ready"), at_least=3, timeout=5)
        )
        for name in ("a", "b"):
            cluster.merge_patch("pods", name, READY)
            await yield_to_loop(5)
        assert not waiting.done(), "a third object must exist"
        cluster.create("pods", {"metadata": {"name": "c"}})
        await yield_to_loop(5)
        assert not waiting.done()
        cluster.merge_patch("pods", "c", READY)

        assert await waiting == 3
        assert await informer.wait_until_all(condition_true("Ready"), timeout=5) == 3


async def test_the_objects_that_all_are_waited_for_can_be_selected() -> None:
    cluster = cluster_with_pods("a", "b")
    label_pod(cluster, "a", "1")
    async with running_informer(pod_informer(cluster)) as informer:
        waiting = asyncio.create_task(
            informer.wait_until_all(deleted, labels="value", namespace="default", timeout=5)
        )
        await yield_to_loop(5)
        assert not waiting.done()
        cluster.delete("pods", "a")

        assert await waiting == 0
        assert names(informer.lister.list()) == ["b"]


async def test_an_object_that_no_longer_passes_is_waited_for_again() -> None:
    cluster = cluster_with_pods("a", "b")
    cluster.merge_patch("pods", "a", READY)
    async with running_informer(pod_informer(cluster)) as informer:
        waiting = asyncio.create_task(informer.wait_until_all(condition_true("Ready"), timeout=5))
        await yield_to_loop(5)
        cluster.merge_patch("pods", "a", {"status": {"conditions": []}})
        await yield_to_loop(5)
        cluster.merge_patch("pods", "b", READY)
        await yield_to_loop(5)
        assert not waiting.done()
        cluster.merge_patch("pods", "a", READY)

        assert await waiting == 2


async def test_objects_that_do_not_pass_in_time_are_named() -> None:
    cluster = cluster_with_pods(*"abcdefg")
    async with running_informer(pod_informer(cluster)) as informer:
        with pytest.raises(CacheWaitTimeout) as caught:
            await informer.wait_until_all(condition_true("Ready"), timeout=0.01)
        assert str(caught.value).count("default/") == 5
        assert "..." in str(caught.value)
        with pytest.raises(CacheWaitTimeout, match="fewer than 9 objects"):
            await informer.wait_until_all(exists, at_least=9, timeout=0.01)


# -- is it right? ------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Meddling:
    """A cluster that runs an action before it answers each exact list."""

    source: ClusterListerWatcher
    meddle: Callable[[], None]
    asked: list[ListRequest] = field(default_factory=list[ListRequest])

    @property
    def resource(self) -> Resource:
        return self.source.resource

    @property
    def watch_lists(self) -> bool:
        return self.source.watch_lists

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        if request.exact:
            self.asked.append(request)
            self.meddle()
        async with self.source.list(request) as chunks:
            yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self.source.watch(request) as chunks:
            yield chunks


def meddled(cluster: Cluster, meddle: Callable[[], None]) -> tuple[SharedInformer, Meddling]:
    source = Meddling(ClusterSource(cluster).lister_watcher(PODS), meddle)
    return SharedInformer(source, backoff=FAST_BACKOFF), source


@pytest.mark.client_go(48)
async def test_a_correct_cache_passes_a_verification_over_several_pages() -> None:
    cluster = cluster_with_pods(*(f"p-{number}" for number in range(1100)))
    informer, source = meddled(cluster, lambda: None)
    async with running_informer(informer):
        label_pod(cluster, "p-7", "1")
        cluster.delete("pods", "p-8")
        await wait_until(lambda: len(informer.lister) == 1099)
        found = await informer.verify(contents=True, timeout=5)

    assert found
    assert found.objects == 1099
    assert found.resource_version == str(cluster.resource_version)
    assert [bool(each.continue_token) for each in source.asked] == [False, True, True]


async def test_changes_during_a_verification_are_no_differences() -> None:
    cluster, count = cluster_with_pods(*(f"p-{number}" for number in range(1100))), 0

    def meddle() -> None:
        nonlocal count
        for _ in range(5):
            count += 1
            label_pod(cluster, f"p-{count}", str(count))
            cluster.delete("pods", f"p-{1000 - count}")

    informer, _ = meddled(cluster, meddle)
    async with running_informer(informer):
        found = await informer.verify(timeout=5)

    assert count == 15
    assert found


async def test_a_verification_of_an_expired_version_is_repeated_with_a_newer_one() -> None:
    cluster, attempts = cluster_with_pods("a"), 0

    def meddle() -> None:
        nonlocal attempts
        attempts += 1
        label_pod(cluster, "a", str(attempts))
        if attempts < 3:
            cluster.compact()

    informer, source = meddled(cluster, meddle)
    async with running_informer(informer):
        found = await informer.verify(timeout=5)

    assert found
    assert attempts == 3
    versions = [int(each.resource_version) for each in source.asked]
    assert versions == sorted(set(versions))


async def test_a_verification_fails_after_five_expired_versions() -> None:
    cluster = cluster_with_pods("a")

    def meddle() -> None:
        label_pod(cluster, "a", str(cluster.resource_version))
        cluster.compact()

    informer, source = meddled(cluster, meddle)
    async with running_informer(informer):
        with pytest.raises(Expired):
            await informer.verify(timeout=5)
    assert len(source.asked) == 5


async def test_a_verification_that_waits_for_a_newer_version_ends_at_its_timeout() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 3)), watch_response(never_ends=True), error_response(410, "Expired")
    )
    async with running_informer(SharedInformer(source)) as informer:
        await source.wait_for_request(2)
        with pytest.raises(
            CacheWaitTimeout, match=r"a state that the server has confirmed after 0\.01 s"
        ):
            await informer.verify(timeout=0.01)


async def test_a_version_of_a_bookmark_can_be_verified() -> None:
    answers = (
        list_response(body("a", 3)),
        watch_response(bookmark(12), never_ends=True),
        list_response(body("a", 3), version="12"),
    )
    source = scripted_lister_watcher(*answers)
    async with running_informer(SharedInformer(source)) as informer:
        await wait_until(lambda: informer.lister.resource_version == "12")
        assert await informer.verify()


async def test_a_verification_raises_the_error_of_its_list() -> None:
    faults, cluster = Faults(), cluster_with_pods("a")
    informer = SharedInformer(ClusterSource(cluster, faults).lister_watcher(PODS))
    async with running_informer(informer):
        faults.forbid(verb="list")
        with pytest.raises(Forbidden):
            await informer.verify()


async def test_a_verification_rejects_an_answer_with_another_version() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 3)),
        watch_response(never_ends=True),
        list_response(body("a", 3), version="11"),
    )
    async with running_informer(SharedInformer(source)) as informer:
        await source.wait_for_request(2)
        with pytest.raises(ProtocolError, match="resourceVersion 11 instead of exactly 10"):
            await informer.verify()


async def test_a_verification_before_the_initial_list_raises_not_synced() -> None:
    with pytest.raises(NotSynced):
        await SharedInformer(scripted_lister_watcher()).verify()


async def test_rejected_objects_are_no_difference() -> None:
    cluster = cluster_with_pods("a", "b")
    informer = pod_informer(cluster)

    def picky(obj: KubeObject) -> str:
        if obj.labels.get("value") == "bad":
            raise ValueError("bad")
        return "fine"

    await informer.add_index("picky", picky)
    async with running_informer(informer):
        label_pod(cluster, "a", "bad")
        await wait_until(lambda: informer.health.rejected == ("default/a",))
        found = await informer.verify(contents=True)

    assert found
    assert found.rejected == 1
    assert names(informer.lister.list()) == ["a", "b"]


async def test_the_last_state_can_be_read_after_the_end() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}})
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(5)
    cluster.create("pods", {"metadata": {"name": "b"}})
    await pods.wait_synced(timeout=1)
    assert [pod.name for pod in pods.lister.list()] == ["a"]
    assert pods.health.state == "stopped"
    with pytest.raises(NotRunning):
        await pods.wait_until("default/b", exists, timeout=1)


async def test_the_error_of_a_wait_before_the_start_mentions_the_factory() -> None:
    pods = SharedInformerFactory(ClusterSource(Cluster())).informer("pods")
    with pytest.raises(SyncTimeout, match="not started: enter the factory with `async with`"):
        await pods.wait_synced(timeout=0.01)
    with pytest.raises(NotSynced, match="inside of the factory's `async with`"):
        pods.lister.list()

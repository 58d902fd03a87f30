"""The informers of a factory: sharing, options, lifetime."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from aioinformer import (
    ALL_NAMESPACES,
    BackoffPolicy,
    Client,
    Event,
    KubeObject,
    LabelSelector,
    ListRequest,
    Metrics,
    Problem,
    Resource,
    SharedInformer,
    SharedInformerFactory,
    Source,
)
from aioinformer import field as field_of
from aioinformer._core.instrumentation import ReadLevels
from aioinformer._informers.options import InformerRequest
from aioinformer.errors import (
    Forbidden,
    InvalidSelector,
    NotRunning,
    ShutdownIncomplete,
    SyncTimeout,
    Unauthorized,
    UnknownResource,
    UsageError,
)
from aioinformer.testing import Cluster, ClusterSource, Features
from tests.client.virtual_time import in_virtual_time
from tests.runtime.informers import (
    FAST_BACKOFF,
    SLOW_BACKOFF,
    cluster_with_pods,
    names,
    running_in_background,
)
from tests.runtime.scripted_source import (
    NODES,
    PODS,
    ErrorResponse,
    body,
    error_response,
    list_response,
    scripted_lister_watcher,
    scripted_source,
    wait_until,
    watch_response,
    yield_to_loop,
)


def factory(
    source: Source,
    *,
    namespace: str | None = None,
    backoff: BackoffPolicy = FAST_BACKOFF,
    shutdown_timeout: float = 5.0,
) -> SharedInformerFactory:
    return SharedInformerFactory(
        source, namespace=namespace, backoff=backoff, shutdown_timeout=shutdown_timeout
    )


async def within(
    informers: SharedInformerFactory, work: Callable[[], Awaitable[object]] | None = None
) -> None:
    """Enter the factory, do some work, leave it."""
    async with informers:
        if work is not None:
            await work()


async def for_ever() -> None:
    await asyncio.get_running_loop().create_future()


def by_name(obj: KubeObject) -> str:
    return obj.name


# -- identity ---------------------------------------------------------------------------------


def test_the_same_request_gives_the_same_informer() -> None:
    informers = factory(scripted_source())

    assert informers.informer("pods") is informers.informer("pods")
    assert informers.informer("po") is informers.informer("Pod")
    assert informers.informer(PODS) is informers.informer("pods")
    assert len(list(informers)) == 1


@dataclass(frozen=True, slots=True)
class Asking:
    """Arguments of ``informer``."""

    resource: str = "pods"
    namespace: str | None = None
    labels: str | Mapping[str, str] = ""
    fields: str | Mapping[str, str] = ""
    managed_fields: bool = False

    def of(self, informers: SharedInformerFactory) -> SharedInformer:
        return informers.informer(
            self.resource,
            namespace=self.namespace,
            labels=self.labels,
            fields=self.fields,
            managed_fields=self.managed_fields,
        )


@pytest.mark.parametrize(
    "other",
    [
        Asking("services"),
        Asking(namespace="db"),
        Asking(namespace=ALL_NAMESPACES),
        Asking(labels="app=shop"),
        Asking(fields="spec.nodeName=n1"),
        Asking(managed_fields=True),
    ],
    ids=["resource", "namespace", "all namespaces", "labels", "fields", "managed fields"],
)
def test_another_request_gives_another_informer(other: Asking) -> None:
    informers = factory(scripted_source(), namespace="web")

    assert other.of(informers) is not informers.informer("pods")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Asking(labels="b=2,a=1"), Asking(labels={"a": "1", "b": "2"})),
        (Asking(labels="a==1"), Asking(labels=" a = 1 ")),
        (Asking(labels="a notin (y, x)"), Asking(labels="a notin (x,y)")),
        (Asking(fields="metadata.name=x"), Asking(fields={"metadata.name": "x"})),
        (Asking(), Asking(namespace="web")),
        (Asking(), Asking(labels={}, fields={})),
    ],
    ids=["order", "spelling", "sets", "fields", "the factory's namespace", "nothing"],
)
def test_two_spellings_of_one_request_give_one_informer(one: Asking, other: Asking) -> None:
    informers = factory(scripted_source(), namespace="web")

    assert one.of(informers) is other.of(informers)


def test_the_scope_and_selectors_reach_the_source() -> None:
    source = scripted_source()
    informers = factory(source, namespace="web")

    informers.informer("pods", labels={"app": "shop"}, fields="status.phase=Running")
    informers.informer("pods", namespace="db")
    informers.informer("pods", namespace=ALL_NAMESPACES)

    assert source.lister_watcher_calls == [
        ("pods", "web", str(LabelSelector.parse("app=shop")), "status.phase=Running"),
        ("pods", "db", "", ""),
        ("pods", None, "", ""),
    ]


def test_cluster_scoped_resources_have_no_namespace() -> None:
    source = scripted_source()
    informers = factory(source, namespace="web")

    assert informers.informer("nodes") is informers.informer("nodes", namespace="db")
    assert source.lister_watcher_calls == [("nodes", None, "", "")]


def test_the_name_of_an_informer_has_its_resource_namespace_and_selector() -> None:
    informers = factory(scripted_source(), namespace="web")

    assert informers.informer("pods").name == "pods in web"
    assert informers.informer("pods", labels="app=shop").name == "pods in web where app=shop"
    assert informers.informer("nodes").name == "nodes"


def test_indexes_are_added_to_the_existing_informer() -> None:
    informers = factory(scripted_source())
    pods = informers.informer("pods", indexers={"name": by_name})

    informers.informer("pods", indexers={"name": by_name, "uid": lambda obj: obj.uid})

    assert pods.lister.indexers == ("name", "uid")
    with pytest.raises(UsageError, match="already, with another function"):
        informers.informer("pods", indexers={"name": lambda obj: obj.uid})


def test_an_invalid_selector_or_resource_is_rejected_at_the_call() -> None:
    informers = factory(scripted_source())

    with pytest.raises(InvalidSelector):
        informers.informer("pods", labels="a in (")
    with pytest.raises(InvalidSelector):
        informers.informer("pods", fields="metadata.name")
    with pytest.raises(UnknownResource):
        informers.informer("podz")
    assert list(informers) == []


# -- running ----------------------------------------------------------------------------------


async def test_informers_run_while_the_factory_is_entered() -> None:
    informers = factory(ClusterSource(cluster_with_pods("a")), namespace="default")
    pods = informers.informer("pods")

    async with informers:
        await informers.wait_synced(timeout=30)
        assert pods.lister.get("a") is not None
        assert repr(informers) == "<SharedInformerFactory running informers=1 synced=1>"

    assert pods.health.state == "stopped"
    assert repr(informers) == "<SharedInformerFactory ended informers=1 synced=1>"


async def test_an_informer_that_is_requested_from_a_running_factory_starts_at_once() -> None:
    async with factory(ClusterSource(cluster_with_pods("a"))) as informers:
        pods = informers.informer("pods")
        await pods.wait_synced(timeout=30)

        assert names(pods.lister.list()) == ["a"]


async def test_an_informer_sends_no_request_before_the_factory_is_entered() -> None:
    source = scripted_source(pods=[list_response()])
    informers = factory(source)
    informers.informer("pods")
    await yield_to_loop()
    assert source.scripts["pods"].requests == []

    await within(informers, informers.wait_synced)
    assert len(source.scripts["pods"].requests) >= 1


async def test_a_factory_may_be_entered_in_one_task_and_left_in_another() -> None:
    stack = AsyncExitStack()
    informers = factory(ClusterSource(cluster_with_pods("a")))
    pods = informers.informer("pods")

    await asyncio.create_task(_enter(stack, informers))
    await pods.wait_synced(timeout=30)
    await asyncio.create_task(stack.aclose())

    assert pods.health.state == "stopped"


async def _enter(stack: AsyncExitStack, informers: SharedInformerFactory) -> None:
    await stack.enter_async_context(informers)


async def test_an_error_of_the_body_is_raised_unchanged() -> None:
    error = ValueError("mine")

    async def body() -> None:
        raise error

    with pytest.raises(ValueError, match="mine") as caught:
        await within(factory(scripted_source()), body)

    assert caught.value is error


async def test_a_factory_can_run_in_a_task_group_of_the_caller() -> None:
    informers = factory(ClusterSource(cluster_with_pods("a")))
    pods = informers.informer("pods")

    async with asyncio.TaskGroup() as group:
        work = group.create_task(informers.run())
        await informers.wait_synced(timeout=30)
        informers.informer("nodes")
        await informers.wait_synced(timeout=30)
        work.cancel()

    assert work.cancelled()
    assert pods.health.state == "stopped"
    with pytest.raises(NotRunning):
        informers.informer("pods")


async def test_a_factory_can_be_started_only_once() -> None:
    informers = factory(scripted_source())

    async with informers:
        with pytest.raises(UsageError, match="runs once"):
            await informers.run()
        with pytest.raises(UsageError, match="runs once"):
            await informers.__aenter__()


async def test_a_factory_is_not_running_after_its_end() -> None:
    informers = factory(scripted_source())
    await within(informers)

    with pytest.raises(NotRunning, match="the informer factory has ended"):
        informers.informer("pods")
    with pytest.raises(NotRunning):
        async with informers.use("pods"):
            pass


async def test_a_factory_can_not_be_used_from_a_thread_or_another_loop() -> None:
    informers, errors = factory(scripted_source()), list[str]()

    def ask() -> None:
        try:
            informers.informer("pods")
        except UsageError as error:
            errors.append(str(error))

    async def ask_in_another_loop() -> None:
        ask()

    async with informers:
        for target in (ask, lambda: asyncio.run(ask_in_another_loop())):
            thread = threading.Thread(target=target)
            thread.start()
            await asyncio.to_thread(thread.join)

    assert len(errors) == 2
    assert list(informers) == []


# -- waiting ----------------------------------------------------------------------------------


@pytest.mark.client_go(124)
async def test_a_time_out_names_every_informer_that_is_not_synced_and_why() -> None:
    source = scripted_source(
        pods=[error_response(403, "Forbidden", "pods is forbidden")], nodes=[list_response()]
    )
    async with factory(source, backoff=SLOW_BACKOFF) as informers:
        informers.informer("pods")
        informers.informer("nodes")
        informers.informer("services")
        await wait_until(lambda: any(each.health.state == "waiting" for each in informers))
        await wait_until(lambda: any(each.synced for each in informers))

        with pytest.raises(SyncTimeout) as caught:
            await informers.wait_synced(timeout=0.001)

    assert list(caught.value.unsynced) == ["pods", "services"]
    assert "403 Forbidden: pods is forbidden" in caught.value.unsynced["pods"]
    assert caught.value.unsynced["services"].startswith("listing for")


@pytest.mark.parametrize("resources", [[], ["pods"]])
async def test_waiting_for_a_factory_that_was_not_entered_is_an_error(resources: list[str]) -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    for resource in resources:
        informers.informer(resource)
    with pytest.raises(UsageError, match=r"the factory was not entered.*async with factory"):
        await informers.wait_synced(timeout=30)


async def test_a_factory_that_a_new_task_runs_can_be_waited_for_at_once() -> None:
    informers = SharedInformerFactory(ClusterSource(Cluster()))
    informers.informer("pods")
    async with running_in_background(informers.run()):
        await informers.wait_synced(timeout=30)


async def test_a_factory_without_informers_is_synced() -> None:
    async with factory(scripted_source()) as informers:
        await informers.wait_synced(timeout=0)


# -- use --------------------------------------------------------------------------------------


async def test_an_informer_stops_when_its_last_user_leaves() -> None:
    source = scripted_source(pods=[list_response(), watch_response(never_ends=True)])
    async with factory(source) as informers:
        async with informers.use("pods") as one:
            async with informers.use("po") as other:
                assert one is other
                await one.wait_synced(timeout=30)
            await wait_until(lambda: one.health.state == "watching")

        assert one.health.state == "stopped"
        assert source.scripts["pods"].open_responses == 0
        assert list(informers) == []


async def test_an_informer_that_was_requested_by_informer_remains_without_users() -> None:
    async with factory(ClusterSource(cluster_with_pods("a"))) as informers:
        async with informers.use("pods") as pods:
            assert informers.informer("pods") is pods
        await yield_to_loop()

        assert list(informers) == [pods]
        await pods.wait_synced(timeout=30)
        assert pods.health.state != "stopped"


async def test_a_second_use_after_the_first_has_ended_makes_a_new_informer() -> None:
    async with factory(ClusterSource(cluster_with_pods("a"))) as informers:
        async with informers.use("pods") as first:
            await first.wait_synced(timeout=30)
        async with informers.use("pods") as second:
            await second.wait_synced(timeout=30)

        assert second is not first


async def test_an_error_inside_a_use_is_raised_and_stops_the_informer() -> None:
    async def body() -> None:
        async with informers.use("pods"):
            raise ValueError("mine")

    async with factory(ClusterSource(cluster_with_pods("a"))) as informers:
        with pytest.raises(ValueError, match="mine"):
            await body()

        assert list(informers) == []


async def test_an_informer_may_be_used_before_the_factory_runs() -> None:
    informers = factory(ClusterSource(cluster_with_pods("a")))

    async with informers.use("pods") as pods, informers:
        await pods.wait_synced(timeout=30)

    assert pods.health.state == "stopped"
    assert list(informers) == []


async def test_an_informer_whose_last_user_left_before_the_start_is_not_started() -> None:
    source = scripted_source(pods=[list_response()])
    informers = factory(source)

    async with informers.use("pods"):
        pass
    await within(informers, yield_to_loop)

    assert source.scripts["pods"].requests == []


# -- failures ---------------------------------------------------------------------------------


async def test_a_bug_cancels_the_body_and_is_raised_unchanged() -> None:
    bug = RuntimeError("a bug")
    informers = factory(
        scripted_source(
            pods=[list_response(), ErrorResponse(bug)],
            nodes=[list_response(), watch_response(never_ends=True)],
        )
    )
    pods, nodes = informers.informer("pods"), informers.informer("nodes")

    with pytest.raises(RuntimeError, match="a bug") as caught:
        await within(informers, for_ever)

    assert caught.value is bug
    assert pods.health.state == "failed"
    assert nodes.health.state == "stopped"
    assert nodes.resource == NODES


async def test_a_bug_reaches_a_body_that_swallows_its_cancellation() -> None:
    informers = factory(scripted_source(pods=[ErrorResponse(RuntimeError("a bug"))]))
    informers.informer("pods")

    async def body() -> None:
        with suppress(asyncio.CancelledError):
            await for_ever()

    with pytest.raises(RuntimeError, match="a bug"):
        await within(informers, body)


async def test_a_bug_wakes_a_body_that_waits_for_the_initial_list() -> None:
    informers = factory(scripted_source(pods=[ErrorResponse(RuntimeError("a bug"))]))
    informers.informer("pods")

    with pytest.raises(RuntimeError, match="a bug"):
        await within(informers, informers.wait_synced)


async def test_a_bug_is_raised_by_run() -> None:
    informers = factory(scripted_source(pods=[ErrorResponse(RuntimeError("a bug"))]))
    informers.informer("pods")

    with pytest.raises(RuntimeError, match="a bug"):
        await informers.run()


# -- leaving ----------------------------------------------------------------------------------


async def test_the_end_of_a_factory_waits_for_the_cleanup_of_handlers() -> None:
    informers, log = factory(ClusterSource(cluster_with_pods("a"))), list[str]()

    async def handler(event: Event) -> None:
        log.append("called")
        try:
            await for_ever()
        finally:
            await yield_to_loop()
            log.append("tidied up")

    informers.informer("pods").add_handler(handler)
    async with informers:
        await wait_until(lambda: log == ["called"])

    assert log == ["called", "tidied up"]


async def test_a_cancelled_factory_waits_until_its_handlers_have_ended() -> None:
    informers, log = factory(ClusterSource(cluster_with_pods("a"))), list[str]()
    may_end = asyncio.Event()

    async def handler(event: Event) -> None:
        log.append("called")
        try:
            await for_ever()
        finally:
            log.append("cancelled")
            await may_end.wait()
            log.append("ended")

    pods = informers.informer("pods")
    pods.add_handler(handler)
    body = asyncio.create_task(within(informers, lambda: wait_until(lambda: log == ["called"])))
    await wait_until(lambda: log == ["called", "cancelled"])
    for _ in range(3):
        body.cancel()
        await yield_to_loop()
    assert not body.done()
    may_end.set()
    await asyncio.wait({body})

    assert body.cancelled()
    assert log == ["called", "cancelled", "ended"]
    assert pods.health.state == "stopped"


@pytest.mark.parametrize("removed", [False, True], ids=["registered", "removed in its call"])
@in_virtual_time
async def test_a_handler_that_ignores_its_cancellation_is_named_after_the_time_out(
    removed: bool,
) -> None:
    informers = factory(ClusterSource(cluster_with_pods("a")), shutdown_timeout=0.005)
    calls, free = list[Event](), asyncio.Event()

    async def deaf(event: Event) -> None:
        calls.append(event)
        if removed:
            registration.remove()
        while not free.is_set():
            with suppress(asyncio.CancelledError):
                await free.wait()

    pods = informers.informer("pods")
    registration = pods.add_handler(deaf)

    with pytest.raises(ShutdownIncomplete) as caught:
        await within(informers, lambda: wait_until(lambda: len(calls) == 1))

    free.set()
    (left,) = caught.value.left
    assert left.startswith(f"{registration.name} (at Added of default/a ")
    await wait_until(lambda: pods.health.state == "stopped")
    await yield_to_loop()


async def test_two_factories_do_not_share_informers() -> None:
    source = scripted_lister_watcher(list_response(body("a", 3)))
    own = SharedInformer(source)

    async with (
        factory(ClusterSource(cluster_with_pods("b"))) as one,
        factory(scripted_source()) as other,
    ):
        assert one.informer("pods") is not other.informer("pods")
        async with running_in_background(own.run()):
            await own.wait_synced(timeout=30)
            await one.wait_synced(timeout=30)

    assert names(own.lister.list()) == ["a"]


@in_virtual_time
async def test_the_last_user_of_an_informer_waits_at_most_the_shutdown_timeout() -> None:
    finish = asyncio.Event()

    async def stubborn(_event: Event) -> None:
        while not finish.is_set():
            with suppress(asyncio.CancelledError):
                await finish.wait()

    async with factory(ClusterSource(cluster_with_pods("a")), shutdown_timeout=0.02) as informers:
        using = informers.use("pods")
        pods = await using.__aenter__()
        pods.add_handler(stubborn)
        await pods.wait_synced(30)
        await yield_to_loop()
        with pytest.raises(ShutdownIncomplete, match="stubborn"):
            await using.__aexit__(None, None, None)
        finish.set()
        await yield_to_loop()


async def test_the_end_of_a_use_does_not_affect_a_task_that_waits_for_the_other_informers() -> None:
    async with factory(scripted_source()) as informers:
        using = informers.use("pods")
        await using.__aenter__()
        waiting = asyncio.create_task(informers.wait_synced())
        await yield_to_loop()
        await using.__aexit__(None, None, None)
        await asyncio.wait_for(waiting, 5)


async def test_a_coroutine_instead_of_a_resource_is_a_usage_error() -> None:
    async def resource() -> Resource:
        return PODS

    async with factory(scripted_source()) as informers:
        with pytest.raises(UsageError, match=r"write `await client.resource"):
            informers.informer(resource())  # type: ignore[call-overload]


def test_a_url_instead_of_a_client_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="a factory takes a Client"):
        SharedInformerFactory("http://localhost")  # type: ignore[arg-type]


def test_a_class_instead_of_a_client_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"a factory takes a Client.*not the class Client"):
        SharedInformerFactory(Client)  # type: ignore[arg-type]


@pytest.mark.parametrize("resource", [None, 3, ["pods"]])
def test_a_value_that_names_no_resource_is_a_type_error(resource: Any) -> None:
    informers = SharedInformerFactory(scripted_source())
    with pytest.raises(TypeError, match=r"a resource is a name such as 'pods', or a Resource, not"):
        informers.informer(resource)


def test_a_metrics_class_instead_of_its_instance_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"metrics is an object: pass Metrics\(\), not the class"):
        SharedInformerFactory(scripted_source(), metrics=Metrics)  # type: ignore[arg-type]


# -- what all of its informers share -------------------------------------------------------------


async def test_an_error_in_fail_fast_cancels_the_body_and_is_raised_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        source = scripted_source(pods=[error_response(403, "Forbidden")])
        async with SharedInformerFactory(source, fail_fast=(Forbidden,)) as informers:
            informers.informer("pods")
            await asyncio.sleep(10)

    with pytest.raises(Forbidden):
        await body()
    (record,) = [each for each in caplog.records if each.levelno == logging.CRITICAL]
    assert record.getMessage().startswith("the informer of pods failed: Forbidden: ")
    assert record.exc_info is None, "the error is raised as well"


@in_virtual_time
async def test_a_fatal_error_of_a_request_does_not_wait_for_a_handler_that_never_returns() -> None:
    finish, states = asyncio.Event(), list[str]()
    source = scripted_source(pods=[list_response(body("a", 1)), error_response(403, "Forbidden")])

    async def deaf(event: object) -> None:
        while not finish.is_set():
            with suppress(asyncio.CancelledError):
                await finish.wait()

    informers = SharedInformerFactory(source, fail_fast=(Forbidden,), shutdown_timeout=0.01)
    pods = informers.informer("pods")
    stuck = pods.add_handler(deaf)

    async def until_it_fails() -> None:
        async with informers:
            try:
                await asyncio.sleep(10)
            finally:
                states.append(pods.health.state)

    with pytest.raises(Forbidden):
        await until_it_fails()

    assert states == ["failed"]
    finish.set()
    await wait_until(lambda: not stuck.running)
    await yield_to_loop()


async def test_requests_with_other_errors_are_still_retried_with_fail_fast() -> None:
    source = scripted_source(
        pods=[error_response(500, "InternalError"), list_response(version="10")]
    )
    async with SharedInformerFactory(
        source, backoff=FAST_BACKOFF, fail_fast=(Forbidden, Unauthorized)
    ) as informers:
        informers.informer("pods")
        await informers.wait_synced(timeout=30)


@pytest.mark.client_go(55)
async def test_the_error_hook_of_a_factory_receives_the_problems_of_every_informer() -> None:
    problems: list[Problem] = []
    source = scripted_source(
        pods=[error_response(403, "Forbidden")], nodes=[error_response(500, "InternalError")]
    )
    async with SharedInformerFactory(source, on_error=problems.append) as informers:
        informers.informer("pods")
        informers.informer("nodes")
        await wait_until(lambda: len(problems) == 2)

    assert {(each.informer, each.cause) for each in problems} == {
        ("pods", "access_denied"),
        ("nodes", "server_error"),
    }


@pytest.mark.parametrize("switched_off", [True, False], ids=["feature gate", "storage"])
async def test_a_server_without_watch_lists_is_not_reported_as_a_problem(
    switched_off: bool, caplog: pytest.LogCaptureFixture
) -> None:
    problems: list[Problem] = []
    source = ClusterSource(Cluster(features=Features(watch_list=switched_off)))
    if switched_off:
        source.faults.status(422, reason="Invalid", verb="watch_list")
    with caplog.at_level(logging.INFO):
        async with SharedInformerFactory(source, on_error=problems.append) as informers:
            pods, nodes = informers.informer("pods"), informers.informer("nodes")
            await informers.wait_synced(30)

            assert pods.health.error is None
            assert nodes.health.strategy == "list"

    assert problems == []
    logged = [each for each in caplog.records if "WatchList is not available" in each.message]
    assert [each.levelno for each in logged] == [logging.INFO, logging.INFO]  # two resources


async def test_informers_of_one_resource_share_the_knowledge_that_watch_lists_are_missing() -> None:
    """A server without WatchLists is detected once."""
    cluster = Cluster(features=Features(watch_list=False))
    source, problems = ClusterSource(cluster), list[Problem]()
    async with SharedInformerFactory(
        source, backoff=FAST_BACKOFF, on_error=problems.append
    ) as informers:
        first = informers.informer("pods")
        await informers.wait_synced(timeout=30)
        second = informers.informer("pods", labels="app=shop")
        await informers.wait_synced(timeout=30)

    assert problems == []
    assert (first.health.strategy, second.health.strategy) == ("list", "list")
    assert first.health.error is None
    assert second.health.error is None


@pytest.mark.client_go(33, 37)
async def test_the_state_is_listed_if_watch_lists_are_switched_off() -> None:
    async with SharedInformerFactory(ClusterSource(Cluster()), watch_list=False) as informers:
        pods = informers.informer("pods")
        await informers.wait_synced(timeout=30)
        assert pods.health.strategy == "list"


async def test_metrics_contain_an_informer_while_it_runs() -> None:
    metrics = Levelled()
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "web-0"}})
    async with SharedInformerFactory(ClusterSource(cluster), metrics=metrics) as informers:
        informers.informer("pods", fields="metadata.name=web-0")
        await informers.wait_synced(timeout=30)
        assert list(metrics.running) == ["pods (selected)"]
        levels = metrics.running["pods (selected)"]()
        assert (levels.synced, levels.objects, levels.queue_entries) == (True, 1, 0)
        assert levels.freshness_seconds < 5
    assert metrics.running == {}


@dataclass
class Levelled(Metrics):
    """Metrics that record which informers run."""

    running: dict[str, ReadLevels] = field(default_factory=dict[str, ReadLevels])

    def informer_started(self, informer: str, levels: ReadLevels) -> None:
        self.running[informer] = levels

    def informer_ended(self, informer: str, levels: ReadLevels) -> None:
        assert self.running.pop(informer) == levels


async def test_metrics_receive_the_durations_and_failures_of_handlers() -> None:
    metrics = Clocked()
    cluster = cluster_with_pods("a", "b", "c")

    def refuse(event: Event) -> None:
        if event.obj.name == "b":
            raise ValueError("not this one")

    async with SharedInformerFactory(ClusterSource(cluster), metrics=metrics) as informers:
        pods = informers.informer("pods")
        registration = pods.add_handler(refuse, name="audit")
        await registration.wait_synced(timeout=30)
        await yield_to_loop()

    assert metrics.calls == {("pods", "audit of pods"): 3}
    assert metrics.failures == [("pods", "audit of pods", "ValueError")]


@dataclass
class Clocked(Metrics):
    """Metrics that count the calls and failures of each handler."""

    calls: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    failures: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def handled(self, informer: str, listener: str, seconds: float, calls: int) -> None:
        assert 0 <= seconds < 5
        known = self.calls.get((informer, listener), 0)
        self.calls[informer, listener] = known + calls

    def handler_failed(self, informer: str, listener: str, error: str) -> None:
        self.failures.append((informer, listener, error))


async def test_using_an_informer_adds_the_indexes_that_it_lacks_while_it_runs() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}, "spec": {"nodeName": "node-1"}})
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        informers.informer("pods")
        await informers.wait_synced(timeout=30)
        async with informers.use("pods", indexers={"node": field_of("spec.nodeName")}) as pods:
            assert names(pods.lister.by_index("node", "node-1")) == ["a"]


# -- options of one informer ---------------------------------------------------------------------


@pytest.mark.parametrize(("options", "limit"), [({}, 3), ({"page_size": 2}, 2)])
async def test_an_option_of_one_informer_takes_the_place_of_the_factory_s(
    options: InformerRequest, limit: int
) -> None:
    source = scripted_source(pods=[list_response(body("a", 1))])
    async with SharedInformerFactory(source, page_size=3) as informers:
        await informers.informer("pods", **options).wait_synced(30)
    request = source.scripts["pods"].requests[0]
    assert isinstance(request, ListRequest)
    assert request.limit == limit


async def test_informers_without_options_of_their_own_share_with_any() -> None:
    informers = SharedInformerFactory(scripted_source(), resync=30)
    pods = informers.informer("pods", page_size=50, backoff=SLOW_BACKOFF)
    assert informers.informer("pods") is pods
    assert informers.informer("pods", backoff=SLOW_BACKOFF, resync=30) is pods
    async with informers.use("pods", page_size=50) as used:
        assert used is pods
    assert informers.informer("pods", namespace="web", page_size=7) is not pods


async def test_two_values_of_one_option_for_a_shared_informer_are_an_error() -> None:
    informers = SharedInformerFactory(scripted_source(), resync=30)
    pods = informers.informer("pods", page_size=50)
    with pytest.raises(
        UsageError, match=r"informer of pods .*has page_size=50; .*have page_size=100"
    ):
        informers.informer("pods", page_size=100)
    with pytest.raises(UsageError, match=r"has resync=30; .*have resync=5"):
        async with informers.use("pods", resync=5):
            raise AssertionError("it can't be entered")
    assert list(informers) == [pods]


async def test_options_end_with_the_informer_that_had_them() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods("a"))) as informers:
        async with informers.use("pods", page_size=50):
            pass
        async with informers.use("pods", page_size=100) as pods:
            await pods.wait_synced(30)

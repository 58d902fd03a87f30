"""An operator: controllers by name, terms of leadership, stop, failures and health."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

import pytest

from aioinformer import (
    Client,
    KubeObject,
    ObjectKey,
    Operator,
    ReconcileContext,
    Result,
)
from aioinformer.controllers import Reconcile
from aioinformer.errors import (
    NotRunning,
    PermanentError,
    ShutdownIncomplete,
    UnknownResource,
    UsageError,
)
from aioinformer.testing import ClusterSource, Faults
from tests.controllers.reconcilers import (
    BARS,
    FOOS,
    RecordingReconciler,
    body_with_owner,
    create_foo,
    loop_time,
    make_cluster,
    run_simulated,
    update_foo,
    wait_until,
)
from tests.operator.operators import make_operator, running, succeed

LEASE = "default/foo-operator"


# -- controllers ---------------------------------------------------------------------------------


def test_an_operator_resolves_names_of_custom_resources_at_its_start() -> None:
    cluster, runs = make_cluster("a"), RecordingReconciler()

    def names_in(obj: KubeObject) -> list[str]:
        return [f"default/{obj['data']['foo']}"]

    async def main() -> None:
        operator = make_operator(ClusterSource(cluster))
        operator.controller("foos.samples.example.com", runs).owns("bars").watches("cm", names_in)
        async with running(operator):
            await operator.wait_synced(30)
            await asyncio.sleep(1)
            cluster.create(BARS, body_with_owner("child", "a"))
            await asyncio.sleep(1)
            cluster.create("configmaps", {"metadata": {"name": "c"}, "data": {"foo": "b"}})
            await asyncio.sleep(1)

    run_simulated(main)
    assert runs.names == ["a", "a", "b"]
    assert [str(each.reasons[0]) for each in runs.contexts] == [
        "initial in foos.samples.example.com",
        "added in bars.samples.example.com",
        "added in configmaps",
    ]


def test_controllers_share_the_informers_of_one_factory() -> None:
    cluster = make_cluster("a")
    cluster.create(BARS, {"metadata": {"name": "a"}})
    foos, bars = RecordingReconciler(), RecordingReconciler()

    async def main() -> None:
        operator = make_operator(ClusterSource(cluster))
        known = operator.informers.informer(FOOS)
        assert operator.controller(FOOS, foos).informer is known
        operator.controller(BARS, bars).owns(known)
        async with running(operator):
            await asyncio.sleep(1)
            assert [each.name for each in operator.controllers] == [str(FOOS), str(BARS)]
            assert len(list(operator.informers)) == 2

    run_simulated(main)
    assert (foos.names, bars.names) == (["a"], ["a"])


def test_an_event_is_recorded_on_the_own_object() -> None:
    cluster = make_cluster("a")

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        ctx.event("Normal", "Seen", "saw it", action="Look")
        if ctx.obj is not None:
            cluster.delete(FOOS, "a")

    async def main() -> None:
        operator = make_operator(ClusterSource(cluster))
        operator.controller(FOOS, reconcile)
        async with running(operator):
            await asyncio.sleep(1)
            (failing,) = operator.controllers[0].health.failing
            assert failing.error.startswith("NotCached"), "the object was absent in the second run"

    run_simulated(main)
    (event,) = cluster.objects("events.events.k8s.io")
    assert (event["reason"], event["note"], event["action"]) == ("Seen", "saw it", "Look")
    assert (event["regarding"]["kind"], event["regarding"]["name"]) == ("Foo", "a")


def test_a_name_that_the_server_does_not_know_ends_the_run() -> None:
    async def main() -> None:
        operator = make_operator(ClusterSource(make_cluster()))
        operator.controller("wombats.example.com", succeed)
        with pytest.raises(UnknownResource, match="wombats"):
            await operator.run()
        assert operator.state == "failed"
        with pytest.raises(NotRunning, match=r"has ended: UnknownResource: .*wombats"):
            await operator.wait_synced()

    run_simulated(main)


async def test_wrong_declarations_fail_where_they_are_written() -> None:
    operator = make_operator(ClusterSource(make_cluster()))
    wrong: Any = 5
    with pytest.raises(TypeError, match="takes the name of a resource, a Resource, or an informer"):
        operator.controller(wrong, succeed)
    with pytest.raises(TypeError, match=r"to be called as \(key, ctx\)"):
        operator.controller("foos", lambda: None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="concurrency must be at least 1"):
        operator.controller("foos", succeed, concurrency=0)
    with pytest.raises(TypeError, match="a filter is a predicate"):
        operator.controller("foos", succeed, filter=wrong)
    foos = operator.controller("foos", succeed)
    with pytest.raises(UsageError, match="has a controller called foos already"):
        operator.controller("foos", succeed)
    with pytest.raises(TypeError, match="takes the name of a resource"):
        foos.owns(wrong)
    with pytest.raises(TypeError, match="to_keys must be a function"):
        foos.watches("pods", wrong)
    with pytest.raises(NotRunning, match="asks the server for it when the operator starts"):
        _ = foos.informer


async def test_wrong_arguments_of_an_operator_are_rejected() -> None:
    source, wrong = ClusterSource(make_cluster()), Client
    for client in (wrong, "https://localhost"):
        with pytest.raises(TypeError, match="an Operator takes a Client"):
            Operator(client, name="it")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="needs a name"):
        Operator(source, name="")
    with pytest.raises(UsageError, match="such as 'default/it', not 'it'"):
        make_operator(source, leader_election="it")
    with pytest.raises(ValueError, match="port must be from 0 to 65535"):
        make_operator(source, port=70_000)
    with pytest.raises(ValueError, match="renew_deadline"):
        make_operator(source, leader_election=LEASE, renew_deadline=20.0)
    with pytest.raises(UsageError, match="has no controller"):
        await make_operator(source).run()


def test_an_operator_runs_once_and_rejects_controllers_after_its_start() -> None:
    async def main() -> None:
        operator = make_operator(ClusterSource(make_cluster()))
        builder = operator.controller(FOOS, succeed)
        async with running(operator):
            await operator.wait_synced(30)
            with pytest.raises(UsageError, match="has started; add controllers before"):
                operator.controller(BARS, succeed)
            with pytest.raises(UsageError, match="has started; add triggers before"):
                builder.owns(BARS)
            with pytest.raises(UsageError, match="runs once"):
                await operator.run()
        assert operator.state == "stopped"

    run_simulated(main)


# -- leading, stopping, failing ------------------------------------------------------------------


def test_a_second_replica_reconciles_only_after_the_leader_has_stopped() -> None:
    cluster = make_cluster("a")
    first_runs, second_runs = RecordingReconciler(duration=3), RecordingReconciler()

    async def main() -> None:
        source = ClusterSource(cluster)
        first = make_operator(source, leader_election=LEASE, identity="one")
        first.controller(FOOS, first_runs)
        second = make_operator(source, leader_election=LEASE, identity="two")
        second.controller(FOOS, second_runs)
        async with running(first) as leading:
            await wait_until(lambda: first.is_leader)
            async with running(second):
                await second.wait_synced(30)
                await wait_until(lambda: second.health.leader == "one")
                assert (first.state, second.state) == ("running", "waiting")
                assert str(second.health) == "waiting; one leads"
                update_foo(cluster, "a", size=2)
                await asyncio.sleep(1)
                stopped = loop_time()
                first.stop()
                await leading
                assert loop_time() - stopped <= 3.0  # the run was finished
                await wait_until(lambda: second.is_leader)
                assert loop_time() - stopped < 8.0  # before the lease would have expired
                await asyncio.sleep(1)

    run_simulated(main)
    assert not first_runs.cancelled
    assert set(second_runs.names) == {"a"}


def test_a_replica_that_waits_for_the_lease_stops_at_once() -> None:
    async def main() -> None:
        source = ClusterSource(make_cluster())
        first, second = (
            make_operator(source, leader_election=LEASE, identity=name) for name in ("one", "two")
        )
        for each in (first, second):
            each.controller(FOOS, succeed)
        async with running(first):
            await wait_until(lambda: first.is_leader)
            async with running(second) as waiting:
                await wait_until(lambda: second.state == "waiting")
                stopped = loop_time()
                second.stop()
                await waiting
                assert loop_time() == stopped
                assert second.state == "stopped"
            assert first.is_leader

    run_simulated(main)


def test_a_replica_that_loses_the_lease_leads_again_later() -> None:
    cluster, runs, faults = make_cluster("a"), RecordingReconciler(duration=100), Faults()

    async def main() -> None:
        operator = make_operator(
            ClusterSource(cluster, faults), leader_election=LEASE, identity="one"
        )
        operator.controller(FOOS, runs)
        async with running(operator):
            await wait_until(lambda: bool(runs.names))
            with faults.refuse():
                await wait_until(lambda: operator.state == "waiting", every=0.5)
                assert runs.cancelled == ["a"]
            await wait_until(lambda: len(runs.names) == 2, every=0.5)
            assert operator.is_leader

    run_simulated(main)


def test_a_cancellation_cancels_the_runs_and_releases_the_lease() -> None:
    cluster, runs = make_cluster("a"), RecordingReconciler(duration=100)

    async def main() -> None:
        operator = make_operator(ClusterSource(cluster), leader_election=LEASE, identity="one")
        operator.controller(FOOS, runs)
        task = asyncio.create_task(operator.run())
        await wait_until(lambda: bool(runs.names))
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        lease = cluster.get("leases", "foo-operator", namespace="default")
        assert lease["spec"]["holderIdentity"] == ""

    run_simulated(main)
    assert runs.cancelled == ["a"]


def test_runs_that_do_not_finish_within_the_shutdown_timeout_are_named() -> None:
    cluster = make_cluster("a")
    cluster.create(BARS, {"metadata": {"name": "b"}})

    async def main() -> None:
        operator = make_operator(ClusterSource(cluster), shutdown_timeout=5.0)
        operator.controller(FOOS, RecordingReconciler(duration=100))
        operator.controller(BARS, RecordingReconciler(duration=100))
        task = asyncio.create_task(operator.run())
        await asyncio.sleep(1)
        operator.stop()
        with pytest.raises(ShutdownIncomplete) as caught:
            await task
        assert set(caught.value.left) == {
            "foos.samples.example.com: default/a",
            "bars.samples.example.com: default/b",
        }
        assert loop_time() <= 1 + 5.0 + 1.0

    run_simulated(main)


def test_an_operator_that_is_stopped_before_its_start_ends_at_once() -> None:
    async def main() -> None:
        operator = make_operator(ClusterSource(make_cluster()))
        operator.controller(FOOS, succeed)
        operator.stop()
        await operator.run()
        assert loop_time() == 0

    run_simulated(main)


def test_a_failure_of_the_informers_ends_the_operator() -> None:
    cluster, faults = make_cluster("a"), Faults()

    async def main() -> None:
        operator = make_operator(
            ClusterSource(cluster, faults),
            leader_election=LEASE,
            identity="one",
        )
        operator.controller(FOOS, succeed)
        task = asyncio.create_task(operator.run())
        await wait_until(lambda: operator.is_leader)
        (informer,) = operator.informers
        for each in informer.registrations:
            each.remove()
        with pytest.raises(NotRunning, match="receives no more events"):
            await task
        assert operator.state == "failed"
        assert "NotRunning" in str(operator.health)

    run_simulated(main)


# -- names ---------------------------------------------------------------------------------------


def apply_data(**data: str) -> Reconcile:
    """Return a reconciler that applies its own fields to one shared ConfigMap."""

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        shared = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}}
        await ctx.apply(shared | {"data": data}, owned=False)

    return reconcile


def test_two_operators_of_one_resource_keep_their_fields_of_a_shared_object() -> None:
    cluster = make_cluster("a")

    async def main() -> None:
        one, two = (Operator(ClusterSource(cluster), name=name) for name in ("op-a", "op-b"))
        one.controller(FOOS, apply_data(a="1"))
        two.controller(FOOS, apply_data(b="1"))
        async with running(one):
            await asyncio.sleep(1)
            async with running(two):
                await asyncio.sleep(1)

    run_simulated(main)
    shared = cluster.get("configmaps", "shared")
    assert shared["data"] == {"a": "1", "b": "1"}
    managers = [each["manager"] for each in shared["metadata"]["managedFields"]]
    assert sorted(managers) == ["op-a", "op-b"]


def test_a_controller_may_have_a_field_manager_of_its_own() -> None:
    cluster = make_cluster("a")

    async def main() -> None:
        operator = make_operator(ClusterSource(cluster))
        operator.controller(FOOS, apply_data(a="1"), field_manager="foo-fields")
        async with running(operator):
            await asyncio.sleep(1)

    run_simulated(main)
    (fields,) = cluster.get("configmaps", "shared")["metadata"]["managedFields"]
    assert fields["manager"] == "foo-fields"


@pytest.mark.parametrize("spelling", [FOOS, "foo", "Foo", "foos.samples.example.com", "selected"])
def test_a_name_depends_neither_on_selectors_nor_on_the_spelling(spelling: Any) -> None:
    cluster = make_cluster()
    cluster.create(FOOS, {"metadata": {"name": "a", "labels": {"a": "b"}}})

    async def main() -> None:
        operator = make_operator(ClusterSource(cluster))
        selected = spelling == "selected"
        resource = operator.informers.informer(FOOS, labels="a=b") if selected else spelling
        operator.controller(resource, apply_data(a="1"))
        async with running(operator):
            await asyncio.sleep(1)
            assert [each.name for each in operator.controllers] == ["foos.samples.example.com"]

    run_simulated(main)
    (fields,) = cluster.get("configmaps", "shared")["metadata"]["managedFields"]
    assert fields["manager"] == "foo-operator"


def test_one_resource_in_two_spellings_needs_two_names() -> None:
    async def main() -> None:
        operator = make_operator(ClusterSource(make_cluster()))
        operator.controller("foo", succeed)
        operator.controller("foos.samples.example.com", succeed)
        with pytest.raises(UsageError, match=r"two controllers called foos\.samples\.example\.com"):
            await operator.run()

    run_simulated(main)


@pytest.mark.parametrize("end", ["stop", "cancel"])
def test_waiting_for_an_operator_that_ends_before_its_start_ends(end: str) -> None:
    async def main() -> None:
        source = ClusterSource(make_cluster())
        operator = make_operator(source)
        operator.controller(FOOS, succeed)
        run = asyncio.create_task(operator.run())
        waiting = asyncio.create_task(operator.wait_synced())
        if end == "cancel":
            await asyncio.sleep(0)
            run.cancel()
        else:
            operator.stop()
        with pytest.raises(NotRunning, match="the operator foo-operator has ended"):
            await waiting
        with suppress(asyncio.CancelledError):
            await run

    run_simulated(main)


@pytest.mark.parametrize("spelling", [FOOS, "foo"])
def test_two_controllers_of_one_operator_need_two_finalizers_for_one_resource(
    spelling: Any,
) -> None:
    async def main() -> None:
        operator = make_operator(ClusterSource(make_cluster()))
        ours: Any = {"finalizer": "example.com/ours", "cleanup": succeed}
        operator.controller(FOOS, succeed, name="one", **ours)
        operator.controller(BARS, succeed, name="other", **ours)
        with pytest.raises(UsageError, match="the controllers one and two have the same finalizer"):
            await declare_and_run(operator, spelling, name="two", **ours)

    async def declare_and_run(operator: Operator, resource: Any, **keywords: Any) -> None:
        operator.controller(resource, succeed, **keywords)
        assert resource != FOOS  # else it is refused at once
        await operator.run()

    run_simulated(main)


async def test_an_unknown_option_names_the_nearest_one() -> None:
    operator = make_operator(ClusterSource(make_cluster()))
    wrong: Any = {"concurency": 3}
    with pytest.raises(TypeError, match="no option 'concurency'; did you mean 'concurrency'"):
        operator.controller("foos", succeed, **wrong)
    operator.controller("foos", succeed, concurrency=3)
    with pytest.raises(ValueError, match="field_manager must be 1 to 128 printable characters"):
        operator.controller("bars", succeed, field_manager="a" * 129)
    with pytest.raises(ValueError, match="name must be 1 to 128 printable characters"):
        Operator(ClusterSource(make_cluster()), name="a" * 129)


# -- the log -------------------------------------------------------------------------------------


def test_a_clean_stop_logs_no_warning_and_the_release_of_the_lease(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result:
        return Result(requeue_after=3600)

    async def main() -> None:
        source = ClusterSource(make_cluster("a"))
        operator = make_operator(source, leader_election=LEASE, identity="one")
        operator.controller(FOOS, reconcile)
        async with running(operator):
            await asyncio.sleep(5)

    run_simulated(main)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
    assert caplog.messages[-2:] == [
        "one has released default/foo-operator",
        "foo-operator has stopped",
    ]


# -- Events --------------------------------------------------------------------------------------


def test_a_permanent_error_is_recorded_as_an_event_in_the_name_of_the_operator() -> None:
    cluster = make_cluster("a")

    async def reject(key: ObjectKey, ctx: ReconcileContext) -> None:
        raise PermanentError("spec.size is missing")

    async def main() -> None:
        operator = make_operator(ClusterSource(cluster))
        operator.controller(FOOS, reject)
        async with running(operator):
            await asyncio.sleep(5)
            create_foo(cluster, "b")
            await asyncio.sleep(5)
            assert operator.controllers[0].health.failing_keys == 2

    run_simulated(main)
    events = list(cluster.objects("events.events.k8s.io"))
    assert sorted(each["regarding"]["name"] for each in events) == ["a", "b"]
    assert {(each["type"], each["reason"], each["reportingController"]) for each in events} == {
        ("Warning", "PermanentError", "foo-operator")
    }

"""The writes of a run: the status of its object, and the objects that it owns."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, cast

import pytest
from msgspec import Struct
from typing_extensions import Unpack

from aioinformer import (
    Added,
    Client,
    Controller,
    Event,
    KubeObject,
    ObjectKey,
    ReconcileContext,
    Resource,
    SharedInformer,
    SharedInformerFactory,
    field,
    is_controlled_by,
    set_condition,
)
from aioinformer.controllers.controller import ControllerKeywords
from aioinformer.errors import (
    AlreadyOwned,
    Conflict,
    Forbidden,
    InformerError,
    Invalid,
    NotCached,
    NotFound,
    UsageError,
)
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Faults
from tests.controllers.reconcilers import (
    BACKOFF,
    BARS,
    FOOS,
    REALMS,
    create_foo,
    key,
    make_cluster,
    run_simulated,
    update_foo,
)

Action = Callable[["Setting"], Awaitable[object]]


def added_only(event: Event) -> bool:
    return isinstance(event, Added)


def keep_all(obj: KubeObject) -> KubeObject:
    return obj


class Setting:
    """The parts that a reconciler of these tests has: its context, and the informers."""

    def __init__(
        self, ctx: ReconcileContext, foos: SharedInformer, bars: SharedInformer, cluster: Cluster
    ) -> None:
        self.ctx, self.foos, self.bars, self.cluster = ctx, foos, bars, cluster


def make_status_cluster(*names: str) -> Cluster:
    """Return a cluster whose foos have a status subresource."""
    cluster = Cluster()
    cluster.add_resource(FOOS, status=True)
    for resource in (BARS, REALMS):
        cluster.add_resource(resource)
    for name in names:
        create_foo(cluster, name)
    return cluster


def reconcile_once(
    action: Action,
    cluster: Cluster,
    **options: Unpack[ControllerKeywords],
) -> object:
    """Return the result of ``action`` in the first run of the foo ``a``; raise what it raises."""
    results: asyncio.Future[object] | None = None
    options.setdefault("name", "foos")

    async def main() -> object:
        nonlocal results
        results = asyncio.get_running_loop().create_future()
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                assert results is not None
                if key.name != "a" or results.done():
                    return
                try:
                    results.set_result(await action(Setting(ctx, foos, bars, cluster)))
                except InformerError as error:
                    results.set_exception(error)

            async with Controller(foos, reconcile, **options).owns(bars):
                return await asyncio.wait_for(results, 30)

    return run_simulated(main)


def bar(name: str, **content: Any) -> dict[str, Any]:
    return {
        "apiVersion": BARS.api_version,
        "kind": BARS.kind,
        "metadata": {"name": name},
        **content,
    }


def names_of(cluster: Cluster, resource: Resource) -> list[str]:
    return [each["metadata"]["name"] for each in json.loads(cluster.list(resource))["items"]]


def owned_by_a(cluster: Cluster, name: str) -> None:
    """Create a bar that the foo ``a`` controls."""
    owner = cluster.get(FOOS, "a")
    reference = {
        "apiVersion": FOOS.api_version,
        "kind": FOOS.kind,
        "name": "a",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    cluster.create(BARS, {"metadata": {"name": name, "ownerReferences": [reference]}})


# -- patch_status ------------------------------------------------------------------------------


def test_a_status_is_written_through_its_subresource() -> None:
    cluster = make_status_cluster("a")

    async def action(setting: Setting) -> KubeObject:
        return await setting.ctx.patch_status({"phase": "Ready", "ready": True})

    written = reconcile_once(action, cluster)
    assert isinstance(written, KubeObject)
    assert cluster.get(FOOS, "a")["status"] == {"phase": "Ready", "ready": True}
    assert cluster.get(FOOS, "a")["spec"] == {}


def test_a_status_that_is_equal_to_the_cached_one_is_not_sent() -> None:
    cluster = make_status_cluster("a")
    ready = set_condition(
        None, "Ready", True, reason="Fine", now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    )
    status = {"phase": "Ready", "conditions": ready, "counts": {"pods": 2}}
    cluster.merge_patch(FOOS, "a", {"status": status})
    before = cluster.resource_version

    async def action(setting: Setting) -> KubeObject:
        cached = setting.foos.lister[key("a")]
        conditions = cached["status"]["conditions"]
        again = set_condition(conditions, "Ready", True, reason="Fine")
        found = await setting.ctx.patch_status(status | {"conditions": again, "absent": None})
        assert found is cached
        return found

    reconcile_once(action, cluster)
    assert cluster.resource_version == before


def test_a_patch_is_compared_with_the_last_write_of_the_run() -> None:
    """The cache is behind at the second call, so it can't be the judge."""
    cluster = make_status_cluster("a")
    cluster.merge_patch(FOOS, "a", {"status": {"phase": "Old"}})

    async def action(setting: Setting) -> object:
        await setting.ctx.patch_status({"phase": "New"})
        return await setting.ctx.patch_status({"phase": "Old"})

    reconcile_once(action, cluster)
    assert cluster.get(FOOS, "a")["status"] == {"phase": "Old"}


def test_a_list_that_another_program_has_changed_is_not_overwritten() -> None:
    cluster = make_status_cluster("a")

    async def action(setting: Setting) -> object:
        other = {"status": {"conditions": [{"type": "Theirs", "status": "True"}]}}
        setting.cluster.merge_patch(FOOS, "a", other)
        mine = set_condition(None, "Mine", True, reason="Fine")
        return await setting.ctx.patch_status({"conditions": mine})

    with pytest.raises(Conflict):
        reconcile_once(action, cluster)
    assert [each["type"] for each in cluster.get(FOOS, "a")["status"]["conditions"]] == ["Theirs"]


def test_a_plain_field_is_written_whatever_else_has_changed() -> None:
    cluster = make_status_cluster("a")

    async def action(setting: Setting) -> object:
        setting.cluster.merge_patch(FOOS, "a", {"metadata": {"labels": {"x": "y"}}})
        return await setting.ctx.patch_status({"phase": "Ready"})

    reconcile_once(action, cluster)
    assert cluster.get(FOOS, "a")["status"] == {"phase": "Ready"}


def test_the_status_of_a_deleted_object_is_not_written() -> None:
    cluster = make_status_cluster("a")

    async def action(setting: Setting) -> object:
        setting.cluster.delete(FOOS, "a")
        await setting.foos.wait_until(key("a"), lambda obj: obj is None)
        return await setting.ctx.patch_status({"phase": "Ready"})

    with pytest.raises(NotCached):
        reconcile_once(action, cluster)


def own_body(setting: Setting, **content: Any) -> dict[str, Any]:
    head = {"apiVersion": FOOS.api_version, "kind": FOOS.kind}
    return {**head, "metadata": {"name": "a", "namespace": "default"}, **content}


STATUS_PATCH = {"status": {"phase": "Ready"}}
JSON_PATCH = [{"op": "add", "path": "/status", "value": {"phase": "Ready"}}]
OWN_WRITES: dict[str, Action] = {
    "a status": lambda it: it.ctx.patch_status({"phase": "Ready"}),
    "a nested status": lambda it: it.ctx.patch_status({"counts": {"pods": {"ready": 1}}}),
    "a list": lambda it: it.ctx.patch_status({"pods": ["x"]}),
    "a removal": lambda it: it.ctx.patch_status({"old": None}),
    "a condition": lambda it: it.ctx.set_condition("Ready", True, reason="Fine"),
    "a merge patch": lambda it: it.ctx.api(FOOS).patch(key("a"), {"spec": {"x": 1}}),
    "a merge patch by name": lambda it: it.ctx.api(FOOS, namespace="default").patch(
        "a", {"spec": {"x": 1}}
    ),
    "a merge patch of the status": lambda it: it.ctx.api(FOOS).patch(
        key("a"), STATUS_PATCH, subresource="status"
    ),
    "a JSON patch": lambda it: it.ctx.api(FOOS).patch(
        key("a"), [{"op": "add", "path": "/spec/x", "value": 1}]
    ),
    "a JSON patch of the status": lambda it: it.ctx.api(FOOS).patch(
        key("a"), JSON_PATCH, subresource="status"
    ),
    "an apply": lambda it: it.ctx.apply(own_body(it, spec={"x": 1}), owned=False),
    "an apply of the status": lambda it: it.ctx.api(FOOS).apply(
        own_body(it, **STATUS_PATCH), field_manager="me", subresource="status"
    ),
    "an update": lambda it: it.ctx.api(FOOS).update(own_body(it, spec={"x": 1})),
    "an update of the status": lambda it: it.ctx.api(FOOS).update_status(
        own_body(it, **STATUS_PATCH)
    ),
    "an update of what was read": lambda it: read_and_update(it),
    "create_or_update": lambda it: it.ctx.create_or_update(
        own_body(it), lambda body: body.update(spec={"x": 1}), owned=False
    ),
    "a deletion": lambda it: it.ctx.api(FOOS).delete(key("a")),
}
"""All writes of a run to its own object."""


async def read_and_update(setting: Setting) -> object:
    body = (await setting.ctx.api(FOOS).get(key("a"))).to_dict()
    return await setting.ctx.api(FOOS).update({**body, "spec": {"x": 1}})


@pytest.mark.parametrize("cached", [False, True], ids=["not cached", "cached"])
@pytest.mark.parametrize("kind", OWN_WRITES)
def test_no_write_of_a_run_reaches_an_object_that_was_created_again(
    kind: str, cached: bool
) -> None:
    cluster = make_status_cluster("a")
    cluster.merge_patch(FOOS, "a", {"status": {"old": 1, "counts": {"pods": {"ready": 0}}}})
    successor: dict[str, Any] = {}

    async def action(setting: Setting) -> object:
        old = setting.ctx.obj
        assert old is not None
        setting.cluster.delete(FOOS, "a")
        create_foo(setting.cluster, "a", of="the successor")
        setting.cluster.merge_patch(FOOS, "a", {"status": {"old": 2, "counts": {"pods": {}}}})
        successor.update(setting.cluster.get(FOOS, "a"))
        if cached:
            await setting.foos.wait_until(
                key("a"), lambda obj: obj is not None and obj.uid != old.uid and "status" in obj
            )
        return await OWN_WRITES[kind](setting)

    with pytest.raises((Conflict, Invalid, NotCached)):
        reconcile_once(action, cluster)
    assert cluster.get(FOOS, "a") == successor


@pytest.mark.parametrize("kind", OWN_WRITES)
def test_each_write_of_a_run_reaches_its_own_object_whatever_else_has_changed(kind: str) -> None:
    cluster = make_status_cluster("a")
    cluster.merge_patch(FOOS, "a", {"status": {"old": 1, "counts": {"pods": {"ready": 0}}}})
    raises = kind in ("a list", "a condition", "an update", "an update of the status")

    async def action(setting: Setting) -> object:
        setting.cluster.merge_patch(FOOS, "a", {"metadata": {"labels": {"x": "y"}}})
        changed.append(setting.cluster.resource_version)
        return await OWN_WRITES[kind](setting)

    changed = list[int]()
    if raises:  # the list may be another one, and an update names no version
        with pytest.raises((Conflict, Invalid)):
            reconcile_once(action, cluster)
        return
    reconcile_once(action, cluster)
    assert cluster.resource_version == changed[0] + 1
    if kind != "a deletion":
        assert cluster.get(FOOS, "a")["metadata"]["labels"] == {"x": "y"}


@pytest.mark.parametrize("metadata", [{"uid": "another"}, None], ids=["another uid", "none"])
def test_a_write_whose_metadata_are_not_those_of_the_own_object_changes_nothing(
    metadata: object,
) -> None:
    cluster = make_status_cluster("a")
    before = cluster.get(FOOS, "a")

    async def action(setting: Setting) -> object:
        return await setting.ctx.api(FOOS).patch(key("a"), {"metadata": metadata, "spec": {}})

    with pytest.raises((Conflict, Invalid)):
        reconcile_once(action, cluster)
    assert cluster.get(FOOS, "a") == before


def test_a_run_may_create_its_object_again_and_write_to_it() -> None:
    cluster = make_status_cluster("a")

    async def action(setting: Setting) -> object:
        await setting.ctx.api(FOOS).delete(key("a"))
        body = own_body(setting)
        body["metadata"]["uid"] = "that of a copy"
        await setting.ctx.api(FOOS).create(body)
        await setting.ctx.api(FOOS).patch(key("a"), STATUS_PATCH, subresource="status")
        return await setting.ctx.api(FOOS).patch(key("a"), {"spec": {"x": 1}})

    reconcile_once(action, cluster)
    found = cluster.get(FOOS, "a")
    assert (found["spec"], found["status"]) == ({"x": 1}, {"phase": "Ready"})


def test_a_run_without_an_object_may_write_to_the_one_that_it_creates() -> None:
    cluster = make_status_cluster()
    done: list[object] = []

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos = informers.informer(FOOS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                if ctx.obj is None:
                    create_foo(cluster, "a")
                    await ctx.api(FOOS).patch(key, {"spec": {"x": 1}})
                    done.append(cluster.get(FOOS, "a")["spec"])

            controller = Controller(foos, reconcile)
            async with controller:
                controller.trigger(key("a"))
                await asyncio.sleep(5)

    run_simulated(main)
    assert done == [{"x": 1}]


def test_a_resource_without_a_status_subresource_is_an_error() -> None:
    async def action(setting: Setting) -> object:
        return await setting.ctx.patch_status({"phase": "Ready"})

    with pytest.raises(NotFound):
        reconcile_once(action, make_cluster("a"))


def test_a_status_of_models_can_not_be_compared() -> None:
    class Foo(Struct):
        pass

    cluster = make_status_cluster("a")

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster)) as informers:
            foos = informers.informer(FOOS, model=Foo)
            caught = asyncio.get_running_loop().create_future()

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                advice = ".* use convert= in place of model= for the informer of foos"
                with pytest.raises(UsageError, match=r"patch_status\(\) compares the st" + advice):
                    await ctx.patch_status({"phase": "Ready"})
                with pytest.raises(UsageError, match=r"set_condition\(\) compares the " + advice):
                    await ctx.set_condition("Ready", True, reason="Fine")
                own = ctx.obj
                assert own is not None
                assert own.uid == cluster.get(FOOS, "a")["metadata"]["uid"]
                for read in JSON_READERS:
                    with pytest.raises(
                        UsageError, match=r"has no JSON to read, since its inf.*mod"
                    ):
                        read(own)
                applied = await ctx.apply(bar("of-a"), resource=BARS)
                caught.set_result(applied.owner_references[0]["uid"])

            async with Controller(foos, reconcile):
                assert await caught == cluster.get(FOOS, "a")["metadata"]["uid"]

    run_simulated(main)


class Settings(Struct):
    spec: dict[str, int]


JSON_READERS: list[Callable[[KubeObject], object]] = [
    lambda obj: obj.labels,
    lambda obj: obj.annotations,
    lambda obj: obj.owner_references,
    lambda obj: obj.deletion_timestamp,
    lambda obj: obj["spec"],
    lambda obj: obj.get("spec"),
    list,
    KubeObject.to_dict,
    lambda obj: obj.decode(Settings),
    field("spec.size"),
]


# -- set_condition -----------------------------------------------------------------------------


def test_a_condition_and_further_fields_are_set_in_one_patch() -> None:
    cluster = make_status_cluster("a")
    before = cluster.resource_version

    async def action(setting: Setting) -> object:
        set_ready = partial(setting.ctx.set_condition, "Ready", True, reason="Fine", message="ok")
        await set_ready(fields={"pods": 2})
        return await set_ready(fields={"pods": 2})

    reconcile_once(action, cluster)
    assert cluster.resource_version == before + 1
    status = cluster.get(FOOS, "a")["status"]
    (ready,) = status["conditions"]
    assert status["pods"] == 2
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "True", "Fine")
    assert (ready["message"], ready["observedGeneration"]) == ("ok", 1)


def test_a_condition_describes_the_generation_that_the_run_has_seen() -> None:
    cluster = make_status_cluster("a")

    async def action(setting: Setting) -> object:
        update_foo(setting.cluster, "a", size=5)
        await setting.foos.wait_until(
            key("a"), lambda obj: obj is not None and obj["spec"] == {"size": 5}
        )
        return await setting.ctx.set_condition("Ready", True, reason="Fine")

    reconcile_once(action, cluster)
    (ready,) = cluster.get(FOOS, "a")["status"]["conditions"]
    assert cluster.get(FOOS, "a")["metadata"]["generation"] == 2
    assert ready["observedGeneration"] == 1


def test_a_condition_is_set_beside_those_that_another_program_has_set_since() -> None:
    """The cached object is newer than the last write of the run."""
    cluster = make_status_cluster("a")

    async def action(setting: Setting) -> object:
        await setting.ctx.set_condition("Mine", False, reason="First")
        mine = cluster.get(FOOS, "a")["status"]["conditions"]
        both = {"status": {"conditions": [*mine, {"type": "Theirs", "status": "True"}]}}
        cluster.merge_patch(FOOS, "a", both)
        await setting.foos.wait_for(cluster.get(FOOS, "a"))
        return await setting.ctx.set_condition("Mine", True, reason="Second")

    reconcile_once(action, cluster)
    conditions = cluster.get(FOOS, "a")["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions} == {
        "Mine": "True",
        "Theirs": "True",
    }


# -- log and Events ----------------------------------------------------------------------------


def test_a_line_of_the_log_names_the_controller_and_the_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def action(setting: Setting) -> object:
        setting.ctx.log.info("%d pods", 2, extra={"pods": 2})
        return None

    reconcile_once(action, make_cluster("a"), name="it 5%d")
    (record,) = [each for each in caplog.records if each.name == "aioinformer.reconcile"]
    assert record.getMessage() == "it 5_d: default/a: 2 pods"
    assert {"controller": "it 5%d", "key": "default/a", "pods": 2}.items() <= vars(record).items()


def test_an_event_needs_a_recorder() -> None:
    async def action(setting: Setting) -> object:
        setting.ctx.event("Normal", "Seen")
        return None

    with pytest.raises(UsageError, match="has no recorder for Events"):
        reconcile_once(action, make_cluster("a"))


# -- apply -------------------------------------------------------------------------------------


def test_an_applied_child_has_the_owner_its_namespace_and_the_field_manager() -> None:
    cluster = make_cluster("a")

    async def action(setting: Setting) -> KubeObject:
        child = await setting.ctx.apply(bar("child", spec={"size": 1}))
        assert is_controlled_by(child, setting.foos.lister[key("a")])
        return child

    reconcile_once(action, cluster, name="foo-controller")
    found = cluster.get(BARS, "child")
    assert found["metadata"]["namespace"] == "default"
    assert [each["manager"] for each in found["metadata"]["managedFields"]] == ["foo-controller"]
    (reference,) = found["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["controller"]) == ("Foo", "a", True)


def test_fields_of_other_managers_are_taken_over_unless_the_program_objects() -> None:
    cluster = make_cluster("a")
    cluster.create(BARS, {"metadata": {"name": "child"}, "spec": {"size": 7}})

    async def polite(setting: Setting) -> object:
        return await setting.ctx.apply(bar("child", spec={"size": 1}), force=False)

    with pytest.raises(Conflict):
        reconcile_once(polite, cluster)

    async def firm(setting: Setting) -> object:
        return await setting.ctx.apply(bar("child", spec={"size": 1}))

    reconcile_once(firm, cluster)
    assert cluster.get(BARS, "child")["spec"] == {"size": 1}


def test_apply_fails_for_a_child_of_another_controller() -> None:
    cluster = make_cluster("a", "b")
    reference = {"apiVersion": FOOS.api_version, "kind": "Foo", "name": "b", "uid": "b"}
    metadata = {"name": "child", "ownerReferences": [{**reference, "controller": True}]}
    cluster.create(BARS, {"metadata": metadata})

    async def action(setting: Setting) -> object:
        return await setting.ctx.apply(bar("child"))

    with pytest.raises(Invalid, match="Only one reference can have Controller set to true"):
        reconcile_once(action, cluster)


@pytest.mark.parametrize(
    ("child", "text"),
    [
        ({"metadata": {"name": "x"}}, "no informer of the controller foos and no built-in"),
        ({**bar("x"), "kind": "Baz"}, "has the apiVersion 'samples.example.com/v1' and the kind"),
        (bar("x") | {"metadata": {"name": "x", "namespace": "other"}}, "can't be owned by Foo"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, "are cluster-scoped"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "needs metadata"),
        ({"apiVersion": "v1", "kind": "Configmap"}, "did you mean 'v1 ConfigMap'"),
        (bar("a") | {"kind": FOOS.kind}, "Foo default/a can't own itself: .* pass owned=False"),
    ],
)
def test_an_invalid_child_is_a_usage_error(child: Mapping[str, Any], text: str) -> None:
    async def action(setting: Setting) -> object:
        return await setting.ctx.apply(child)

    with pytest.raises(UsageError, match=text):
        reconcile_once(action, make_cluster("a"))


def test_the_own_object_can_be_applied_only_with_owned_false() -> None:
    cluster = make_cluster("a")

    async def action(setting: Setting) -> object:
        own = setting.ctx.obj
        assert own is not None
        with pytest.raises(UsageError, match="can't own itself"):
            await setting.ctx.apply(own)
        with pytest.raises(UsageError, match="can't own itself"):
            await setting.ctx.apply({"metadata": {"name": "a"}}, resource=FOOS)
        with pytest.raises(UsageError, match=r"pass owned=False to .*ctx\.create_or_update"):
            await setting.ctx.create_or_update(own, lambda body: None)
        done, _ = await setting.ctx.create_or_update(own, lambda body: None, owned=False)
        assert done == "unchanged"
        metadata = {"name": "a", "labels": {"seen": "yes"}}
        return await setting.ctx.apply({"metadata": metadata}, resource=FOOS, owned=False)

    reconcile_once(action, cluster)
    metadata = cluster.get(FOOS, "a")["metadata"]
    assert metadata["labels"] == {"seen": "yes"}
    assert "ownerReferences" not in metadata


def test_a_child_of_a_cluster_scoped_object_needs_a_namespace() -> None:
    cluster = make_cluster()
    cluster.create(REALMS, {"metadata": {"name": "a"}})
    caught: list[str] = []

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                with pytest.raises(UsageError) as error:
                    await ctx.apply(bar("x"), resource=BARS)
                caught.append(str(error.value))

            async with Controller(informers.informer(REALMS), reconcile):
                await asyncio.sleep(1)

    run_simulated(main)
    assert caught == [
        "bars.samples.example.com x: the namespace is missing. Set metadata.namespace, since Realm "
        "a is in no namespace"
    ]


def test_an_object_that_is_not_owned_may_be_anywhere() -> None:
    cluster = make_cluster("a")
    cluster.create("namespaces", {"metadata": {"name": "other"}})

    async def action(setting: Setting) -> object:
        body = bar("x") | {"metadata": {"name": "x", "namespace": "other"}}
        return await setting.ctx.apply(body, owned=False)

    reconcile_once(action, cluster)
    assert "ownerReferences" not in cluster.get(BARS, "x", namespace="other")["metadata"]


def test_a_child_of_a_deleted_object_is_not_written() -> None:
    cluster = make_cluster("a")

    async def action(setting: Setting) -> object:
        setting.cluster.delete(FOOS, "a")
        await setting.foos.wait_until(key("a"), lambda obj: obj is None)
        return await setting.ctx.apply(bar("child"))

    with pytest.raises(NotCached):
        reconcile_once(action, cluster)
    assert names_of(cluster, BARS) == []


# -- create_or_update --------------------------------------------------------------------------


def resize(size: int) -> Callable[[dict[str, Any]], None]:
    def mutate(body: dict[str, Any]) -> None:
        body.setdefault("spec", {})["size"] = size

    return mutate


def test_an_object_is_created_then_left_alone_then_updated() -> None:
    cluster = make_cluster("a")

    async def action(setting: Setting) -> list[tuple[str, object]]:
        found: list[tuple[str, object]] = []
        for size in (1, 1, 2):
            done, obj = await setting.ctx.create_or_update(bar("child"), resize(size))
            found.append((done, obj["spec"]["size"]))
        return found

    found = reconcile_once(action, cluster)
    assert found == [("created", 1), ("unchanged", 1), ("updated", 2)]
    (reference,) = cluster.get(BARS, "child")["metadata"]["ownerReferences"]
    assert reference["name"] == "a"


def test_a_boolean_in_the_place_of_a_number_is_updated() -> None:
    """Python takes ``True`` for 1; the server doesn't."""
    cluster = make_cluster("a")

    async def action(setting: Setting) -> str:
        await setting.ctx.create_or_update(bar("child"), resize(1))
        done, _ = await setting.ctx.create_or_update(bar("child"), resize(True))
        return done

    assert reconcile_once(action, cluster) == "updated"


def test_fields_that_mutate_does_not_touch_stay() -> None:
    cluster = make_cluster("a")
    cluster.create(BARS, {"metadata": {"name": "child"}, "spec": {"color": "red"}})

    async def action(setting: Setting) -> str:
        done, _ = await setting.ctx.create_or_update(bar("child", spec={"size": 9}), resize(1))
        return done

    assert reconcile_once(action, cluster) == "updated"
    assert cluster.get(BARS, "child")["spec"] == {"color": "red", "size": 1}


def test_a_write_of_another_program_in_between_is_a_conflict() -> None:
    cluster = make_cluster("a")
    cluster.create(BARS, {"metadata": {"name": "child"}, "spec": {}})

    async def action(setting: Setting) -> object:
        def mutate(body: dict[str, Any]) -> None:
            setting.cluster.merge_patch(BARS, "child", {"spec": {"size": 3}})
            body["spec"]["size"] = 1

        return await setting.ctx.create_or_update(bar("child"), mutate)

    with pytest.raises(Conflict):
        reconcile_once(action, cluster)


def test_create_or_update_rejects_an_object_of_another_controller() -> None:
    cluster = make_cluster("a", "b")
    reference = {"apiVersion": FOOS.api_version, "kind": "Foo", "name": "b", "uid": "b"}
    metadata = {"name": "child", "ownerReferences": [{**reference, "controller": True}]}
    cluster.create(BARS, {"metadata": metadata})

    async def action(setting: Setting) -> object:
        return await setting.ctx.create_or_update(bar("child"), resize(1))

    with pytest.raises(AlreadyOwned, match="child is controlled by Foo b"):
        reconcile_once(action, cluster)


# -- blockOwnerDeletion -------------------------------------------------------------------------

CHILD_WRITES: Mapping[str, Callable[[ReconcileContext, bool | None], Awaitable[object]]] = {
    "apply": lambda ctx, blocks: ctx.apply(bar("child"), block_owner_deletion=blocks),
    "create_or_update": lambda ctx, blocks: ctx.create_or_update(
        bar("child"), resize(1), block_owner_deletion=blocks
    ),
}


@pytest.mark.parametrize("write", CHILD_WRITES)
@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize(
    ("controller", "call", "expected"),
    [
        ({}, None, True),
        ({"block_owner_deletion": False}, None, None),
        ({}, False, None),
        ({"block_owner_deletion": False}, True, True),
    ],
    ids=["the default", "the controller's", "the call's", "the call's before the controller's"],
)
def test_a_child_blocks_the_deletion_of_its_owner_as_the_program_says(
    write: str,
    existing: bool,
    controller: ControllerKeywords,
    call: bool | None,
    expected: bool | None,
) -> None:
    cluster = make_cluster("a")
    if existing:
        cluster.create(BARS, {"metadata": {"name": "child"}, "spec": {}})

    async def action(setting: Setting) -> object:
        return await CHILD_WRITES[write](setting.ctx, call)

    reconcile_once(action, cluster, **controller)
    (reference,) = cluster.get(BARS, "child")["metadata"]["ownerReferences"]
    assert (reference["controller"], reference.get("blockOwnerDeletion")) == (True, expected)


@pytest.mark.parametrize(
    ("write", "existing", "verb"),
    [
        ("apply", False, "patch"),
        ("apply", True, "patch"),
        ("create_or_update", False, "create"),
        ("create_or_update", True, "update"),
    ],
)
async def test_the_error_of_an_owner_that_may_not_be_blocked_names_its_resource(
    write: str, existing: bool, verb: Literal["create", "update", "patch"]
) -> None:
    cluster = make_cluster("a")
    if existing:
        cluster.create(BARS, {"metadata": {"name": "child"}, "spec": {}})
    sentence = (
        'bars "child" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a '
        "resource you can't set finalizers on: , <nil>"
    )
    errors: asyncio.Queue[BaseException] = asyncio.Queue()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        await CHILD_WRITES[write](ctx, None)

    async with ApiServer(cluster) as server, Client(server.url) as client:
        server.faults.status(403, reason="Forbidden", message=sentence, verb=verb)
        async with (
            SharedInformerFactory(client) as informers,
            Controller(
                informers.informer(FOOS),
                reconcile,
                on_error=lambda problem: errors.put_nowait(problem.error),
            ).owns(informers.informer(BARS)),
        ):
            error = await asyncio.wait_for(errors.get(), 30)
    assert isinstance(error, Forbidden)
    assert str(error).endswith(
        "a Role or ClusterRole must allow update on foos.samples.example.com/finalizers; or pass "
        "block_owner_deletion=False"
    )


def test_mutate_must_be_plain_and_keep_the_name() -> None:
    async def asynchronous(body: dict[str, Any]) -> None:
        pass

    def renames(body: dict[str, Any]) -> None:
        body["metadata"]["name"] = "other"

    async def action(setting: Setting) -> object:
        with pytest.raises(UsageError, match="mutate must be a plain function"):
            await setting.ctx.create_or_update(bar("child"), asynchronous)
        with pytest.raises(UsageError, match=r"object in place, not dict$"):
            await setting.ctx.create_or_update(bar("child"), cast("Any", {"data": 1}))
        with pytest.raises(UsageError, match="must not change the name or the namespace"):
            await setting.ctx.create_or_update(bar("child"), renames)
        with pytest.raises(UsageError, match=r"needs metadata\.name: it identifies"):
            await setting.ctx.create_or_update(bar(""), renames)
        return None

    reconcile_once(action, make_cluster("a"))


@pytest.mark.parametrize(
    ("method", "argument", "text"),
    [
        ("patch_status", "Open", r"patch_status\(\) takes a mapping of the status, not str$"),
        (
            "prune",
            "bars.example.com",
            r"prune\(\) takes the informer of the children, such as "
            r"informers.informer\('bars.example.com'\), not 'bars.example.com'",
        ),
    ],
)
def test_an_argument_of_another_kind_is_named(method: str, argument: str, text: str) -> None:
    async def action(setting: Setting) -> object:
        with pytest.raises(TypeError, match=text):
            await getattr(setting.ctx, method)(argument)
        return None

    reconcile_once(action, make_cluster("a"))


# -- prune -------------------------------------------------------------------------------------


def test_children_that_are_no_longer_wanted_are_deleted() -> None:
    cluster = make_cluster("a", "b")
    for name in ("one", "two", "three"):
        owned_by_a(cluster, name)
    cluster.create(BARS, {"metadata": {"name": "foreign"}})

    async def action(setting: Setting) -> object:
        return await setting.ctx.prune(setting.bars, keep=["two", setting.bars.lister[key("one")]])

    assert reconcile_once(action, cluster) == (key("three"),)
    assert sorted(names_of(cluster, BARS)) == ["foreign", "one", "two"]


def test_only_selected_children_are_pruned() -> None:
    cluster = make_cluster("a")
    owned_by_a(cluster, "one")
    owned_by_a(cluster, "two")
    cluster.merge_patch(BARS, "two", {"metadata": {"labels": {"role": "cache"}}})

    async def action(setting: Setting) -> object:
        return await setting.ctx.prune(setting.bars, labels="role=cache")

    assert reconcile_once(action, cluster) == (key("two"),)


def test_an_object_that_was_created_again_is_not_pruned() -> None:
    """The cache still holds the owned object of that name, and the server another one."""
    cluster = make_cluster("a")
    owned_by_a(cluster, "child")

    async def action(setting: Setting) -> object:
        setting.cluster.delete(BARS, "child")
        setting.cluster.create(BARS, {"metadata": {"name": "child"}})
        assert is_controlled_by(setting.bars.lister[key("child")], setting.foos.lister[key("a")])
        return await setting.ctx.prune(setting.bars)

    assert reconcile_once(action, cluster) == ()
    assert names_of(cluster, BARS) == ["child"]


def test_children_that_are_being_deleted_are_left_alone() -> None:
    cluster = make_cluster("a")
    owned_by_a(cluster, "child")
    cluster.merge_patch(BARS, "child", {"metadata": {"finalizers": ["example.com/wait"]}})
    cluster.delete(BARS, "child")

    async def action(setting: Setting) -> object:
        return await setting.ctx.prune(setting.bars, keep=[])

    assert reconcile_once(action, cluster) == ()


def test_keep_takes_objects_keys_and_names_only() -> None:
    async def action(setting: Setting) -> object:
        wrong: Any = [3]
        return await setting.ctx.prune(setting.bars, keep=wrong)

    with pytest.raises(UsageError, match="keep takes objects, keys and names, not 3"):
        reconcile_once(action, make_cluster("a"))


def test_a_deleted_child_triggers_its_owner_which_creates_it_again() -> None:
    cluster = make_cluster("a")

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(cluster), backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                await ctx.apply(bar("child"))

            async with Controller(foos, reconcile).owns(bars):
                first = await bars.wait_until(key("child"), lambda obj: obj is not None)
                assert first is not None
                cluster.delete(BARS, "child")
                await bars.wait_until(
                    key("child"), lambda obj: obj is not None and obj.uid != first.uid, timeout=5
                )

    run_simulated(main)


# -- applies that would change nothing ---------------------------------------------------------


class Applying:
    """A controller that applies one bar for the foo ``a``, and a count of the requests."""

    def __init__(self, *, size: int = 1, **informer_options: Any) -> None:
        self.cluster = make_cluster("a")
        self.source = ClusterSource(self.cluster, Faults())
        self.size = size
        self.runs = 0
        self.returned: list[KubeObject] = []
        self.options = informer_options
        self.applies = self.source.faults.latency(0, verb="patch", resource=BARS)

    @asynccontextmanager
    async def running(
        self, *, owns: bool = True, owned: bool = True, **keywords: Any
    ) -> AsyncGenerator[Controller]:
        async with SharedInformerFactory(self.source, backoff=BACKOFF) as informers:
            foos, bars = informers.informer(FOOS), informers.informer(BARS, **self.options)

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                self.runs += 1
                if ctx.obj is None:
                    return
                child = bar("child", spec={"size": self.size})
                self.returned.append(await ctx.apply(child, resource=BARS, owned=owned))

            controller = Controller(foos, reconcile, name="it")
            if owns:
                controller.owns(bars, **keywords)
            async with controller:
                await self.cluster.settled(controller)
                yield controller

    async def run_again(self, controller: Controller) -> None:
        """Run five times for no reason."""
        for _ in range(5):
            runs = self.runs
            controller.trigger(key("a"))
            await self.cluster.settled(controller)
            assert self.runs > runs


def test_an_apply_that_would_change_nothing_is_not_sent() -> None:
    it = Applying()

    async def main() -> None:
        async with it.running() as controller:
            await it.run_again(controller)
            assert it.applies.hits == 1
            assert it.returned[-1]["spec"] == {"size": 1}
            it.size = 2
            await it.run_again(controller)
            assert it.applies.hits == 2
            assert it.cluster.get(BARS, "child")["spec"] == {"size": 2}

    run_simulated(main)


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"size": 7}},
        {"status": {"ready": True}},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"managedFields": list[object]([{}])}},
    ],
)
def test_a_change_of_the_child_by_another_program_leads_to_an_apply(patch: Any) -> None:
    it = Applying()

    async def main() -> None:
        async with it.running() as controller:
            it.cluster.merge_patch(BARS, "child", patch)
            await it.cluster.settled(controller)
            assert it.applies.hits == 2
            found = it.cluster.get(BARS, "child")
            assert found["spec"] == {"size": 1}
            assert found["metadata"]["ownerReferences"]
            it.cluster.delete(BARS, "child")
            await it.cluster.settled(controller)
            assert it.cluster.get(BARS, "child")["spec"] == {"size": 1}

    run_simulated(main)


def test_a_change_that_the_cache_does_not_show_yet_is_repaired_when_it_arrives() -> None:
    it = Applying()

    async def main() -> None:
        async with it.running() as controller:
            with it.source.faults.stall(verb="watch", resource=BARS, after=0):
                it.cluster.merge_patch(BARS, "child", {"spec": {"size": 7}})
                controller.trigger(key("a"))
                await asyncio.sleep(5)
            await it.cluster.settled(controller, timeout=300)
            assert it.cluster.get(BARS, "child")["spec"] == {"size": 1}

    run_simulated(main)


def test_an_apply_after_another_write_of_the_same_run_is_sent() -> None:
    cluster = make_cluster("a")

    async def action(setting: Setting) -> object:
        written = await setting.ctx.apply(bar("child", spec={"size": 1}))
        await setting.bars.wait_for(written)
        await setting.ctx.api(BARS).patch(written.key, {"spec": {"size": 7}})
        await setting.ctx.apply(bar("child", spec={"size": 1}))
        await setting.ctx.api(BARS).delete(written.key)
        await setting.ctx.apply(bar("child", spec={"size": 1}))
        return cluster.get(BARS, "child")

    found: Any = reconcile_once(action, cluster)
    assert found["spec"] == {"size": 1}


@pytest.mark.parametrize(
    ("informer_options", "how"),
    [
        ({}, {"owns": False}),
        ({}, {"owned": False}),
        ({}, {"filter": added_only}),
        ({"transform": keep_all}, {}),
        ({"labels": "no=such"}, {}),
    ],
)
def test_without_a_cache_that_shows_all_changes_each_apply_is_sent(
    informer_options: dict[str, Any], how: dict[str, Any]
) -> None:
    it = Applying(**informer_options)

    async def main() -> None:
        async with it.running(**how) as controller:
            hits = it.applies.hits
            await it.run_again(controller)
            assert it.applies.hits == hits + 5

    run_simulated(main)


# -- the client --------------------------------------------------------------------------------


class ReadOnlySource:
    """A source that lists and watches, and has no writers."""

    def __init__(self, cluster: Cluster) -> None:
        self.source = ClusterSource(cluster)

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> Any:
        return self.source.lister_watcher(
            resource, namespace=namespace, labels=labels, fields=fields
        )


def test_a_write_without_a_client_names_the_argument_to_pass() -> None:
    cluster, errors = make_cluster("a"), list[str]()

    async def main() -> None:
        async with SharedInformerFactory(ReadOnlySource(cluster)) as informers:
            foos = informers.informer(FOOS)
            assert foos.client is None

            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                with pytest.raises(UsageError, match="Controller") as caught:
                    await ctx.apply(bar("child"), resource=BARS)
                errors.append(str(caught.value))

            async with Controller(foos, reconcile, name="foos"):
                await asyncio.sleep(1)

            async def writes(key: ObjectKey, ctx: ReconcileContext) -> None:
                await ctx.apply(bar("child"), resource=BARS)

            async with Controller(foos, writes, client=ClusterSource(cluster)):
                await asyncio.sleep(1)

    run_simulated(main)
    assert errors[0].startswith("the controller foos has no client to write with")
    assert names_of(cluster, BARS) == ["child"]

"""Tests of writes to a cluster: the stored objects, versions, errors and events."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import (
    BadRequest,
    Conflict,
    Invalid,
    NotFound,
    ServerError,
    ServerFailure,
    UnknownResource,
)
from aioinformer.testing import Cluster
from tests.testing.recorded_exchanges import WIDGETS, as_submitted, recorded_objects


def pod(name: str = "web-0", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": "node-1"}}


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    return cluster


# -- create ------------------------------------------------------------------------------------


def test_a_new_object_is_stamped(cluster: Cluster) -> None:
    created = cluster.create("pods", pod())
    assert created["kind"] == "Pod"
    assert created["apiVersion"] == "v1"
    metadata = created["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["resourceVersion"] == str(cluster.resource_version)
    assert metadata["generation"] == 1
    assert len(metadata["uid"]) == 36
    assert dt.datetime.fromisoformat(metadata["creationTimestamp"]).tzinfo is not None
    assert cluster.get("pods", "web-0") == created


def test_an_object_without_a_spec_has_no_generation(cluster: Cluster) -> None:
    created = cluster.create("configmaps", {"metadata": {"name": "c"}, "data": {}})
    assert "generation" not in created["metadata"]


def test_two_clusters_with_one_seed_make_the_same_objects() -> None:
    body = {"metadata": {"generateName": "web-"}}
    assert Cluster(seed=1).create("pods", body) == Cluster(seed=1).create("pods", body)
    assert Cluster(seed=1).create("pods", body) != Cluster(seed=2).create("pods", body)


def test_the_clock_stamps_objects() -> None:
    moment = dt.datetime(2030, 1, 2, 3, 4, 5, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    created = Cluster(clock=lambda: moment).create("pods", pod())
    assert created["metadata"]["creationTimestamp"] == "2030-01-02T02:04:05Z"


def test_a_generated_name_has_its_prefix(cluster: Cluster) -> None:
    names = {
        cluster.create("pods", {"metadata": {"generateName": "web-"}})["metadata"]["name"]
        for _ in range(20)
    }
    assert len(names) == 20
    assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in names)


def test_a_second_object_of_the_same_name_is_a_conflict(cluster: Cluster) -> None:
    cluster.create("pods", pod())
    with pytest.raises(Conflict) as caught:
        cluster.create("pods", pod())
    status = caught.value.status
    assert (status.code, status.reason) == (409, "AlreadyExists")
    assert status.message == 'pods "web-0" already exists'
    assert status.details == {"name": "web-0", "kind": "pods"}
    assert caught.value.phase == "write"


def test_the_same_name_exists_in_each_namespace(cluster: Cluster) -> None:
    uids = {
        cluster.create("pods", pod(), namespace=namespace)["metadata"]["uid"]
        for namespace in ("a", "b", "a-b")
    }
    assert len(uids) == 3


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ({}, Invalid, "name or generateName is required"),
        ({"metadata": {"name": "a/b"}}, Invalid, "must consist of"),
        ({"metadata": "x"}, BadRequest, r"Expected `object`, got `str` - at `\$.metadata`"),
        ({"metadata": {"name": "a", "labels": {"b": 1}}}, BadRequest, r"metadata\.labels"),
        ({"metadata": {"name": "a", "finalizers": "b"}}, BadRequest, r"metadata\.finalizers"),
        ({"metadata": {"name": "a"}, "kind": "Node"}, BadRequest, "kind in the data"),
        ({"metadata": {"name": "a"}, "apiVersion": "v2"}, BadRequest, "API version in the data"),
        ({"metadata": {"name": "a", "namespace": "b"}}, BadRequest, "namespace of the provided"),
        ({"metadata": {"name": "a", "resourceVersion": "1"}}, ServerFailure, "should not be set"),
    ],
)
def test_a_body_that_is_no_new_pod_is_an_error(
    cluster: Cluster, body: dict[str, Any], error: type[ServerError], message: str
) -> None:
    before = cluster.resource_version
    with pytest.raises(error, match=message):
        cluster.create("pods", body, namespace="web")
    assert cluster.resource_version == before


def test_a_body_that_is_not_json_is_rejected_without_a_change(cluster: Cluster) -> None:
    before = cluster.resource_version
    with pytest.raises(TypeError):
        cluster.create("pods", {"metadata": {"name": "a"}, "spec": {"x": object()}})
    assert cluster.resource_version == before


def test_a_cluster_stores_and_returns_copies(cluster: Cluster) -> None:
    body = pod(app="shop")
    created = cluster.create("pods", body)
    body["metadata"]["labels"]["app"] = created["metadata"]["labels"]["app"] = "other"
    assert cluster.get("pods", "web-0")["metadata"]["labels"] == {"app": "shop"}


def test_a_recorded_object_is_stored_as_the_server_stored_it(cluster: Cluster) -> None:
    for recorded in recorded_objects("10-list-page-1"):
        created = cluster.create("pods", as_submitted(recorded))
        del created["kind"], created["apiVersion"]
        assert list(created["metadata"]) == list(recorded["metadata"])
        assert as_submitted(created) == as_submitted(recorded)


# -- delete ------------------------------------------------------------------------------------


def test_a_deletion_removes_the_object_and_has_a_version(cluster: Cluster) -> None:
    cluster.create("pods", pod())
    last = cluster.delete("pods", "web-0")
    assert last["metadata"]["resourceVersion"] == str(cluster.resource_version)
    with pytest.raises(NotFound) as caught:
        cluster.get("pods", "web-0")
    assert caught.value.status.details == {"name": "web-0", "kind": "pods"}


def test_an_object_with_finalizers_stays_until_the_last_one_is_removed(cluster: Cluster) -> None:
    body = pod()
    body["metadata"]["finalizers"] = ["example.com/a"]
    cluster.create("pods", body)
    marked = cluster.delete("pods", "web-0")
    assert marked["metadata"]["deletionTimestamp"]
    assert cluster.delete("pods", "web-0") == marked
    assert cluster.get("pods", "web-0") == marked
    cluster.merge_patch("pods", "web-0", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        cluster.get("pods", "web-0")


def test_a_deletion_can_be_bound_to_a_uid_and_a_version(cluster: Cluster) -> None:
    created = cluster.create("pods", pod())
    with pytest.raises(Conflict, match=r"UID in the precondition \(other\) does not match"):
        cluster.delete("pods", "web-0", uid="other")
    with pytest.raises(Conflict, match=r"ResourceVersion in the precondition \(1\)"):
        cluster.delete("pods", "web-0", resource_version="1")
    metadata = created["metadata"]
    cluster.delete(
        "pods", "web-0", uid=metadata["uid"], resource_version=metadata["resourceVersion"]
    )


# -- resources ---------------------------------------------------------------------------------


def test_a_resource_is_found_by_each_of_its_names(cluster: Cluster) -> None:
    cluster.create("deploy", {"metadata": {"name": "shop"}})
    cluster.create("widget", {"metadata": {"name": "w"}})
    assert cluster.get("Deployment", "shop") == cluster.get("deployments.apps", "shop")
    assert cluster.get("widgets.example.com", "w") == cluster.get(WIDGETS, "w")


def test_an_unknown_name_is_a_usage_error(cluster: Cluster) -> None:
    with pytest.raises(UnknownResource):
        cluster.create("gadgets", {"metadata": {"name": "g"}})


def test_a_resource_that_is_not_served_is_not_found_in_plain_text(cluster: Cluster) -> None:
    """Recording 53: an unknown group version is answered without a Status."""
    with pytest.raises(NotFound) as caught:
        cluster.list(Resource("example.org", "v1", "gadgets", "Gadget"))
    assert (caught.value.status.reason, caught.value.status.message) == ("", "404 page not found")


def test_a_resource_that_a_built_in_group_lacks_is_not_found_with_a_status(
    cluster: Cluster,
) -> None:
    """Recording 26."""
    with pytest.raises(NotFound) as caught:
        cluster.list(Resource("apps", "v1", "gadgets", "Gadget"))
    assert caught.value.status.reason == "NotFound"


def test_a_resource_that_is_removed_takes_its_objects_with_it(cluster: Cluster) -> None:
    cluster.create(WIDGETS, {"metadata": {"name": "w"}})
    cluster.remove_resource(WIDGETS)
    with pytest.raises(NotFound):
        cluster.get(WIDGETS, "w")
    cluster.add_resource(WIDGETS)
    assert msgspec.json.decode(cluster.list(WIDGETS))["items"] == []


def test_a_namespace_for_a_cluster_scoped_resource_is_not_found(cluster: Cluster) -> None:
    cluster.create("nodes", {"metadata": {"name": "n"}})
    for ask in (cluster.get, cluster.delete):
        with pytest.raises(NotFound):
            ask("nodes", "n", namespace="web")
    with pytest.raises(NotFound):
        cluster.list("nodes", namespace="web")


def test_a_cluster_scoped_object_is_created_in_no_namespace(cluster: Cluster) -> None:
    with pytest.raises(BadRequest, match="cluster-scoped"):
        cluster.create("nodes", {"metadata": {"name": "n"}}, namespace="web")
    created = cluster.create("nodes", {"metadata": {"name": "n"}})
    assert "namespace" not in created["metadata"]
    labelled = cluster.merge_patch("nodes", "n", {"metadata": {"labels": {"a": "b"}}})
    assert "namespace" not in labelled["metadata"]


def test_a_negative_window_is_rejected() -> None:
    with pytest.raises(ValueError, match="window"):
        Cluster(window=-1)


def test_the_repr_counts_objects_and_watches(cluster: Cluster) -> None:
    cluster.create("pods", pod())
    cluster.watch("pods", now=0)
    assert repr(cluster) == "<Cluster rv=2 1 object 1 watch>"


# -- all of it, against a dict -----------------------------------------------------------------

_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "patch", "delete", "compact"]),
        st.sampled_from(["a", "b", "c"]),
        st.integers(0, 2),
    ),
    max_size=30,
)


@given(_STEPS, st.integers(0, 5))
def test_lists_and_watches_agree_with_a_dict_after_any_writes(
    steps: list[tuple[str, str, int]], window: int
) -> None:
    cluster, model = Cluster(window=window), dict[str, int]()
    watch = cluster.watch("pods", now=0, resource_version=str(cluster.resource_version))
    for verb, name, size in steps:
        before = cluster.resource_version
        changed = _step(cluster, model, verb, name, size)
        assert cluster.resource_version == before + changed
    items = msgspec.json.decode(cluster.list("pods"))["items"]
    assert {item["metadata"]["name"]: item["spec"]["size"] for item in items} == model
    seen: dict[str, int] = {}
    for line in watch.take(0):
        event = msgspec.json.decode(line)
        name = event["object"]["metadata"]["name"]
        assert (name in seen) is (event["type"] != "ADDED")
        if event["type"] == "DELETED":
            del seen[name]
        else:
            seen[name] = event["object"]["spec"]["size"]
    assert seen == model


def _step(cluster: Cluster, model: dict[str, int], verb: str, name: str, size: int) -> bool:
    """Take one step on both; return True if the step changed something."""
    if verb == "compact":
        cluster.compact()
        return False
    if (verb == "create") is (name in model):
        return False
    if verb == "create":
        cluster.create("pods", {"metadata": {"name": name}, "spec": {"size": size}})
    elif verb == "patch":
        cluster.merge_patch("pods", name, {"spec": {"size": size}})
        changed = model[name] != size
        model[name] = size
        return changed
    else:
        cluster.delete("pods", name)
        del model[name]
        return True
    model[name] = size
    return True


def test_a_resource_is_served_with_other_content_under_the_same_versions() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}, "spec": {"size": 1}})
    cluster.merge_patch("pods", "a", {"spec": {"size": 2}})
    stored = cluster.get("pods", "a")
    first = str(cluster.resource_version - 1)
    watch = cluster.watch("pods", now=0.0, resource_version=str(cluster.resource_version))

    cluster.convert_resource("pods", lambda pod: pod | {"spec": pod["spec"] | {"color": "red"}})

    shown = cluster.get("pods", "a")
    assert shown["metadata"] == stored["metadata"]
    assert shown["spec"] == {"size": 2, "color": "red"}
    past = json.loads(cluster.list("pods", resource_version=first, match="Exact"))
    assert [item["spec"] for item in past["items"]] == [{"size": 1, "color": "red"}]
    assert watch.take(0.0) == []
    assert watch.ended
    resumed = cluster.watch("pods", now=0.0, resource_version=stored["metadata"]["resourceVersion"])
    assert b'"code":410' in b"".join(resumed.take(0.0))


def test_content_can_change_without_an_end_of_the_watches() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}, "spec": {}})
    watch = cluster.watch("pods", now=0.0, resource_version=str(cluster.resource_version))

    cluster.convert_resource("pods", lambda pod: pod | {"spec": {"size": 1}}, end_watches=False)

    assert cluster.get("pods", "a")["spec"] == {"size": 1}
    assert not watch.ended


def test_an_unknown_option_of_a_list_or_watch_is_an_error_that_names_the_options() -> None:
    cluster = Cluster()
    misspelled: Any = {"label": "app=shop"}  # a checker of types finds the mistake
    with pytest.raises(TypeError, match="no option 'label'; the options are: continue_token, "):
        cluster.list("pods", **misspelled)
    with pytest.raises(TypeError, match="no option 'label'; the options are: bookmarks, "):
        cluster.watch("pods", now=0, **misspelled)

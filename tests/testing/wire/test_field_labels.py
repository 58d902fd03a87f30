"""Tests of field labels: by which fields each resource can be selected."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from aioinformer.errors import BadRequest, Invalid
from aioinformer.testing import Cluster
from tests.testing.cluster.test_definitions import DEFINITION, DEFINITIONS, SCHEMA, VERSION, size

FIELDS = {"selectableFields": [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]}


def names(raw: bytes) -> list[str]:
    return [each["metadata"]["name"] for each in msgspec.json.decode(raw)["items"]]


def definition(version: dict[str, Any], **spec: Any) -> dict[str, Any]:
    changed = deepcopy(DEFINITION)
    changed["spec"] |= {"versions": [VERSION | version]} | spec
    return changed


@pytest.mark.parametrize(
    ("resource", "body", "fields"),
    [
        ("services", {"spec": {"type": "NodePort"}}, "spec.type=NodePort"),
        ("services", {"spec": {"clusterIP": "None"}}, "spec.clusterIP=None"),
        ("pods", {"spec": {"nodeName": "n1"}}, "spec.host=n1"),
        ("pods", {"spec": {"hostNetwork": True}}, "spec.hostNetwork=true"),
        ("events", {"reportingComponent": "c"}, "source=c"),
        ("events.events.k8s.io", {"regarding": {"name": "web-0"}}, "regarding.name=web-0"),
        ("events.events.k8s.io", {"regarding": {"uid": "u"}}, "regarding.uid=u"),
        ("events.events.k8s.io", {"reportingController": "c"}, "reportingController=c"),
        ("resourceslices", {"spec": {"pool": {"name": "p"}}}, "spec.pool.name=p"),
    ],
)
def test_objects_are_selected_by_the_labels_of_their_resource(
    resource: str, body: dict[str, Any], fields: str
) -> None:
    cluster = Cluster()
    cluster.create(resource, {"metadata": {"name": "a"}} | body)
    cluster.create(resource, {"metadata": {"name": "b"}})
    assert names(cluster.list(resource, fields=fields)) == ["a"]
    assert names(cluster.list(resource, fields=fields.replace("=", "!="))) == ["b"]


def test_the_addresses_of_a_pod_are_a_label_without_values() -> None:
    cluster = Cluster()
    status = {"podIPs": [{"ip": "10.0.0.1"}]}
    cluster.create("pods", {"metadata": {"name": "a"}, "status": status})
    assert names(cluster.list("pods", fields="status.podIPs=10.0.0.1")) == []


@pytest.mark.parametrize(
    ("resource", "fields", "message"),
    [
        ("events.events.k8s.io", "involvedObject.name", "field label not supported: "),
        ("events", "regarding.name", "field label not supported: "),
        ("nodes", "metadata.namespace", "field label not supported: "),
        (
            "resourceslices",
            "spec.nope",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: ",
        ),
        ("replicasets", "status.replicas", '"status.replicas" is not a known field selector: '),
    ],
)
def test_a_label_of_another_resource_is_not_supported(
    resource: str, fields: str, message: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        Cluster().list(resource, fields=f"{fields}=x")
    assert caught.value.status.message.startswith(message)


def test_custom_objects_are_selected_by_the_fields_of_their_definition() -> None:
    cluster = Cluster()
    cluster.create(DEFINITIONS, definition(FIELDS))
    for name, spec in (("a", {}), ("b", {"color": "blue"}), ("c", {"size": 3})):
        cluster.create("sizes", size(name, **spec))
    assert names(cluster.list("sizes", fields="spec.color=red")) == ["a", "c"]
    assert names(cluster.list("sizes", fields="spec.size!=1")) == ["c"]
    assert names(cluster.list("sizes", fields="spec.color=red,metadata.name!=a")) == ["c"]
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.replicas"):
        cluster.list("sizes", fields="spec.replicas=1")
    watch = cluster.watch("sizes", now=0, fields="spec.color=blue")
    cluster.merge_patch("sizes", "b", {"spec": {"color": "red"}})
    types = [msgspec.json.decode(line)["type"] for line in watch.take(1)]
    assert types == ["ADDED", "DELETED"]


def test_the_labels_are_those_of_the_present_definition() -> None:
    cluster = Cluster()
    cluster.create(DEFINITIONS, definition({}))
    with pytest.raises(BadRequest):
        cluster.list("sizes", fields="spec.color=red")
    present = cluster.get(DEFINITIONS, "sizes.example.com")
    present["spec"]["versions"][0] |= FIELDS
    cluster.update(DEFINITIONS, present)
    assert names(cluster.list("sizes", fields="spec.color=red")) == []


def test_a_cluster_scoped_custom_object_has_no_label_for_a_namespace() -> None:
    cluster = Cluster()
    cluster.create(DEFINITIONS, definition({}, scope="Cluster"))
    with pytest.raises(BadRequest, match=r"field label not supported: metadata\.namespace"):
        cluster.list("sizes", fields="metadata.namespace=a")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "Required value"),
        (None, "Required value"),
        (".metadata.labels", "must not point to fields in metadata"),
        (".spec.nope", "is an invalid path"),
        (".spec.size.deeper", "is an invalid path"),
        (".spec", "must point to a field of type string, boolean or integer"),
    ],
)
def test_a_field_that_can_not_select_is_invalid(path: str | None, message: str) -> None:
    assert SCHEMA["properties"]["spec"]["type"] == "object"
    with pytest.raises(Invalid, match=message) as caught:
        Cluster().create(DEFINITIONS, definition({"selectableFields": [{"jsonPath": path}]}))
    [cause] = caught.value.status.details["causes"]
    assert cause["field"] == "spec.versions[0].selectableFields[0].jsonPath"

"""The request of each kind of write, and its decoded answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import KubeObject, ObjectKey, Patch
from aioinformer._core.objects.resources import find_built_in
from aioinformer._core.writing.write_requests import WriteRequest, WriteRequestBuilder
from aioinformer.errors import ProtocolError, UsageError

PODS, NODES = find_built_in("pods"), find_built_in("nodes")
IN_WEB = WriteRequestBuilder(PODS, "web")
ANYWHERE = WriteRequestBuilder(PODS)
CLUSTER = WriteRequestBuilder(NODES)
WEB_0: dict[str, Any] = {"metadata": {"name": "web-0"}, "spec": {"nodeName": "n"}}
ANSWER = (
    b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"web","uid":"u",'
    b'"resourceVersion":"7","managedFields":[{"manager":"x"}]},"spec":{"nodeName":"n"}}\n'
)


def sent(request: WriteRequest) -> tuple[str, str, str, Any]:
    """Return a request without its query and with its body decoded."""
    body = json.loads(request.body) if request.body else None
    return request.method, request.path, request.content_type, body


# -- requests ----------------------------------------------------------------------------------


def test_each_verb_is_a_request_of_its_own() -> None:
    typed = {"apiVersion": "v1", "kind": "Pod", **WEB_0}
    one, all_of_them = "/api/v1/namespaces/web/pods/web-0", "/api/v1/namespaces/web/pods"
    as_json, merge = "application/json", "application/merge-patch+json"
    assert sent(IN_WEB.get("web-0")) == ("GET", one, "", None)
    assert sent(IN_WEB.get("web-0", "scale")) == ("GET", f"{one}/scale", "", None)
    assert sent(IN_WEB.create(WEB_0)) == ("POST", all_of_them, as_json, typed)
    assert sent(IN_WEB.update(WEB_0)) == ("PUT", one, as_json, typed)
    assert sent(IN_WEB.update(WEB_0, "status")) == ("PUT", f"{one}/status", as_json, typed)
    assert sent(IN_WEB.patch("web-0", {"a": 1})) == ("PATCH", one, merge, {"a": 1})
    assert sent(IN_WEB.delete("web-0")) == ("DELETE", one, "", None)


def test_a_sequence_is_a_json_patch() -> None:
    operations = ({"op": "remove", "path": "/spec"},)
    request = IN_WEB.patch("web-0", operations, "status")
    path = "/api/v1/namespaces/web/pods/web-0/status"
    assert sent(request) == ("PATCH", path, "application/json-patch+json", list(operations))


def test_a_write_names_the_field_manager_of_the_builder_if_there_is_one() -> None:
    named = WriteRequestBuilder(PODS, "web", field_manager="me", apply_manager="mine")
    for builder, query in ((IN_WEB, {}), (named, {"fieldManager": "me"})):
        requests = [
            builder.create(WEB_0),
            builder.update(WEB_0),
            builder.patch("web-0", {"a": 1}),
            builder.patch("web-0", [{"op": "remove", "path": "/spec"}]),
        ]
        assert [request.query for request in requests] == [query] * 4
        assert (builder.get("web-0").query, builder.delete("web-0").query) == ({}, {})
    assert named.apply(WEB_0).query["fieldManager"] == "mine"
    assert named.apply(WEB_0, "other").query["fieldManager"] == "other"


def test_an_object_is_created_in_its_own_namespace() -> None:
    metadata = {"name": "web-0", "namespace": "shop"}
    assert ANYWHERE.create({"metadata": metadata}).path == "/api/v1/namespaces/shop/pods"
    with pytest.raises(UsageError, match=r"^pods shop/web-0: this writer is for the namespace 'we"):
        IN_WEB.create({"metadata": metadata})
    with pytest.raises(UsageError, match=r"^pods web-0: the namespace is missing"):
        ANYWHERE.create(WEB_0)


def test_an_apply_names_its_manager_and_leaves_managed_fields_out() -> None:
    obj: dict[str, Any] = {"metadata": {"name": "web-0", "managedFields": []}}
    request = IN_WEB.apply(obj, "me", force=False)
    assert request.content_type == "application/apply-patch+yaml"
    assert request.query == {"fieldManager": "me"}
    assert "managedFields" not in json.loads(request.body)["metadata"]
    assert IN_WEB.apply(obj, "me").query == {"fieldManager": "me", "force": "true"}
    assert obj["metadata"]["managedFields"] == [], "the program's own is left as it was"


def test_a_deletion_has_its_preconditions_and_its_policy() -> None:
    request = IN_WEB.delete(
        "web-0", uid="u", resource_version="7", propagation="Foreground", grace_period=0
    )
    assert sent(request)[3] == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
    }


def test_a_cached_object_is_sent_as_it_is_with_its_type() -> None:
    raw = (
        b'{"metadata":{"name":"web-0","namespace":"web","resourceVersion":"7"},"list":[{"a":[1]}]}'
    )
    cached = KubeObject(ObjectKey("web", "web-0"), "u", "7", raw, PODS)
    body = json.loads(ANYWHERE.update(cached).body)
    assert body == {"apiVersion": "v1", "kind": "Pod", **json.loads(raw)}
    part = {"metadata": {"name": "x"}, "copied": cached["list"]}
    assert json.loads(IN_WEB.create(part).body)["copied"] == [{"a": [1]}]


@pytest.mark.parametrize(
    ("writes", "key", "path"),
    [
        (IN_WEB, "web-0", "/api/v1/namespaces/web/pods/web-0"),
        (IN_WEB, "web/web-0", "/api/v1/namespaces/web/pods/web-0"),
        (IN_WEB, ObjectKey("", "web-0"), "/api/v1/namespaces/web/pods/web-0"),
        (ANYWHERE, "shop/web-0", "/api/v1/namespaces/shop/pods/web-0"),
        (CLUSTER, "node-1", "/api/v1/nodes/node-1"),
    ],
)
def test_a_key_leads_to_its_object(
    writes: WriteRequestBuilder, key: ObjectKey | str, path: str
) -> None:
    assert writes.get(key).path == path


def test_a_generated_name_needs_no_name() -> None:
    body = {"metadata": {"generateName": "web-"}}
    assert IN_WEB.create(body).path == "/api/v1/namespaces/web/pods"


def test_a_body_shows_in_no_repr() -> None:
    assert "hunter2" not in repr(IN_WEB.create({**WEB_0, "data": "hunter2"}))


# -- what can't be meant -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("writes", "key", "message"),
    [
        (
            ANYWHERE,
            "web-0",
            "^pods web-0: the namespace is missing. Make the writer with namespace=, or give "
            "'namespace/name'$",
        ),
        (IN_WEB, "shop/web-0", "this writer is for the namespace 'web'"),
        (IN_WEB, "", "identified by its name"),
        (IN_WEB, "a/b/c", "'namespace/name' or 'name'"),
        (IN_WEB, "..", "one URL segment"),
        (CLUSTER, "web/node-1", "cluster-scoped"),
        (ANYWHERE, "Web!/web-0", "DNS label"),
    ],
)
def test_an_incomplete_key_is_rejected(writes: WriteRequestBuilder, key: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        writes.get(key)


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({}, "needs metadata"),
        ({"metadata": {}}, "identified by metadata.name"),
        ({"metadata": {"name": 5}}, "metadata.name is a string"),
        ({"kind": "Node", **WEB_0}, "whose kind is 'Pod'; the object's kind is 'Node'"),
        ({"apiVersion": "v2", **WEB_0}, "whose apiVersion is 'v1'"),
        ({"metadata": {"name": "a", "namespace": "shop"}}, "make one for 'shop'"),
        ({**WEB_0, "data": object()}, "can't be sent as JSON"),
    ],
)
def test_an_object_of_another_kind_or_without_a_name_is_rejected(
    obj: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        IN_WEB.update(obj)


def test_a_new_object_needs_a_name_or_the_beginning_of_one() -> None:
    with pytest.raises(UsageError) as caught:
        IN_WEB.create({"metadata": {}})
    assert str(caught.value) == "a Pod to create needs metadata.name, or generateName"
    with pytest.raises(UsageError, match=r"^metadata\.name is a string, not 5$"):
        IN_WEB.create({"metadata": {"name": 5}})


def test_an_apply_without_a_manager_is_rejected() -> None:
    for arguments in ((), ("",)):
        with pytest.raises(UsageError) as caught:
            IN_WEB.apply(WEB_0, *arguments)
        assert str(caught.value) == (
            "apply needs field_manager=: the name under which the server records who owns the "
            "fields"
        )


@pytest.mark.parametrize("patch", ["text", ["text"], [1]])
def test_a_patch_of_another_type_is_rejected(patch: Patch) -> None:
    with pytest.raises(UsageError, match="merge patch"):
        IN_WEB.patch("web-0", patch)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_does_not_have_is_rejected_instead_of_sent_as_null(bad: float) -> None:
    """A null in a merge patch deletes the field."""
    ports = [{"port": 1}, {"port": bad}]
    with pytest.raises(UsageError, match=r"JSON: spec\.ports\.1\.port is NaN or infinite"):
        IN_WEB.patch("web-0", {"spec": {"ports": ports, "x": None}})
    with pytest.raises(UsageError, match=r"JSON: 0\.value is NaN or infinite"):
        IN_WEB.patch("web-0", [{"op": "add", "path": "/spec/x", "value": bad}])


def test_a_null_that_is_meant_is_sent() -> None:
    patch = {"spec": {"nodeName": None, "tolerations": [{"key": "null"}], "share": 0.5}}
    assert sent(IN_WEB.patch("web-0", patch))[3] == patch


@pytest.mark.parametrize("given", [None, 5, "text", [WEB_0]])
def test_a_value_that_is_not_an_object_is_rejected_by_the_name_of_its_type(given: Any) -> None:
    with pytest.raises(UsageError, match="a Pod to write is a mapping, not "):
        IN_WEB.create(given)
    with pytest.raises(UsageError, match="a Pod to write is a mapping, not "):
        IN_WEB.update(given)


@pytest.mark.parametrize("key", [None, 5, ("web", "web-0")])
def test_a_value_that_is_not_a_key_is_rejected_by_the_name_of_its_type(key: Any) -> None:
    with pytest.raises(UsageError, match="a Pod is identified by an ObjectKey or a str, not by"):
        IN_WEB.get(key)


def test_an_object_in_the_place_of_its_key_is_not_quoted() -> None:
    secret: Any = {"metadata": {"name": "s"}, "data": {"password": "aHVudGVyMg=="}}
    with pytest.raises(UsageError, match="not by a dict") as caught:
        WriteRequestBuilder(find_built_in("secrets"), "web").delete(secret)
    assert "aHVudGVyMg" not in str(caught.value)


@pytest.mark.parametrize("subresource", ["..", ".", "a/b", "../web-1", "status?x=y", "%2e"])
def test_a_subresource_that_is_no_single_word_is_rejected(subresource: str) -> None:
    with pytest.raises(UsageError, match="a subresource is a word such as 'status', not"):
        IN_WEB.patch("web-0", {}, subresource)


def test_an_invalid_namespace_is_rejected_when_the_writer_is_made() -> None:
    with pytest.raises(ValueError, match="cluster-scoped"):
        WriteRequestBuilder(NODES, "web")


# -- answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", [3, ["web"], b"web"])
def test_a_namespace_that_is_no_text_is_rejected_when_the_writer_is_made(namespace: Any) -> None:
    with pytest.raises(TypeError, match="namespace must be one namespace's name, or None"):
        WriteRequestBuilder(PODS, namespace)


def test_an_answer_is_an_object_as_a_cache_has_it() -> None:
    obj = IN_WEB.decode(ANSWER)
    assert (obj.key, obj.uid, obj.resource_version) == (ObjectKey("web", "web-0"), "u", "7")
    assert b"managedFields" not in obj.raw
    assert obj.raw.endswith(b"}")
    assert obj["spec"] == {"nodeName": "n"}


@pytest.mark.parametrize("decode", [IN_WEB.decode, IN_WEB.decode_deleted])
def test_an_answer_that_is_nested_too_deeply_is_the_object_that_was_written(
    decode: Callable[[bytes], KubeObject | None],
) -> None:
    """The write had its effect, and an error would say that it had not."""
    obj = decode(ANSWER.strip()[:-1] + b',"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}")
    assert obj is not None
    assert (obj.key, obj.resource_version) == (ObjectKey("web", "web-0"), "7")
    assert b"managedFields" not in obj.raw


def test_a_deletion_returns_the_remaining_object_or_none() -> None:
    assert IN_WEB.decode_deleted(b'{"kind":"Status","status":"Success"}') is None
    left = IN_WEB.decode_deleted(ANSWER)
    assert left is not None
    assert left.name == "web-0"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"metadata":{}}', b"<html>"])
def test_an_answer_without_an_object_is_an_error(body: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"pods: the answer is not an object") as caught:
        IN_WEB.decode_deleted(body)
    assert caught.value.phase == "write"

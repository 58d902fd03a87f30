"""Requests of a pod's log and eviction, and deletions of many objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer._core.objects.resources import find_built_in
from aioinformer._core.writing.write_requests import WriteRequest, WriteRequestBuilder
from aioinformer.errors import UsageError

PODS, NODES = find_built_in("pods"), find_built_in("nodes")
IN_WEB = WriteRequestBuilder(PODS, "web")
ONE = "/api/v1/namespaces/web/pods/web-0"


def test_the_options_of_a_log_are_spelled_as_the_server_spells_them() -> None:
    request = IN_WEB.log(
        "web-0",
        {"tail_lines": 5, "follow": True, "previous": False, "container": None, "since_time": "x"},
    )

    query = {"tailLines": "5", "follow": "true", "previous": "false", "sinceTime": "x"}
    assert request == WriteRequest("GET", f"{ONE}/log", query)
    assert not request.is_write
    long_name = IN_WEB.log("web-0", {"an_option_of_words": 1})
    assert long_name.query == {"anOptionOfWords": "1"}


def test_an_eviction_is_a_creation_at_the_pod() -> None:
    request = IN_WEB.evict("web-0")

    assert (request.method, request.path, request.query) == ("POST", f"{ONE}/eviction", {})
    assert request.content_type == "application/json"
    assert request.is_write
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-0", "namespace": "web"},
    }
    assert json.loads(request.body) == eviction
    patient = json.loads(IN_WEB.evict("web-0", grace_period=0).body)
    assert patient == eviction | {"deleteOptions": {"gracePeriodSeconds": 0}}


def test_a_deletion_of_many_objects_has_their_selectors() -> None:
    path = "/api/v1/namespaces/web/pods"
    assert IN_WEB.delete_collection() == WriteRequest("DELETE", path)
    request = IN_WEB.delete_collection(
        labels="app=shop", fields="status.phase=Failed", propagation="Orphan", grace_period=3
    )

    assert (request.method, request.path) == ("DELETE", path)
    assert request.query == {"labelSelector": "app=shop", "fieldSelector": "status.phase=Failed"}
    assert request.content_type == "application/json"
    assert json.loads(request.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Orphan",
        "gracePeriodSeconds": 3,
    }


def test_the_objects_of_all_namespaces_are_not_deleted_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        WriteRequestBuilder(PODS).delete_collection()
    assert str(caught.value) == (
        "pods: the namespace is missing, and the server deletes the objects of one namespace at a "
        "time. Make the API object with namespace="
    )
    nodes = WriteRequestBuilder(NODES).delete_collection(labels="a=b")
    assert (nodes.path, nodes.query) == ("/api/v1/nodes", {"labelSelector": "a=b"})


@pytest.mark.parametrize(
    ("patch", "kind"),
    [("text", "str"), ([1], "list with int in it"), (7, "int")],
)
def test_a_patch_of_another_type_is_an_error(patch: Any, kind: str) -> None:
    with pytest.raises(UsageError, match=rf"JSON patch\), not {kind}$"):
        IN_WEB.patch("web-0", patch)

"""Tests of strategic merge patches: the keys of lists, and the directives."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from kubernetes_asyncio import client

from aioinformer import Resource
from aioinformer.errors import BadRequest
from aioinformer.testing import ApiServer, Cluster
from aioinformer.testing.writes.patches import StrategicMergePatch

Json = dict[str, Any]


def merged(body: Json, patch: Json) -> Json:
    return StrategicMergePatch(patch).apply(body)


NAMED = [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]


@pytest.mark.parametrize(
    ("body", "patch", "result"),
    [
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="a map"),
        pytest.param({"a": 1, "b": 1}, {"a": None}, {"b": 1}, id="null removes"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="null in what is new"),
        pytest.param(
            {"containers": NAMED},
            {"containers": [{"name": "b", "image": "2"}, {"name": "c"}]},
            {"containers": [NAMED[0], {"name": "b", "image": "2"}, {"name": "c"}]},
            id="items with a name keep their place",
        ),
        pytest.param(
            {"containers": NAMED},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": NAMED[1:]},
            id="an item is deleted",
        ),
        pytest.param(
            {"containers": NAMED},
            {"containers": [{"name": "c"}, {"$patch": "replace"}]},
            {"containers": [{"name": "c"}]},
            id="a list is replaced",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80, "name": "web"}]},
            {"ports": [{"containerPort": 80, "protocol": "UDP"}]},
            {"ports": [{"containerPort": 80, "name": "web", "protocol": "UDP"}]},
            id="ports of a container",
        ),
        pytest.param(
            {"status": {"addresses": [{"type": "InternalIP", "address": "1"}]}},
            {"status": {"addresses": [{"type": "Hostname", "address": "n"}]}},
            {
                "status": {
                    "addresses": [
                        {"type": "InternalIP", "address": "1"},
                        {"type": "Hostname", "address": "n"},
                    ]
                }
            },
            id="addresses of a Node",
        ),
        pytest.param(
            {"subsets": [{"addresses": [{"ip": "1"}]}]},
            {"subsets": [{"addresses": [{"ip": "2"}]}]},
            {"subsets": [{"addresses": [{"ip": "2"}]}]},
            id="addresses of Endpoints are replaced",
        ),
        pytest.param(
            {"subsets": {"addresses": [{"ip": "1"}], "ports": [{"port": 1}]}},
            {"subsets": {"addresses": [{"ip": "2"}], "ports": [{"port": 2}]}},
            {"subsets": {"addresses": [{"ip": "2"}], "ports": [{"port": 2}]}},
            id="lists of other meanings are replaced",
        ),
        *(
            pytest.param(
                {"spec": {name: [{key: "a", "x": 1}, {key: "b"}]}},
                {"spec": {name: [{key: "a", "y": 2}]}},
                {"spec": {name: [{key: "a", "x": 1, "y": 2}, {key: "b"}]}},
                id=name,
            )
            for name, key in (
                ("drivers", "name"),
                ("hostIPs", "ip"),
                ("matchConditions", "name"),
                ("reservedFor", "uid"),
                ("resourceClaimStatuses", "name"),
                ("schedulingGates", "name"),
                ("variables", "name"),
            )
        ),
        pytest.param(
            {"podCIDRs": ["a"]}, {"podCIDRs": ["b", "a"]}, {"podCIDRs": ["a", "b"]}, id="podCIDRs"
        ),
        pytest.param(
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 81}]},
            {"ports": [{"port": 80}, {"port": 81}]},
            id="ports of a Service",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "b"}]},
            {"tolerations": [{"key": "b"}]},
            id="tolerations are replaced",
        ),
        pytest.param({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}, id="so are arguments"),
        pytest.param(
            {"finalizers": ["a"]}, {"finalizers": ["b"]}, {"finalizers": ["a", "b"]}, id="a set"
        ),
        pytest.param(
            {"finalizers": ["a", "b"]},
            {"$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["b"]},
            id="taken out of a set",
        ),
        pytest.param(
            {"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}, id="replace"
        ),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}, id="delete"),
        pytest.param(
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
            id="keys that are retained",
        ),
        pytest.param(
            {"containers": NAMED},
            {"$setElementOrder/containers": [{"name": "b"}], "containers": []},
            {"containers": NAMED},
            id="an order is ignored",
        ),
    ],
)
def test_a_patch_is_merged(body: Json, patch: Json, result: Json) -> None:
    before = repr(body)
    assert merged(body, patch) == result
    assert repr(body) == before, "the old one is left as it was"


def test_an_item_without_a_merge_key_is_an_error() -> None:
    with pytest.raises(BadRequest, match="does not contain declared merge key: name"):
        merged({}, {"containers": [{"image": "1"}]})


def test_an_unknown_directive_is_an_error() -> None:
    with pytest.raises(BadRequest, match="unknown patch type: mince"):
        merged({}, {"a": {"$patch": "mince"}})


async def test_a_generated_client_patches_a_built_in_kind_by_default() -> None:
    async with ApiServer() as server:
        body = {"metadata": {"name": "web-0"}, "spec": {"containers": NAMED}}
        server.cluster.create("pods", body, namespace="web")
        api = client.ApiClient(client.Configuration(host=server.url))
        try:
            patch = {"spec": {"containers": [{"name": "b", "image": "2"}]}}
            pod = await client.CoreV1Api(api).patch_namespaced_pod("web-0", "web", patch)
        finally:
            await api.close()
        assert [each.image for each in pod.spec.containers] == ["1", "2"]


async def test_a_custom_resource_has_no_strategic_merge() -> None:
    cluster = Cluster()
    cluster.add_resource(Resource("example.com", "v1", "widgets", "Widget"))
    cluster.create("widgets", {"metadata": {"name": "w"}}, namespace="web")
    path = "/apis/example.com/v1/namespaces/web/widgets/w"
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    async with (
        ApiServer(cluster) as server,
        aiohttp.ClientSession(server.url) as http,
        http.patch(path, data=b"{}", headers=headers) as answer,
    ):
        assert answer.status == 415

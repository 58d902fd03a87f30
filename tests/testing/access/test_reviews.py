"""Tests of reviews: the questions of ``kubectl auth`` and of proxies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from aioinformer.testing import ApiServer, PolicyRule

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
BASIC_USER = [
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
    {
        "verbs": ["create"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["selfsubjectreviews"],
    },
]
"""The rules of ``system:basic-user``, which each user with credentials has."""


@pytest_asyncio.fixture
async def ada() -> AsyncIterator[aiohttp.ClientSession]:
    """Return a session of a user who may list pods in ``web``."""
    async with ApiServer() as server:
        rule = PolicyRule(
            verbs=["list"], resources=["po", "deploy/scale", "ev"], namespaces=["web"]
        )
        server.access.add_user("ada", token="t", groups=["dev"], rules=[rule])
        headers = {"Authorization": "Bearer t"}
        async with aiohttp.ClientSession(server.url, headers=headers) as session:
            yield session


async def review(http: aiohttp.ClientSession, path: str, spec: Any = None) -> dict[str, Any]:
    async with http.post(path, json={"spec": spec} if spec else {}) as response:
        assert response.status == 201, await response.text()
        body: dict[str, Any] = await response.json()
        return body


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        ({"verb": "list", "resource": "pods", "namespace": "web"}, True),
        ({"verb": "list", "resource": "pods", "namespace": "other"}, False),
        ({"verb": "list", "resource": "pods"}, False),
        ({"verb": "watch", "resource": "pods", "namespace": "web"}, False),
        ({"verb": "list", "resource": "gadgets", "group": "example.com"}, False),
    ],
)
async def test_a_user_can_review_their_own_access(
    ada: aiohttp.ClientSession, attributes: dict[str, str], allowed: bool
) -> None:
    spec = {"resourceAttributes": attributes}
    answer = await review(ada, f"{AUTHORIZATION}/selfsubjectaccessreviews", spec)
    assert answer["kind"] == "SelfSubjectAccessReview"
    assert answer["spec"] == spec
    assert answer["status"] == {"allowed": allowed}


async def test_a_user_can_review_their_access_to_a_document(ada: aiohttp.ClientSession) -> None:
    for path, allowed in (("/version", True), ("/metrics", False)):
        spec = {"nonResourceAttributes": {"verb": "get", "path": path}}
        answer = await review(ada, f"{AUTHORIZATION}/selfsubjectaccessreviews", spec)
        assert answer["status"] == {"allowed": allowed}


async def test_a_review_without_attributes_is_an_error(ada: aiohttp.ClientSession) -> None:
    async with ada.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", json={}) as response:
        assert response.status == 400
        assert "exactly one of" in (await response.json())["message"]


async def test_a_user_can_request_their_own_name_and_rules(ada: aiohttp.ClientSession) -> None:
    answer = await review(ada, f"{AUTHENTICATION}/selfsubjectreviews")
    info = {"username": "ada", "groups": ["dev", "system:authenticated"]}
    assert answer["status"] == {"userInfo": info}
    assert answer["metadata"]["creationTimestamp"]
    path = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    answer = await review(ada, path, {"namespace": "web"})
    assert answer["status"]["resourceRules"] == [
        {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]},
        {"verbs": ["list"], "apiGroups": ["apps"], "resources": ["deployments/scale"]},
        {"verbs": ["list"], "apiGroups": [""], "resources": ["events"]},
        {"verbs": ["list"], "apiGroups": ["events.k8s.io"], "resources": ["events"]},
        *BASIC_USER,
    ]
    (documents,) = answer["status"]["nonResourceRules"]
    assert {"/version", "/apis/*"} < {*documents["nonResourceURLs"]}
    answer = await review(ada, path, {"namespace": "other"})
    assert answer["status"]["resourceRules"] == BASIC_USER


async def test_a_user_without_rights_may_not_review_the_access_of_others(
    ada: aiohttp.ClientSession,
) -> None:
    for path in (
        f"{AUTHORIZATION}/subjectaccessreviews",
        f"{AUTHORIZATION}/namespaces/web/localsubjectaccessreviews",
        f"{AUTHENTICATION}/tokenreviews",
    ):
        async with ada.post(path, json={}) as response:
            assert response.status == 403


async def test_a_proxy_can_review_the_access_and_the_tokens_of_others() -> None:
    async with ApiServer() as server, aiohttp.ClientSession(server.url) as http:
        rule = PolicyRule(verbs=["list"], resources=["pods"], namespaces=["web"])
        server.access.add_user("ada", token="t", rules=[rule])
        attributes = {"verb": "list", "resource": "pods", "namespace": "web"}
        path = f"{AUTHORIZATION}/subjectaccessreviews"
        for verb, allowed in (("list", True), ("watch", False)):
            spec = {"user": "ada", "resourceAttributes": {**attributes, "verb": verb}}
            assert (await review(http, path, spec))["status"] == {"allowed": allowed}
        for token, known in (("t", True), ("nope", False)):
            answer = await review(http, f"{AUTHENTICATION}/tokenreviews", {"token": token})
            assert answer["status"]["authenticated"] is known


async def test_reviews_are_created_and_not_stored() -> None:
    async with ApiServer() as server, aiohttp.ClientSession(server.url) as http:
        async with http.get(f"{AUTHORIZATION}/selfsubjectaccessreviews") as response:
            assert response.status == 405
        answer = await review(http, f"{AUTHENTICATION}/selfsubjectreviews")
        assert answer["status"]["userInfo"]["username"] == "system:anonymous"


ROBOT = "system:serviceaccount:web:robot"
ROBOT_GROUPS = ["system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated"]
USERS = {
    "system:anonymous": ["system:unauthenticated"],
    "bob": ["system:authenticated"],
    "ada": ["dev", "system:authenticated"],
    "eve": ["readers", "system:authenticated"],
    "root": ["system:masters", "system:authenticated"],
    ROBOT: ROBOT_GROUPS,
}
"""Users and their groups: unknown ones, and those with rules, a role, or every right."""


def fill(server: ApiServer) -> None:
    """Let ada list pods by a rule, eve and the robot by a binding; root may do everything."""
    cluster = server.cluster
    cluster.create("serviceaccounts", {"metadata": {"name": "robot", "namespace": "web"}})
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    cluster.create("clusterroles", {"metadata": {"name": "reader"}, "rules": rules})
    subjects = [
        {"kind": "Group", "name": "readers"},
        {"kind": "ServiceAccount", "name": "robot", "namespace": "web"},
    ]
    reference = {"kind": "ClusterRole", "name": "reader"}
    cluster.create(
        "clusterrolebindings",
        {"metadata": {"name": "readers"}, "roleRef": reference, "subjects": subjects},
    )
    rule = PolicyRule(verbs=["list"], resources=["pods"], namespaces=["web"])
    server.access.add_user("ada", token="ada", groups=["dev"], rules=[rule])
    server.access.add_user("root", token="root", groups=["system:masters"])


@pytest.mark.parametrize("mode", ["AlwaysAllow", "RBAC"])
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("namespace", ["web", "other"])
@pytest.mark.parametrize("verb", ["list", "delete"])
async def test_each_review_answers_as_the_request_itself_is_answered(
    mode: Any, user: str, namespace: str, verb: str
) -> None:
    async with ApiServer(authorization=mode) as server:
        fill(server)
        sender = {"Authorization": "Bearer root", "Impersonate-User": user}
        attributes = {"verb": verb, "resource": "pods", "namespace": namespace, "name": "a"}
        asked = {"resourceAttributes": attributes}
        subject = {"user": user, "groups": USERS[user], **asked}
        async with aiohttp.ClientSession(server.url, headers=sender) as http:
            for group in USERS[user]:
                http.headers.add("Impersonate-Group", group)
            path = f"/api/v1/namespaces/{namespace}/pods"
            method, url = ("DELETE", f"{path}/a") if verb == "delete" else ("GET", path)
            async with http.request(method, url) as response:
                allowed = response.status != 403
            if user != "system:anonymous" or mode == "AlwaysAllow":
                own = await review(http, f"{AUTHORIZATION}/selfsubjectaccessreviews", asked)
                assert own["status"] == {"allowed": allowed}
        root = {"Authorization": "Bearer root"}
        async with aiohttp.ClientSession(server.url, headers=root) as http:
            local = f"{AUTHORIZATION}/namespaces/{namespace}/localsubjectaccessreviews"
            for path in (f"{AUTHORIZATION}/subjectaccessreviews", local):
                assert (await review(http, path, subject))["status"] == {"allowed": allowed}


async def test_a_review_counts_the_groups_that_it_names_and_no_others() -> None:
    async with ApiServer(authorization="RBAC") as server:
        fill(server)
        root = {"Authorization": "Bearer root"}
        attributes = {"verb": "delete", "resource": "pods", "namespace": "web"}
        async with aiohttp.ClientSession(server.url, headers=root) as http:
            for groups, allowed in (([], False), (["system:masters"], True)):
                spec = {"user": "root", "groups": groups, "resourceAttributes": attributes}
                answer = await review(http, f"{AUTHORIZATION}/subjectaccessreviews", spec)
                assert answer["status"] == {"allowed": allowed}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"resourceAttributes": {"namespace": "other"}}, "spec.resourceAttributes.namespace"),
        ({"resourceAttributes": {}}, "spec.resourceAttributes.namespace"),
        ({"nonResourceAttributes": {"path": "/version"}}, "spec.nonResourceAttributes"),
    ],
)
async def test_a_local_review_concerns_its_namespace_alone(
    asked: dict[str, Any], field: str
) -> None:
    path = f"{AUTHORIZATION}/namespaces/web/localsubjectaccessreviews"
    async with ApiServer() as server, aiohttp.ClientSession(server.url) as http:
        body = {"spec": {"user": "ada", **asked}}
        async with http.post(path, json=body) as response:
            assert response.status == 422
            assert (await response.json())["details"]["causes"][0]["field"] == field

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


@pytest_asyncio.fixture
async def ada() -> AsyncIterator[aiohttp.ClientSession]:
    """Return a session of a user who may list pods in ``web``."""
    async with ApiServer() as server:
        rule = PolicyRule(verbs=["list"], resources=["po", "deploy/scale"], namespaces=["web"])
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
    ]
    answer = await review(ada, path, {"namespace": "other"})
    assert answer["status"]["resourceRules"] == []


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
        for user, allowed in (("ada", True), ("bob", False)):
            spec = {"user": user, "resourceAttributes": attributes}
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

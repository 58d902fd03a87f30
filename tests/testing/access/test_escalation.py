"""Roles and bindings that give rights: nobody gives those that they lack, as in Kubernetes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from aioinformer import KubeObject, ResourceApi
from aioinformer.errors import Forbidden
from aioinformer.testing import ApiServer, Cluster, ClusterSource, PolicyRule, User
from tests.apiserver.server.build import KUBERNETES, BuildUnavailable, build_cached
from tests.testing.access.rbac_cases import (
    GROUP,
    WRITER,
    Answer,
    Manifest,
    Request,
    ask_embedded_server,
    ask_kubernetes,
    binding,
    may_write,
    random_requests,
    role,
    rule,
)

AGGREGATED = {"clusterRoleSelectors": [{"matchLabels": {"aggregate": "true"}}]}
CLUSTER_ADMIN = role("admin", rule("*", "*"), rule("*", urls="*"))


def holding(*rules: Any, namespace: str = "") -> tuple[Manifest, ...]:
    """Return the objects by which ada may write, and has some rights."""
    kind = "Role" if namespace else "ClusterRole"
    held = role("held", *rules, namespace=namespace)
    return (*may_write(), held, binding("held", f"{kind}/held", "User/ada", namespace=namespace))


def missing(target: str, *lines: str, groups: str = '"dev" "system:authenticated"') -> Answer:
    text = f'user "ada" (groups=[{groups}]) is attempting to grant RBAC permissions not'
    shown = "\n".join((f"{text} currently held:", *lines))
    return Answer(False, 403, f"{refused(target)}{shown}")


def refused(target: str) -> str:
    plural, _, name = target.partition("/")
    return f'{plural}.rbac.authorization.k8s.io "{name}" is forbidden: '


def invalid(target: str, *causes: str) -> Answer:
    kind, _, name = target.partition("/")
    listed = causes[0] if len(causes) == 1 else f"[{', '.join(causes)}]"
    message = f'{kind}.rbac.authorization.k8s.io "{name}" is invalid: {listed}'
    return Answer(False, 422, message, causes)


YES = Answer(True)
POD_READER = role("new", rule("get list", "pods"), namespace="web")
STORED = role("stored", rule("delete", "pods"))
STORED_BINDING = binding("stored", "ClusterRole/stored", "User/bob")
PODS_LINES = tuple(
    f'{{APIGroups:["{group}"], Resources:["pods"], Verbs:[%s]}}'
    for group in ("", "apps", "rbac.authorization.k8s.io")
)


def pods_lines(verbs: str) -> tuple[str, ...]:
    return tuple(line % verbs for line in PODS_LINES)


CASES: Mapping[str, tuple[Request, Answer]] = {
    "a Role with rights that its writer has": (
        Request(objects=holding(rule("get list", "pods"), namespace="web"), body=POD_READER),
        YES,
    ),
    "a Role with a verb that its writer lacks": (
        Request(objects=holding(rule("list", "pods")), body=POD_READER),
        missing("roles/new", *pods_lines('"get"')),
    ),
    "a Role with rights in another namespace": (
        Request(objects=holding(rule("get list", "pods"), namespace="other"), body=POD_READER),
        missing("roles/new", *pods_lines('"get" "list"')),
    ),
    "a ClusterRole with rights that its writer has in a namespace alone": (
        Request(
            objects=holding(rule("get", "pods"), namespace="web"),
            body=role("new", rule("get", "pods")),
        ),
        missing("clusterroles/new", *pods_lines('"get"')),
    ),
    "rights for one name, of a writer who has them for two": (
        Request(
            objects=holding(rule("get", "pods", names="a b")),
            body=role("new", rule("get", "pods", names="a")),
        ),
        YES,
    ),
    "rights for all names, of a writer who has them for one": (
        Request(
            objects=holding(rule("get", "pods", names="a")), body=role("new", rule("get", "pods"))
        ),
        missing("clusterroles/new", *pods_lines('"get"')),
    ),
    "a subresource, of a writer who has it for all resources": (
        Request(objects=holding(rule("get", "*/log")), body=role("new", rule("get", "pods/log"))),
        YES,
    ),
    "everything, of a writer who may read everything": (
        Request(objects=holding(rule("get", "*")), body=role("new", rule("*", "*"))),
        missing("clusterroles/new", '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'),
    ),
    "a path that every user may read": (
        Request(objects=may_write(), body=role("new", rule("get", urls="/version /apis/a"))),
        YES,
    ),
    "a path that the writer may not read": (
        Request(objects=may_write(), body=role("new", rule("get", urls="/metrics /version"))),
        missing("clusterroles/new", '{NonResourceURLs:["/metrics"], Verbs:["get"]}'),
    ),
    "verbs on a path in two rules": (
        Request(
            objects=may_write(),
            body=role("new", rule("get", urls="/metrics"), rule("get list", urls="/metrics")),
        ),
        missing(
            "clusterroles/new",
            *(f'{{NonResourceURLs:["/metrics"], Verbs:["{verb}"]}}' for verb in ("get", "list")),
        ),
    ),
    "a role of a member of system:masters": (
        Request(groups=("system:masters",), body=role("new", rule("*", "*"))),
        YES,
    ),
    "a role of a writer who may escalate it": (
        Request(
            objects=holding(rule("escalate", "clusterroles")), body=role("new", rule("*", "*"))
        ),
        YES,
    ),
    "a new role of a writer who may escalate roles of this name": (
        Request(
            objects=holding(rule("escalate", "clusterroles", names="new")),
            body=role("new", rule("get", urls="/metrics")),
        ),
        missing("clusterroles/new", '{NonResourceURLs:["/metrics"], Verbs:["get"]}'),
    ),
    "a changed role of a writer who may escalate roles of this name": (
        Request(
            objects=(*holding(rule("escalate", "clusterroles", names="stored")), STORED),
            verb="update",
            body=role("stored", rule("*", "*")),
        ),
        YES,
    ),
    "an update that creates a role": (
        Request(objects=may_write(), verb="update", body=role("new", rule("get", urls="/metrics"))),
        missing("clusterroles/new", '{NonResourceURLs:["/metrics"], Verbs:["get"]}'),
    ),
    "a change of the finalizers alone": (
        Request(
            objects=(*may_write(), STORED),
            verb="update",
            body={**STORED, "metadata": {"name": "stored", "finalizers": ["example.com/f"]}},
        ),
        YES,
    ),
    "a change of the labels of a role with rights that the writer lacks": (
        Request(
            objects=(*may_write(), STORED),
            verb="update",
            body={**STORED, "metadata": {"name": "stored", "labels": {"a": "b"}}},
        ),
        missing("clusterroles/stored", *pods_lines('"delete"')),
    ),
    "an aggregated role of a writer who may not do everything": (
        Request(objects=holding(rule("get", "*")), body=role("new", aggregationRule=AGGREGATED)),
        Answer(
            False,
            403,
            f"{refused('clusterroles/new')}must have cluster-admin privileges to use the "
            "aggregationRule",
        ),
    ),
    "an aggregated role that loses its rule": (
        Request(
            objects=(*may_write(), role("stored", aggregationRule=AGGREGATED)),
            verb="update",
            body=role("stored"),
        ),
        Answer(
            False,
            403,
            f"{refused('clusterroles/stored')}must have cluster-admin privileges to use the "
            "aggregationRule",
        ),
    ),
    "an aggregated role of a writer who may do everything": (
        Request(
            objects=(CLUSTER_ADMIN, binding("admins", "ClusterRole/admin", "Group/dev")),
            body=role("new", aggregationRule=AGGREGATED),
        ),
        YES,
    ),
    "a binding to a role with rights that the writer has": (
        Request(
            objects=(*holding(rule("delete", "pods")), STORED),
            body=binding("new", "ClusterRole/stored", "User/bob"),
        ),
        YES,
    ),
    "a binding to a role with rights that the writer lacks": (
        Request(
            objects=(*may_write(), STORED),
            body=binding("new", "ClusterRole/stored", "User/ada", namespace="web"),
        ),
        missing("rolebindings/new", *pods_lines('"delete"')),
    ),
    "a binding of a writer who may bind the role": (
        Request(
            objects=(*holding(rule("bind", "clusterroles", names="stored")), STORED),
            body=binding("new", "ClusterRole/stored", "User/ada"),
        ),
        YES,
    ),
    "a binding of a writer who may bind another role": (
        Request(
            objects=(*holding(rule("bind", "clusterroles", names="other")), STORED),
            body=binding("new", "ClusterRole/stored", "User/ada"),
        ),
        missing("clusterrolebindings/new", *pods_lines('"delete"')),
    ),
    "a binding in a namespace of a writer who may bind there": (
        Request(
            objects=(*holding(rule("bind", "clusterroles"), namespace="web"), STORED),
            body=binding("new", "ClusterRole/stored", "User/ada", namespace="web"),
        ),
        YES,
    ),
    "a binding everywhere of a writer who may bind in a namespace": (
        Request(
            objects=(*holding(rule("bind", "clusterroles"), namespace="web"), STORED),
            body=binding("new", "ClusterRole/stored", "User/ada"),
        ),
        missing("clusterrolebindings/new", *pods_lines('"delete"')),
    ),
    "a binding to a role that doesn't exist": (
        Request(objects=may_write(), body=binding("new", "Role/nope", "User/ada", namespace="web")),
        Answer(False, 404, 'roles.rbac.authorization.k8s.io "nope" not found'),
    ),
    "a binding to a role that doesn't exist, of a writer who may bind it": (
        Request(
            objects=holding(rule("bind", "clusterroles")),
            body=binding("new", "ClusterRole/nope", "User/ada"),
        ),
        YES,
    ),
    "a binding that gets another subject": (
        Request(
            objects=(*may_write(), STORED, STORED_BINDING),
            verb="update",
            body=binding("stored", "ClusterRole/stored", "User/ada"),
        ),
        missing("clusterrolebindings/stored", *pods_lines('"delete"')),
    ),
    "a changed roleRef": (
        Request(
            objects=(STORED, WRITER, STORED_BINDING),
            groups=("system:masters",),
            verb="update",
            body=binding("stored", "ClusterRole/writer", "User/bob"),
        ),
        invalid(
            "ClusterRoleBinding/stored",
            'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io",'
            '"Kind":"ClusterRole","Name":"writer"}: field is immutable',
        ),
    ),
    "a roleRef without its API group, which is the default": (
        Request(
            objects=(STORED, STORED_BINDING),
            groups=("system:masters",),
            verb="update",
            body={**STORED_BINDING, "roleRef": {"kind": "ClusterRole", "name": "stored"}},
        ),
        YES,
    ),
    "a ClusterRoleBinding to no ClusterRole": (
        Request(
            groups=("system:masters",),
            body={
                **binding("new", "Role/"),
                "roleRef": {"apiGroup": "apps", "kind": "Role", "name": ""},
            },
        ),
        invalid(
            "ClusterRoleBinding/new",
            'roleRef.apiGroup: Unsupported value: "apps": supported values: '
            '"rbac.authorization.k8s.io"',
            'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
            "roleRef.name: Required value",
        ),
    ),
    "a RoleBinding to an unknown kind": (
        Request(
            groups=("system:masters",), body=binding("new", "Foo/x", "User/bob", namespace="web")
        ),
        invalid(
            "RoleBinding/new",
            'roleRef.kind: Unsupported value: "Foo": supported values: "Role", "ClusterRole"',
        ),
    ),
    "a RoleBinding to an unknown kind, of a writer with few rights": (
        Request(objects=may_write(), body=binding("new", "Foo/x", "User/bob", namespace="web")),
        Answer(False, 500, 'unsupported role reference kind: "Foo"'),
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_write_gives_no_rights_that_its_user_lacks(name: str) -> None:
    request, expected = CASES[name]
    assert await ask_embedded_server(request) == expected


@pytest.fixture(scope="module")
def kubernetes() -> Path:
    """Return the program with the authorizer and the storages of Kubernetes."""
    try:
        return build_cached(KUBERNETES / "rbac", "rbac")
    except BuildUnavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.apiserver
@pytest.mark.timeout(580)  # a first build takes minutes
async def test_kubernetes_answers_the_same(kubernetes: Path) -> None:
    answers = ask_kubernetes(kubernetes, [request for request, _ in CASES.values()])
    assert dict(zip(CASES, answers, strict=True)) == {
        name: expected for name, (_, expected) in CASES.items()
    }
    requests = [*random_requests(Random(7), 600)]
    for request, expected in zip(requests, ask_kubernetes(kubernetes, requests), strict=True):
        assert await ask_embedded_server(request) == expected, request


Write = Callable[[ResourceApi], Awaitable[KubeObject]]
ROLE = {"metadata": {"name": "r", "namespace": "web"}}
STORED_ROLE = {"metadata": {"name": "stored", "namespace": "web"}}
RULES = {"rules": [rule("get", "secrets")]}
ADDED = [{"op": "add", "path": "/rules", "value": RULES["rules"]}]


WRITES: Mapping[str, Write] = {
    "create": lambda api: api.create({**ROLE, **RULES}),
    "update that creates": lambda api: api.update({**ROLE, **RULES}),
    "merge patch": lambda api: api.patch("web/stored", RULES),
    "JSON patch": lambda api: api.patch("web/stored", ADDED),
    "apply that creates": lambda api: api.apply({**ROLE, **RULES}, field_manager="m"),
    "apply": lambda api: api.apply({**STORED_ROLE, **RULES}, field_manager="m"),
}


@pytest.mark.parametrize("kind", WRITES)
async def test_each_kind_of_write_is_checked_and_the_rules_of_a_user_count(kind: str) -> None:
    write = WRITES[kind]
    cluster = Cluster()
    cluster.create("roles", STORED_ROLE)
    rules = [PolicyRule(verbs=["create", "update", "patch"], resources=["roles"])]
    ada = User("ada", rules=rules)
    api = ClusterSource(cluster, user=ada).api("roles")
    with pytest.raises(Forbidden, match="attempting to grant RBAC permissions not currently held"):
        await write(api)
    ada.rules.append(PolicyRule(verbs=["get"], resources=["secrets"], namespaces=["web"]))
    with pytest.raises(Forbidden, match=r'APIGroups:\["apps"\], Resources:\["secrets"\]'):
        await write(api)
    ada.rules.append(PolicyRule(verbs=["*"]))
    assert (await write(api))["rules"] == RULES["rules"]


@pytest.mark.parametrize("field", ["metadata", "rules", "aggregationRule", "roleRef"])
async def test_a_field_of_a_wrong_type_is_an_error_of_the_request(field: str) -> None:
    path = f"/apis/{GROUP}/v1/clusterroles"
    async with ApiServer() as server:
        rules = [PolicyRule(verbs=["create"], resources=["clusterroles"])]
        server.access.add_user("ada", token="t", rules=rules)
        headers = {"Authorization": "Bearer t"}
        async with aiohttp.ClientSession(server.url, headers=headers) as http:
            for value in ("x", [1], 7):
                body = {"metadata": {"name": "r"}, field: value}
                async with http.post(path, json=body) as response:
                    assert response.status == 400

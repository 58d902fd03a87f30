"""Requests under RBAC, and what the embedded server and Kubernetes' own code answer to them.

The code of Kubernetes is the program in ``tests/apiserver/kubernetes_code/rbac``: the authorizer of
``plugin/pkg/auth/authorizer/rbac`` and the storages of ``pkg/registry/rbac/*/policybased``, which
are in no server that the tests build.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import aiohttp

from aioinformer.testing import ApiServer, Cluster

GROUP = "rbac.authorization.k8s.io"
Manifest: TypeAlias = dict[str, Any]
Rule: TypeAlias = dict[str, list[str]]
_READ = {"uid": "u", "resourceVersion": "1"}
"""The metadata of the stored objects in the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A write of an RBAC object, or, without a body, a question about a request."""

    objects: Sequence[Manifest] = ()
    user: str = "ada"
    groups: tuple[str, ...] = ("dev",)
    verb: str = "create"
    body: Manifest | None = None
    read: bool = True
    """True for an update with the metadata that the client has read."""
    group: str = ""
    resource: str = ""
    part: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def all_groups(self) -> tuple[str, ...]:
        return (*self.groups, "system:authenticated")


@dataclass(frozen=True, slots=True)
class Answer:
    allowed: bool
    code: int = 0
    message: str = ""
    causes: tuple[str, ...] = ()


def rule(verbs: str, resources: str = "", *, names: str = "", urls: str = "") -> Rule:
    """Return a rule of texts whose words are the values; ``GROUP/`` begins no resource."""
    made: Rule = {"verbs": verbs.split()}
    if urls:
        return made | {"nonResourceURLs": urls.split()}
    groups = ["*"] if resources == "*" else ["", "apps", GROUP]
    made |= {"apiGroups": groups, "resources": resources.split()}
    return made | ({"resourceNames": names.split()} if names else {})


def role(name: str, *rules: Rule, namespace: str = "", **fields: Any) -> Manifest:
    """Return a Role, or a ClusterRole without a namespace."""
    kind = "Role" if namespace else "ClusterRole"
    return _manifest(kind, name, namespace) | {"rules": [*rules]} | fields


def binding(name: str, to: str, *subjects: str, namespace: str = "", **fields: Any) -> Manifest:
    """Return a binding to ``Kind/name`` for subjects ``Kind/name``."""
    kind, _, target = to.partition("/")
    manifest = _manifest("RoleBinding" if namespace else "ClusterRoleBinding", name, namespace)
    manifest["roleRef"] = {"apiGroup": GROUP, "kind": kind, "name": target}
    manifest["subjects"] = [_subject(each) for each in subjects]
    return manifest | fields


def _manifest(kind: str, name: str, namespace: str) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata}


def _subject(text: str) -> Manifest:
    kind, _, name = text.partition("/")
    if kind == "ServiceAccount":
        return {"kind": kind, "namespace": "web", "name": name}
    return {"kind": kind, "apiGroup": GROUP, "name": name}


def plural(manifest: Manifest) -> str:
    return f"{manifest['kind'].lower()}s"


# -- the embedded server -----------------------------------------------------------------------


async def ask_embedded_server(request: Request) -> Answer:
    cluster = Cluster()
    for each in request.objects:
        cluster.create(plural(each), each)
    async with ApiServer(cluster, authorization="RBAC") as server:
        server.access.add_user("root", token="root", groups=["system:masters"])
        server.access.add_user(request.user, token="t", groups=request.groups)
        async with aiohttp.ClientSession(server.url) as http:
            if request.body is None:
                return await _review(http, request)
            return await _write(http, cluster, request, request.body)


async def _write(
    http: aiohttp.ClientSession, cluster: Cluster, request: Request, body: Manifest
) -> Answer:
    metadata = body["metadata"]
    namespace = metadata.get("namespace", "")
    where = f"/namespaces/{namespace}" if namespace else ""
    url = f"/apis/{GROUP}/v1{where}/{plural(body)}"
    method = "POST"
    if request.verb == "update":
        method, url = "PUT", f"{url}/{metadata['name']}"
        stored = cluster.find_object(plural(body), metadata["name"], namespace=namespace or None)
        if request.read and stored is not None:
            body = {**body, "metadata": {**stored["metadata"], **metadata}}
    headers = {"Authorization": "Bearer t"}
    async with http.request(method, url, json=body, headers=headers) as response:
        if response.status < 400:
            return Answer(True)
        return _read_status(await response.json())


def _read_status(status: Mapping[str, Any]) -> Answer:
    details: Mapping[str, Any] = status.get("details") or {}
    causes: Sequence[Mapping[str, str]] = details.get("causes") or ()
    texts = tuple(f"{each['field']}: {each['message']}" for each in causes)
    return Answer(False, status["code"], status.get("message", ""), texts)


async def _review(http: aiohttp.ClientSession, request: Request) -> Answer:
    if request.path:
        asked = {"nonResourceAttributes": {"verb": request.verb, "path": request.path}}
    else:
        attributes = {
            "verb": request.verb,
            "group": request.group,
            "resource": request.resource,
            "subresource": request.part,
            "namespace": request.namespace,
            "name": request.name,
        }
        asked = {"resourceAttributes": attributes}
    url = "/apis/authorization.k8s.io/v1"
    spec = {"user": request.user, "groups": request.all_groups}
    answers: list[bool] = []
    for path, token, who in (("subject", "root", spec), ("selfsubject", "t", {})):
        headers = {"Authorization": f"Bearer {token}"}
        body = {"spec": {**who, **asked}}
        async with http.post(f"{url}/{path}accessreviews", json=body, headers=headers) as response:
            assert response.status == 201
            answers.append((await response.json())["status"]["allowed"])
    assert answers[0] is answers[1]
    return Answer(answers[0])


# -- Kubernetes --------------------------------------------------------------------------------


def ask_kubernetes(program: Path, requests: Sequence[Request]) -> list[Answer]:
    sent = json.dumps([_to_program(each) for each in requests])
    done = subprocess.run([program], input=sent, capture_output=True, text=True, check=True)
    return [_from_program(each) for each in json.loads(done.stdout)]


def _to_program(request: Request) -> Manifest:
    sent: Manifest = {
        "objects": [_with_metadata(each) for each in request.objects],
        "user": {"name": request.user, "groups": request.all_groups},
        "verb": request.verb,
        "group": request.group,
        "resource": request.resource,
        "part": request.part,
        "namespace": request.namespace,
        "name": request.name,
        "path": request.path,
    }
    if request.body is not None:
        body = request.body
        metadata = body["metadata"]
        sent |= {"resource": plural(body), "namespace": metadata.get("namespace", "")}
        sent["name"] = metadata.get("name", "")
        is_read = request.verb == "update" and request.read
        stored = any(
            (each["kind"], each["metadata"]) == (body["kind"], _identity(metadata))
            for each in request.objects
        )
        sent["body"] = _with_metadata(body) if is_read and stored else body
    return sent


def _identity(metadata: Mapping[str, Any]) -> Manifest:
    return {key: metadata[key] for key in ("name", "namespace") if key in metadata}


def _with_metadata(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**_READ, **manifest["metadata"]}}


def _from_program(answer: Mapping[str, Any]) -> Answer:
    status = answer.get("status")
    if status is None:
        return Answer(answer["allowed"])
    return _read_status(status)


# -- requests by chance ------------------------------------------------------------------------

_VERBS = ("get", "list", "create", "update", "*", "escalate", "bind", "get list", "impersonate")
_RESOURCES = (
    *("pods", "pods/log", "*/log", "*", "deployments", "deployments/scale", "pods deployments"),
    *("roles", "clusterroles", "roles clusterroles", "rolebindings clusterrolebindings"),
)
_URLS = ("/metrics", "/metrics/*", "*", "/version", "/version/", "/apis/*", "/healthz/etcd")
_SUBJECTS = (
    "User/ada",
    "User/bob",
    "Group/dev",
    "ServiceAccount/robot",
    "Group/system:authenticated",
)


def random_requests(random: Random, count: int) -> Iterator[Request]:
    for _ in range(count):
        objects = [*_random_objects(random)]
        user, groups = random.choice((("ada", ("dev",)), ("ada", ()), _ROBOT))
        made = Request(objects=objects, user=user, groups=groups)
        yield random.choice((_random_write, _random_question))(random, made)


_ROBOT = (
    "system:serviceaccount:web:robot",
    ("system:serviceaccounts", "system:serviceaccounts:web"),
)
WRITER = role(
    "writer", rule("create update", "roles clusterroles rolebindings clusterrolebindings")
)
"""The role of each user who writes: the right to send the request is not the question."""


def may_write(*subjects: str) -> tuple[Manifest, Manifest]:
    return WRITER, binding("writers", "ClusterRole/writer", *(subjects or ("User/ada",)))


def _random_objects(random: Random) -> Iterator[Manifest]:
    yield from may_write("User/ada", "ServiceAccount/robot")
    names = {"ClusterRole": ["writer"], "Role": list[str]()}
    for number in range(random.randrange(1, 5)):
        made = _random_role(random, f"r{number}", random.choice(("", "web")))
        names[made["kind"]].append(made["metadata"]["name"])
        yield made
    for number in range(random.randrange(4)):
        namespace = random.choice(("", "web"))
        kind = (
            random.choice(("ClusterRole", "Role")) if namespace and names["Role"] else "ClusterRole"
        )
        target = f"{kind}/{random.choice(names[kind])}"
        subjects = random.sample(_SUBJECTS, random.randrange(1, 4))
        yield binding(f"b{number}", target, *subjects, namespace=namespace)


def _random_role(random: Random, name: str, namespace: str) -> Manifest:
    rules = [_random_rule(random, urls=not namespace) for _ in range(random.randrange(4))]
    fields: Manifest = {}
    if not namespace and not random.randrange(6):
        selector = {"matchLabels": {"aggregate": "true"}}
        fields["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return role(name, *rules, namespace=namespace, **fields)


def _random_rule(random: Random, *, urls: bool) -> Rule:
    if urls and not random.randrange(3):
        return rule(random.choice(_VERBS), urls=" ".join(random.sample(_URLS, 2)))
    names = random.choice(("", "", "a", "a b", "r0"))
    return rule(random.choice(_VERBS), random.choice(_RESOURCES), names=names)


def _random_write(random: Random, made: Request) -> Request:
    namespace = random.choice(("", "web"))
    stored = [each for each in made.objects if each is not WRITER]
    if random.randrange(2):
        changed = _change(random, random.choice(stored))
        return replace(made, body=changed, verb="update", read=bool(random.randrange(4)))
    if random.randrange(2):
        return replace(made, body=_random_role(random, "new", namespace))
    targets = [each for each in made.objects if plural(each) in ("roles", "clusterroles")]
    chosen = random.choice(targets)
    name = random.choice((chosen["metadata"]["name"], "missing"))
    kind = chosen["kind"] if namespace else "ClusterRole"
    return replace(made, body=binding("new", f"{kind}/{name}", "User/bob", namespace=namespace))


def _change(random: Random, stored: Manifest) -> Manifest:
    metadata, kind = stored["metadata"], stored["kind"]
    change = random.choice(("finalizers", "labels", "content", "role"))
    if change == "finalizers":
        return {**stored, "metadata": {**metadata, "finalizers": ["example.com/f"]}}
    if change == "labels":
        return {**stored, "metadata": {**metadata, "labels": {"a": "b"}}}
    if kind.endswith("Role"):
        return _random_role(random, metadata["name"], metadata.get("namespace", ""))
    if change == "role":
        return {**stored, "roleRef": {"kind": "ClusterRole", "name": "writer"}}
    return {**stored, "subjects": [_subject("User/eve")]}


def _random_question(random: Random, made: Request) -> Request:
    if not random.randrange(4):
        paths = (
            "/metrics",
            "/metrics/x",
            "/version",
            "/version/",
            "/apis/a/b",
            "/healthz/etcd",
            "/",
        )
        return replace(made, verb="get", path=random.choice(paths))
    resource, _, part = random.choice((*_RESOURCES, "pods", "pods/log")).split()[0].partition("/")
    return replace(
        made,
        verb=random.choice(_VERBS).split()[0],
        group=random.choice(("", "apps", GROUP, "other")),
        resource=resource,
        part=part,
        namespace=random.choice(("", "web", "other")),
        name=random.choice(("", "a", "c")),
    )

"""Exercises of kubectl and client-go, which Go builds from the published modules."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tests.clients.exercises import (
    COLLECTION,
    LISTS,
    OBJECTS,
    PATCHES,
    WATCHES,
    Target,
    exercise,
    gadget,
)

SECONDS = 45
"""Seconds that a process may take, below those of a test."""


def command(target: Target, *argv: str) -> tuple[list[str], dict[str, str]]:
    assert target.go_binary is not None
    environment = os.environ | {
        "KUBECONFIG": str(target.kubeconfig),
        # kubectl caches discovery in the home directory by host, and the servers' ports differ.
        "HOME": str(target.kubeconfig.parent),
    }
    return [str(target.go_binary), *argv], environment


def run(target: Target, *argv: str, text: str = "") -> str:
    """Run a process to its end, and return its output."""
    line, environment = command(target, *argv)
    done = subprocess.run(
        line,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


# -- kubectl -------------------------------------------------------------------------------------


def kubectl(target: Target, arguments: str, *more: str, body: dict[str, Any] | None = None) -> str:
    text = "" if body is None else json.dumps(body)
    return run(target, "kubectl", "-n", target.namespace, *arguments.split(), *more, text=text)


def create(target: Target, *names: str) -> None:
    for name in names:
        kubectl(target, "create --validate=false -f -", body=gadget(name))


@exercise("kubectl", OBJECTS)
def kubectl_objects(target: Target) -> None:
    create(target, "a")
    found = json.loads(kubectl(target, "get gadget a -o json"))
    found["spec"]["size"] = 2
    assert kubectl(target, "replace --validate=false -f -", body=found).endswith(" replaced\n")
    assert kubectl(target, "get gadgets -o jsonpath={.items[*].spec.size}") == "2"
    assert kubectl(target, "delete gadget a").startswith('gadget.example.com "a" deleted')
    assert kubectl(target, "get gadgets --ignore-not-found") == ""


@exercise("kubectl", LISTS)
def kubectl_lists(target: Target) -> None:
    create(target, "a", "b", "c")
    rows = kubectl(target, "get gd -l app=shop --chunk-size=2").splitlines()
    assert [row.split()[0] for row in rows] == ["NAME", "a", "b", "c"]
    selected = kubectl(target, "get gadgets --field-selector metadata.name=b -o name")
    assert selected == "gadget.example.com/b\n"


@exercise("kubectl", PATCHES)
def kubectl_patches(target: Target) -> None:
    create(target, "a")
    kubectl(target, "patch gadget a --type=merge -p", '{"spec":{"size":2}}')
    kubectl(target, "label gadget a tier=web")
    kubectl(target, "annotate gadget a note=x")
    status = '{"status":{"phase":"good"},"spec":{"size":9}}'
    kubectl(target, "patch gadget a --type=merge --subresource=status -p", status)
    kubectl(
        target, "apply --server-side --force-conflicts --validate=false -f -", body=gadget("a", 3)
    )
    found = json.loads(kubectl(target, "get gadget a -o json"))
    assert (found["spec"], found["status"]) == ({"size": 3}, {"phase": "good"})
    assert found["metadata"]["labels"] == {"app": "shop", "tier": "web"}
    kubectl(target, "apply --validate=false -f -", body=gadget("b"))
    applied = kubectl(target, "apply --validate=false -f -", body=gadget("b", 2))
    assert applied == "gadget.example.com/b configured\n"


@exercise("kubectl", WATCHES)
def kubectl_watches(target: Target) -> None:
    create(target, "a")
    with reading(target, "get", "gadgets", "--watch", "-o", "name") as lines:
        assert next(lines) == "gadget.example.com/a\n"
        create(target, "b")
        assert next(lines) == "gadget.example.com/b\n"
    status = '{"status":{"phase":"good"}}'
    kubectl(target, "patch gadget a --type=merge --subresource=status -p", status)
    kubectl(target, "wait gadget a --for=jsonpath={.status.phase}=good --timeout=20s")


@contextmanager
def reading(target: Target, *argv: str) -> Generator[Generator[str]]:
    """Run kubectl until the end of the block, and yield the lines of its output."""
    line, environment = command(target, "kubectl", "-n", target.namespace, *argv)
    process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield (text for text in process.stdout)
    finally:
        process.kill()
        process.communicate()


@exercise("kubectl", "delete --all, describe, api-resources")
def kubectl_many(target: Target) -> None:
    create(target, "a", "b")
    assert "Name:         a" in kubectl(target, "describe gadget a")
    kubectl(target, "delete gadgets --all")
    assert kubectl(target, "get gadgets --ignore-not-found") == ""
    assert "gadgets" in kubectl(target, "api-resources --api-group=example.com")


@exercise("kubectl", "get all, run, scale", built_in=True)
def kubectl_built_in(target: Target) -> None:
    kubectl(target, "run web --image=web:1")
    template: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    web: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": spec,
    }
    kubectl(target, "create --validate=false -f -", body=web)
    kubectl(target, "scale deployment web --replicas=3")
    assert kubectl(target, "get deploy web -o jsonpath={.spec.replicas}") == "3"
    every = kubectl(target, "get all -o name").split()
    assert every == ["pod/web", "deployment.apps/web"]


@exercise("kubectl", "set, rollout, expose, drain", built_in=True)
def kubectl_rollouts(target: Target) -> None:
    kubectl(target, "create --validate=false -f -", body=deployment("shop"))
    kubectl(target, "set image deployment/shop c=web:2")
    kubectl(target, "rollout restart deployment shop")
    images = kubectl(target, "get deploy shop -o", "jsonpath={..image} {.metadata.generation}")
    assert images == "web:2 3"
    # The server runs no controllers: a test writes what they would write.
    ready = {"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    written = json.dumps({"status": ready, "spec": {"replicas": 1}})
    kubectl(target, "patch deploy shop --type=merge --subresource=status -p", written)
    assert "successfully rolled out" in kubectl(target, "rollout status deploy shop --timeout=20s")
    kubectl(target, "expose deploy shop --port=80")
    assert kubectl(target, "get service shop -o jsonpath={.spec.selector.app}") == "shop"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": target.namespace}}
    kubectl(target, "create --validate=false -f -", body=node)
    kubectl(target, f"drain {target.namespace} --ignore-daemonsets")
    cordoned = kubectl(target, f"get node {target.namespace} -o jsonpath={{.spec.unschedulable}}")
    assert cordoned == "true"


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "c", "image": "web:1"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


# -- client-go -----------------------------------------------------------------------------------

_GO_EXERCISES = {
    OBJECTS: "create, get, update, delete",
    LISTS: "list in pages",
    PATCHES: "patch, apply, status",
    WATCHES: "watch",
    COLLECTION: "delete collection",
    "dynamic informer": "dynamic informer",
    "metadata informer": "metadata informer",
    "leader election": "leader election",
    "event recorder": "event recorder",
}
"""The exercises of ``clientgo.go``, by operation."""
_BUILT_IN_GO_EXERCISES = ("core event recorder", "scale, evict, token")


def _register(operation: str, name: str, *, built_in: bool) -> None:
    @exercise("client-go", operation, built_in=built_in)
    def run_it(target: Target) -> None:
        run(target, "client-go", name, target.namespace)


for _operation, _name in _GO_EXERCISES.items():
    _register(_operation, _name, built_in=False)
for _name in _BUILT_IN_GO_EXERCISES:
    _register(_name, _name, built_in=True)

"""Exercises of the clients that are written by hand: lightkube, kr8s, pykube-ng; and of kopf."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import islice
from typing import Any

import pytest

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

# -- lightkube -----------------------------------------------------------------------------------


def connect_lightkube(target: Target) -> tuple[Any, Any]:
    """Return a client, and the class of gadgets."""
    lightkube: Any = pytest.importorskip("lightkube")
    generic: Any = pytest.importorskip("lightkube.generic_resource")
    config = lightkube.KubeConfig.from_file(str(target.kubeconfig))
    client = lightkube.Client(config=config, namespace=target.namespace, field_manager="test")
    return client, generic.create_namespaced_resource("example.com", "v1", "Gadget", "gadgets")


@exercise("lightkube", OBJECTS)
def lightkube_objects(target: Target) -> None:
    client, gadgets = connect_lightkube(target)
    client.create(gadgets(**gadget("a")))
    found = client.get(gadgets, "a")
    found.spec["size"] = 2
    client.replace(found)
    assert client.get(gadgets, "a").spec == {"size": 2}
    client.delete(gadgets, "a")
    with pytest.raises(pytest.importorskip("lightkube").ApiError, match="not found"):
        client.get(gadgets, "a")


@exercise("lightkube", LISTS)
def lightkube_lists(target: Target) -> None:
    client, gadgets = connect_lightkube(target)
    for name in "abcde":
        client.create(gadgets(**gadget(name)))
    client.create(gadgets(**gadget("other", app="cart")))
    found = client.list(gadgets, labels={"app": "shop"}, chunk_size=2)
    assert [each.metadata.name for each in found] == [*"abcde"]


@exercise("lightkube", PATCHES)
def lightkube_patches(target: Target) -> None:
    client, gadgets = connect_lightkube(target)
    types: Any = pytest.importorskip("lightkube.types")
    client.create(gadgets(**gadget("a")))
    patch = {"spec": {"size": 2}}
    patched = client.patch(gadgets, "a", patch, patch_type=types.PatchType.MERGE)
    assert patched.spec == {"size": 2}
    assert client.apply(gadgets(**gadget("a", 3)), force=True).spec == {"size": 3}
    status: dict[str, Any] = {"status": {"phase": "good"}, "spec": {"size": 9}}
    patched = client.patch(gadgets.Status, "a", status, patch_type=types.PatchType.MERGE)
    assert (patched.spec, patched.status) == ({"size": 3}, {"phase": "good"})


@exercise("lightkube", WATCHES)
def lightkube_watches(target: Target) -> None:
    client, gadgets = connect_lightkube(target)
    listed = client.list(gadgets)
    assert list(listed) == []
    version = listed.resourceVersion  # known after the iteration
    client.create(gadgets(**gadget("a")))
    client.delete(gadgets, "a")
    stream = client.watch(gadgets, resource_version=version)
    assert [kind for kind, _ in islice(stream, 2)] == ["ADDED", "DELETED"]


@exercise("lightkube", COLLECTION)
def lightkube_collection(target: Target) -> None:
    client, gadgets = connect_lightkube(target)
    for name in "ab":
        client.create(gadgets(**gadget(name)))
    client.deletecollection(gadgets)
    assert list(client.list(gadgets)) == []


# -- kr8s ----------------------------------------------------------------------------------------


def connect_kr8s(target: Target) -> tuple[Any, Any]:
    """Return a client, and the class of gadgets."""
    kr8s: Any = pytest.importorskip("kr8s")
    objects: Any = pytest.importorskip("kr8s.objects")
    api = kr8s.api(kubeconfig=str(target.kubeconfig), namespace=target.namespace)
    return api, objects.new_class(kind="Gadget", version="example.com/v1", plural="gadgets")


@exercise("kr8s", OBJECTS)
def kr8s_objects(target: Target) -> None:
    api, gadgets = connect_kr8s(target)
    made = gadgets(gadget("a"), namespace=target.namespace, api=api)
    made.create()
    assert made.exists()
    made.patch({"spec": {"size": 2}})
    made.refresh()
    assert made.spec.size == 2
    made.delete()
    assert not made.exists()


@exercise("kr8s", LISTS)
def kr8s_lists(target: Target) -> None:
    api, gadgets = connect_kr8s(target)
    for name in "ab":
        gadgets(gadget(name), namespace=target.namespace, api=api).create()
    gadgets(gadget("other", app="cart"), namespace=target.namespace, api=api).create()
    found = gadgets.list(api=api, namespace=target.namespace, label_selector="app=shop")
    assert [each.name for each in found] == ["a", "b"]


@exercise("kr8s", WATCHES)
def kr8s_watches(target: Target) -> None:
    api, gadgets = connect_kr8s(target)
    made = gadgets(gadget("a"), namespace=target.namespace, api=api)
    made.create()
    made.label({"tier": "web"})
    stream = api.watch(gadgets, namespace=target.namespace)
    kind, found = next(stream)
    assert (kind, found.name, found.labels["tier"]) == ("ADDED", "a", "web")


@exercise("kr8s", "wait")
def kr8s_waits(target: Target) -> None:
    api, gadgets = connect_kr8s(target)
    made = gadgets(gadget("a"), namespace=target.namespace, api=api)
    made.create()
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    made.patch({"status": ready}, subresource="status")
    made.wait("condition=Ready", timeout=20)


# -- pykube-ng -----------------------------------------------------------------------------------


def connect_pykube(target: Target) -> tuple[Any, Any]:
    """Return a client, and the class of gadgets."""
    pykube: Any = pytest.importorskip("pykube")
    api = pykube.HTTPClient(pykube.KubeConfig.from_file(str(target.kubeconfig)))
    return api, pykube.object_factory(api, "example.com/v1", "Gadget")


@exercise("pykube-ng", OBJECTS)
def pykube_objects(target: Target) -> None:
    api, gadgets = connect_pykube(target)
    body = gadget("a")
    body["metadata"]["namespace"] = target.namespace
    made = gadgets(api, body)
    made.create()
    made.obj["spec"]["size"] = 2
    made.update()
    found = gadgets.objects(api).filter(namespace=target.namespace).get_by_name("a")
    assert found.obj["spec"] == {"size": 2}
    made.delete()
    assert not made.exists()


@exercise("pykube-ng", LISTS)
def pykube_lists(target: Target) -> None:
    api, gadgets = connect_pykube(target)
    for name, app in (("a", "shop"), ("b", "shop"), ("c", "cart")):
        body = gadget(name, app=app)
        body["metadata"]["namespace"] = target.namespace
        gadgets(api, body).create()
    found = gadgets.objects(api).filter(namespace=target.namespace, selector={"app": "shop"})
    assert [each.name for each in found] == ["a", "b"]


@exercise("pykube-ng", WATCHES)
def pykube_watches(target: Target) -> None:
    api, gadgets = connect_pykube(target)
    body = gadget("a")
    body["metadata"]["namespace"] = target.namespace
    gadgets(api, body).create()
    stream = gadgets.objects(api).filter(namespace=target.namespace).watch()
    event = next(iter(stream))
    assert (event.type, event.object.name) == ("ADDED", "a")


# -- kopf ----------------------------------------------------------------------------------------

OPERATOR = """
import kopf

@kopf.on.create("example.com", "v1", "gadgets")
@kopf.on.update("example.com", "v1", "gadgets", field="spec")
async def changed(spec, patch, **_):
    patch.status["seen"] = spec["size"]

@kopf.on.delete("example.com", "v1", "gadgets")
async def deleted(name, **_):
    print("deleted", name, flush=True)
"""


# kopf reads the built-in namespaces before it runs a handler.
@exercise("kopf", "handlers of creation, update and deletion, finalizers, status", built_in=True)
def kopf_handlers(target: Target) -> None:
    pytest.importorskip("kopf")
    api, gadgets = connect_pykube(target)
    body = gadget("a")
    body["metadata"]["namespace"] = target.namespace
    script = target.kubeconfig.parent / f"{target.namespace}.py"
    script.write_text(OPERATOR)
    # Not "-n": kopf would wait for a Namespace object, and neither server demands one.
    options = ("--standalone", "--quiet", "--all-namespaces")
    with subprocess.Popen(
        (sys.executable, "-m", "kopf", "run", *options, str(script)),
        env=os.environ | {"KUBECONFIG": str(target.kubeconfig)},
        stdout=subprocess.PIPE,
        text=True,
    ) as operator:
        try:
            made = gadgets(api, body)
            made.create()
            _wait_until_seen(made, 1)
            made.patch({"spec": {"size": 2}})
            _wait_until_seen(made, 2)
            made.delete()
            assert operator.stdout is not None
            assert operator.stdout.readline() == "deleted a\n"
        finally:
            operator.terminate()


def _wait_until_seen(made: Any, size: int) -> None:
    """Wait until the operator has written a size to the status."""
    end = time.monotonic() + 40
    while made.obj.get("status", {}).get("seen") != size:
        assert time.monotonic() < end, made.obj
        time.sleep(0.05)
        made.reload()

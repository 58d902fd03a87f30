"""Builders of objects, deltas, watch events and lists, with defaults for most values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from aioinformer._core.objects.deltas import Delta, DeltaKind, Replaced
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource, find_built_in
from aioinformer.errors import Phase, ServerError, Status, server_error

PODS = find_built_in("pods")
NODES = find_built_in("nodes")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]


def encode(value: object) -> bytes:
    """Return compact JSON without escapes, as a server writes it."""
    return msgspec.json.encode(value)


def pod_body(
    name: str,
    *,
    rv: str = "1",
    uid: str | None = None,
    namespace: str = "web",
    node: str = "node-1",
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the body of a pod."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}" if uid is None else uid,
        "resourceVersion": rv,
    }
    if labels is not None:
        metadata["labels"] = dict(labels)
    return {"metadata": metadata, "spec": {"nodeName": node}}


def pod(
    name: str,
    *,
    rv: str = "1",
    uid: str | None = None,
    namespace: str = "web",
    node: str = "node-1",
    labels: Mapping[str, str] | None = None,
) -> KubeObject:
    """Return a pod."""
    body = pod_body(name, rv=rv, uid=uid, namespace=namespace, node=node, labels=labels)
    return make_object(body)


def make_object(body: Mapping[str, Any], *, resource: Resource = PODS) -> KubeObject:
    """Return the object with this body, as a decoder makes it."""
    metadata = body["metadata"]
    return KubeObject(
        ObjectKey(metadata.get("namespace", ""), metadata["name"]),
        metadata.get("uid", ""),
        metadata.get("resourceVersion", ""),
        encode(body),
        resource,
    )


def undecodable_pod(name: str = "web-0", *, rv: str = "7") -> KubeObject:
    """Return a pod with readable metadata and a string that is not UTF-8."""
    raw = b'{"metadata":{"name":"%s"},"data":"\xff"}' % name.encode()
    return KubeObject(ObjectKey("web", name), "uid", rv, raw, PODS)


def key(name: str, namespace: str = "web") -> ObjectKey:
    """Return the key of a pod."""
    return ObjectKey(namespace, name)


def added(obj: KubeObject) -> Delta:
    """Return the delta of an ADDED event."""
    return Delta("Added", obj)


def updated(obj: KubeObject) -> Delta:
    """Return the delta of a MODIFIED event."""
    return Delta("Updated", obj)


def deleted(obj: KubeObject) -> Delta:
    """Return the delta of a DELETED event."""
    return Delta("Deleted", obj)


def delta(kind: DeltaKind, obj: KubeObject) -> Delta:
    """Return a delta of this kind."""
    return Delta(kind, obj)


def replaced(objects: Iterable[KubeObject], rv: str = "100") -> Replaced:
    """Return the queue entry of a complete list."""
    return Replaced(tuple(objects), rv)


def line(kind: EventType | str, body: object) -> bytes:
    """Return one watch event as the server writes it, without the newline."""
    return b'{"type":"%s","object":%s}' % (kind.encode(), encode(body))


def pod_list(
    items: Iterable[Mapping[str, Any]] | None, *, rv: str = "100", token: str = "", **more: object
) -> dict[str, Any]:
    """Return a list in the key order of built-in resources."""
    metadata: dict[str, Any] = {"resourceVersion": rv} | more
    if token:
        metadata["continue"] = token
    return {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": metadata,
        "items": None if items is None else list(items),
    }


def make_server_error(
    code: int, reason: str = "", *, phase: Phase = "list", **more: Any
) -> ServerError:
    """Return the exception for an error answer."""
    return server_error(Status(code, reason, **more), phase=phase)

"""Cached objects, written down by hand."""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer import KubeObject, ObjectKey, Resource

PODS = Resource("", "v1", "pods", "Pod")


def pod(
    name: str = "web-0",
    *,
    version: str = "7",
    namespace: str = "shop",
    created: str | None = "2026-01-01T00:00:00Z",
    deleted: str | None = None,
    resource: Resource = PODS,
    **body: Any,
) -> KubeObject:
    """Return a pod, or an object of ``resource``, with ``body`` beside its metadata."""
    stamps = {"creationTimestamp": created, "deletionTimestamp": deleted}
    metadata: dict[str, Any] = {"name": name, "uid": name, "resourceVersion": version}
    metadata |= {"namespace": namespace} if namespace else {}
    metadata |= {stamp: moment for stamp, moment in stamps.items() if moment}
    raw = msgspec.json.encode({"metadata": metadata, **body})
    return KubeObject(ObjectKey(namespace, name), name, version, raw, resource)

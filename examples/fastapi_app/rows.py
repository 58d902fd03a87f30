"""The row of an object on the page, as JSON.

A row has names, labels and one or two facts, and never the content of a Secret or a ConfigMap.
``fields`` compiles the paths once, and skips the rest of an object's bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from aioinformer import EventSource, KubeObject, fields

__all__ = ["row"]

Tone: TypeAlias = Literal["", "good", "wait", "bad", "done"]
"""The tone of a status, which gives its colour."""


class Look(NamedTuple):
    """The status of an object, with a tone and a detail."""

    status: str = ""
    tone: Tone = ""
    detail: str = ""


class Row(msgspec.Struct, gc=False):
    """One row of the table. The values come from users, so the page shows them as text only."""

    of: str
    uid: str
    namespace: str
    name: str
    version: str
    created: str
    labels: Mapping[str, str]
    status: str
    tone: Tone
    detail: str


_META = fields("metadata.creationTimestamp", "metadata.deletionTimestamp")
_encode = msgspec.json.Encoder().encode


def row(informer: EventSource, obj: KubeObject) -> bytes:
    """Return the row of an object."""
    del informer
    created, deleted = _META(obj)
    look = _LOOKS.get(str(obj.resource), _nothing)(obj)
    if deleted:
        look = look._replace(status="Terminating", tone="wait")
    return _encode(
        Row(
            of=obj.resource.plural,
            uid=obj.uid,
            namespace=obj.namespace,
            name=obj.name,
            version=obj.resource_version,
            created=created or "",
            labels=dict(obj.labels),
            status=look.status,
            tone=look.tone,
            detail=look.detail,
        )
    )


# -- by resource -------------------------------------------------------------------------------

_POD = fields("status.phase", "status.reason", "spec.nodeName", "status.containerStatuses")
_PHASES: Mapping[str, Tone] = {
    "Running": "good",
    "Succeeded": "done",
    "Pending": "wait",
    "Failed": "bad",
}
_NONE: Mapping[str, Any] = {}
_STARTING = frozenset({"ContainerCreating", "PodInitializing"})


def _pod(obj: KubeObject) -> Look:
    phase, reason, node, found = _POD(obj)
    containers: Sequence[Mapping[str, Any]] = found or ()
    where = node or "not placed yet"
    restarts = sum(int(each.get("restartCount", 0)) for each in containers)
    detail = f"{where} · {restarts} restart{'s' * (restarts != 1)}" if restarts else where
    for each in containers:
        state: Mapping[str, Mapping[str, Any]] = each.get("state") or _NONE
        why: str | None = state.get("waiting", _NONE).get("reason")
        if why:
            return Look(why, "wait" if why in _STARTING else "bad", detail)
    if phase == "Running" and not _is_ready(obj):
        return Look("Not ready", "wait", detail)
    status = reason or phase or "Unknown"
    return Look(status, _PHASES.get(phase or "", "bad"), detail)


_CONDITIONS = fields("status.conditions")


def _is_ready(obj: KubeObject) -> bool:
    conditions: Sequence[Mapping[str, Any]] = _CONDITIONS(obj)[0] or ()
    ready = [each.get("status") for each in conditions if each.get("type") == "Ready"]
    return not ready or ready[0] == "True"


_DEPLOYMENT = fields("spec.replicas", "status.readyReplicas")


def _deployment(obj: KubeObject) -> Look:
    wanted, ready = _DEPLOYMENT(obj)
    wanted, ready = 1 if wanted is None else wanted, ready or 0
    tone: Tone = "good" if ready >= wanted else "wait" if ready else "bad"
    return Look("Available" if ready >= wanted else "Progressing", tone, f"{ready} of {wanted} up")


_NODE = fields("spec.unschedulable", "status.nodeInfo.kubeletVersion")


def _node(obj: KubeObject) -> Look:
    cordoned, version = _NODE(obj)
    if not _is_ready(obj):
        return Look("Not ready", "bad", version or "")
    return Look("Cordoned" if cordoned else "Ready", "wait" if cordoned else "good", version or "")


_SERVICE = fields("spec.type", "spec.clusterIP", "spec.ports")


def _service(obj: KubeObject) -> Look:
    kind, address, found = _SERVICE(obj)
    ports: Sequence[Mapping[str, Any]] = found or ()
    shown = ", ".join(f"{each.get('port')}/{each.get('protocol', 'TCP')}" for each in ports)
    return Look(kind or "ClusterIP", "good", f"{address or 'no address'} · {shown}")


_JOB = fields("status.active", "status.succeeded", "status.failed")


def _job(obj: KubeObject) -> Look:
    active, succeeded, failed = (value or 0 for value in _JOB(obj))
    detail = f"{active} active, {succeeded} done, {failed} failed"
    if active:
        return Look("Running", "good", detail)
    return Look("Failed", "bad", detail) if failed else Look("Complete", "done", detail)


def _nothing(obj: KubeObject) -> Look:
    del obj
    return Look()


_LOOKS: Mapping[str, Callable[[KubeObject], Look]] = {
    "pods": _pod,
    "deployments.apps": _deployment,
    "statefulsets.apps": _deployment,
    "nodes": _node,
    "services": _service,
    "jobs.batch": _job,
}

"""The bytes that all contestants read: pods as an API server sends them, encoded beforehand.

A dataset is a folder of HTTP bodies that are chunked already, so a server only copies files into a
socket. The pods belong to a Deployment: 3.3 kB of compact JSON each, a third of it managedFields,
with a name, uid and version of their own. Each event is a change of a random pod. This module
writes JSON; the Go peer writes the protobuf form.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["Dataset", "digest", "modified"]

LIST_CHUNK = 2048
"""Bytes a chunk of a list: the size of a Go server's chunks for a response that it writes in small
pieces (tests/recordings/56)."""
SEED = 20_261_120
LISTED = 1_000_000
"""The version of the list; pods have lower ones, events higher ones."""
RELISTED = 900_000_000
"""The first version of the second list, in which every pod has changed."""
PAGE_SIZES = 100, 500
"""The pages that peers ask for: those of kr8s, and those of kube-rs."""
VARIANTS = 8
"""The number of pods that differ in more than names and numbers."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A folder of bytes to send, and the facts about its content."""

    folder: Path
    pods: int
    events: int
    listed_bytes: int
    """Bytes of JSON in the list, without the chunks' frames."""
    event_bytes: int
    """Bytes of JSON in all events."""
    digest: str
    """The result of ``digest`` for a contestant that received every event."""

    @classmethod
    def write(cls, folder: Path, pods: int, events: int, *, small: bool = False) -> Dataset:
        """Write a list of ``pods``, the same state as a stream, and ``events`` changes.

        Args:
            folder: an empty folder.
            pods: the number of pods.
            events: the number of changes.
            small: True for pods of 600 bytes.
        """
        last = {_name(number): str(number + 1) for number in range(pods)}
        with (folder / "list.json.http").open("wb") as file:
            listed = _write_list(file, _list(range(pods), LISTED, 1, small=small))
        with (folder / "initial.json.http").open("wb") as file:
            _write_stream(file, _initial(pods, LISTED, 1, small=small))
        with (folder / "watch.json.http").open("wb") as file:
            watched = _write_stream(file, _changes(pods, events, last, small=small))
        return cls(folder, pods, events, listed, watched, digest(last))

    def write_relist(self) -> None:
        """Write the state that the load server sends after ``/expire``."""
        with (self.folder / "relist.json.http").open("wb") as file:
            _write_list(file, _list(range(self.pods), RELISTED + self.pods, RELISTED))
        with (self.folder / "reinitial.json.http").open("wb") as file:
            _write_stream(file, _initial(self.pods, RELISTED + self.pods, RELISTED))

    def write_pages(self) -> None:
        """Write the list in pages too, for the peers that send ``limit``."""
        for size in PAGE_SIZES:
            folder = self.folder / "pages" / str(size)
            folder.mkdir(parents=True)
            for first in range(0, self.pods, size):
                numbers = range(first, min(first + size, self.pods))
                left = self.pods - numbers.stop
                with (folder / f"{first}.json.http").open("wb") as file:
                    _write_list(file, _list(numbers, LISTED, 1, left))


def digest(last: dict[str, str]) -> str:
    """Return a digest of the last received version of each pod, to compare processes."""
    lines = sorted(f"{name} {version}\n" for name, version in last.items())
    return sha256("".join(lines).encode()).hexdigest()


def modified(number: int, version: int) -> bytes:
    """Return the MODIFIED watch event of a pod."""
    return _event(b"MODIFIED", _pod(number, version))


# -- bodies ------------------------------------------------------------------------------------


def _list(
    pods: range, version: int, first: int, left: int = 0, *, small: bool = False
) -> Iterator[bytes]:
    """Yield a list of the pods with these numbers; ``left`` further ones follow in other pages."""
    more = b',"continue":"%d","remainingItemCount":%d' % (pods.stop, left) if left else b""
    yield b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"%b},"items":[' % (
        version,
        more,
    )
    for number in pods:
        comma = b"" if number == pods.start else b","
        yield b"%b%b" % (comma, _pod(number, first + number, small=small))
    yield b"]}\n"


def _initial(pods: int, version: int, first: int, *, small: bool = False) -> Iterator[bytes]:
    for number in range(pods):
        yield _event(b"ADDED", _pod(number, first + number, small=small))
    yield (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{'
        b'"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}},'
        b'"spec":{"containers":null},"status":{}}}\n' % version
    )


def _changes(
    pods: int, events: int, last: dict[str, str], *, small: bool = False
) -> Iterator[bytes]:
    """Yield ``events`` changes, and record the version of each in ``last``."""
    chance = random.Random(SEED)
    for version in range(LISTED + 1, LISTED + 1 + events):
        number = chance.randrange(pods)
        last[_name(number)] = str(version)
        yield _event(b"MODIFIED", _pod(number, version, small=small))


def _event(kind: bytes, pod: bytes) -> bytes:
    # Objects of a watch contain kind and apiVersion; items of a list don't.
    return b'{"type":"%b","object":{"kind":"Pod","apiVersion":"v1",%b}\n' % (kind, pod[1:])


def _write_list(file: BinaryIO, parts: Iterable[bytes]) -> int:
    size, buffer = 0, b""
    for part in parts:
        size += len(part)
        buffer += part
        while len(buffer) >= LIST_CHUNK:
            file.write(b"800\r\n%b\r\n" % buffer[:LIST_CHUNK])
            buffer = buffer[LIST_CHUNK:]
    file.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(buffer), buffer))
    return size


def _write_stream(file: BinaryIO, lines: Iterable[bytes]) -> int:
    """Write one event a chunk, as a server that flushes after each event."""
    size = 0
    for line in lines:
        size += len(line)
        file.write(b"%x\r\n%b\r\n" % (len(line), line))
    return size


# -- one pod -----------------------------------------------------------------------------------


def _name(number: int) -> str:
    return f"checkout-7d9f8c6b5d-{number:06d}"


def _pod(number: int, version: int, *, small: bool = False) -> bytes:
    return (_SMALL if small else _TEMPLATES)[number % VARIANTS] % {
        b"name": _name(number).encode(),
        b"team": b"team-%d" % (number % 20),
        b"uid": b"0b1d2c3e-5f60-4a7b-8c9d-%012d" % number,
        b"version": b"%d" % version,
        b"node": b"node-%d" % (number % 100),
        b"ip": b"10.%d.%d.%d" % (number >> 16, number >> 8 & 255, number & 255),
        b"restarts": b"%d" % (version % 7),
    }


def _small(variant: int) -> bytes:
    """Return the JSON of an object of 600 bytes with placeholders: a few fields of a pod."""
    whole = _metadata(variant)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels")
    pod = {
        "metadata": {name: whole[name] for name in kept},
        "spec": {"nodeName": "%(node)b", "priority": 0},
        "status": {
            "phase": "Running", "podIP": "%(ip)b", "podIPs": [{"ip": "%(ip)b"}],
            "hostIP": "192.168.0.1", "startTime": _TIME, "qosClass": "Burstable",
            "containerID": "containerd://" + "fedcba9876543210" * 4,
        },
    }  # fmt: skip
    return json.dumps(pod, separators=(",", ":")).encode()


_TIME = "2026-11-20T08:44:44Z"


def _template(variant: int) -> bytes:
    """Return the JSON of a pod with placeholders."""
    pod = {"metadata": _metadata(variant), "spec": _spec(variant), "status": _status(variant)}
    text = json.dumps(pod, separators=(",", ":")).encode()
    return text.replace(
        b'"%(restarts)b"', b"%(restarts)b"
    )  # the only number among the placeholders


def _metadata(variant: int) -> dict[str, Any]:
    return {
        "name": "%(name)b",
        "generateName": "checkout-7d9f8c6b5d-",
        "namespace": "%(team)b",
        "uid": "%(uid)b",
        "resourceVersion": "%(version)b",
        "creationTimestamp": _TIME,
        "labels": {"app": "checkout", "pod-template-hash": "7d9f8c6b5d", "tier": f"t{variant}"},
        "annotations": {"example.com/settings": '{"colour":"blue","limits":[1,2,3]}'},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "checkout-7d9f8c6b5d",
                "uid": "5a6b7c8d-1111-4222-8333-444455556666", "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [
            _managed("kube-controller-manager", {"f:metadata": _owned("name", "labels", "app"),
                "f:spec": _owned("containers", "restartPolicy", "schedulerName",
                "securityContext", "enableServiceLinks")}),
            _managed("kubelet", {"f:status": _owned("conditions", "containerStatuses", "hostIP",
                "phase", "podIP", "podIPs", "startTime", "type", "lastTransitionTime",
                "status")}) | {"subresource": "status"},
        ],
    }  # fmt: skip


def _managed(manager: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "manager": manager, "operation": "Update", "apiVersion": "v1", "time": _TIME,
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    }  # fmt: skip


def _owned(*names: str) -> dict[str, Any]:
    return {f"f:{name}": {".": {}, "f:value": {}} for name in names}


def _spec(variant: int) -> dict[str, Any]:
    mounts = [
        {"name": "kube-api-access", "readOnly": True,
         "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    ]  # fmt: skip
    return {
        "volumes": [{"name": "kube-api-access", "projected": {"sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt",
                           "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ], "defaultMode": 420}}],
        "containers": [{
            "name": "web", "image": f"registry.test/shop/checkout:1.{variant}",
            "env": [{"name": "DATABASE", "value": "postgres://db"}],
            "resources": {"limits": {"cpu": "1", "memory": "512Mi"},
                          "requests": {"cpu": "100m", "memory": "256Mi"}},
            "volumeMounts": mounts, "imagePullPolicy": "IfNotPresent",
        }],
        "restartPolicy": "Always", "serviceAccountName": "default", "nodeName": "%(node)b",
        "securityContext": {}, "schedulerName": "default-scheduler",
        "priority": 0, "enableServiceLinks": True,
    }  # fmt: skip


def _status(variant: int) -> dict[str, Any]:
    conditions = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [{"type": name, "status": "True", "lastTransitionTime": _TIME}
                       for name in conditions],
        "hostIP": "192.168.0.1", "podIP": "%(ip)b", "podIPs": [{"ip": "%(ip)b"}],
        "startTime": _TIME,
        "containerStatuses": [{
            "name": "web", "state": {"running": {"startedAt": _TIME}}, "lastState": {},
            "ready": True, "restartCount": "%(restarts)b",
            "image": f"registry.test/shop/checkout:1.{variant}",
            "imageID": "registry.test/shop/checkout@sha256:" + "0123456789abcdef" * 4,
            "containerID": "containerd://" + "fedcba9876543210" * 4, "started": True,
        }],
        "qosClass": "Burstable",
    }  # fmt: skip


_TEMPLATES = [_template(variant) for variant in range(VARIANTS)]
_SMALL = [_small(variant) for variant in range(VARIANTS)]

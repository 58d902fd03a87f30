"""Recorded requests and answers, without the values that differ in every cluster."""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec

from aioinformer import Resource
from aioinformer.testing import Cluster
from tests.client.recordings import FOLDER, read_recording

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")

_NONDETERMINISTIC = {
    rb'"resourceVersion":"[0-9]+"': b'"resourceVersion":"N"',
    rb'"uid":"[-0-9a-f]{36}"': b'"uid":"U"',
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z": b"T",
    rb"current: [0-9]+": b"current: N",
    rb"resource version: [0-9]+ \([0-9]+\)": b"resource version: N (N)",
}


def recorded_target(name: str) -> str:
    """Return the path and query of a recorded request."""
    line = (FOLDER / f"{name}.request.http").read_text().partition("\n")[0]
    return line.split(" ")[1]


def normalize(body: bytes) -> bytes:
    """Replace the values that differ in every cluster: versions, uids, times."""
    body = re.sub(rb'"continue":"([^"]+)"', _decode_token, body)
    for pattern, replacement in _NONDETERMINISTIC.items():
        body = re.sub(pattern, replacement, body)
    return body


def _decode_token(found: re.Match[bytes]) -> bytes:
    token = found[1]
    opened = base64.urlsafe_b64decode(token + b"=" * (-len(token) % 4))
    return b'"continue":%s' % re.sub(rb'"rv":[0-9]+', b'"rv":N', opened)


def recorded_lines(name: str) -> list[bytes]:
    """Return the lines of a recorded watch, normalized."""
    return [normalize(line) for line in read_recording(name).body.splitlines(keepends=True)]


def recorded_objects(*names: str) -> list[dict[str, Any]]:
    """Return the items of recorded lists."""
    pages = [msgspec.json.decode(read_recording(name).body) for name in names]
    return [item for page in pages for item in page["items"]]


def as_submitted(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object as its client sent it, without the metadata that the server set."""
    set_by_server = ("uid", "resourceVersion", "creationTimestamp", "generation")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in set_by_server}
    return obj | {"metadata": metadata}


def cluster_with(*names: str) -> Cluster:
    """Return a cluster with the pods of recorded lists."""
    cluster = Cluster()
    for pod in recorded_objects(*names):
        cluster.create("pods", as_submitted(pod))
    return cluster

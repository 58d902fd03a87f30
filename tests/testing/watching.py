"""Writing to a cluster and reading its watches, in few words."""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer.testing import Cluster
from aioinformer.testing.cluster.watches import Watch


def read(lines: list[bytes]) -> list[dict[str, Any]]:
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    return [msgspec.json.decode(line) for line in lines]


def told(watch: Watch, now: float = 0.0) -> list[tuple[str, str]]:
    """Type and name of everything that can be taken now."""
    events = read(taken(watch, now))
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def taken(watch: Watch, now: float = 0.0) -> list[bytes]:
    lines: list[bytes] = []
    while batch := watch.take(now):
        lines += batch
    return lines


def create(cluster: Cluster, name: str, **labels: str) -> None:
    cluster.create("pods", {"metadata": {"name": name, "labels": labels}})


def label(cluster: Cluster, name: str, **labels: str) -> None:
    cluster.merge_patch("pods", name, {"metadata": {"labels": labels}})


def newest(cluster: Cluster) -> str:
    return str(cluster.resource_version)

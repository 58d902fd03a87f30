"""Short forms of writes to a cluster, and of reads of its watches."""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer.testing import Cluster
from aioinformer.testing.cluster.watches import Watch

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}


def decode_events(lines: list[bytes]) -> list[dict[str, Any]]:
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    return [msgspec.json.decode(line) for line in lines]


def take_events(watch: Watch, now: float = 0.0) -> list[tuple[str, str]]:
    """Return the type and name of each event that can be taken now."""
    events = decode_events(take_lines(watch, now))
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def take_lines(watch: Watch, now: float = 0.0) -> list[bytes]:
    lines: list[bytes] = []
    while batch := watch.take(now):
        lines += batch
    return lines


def create(cluster: Cluster, name: str, **labels: str) -> None:
    cluster.create("pods", {"metadata": {"name": name, "labels": labels}})


def set_labels(cluster: Cluster, name: str, **labels: str) -> None:
    cluster.merge_patch("pods", name, {"metadata": {"labels": labels}})


def newest_version(cluster: Cluster) -> str:
    return str(cluster.resource_version)

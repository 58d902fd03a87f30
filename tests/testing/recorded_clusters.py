"""Clusters in the states of the recorded exchanges, rebuilt version by version.

The recorder wrote pods and widgets, and sent its requests between the writes. Each function here
returns the cluster of one moment. Every object has the resourceVersion that it had at that moment,
so that answers can be compared in full, with versions and tokens.
"""

from __future__ import annotations

import datetime as dt
from itertools import count
from typing import Any

import msgspec

from aioinformer.testing import Cluster, Features
from tests.testing.recorded_exchanges import WIDGETS, as_submitted
from tests.testing.replay_server import advance_to, recorded_body, recorded_events, replay_event

CREATION_TIME = dt.datetime(2026, 11, 20, 8, 44, 44, tzinfo=dt.UTC)
"""The creationTimestamp of the recorder's first pods."""


def recorded_items(name: str) -> list[dict[str, Any]]:
    """Return the objects of a recorded list."""
    found: list[dict[str, Any]] = msgspec.json.decode(recorded_body(name))["items"]
    return found


def create_objects(cluster: Cluster, objects: list[dict[str, Any]], resource: str = "pods") -> None:
    """Create objects, each at its own version."""
    for obj in sorted(objects, key=lambda obj: int(obj["metadata"]["resourceVersion"])):
        advance_to(cluster, int(obj["metadata"]["resourceVersion"]) - 1)
        cluster.create(resource, as_submitted(obj))


def recorded_changes(first: int, last: int) -> list[dict[str, Any]]:
    """Return the events of pods from one version to another."""
    events = recorded_events("38-watch-too-old-rv")
    return [
        event
        for event in events
        if first <= int(event["object"]["metadata"]["resourceVersion"]) <= last
    ]


def pods_cluster(version: int = 227, **options: Any) -> Cluster:
    """Return eight pods in ``default`` and one in ``team-a``, changed up to ``version``."""
    cluster = Cluster(**options)
    create_objects(cluster, recorded_items("18-list-all-namespaces"))
    for event in recorded_changes(228, version):
        replay_event(cluster, event)
    advance_to(cluster, version)
    return cluster


def pods_after_five_seconds() -> Cluster:
    """Return the pods at the time five seconds after their creation."""
    now = [CREATION_TIME]
    cluster = pods_cluster(clock=lambda: now[0])
    now[0] += dt.timedelta(seconds=5)
    return cluster


def many_pods_cluster(version: int = 406) -> Cluster:
    """Return the 128 pods of the large lists."""
    cluster = Cluster()
    create_objects(cluster, recorded_items("55-list-gzip"))
    advance_to(cluster, version)
    return cluster


def compacted_cluster() -> Cluster:
    """Return the pods of the large lists, without the history before 423."""
    cluster = many_pods_cluster(423)
    cluster.compact()
    return cluster


def one_pod_in_a_shard() -> Cluster:
    """Return the pods on a server with shards, the one of ``team-a`` in the upper half.

    Its uid decides the half. Uids follow from the seed, so this function tries seeds.
    """
    upper = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
    for seed in count():
        cluster = pods_cluster(429, features=Features(sharding=True), seed=seed)
        if b"web-100" in cluster.list("pods", namespace="team-a", shard=upper):
            return cluster
    raise AssertionError("every uid is in the lower half")


def widgets_cluster(version: int = 275) -> Cluster:
    """Return three widgets, with the changes up to ``version``."""
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    create_objects(cluster, recorded_items("50-cr-list"), "widgets")
    for event in recorded_events("51-cr-watch-list-streaming")[4:]:
        if event["type"] != "BOOKMARK" and _event_version(event) <= version:
            replay_event(cluster, event, "widgets")
    advance_to(cluster, version)
    return cluster


def _event_version(event: dict[str, Any]) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


def handmade_widgets_cluster() -> Cluster:
    """Return three widgets that were made by hand. The recorded list has two of them."""
    cluster = cluster_without_watch_lists()
    two = recorded_items("44-list-pretty-for-browser-agent")
    third = msgspec.json.decode(msgspec.json.encode(two[1]))
    third["metadata"] |= {"name": "w3", "resourceVersion": "7"}
    create_objects(cluster, [*two, third], "widgets")
    return cluster


def cluster_without_watch_lists() -> Cluster:
    """Return an empty cluster with widgets, whose storage can't serve a WatchList."""
    cluster = Cluster(features=Features(watch_list=False))
    cluster.add_resource(WIDGETS)
    return cluster


def empty_cluster_with_widgets() -> Cluster:
    """Return an empty cluster with the resources of the recorder's server."""
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    return cluster

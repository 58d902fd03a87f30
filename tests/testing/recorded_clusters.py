"""The states in which the recorded exchanges were recorded, rebuilt version by version.

The recorder wrote pods and widgets and asked between its writes. A recipe is the cluster as it was
at one moment; every object in it has the resourceVersion that it had then, so that answers can be
compared with versions and tokens and all.
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
"""When the recorder wrote its first pods (their creationTimestamp)."""


def recorded_items(name: str) -> list[dict[str, Any]]:
    """The objects of a recorded list."""
    found: list[dict[str, Any]] = msgspec.json.decode(recorded_body(name))["items"]
    return found


def create_objects(cluster: Cluster, objects: list[dict[str, Any]], resource: str = "pods") -> None:
    """Create objects, each at its own version."""
    for obj in sorted(objects, key=lambda obj: int(obj["metadata"]["resourceVersion"])):
        advance_to(cluster, int(obj["metadata"]["resourceVersion"]) - 1)
        cluster.create(resource, as_submitted(obj))


def recorded_changes(first: int, last: int) -> list[dict[str, Any]]:
    """What happened to pods from one version to another; recording 38 saw all of it."""
    events = recorded_events("38-watch-too-old-rv")
    return [
        event
        for event in events
        if first <= int(event["object"]["metadata"]["resourceVersion"]) <= last
    ]


def pods_cluster(version: int = 227, **options: Any) -> Cluster:
    """Eight pods in ``default`` and one in ``team-a``, and what happened until ``version``."""
    cluster = Cluster(**options)
    create_objects(cluster, recorded_items("18-list-all-namespaces"))
    for event in recorded_changes(228, version):
        replay_event(cluster, event)
    advance_to(cluster, version)
    return cluster


def pods_after_five_seconds() -> Cluster:
    """The pods five seconds after they were written."""
    now = [CREATION_TIME]
    cluster = pods_cluster(clock=lambda: now[0])
    now[0] += dt.timedelta(seconds=5)
    return cluster


def many_pods_cluster(version: int = 406) -> Cluster:
    """The 128 pods of the large lists."""
    cluster = Cluster()
    create_objects(cluster, recorded_items("55-list-gzip"))
    advance_to(cluster, version)
    return cluster


def compacted_cluster() -> Cluster:
    """The same, long after: nothing before 423 is remembered."""
    cluster = many_pods_cluster(423)
    cluster.compact()
    return cluster


def one_pod_in_a_shard() -> Cluster:
    """The pod of ``team-a``, with a uid in the upper half, on a server that serves shards."""
    upper = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
    for seed in count():
        cluster = pods_cluster(429, features=Features(sharding=True), seed=seed)
        if b"web-100" in cluster.list("pods", namespace="team-a", shard=upper):
            return cluster
    raise AssertionError("every uid is in the lower half")


def widgets_cluster(version: int = 275) -> Cluster:
    """Three widgets, and what happened to them until ``version``."""
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
    """Three widgets that someone made by hand; the list shows two of them."""
    cluster = cluster_without_watch_lists()
    two = recorded_items("44-list-pretty-for-browser-agent")
    third = msgspec.json.decode(msgspec.json.encode(two[1]))
    third["metadata"] |= {"name": "w3", "resourceVersion": "7"}
    create_objects(cluster, [*two, third], "widgets")
    return cluster


def cluster_without_watch_lists() -> Cluster:
    """Widgets in a storage that can't serve a WatchList."""
    cluster = Cluster(features=Features(watch_list=False))
    cluster.add_resource(WIDGETS)
    return cluster


def empty_cluster_with_widgets() -> Cluster:
    """No objects; the resources are those that the recorder's server had."""
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    return cluster

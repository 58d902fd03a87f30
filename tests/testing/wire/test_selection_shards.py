"""Tests of shard selectors: their meaning, and the errors for malformed ones."""

from __future__ import annotations

import msgspec
import pytest

from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import ServerFailure
from aioinformer.testing import Cluster, Features
from aioinformer.testing.wire.encoding import Encoding, StoredObject
from aioinformer.testing.wire.selection import ShardSelector

LOWER = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
UPPER = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"


def names(cluster: Cluster, shard: str) -> list[str]:
    items = msgspec.json.decode(cluster.list("pods", shard=shard))["items"]
    return [item["metadata"]["name"] for item in items]


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(features=Features(sharding=True))
    for number in range(40):
        cluster.create("pods", {"metadata": {"name": f"web-{number:02}"}})
    return cluster


def test_two_half_shards_together_contain_all_objects(cluster: Cluster) -> None:
    lower, upper = names(cluster, LOWER), names(cluster, UPPER)
    assert lower
    assert upper
    assert sorted(lower + upper) == names(cluster, f"{LOWER} || {UPPER}") == names(cluster, "")


def test_a_watch_shows_its_shard_alone(cluster: Cluster) -> None:
    watch = cluster.watch("pods", now=0, resource_version="1", shard=LOWER)
    shown = [msgspec.json.decode(line)["object"]["metadata"]["name"] for line in watch.take(0)]
    assert shown == names(cluster, LOWER)


def test_a_page_of_a_shard_has_no_remaining_count(cluster: Cluster) -> None:
    metadata = msgspec.json.decode(cluster.list("pods", shard=LOWER, limit=1))["metadata"]
    assert list(metadata) == ["resourceVersion", "continue", "shardInfo"]


def test_a_namespace_is_wholly_in_one_shard(cluster: Cluster) -> None:
    halves = [text.replace("uid", "namespace") for text in (LOWER, UPPER)]
    assert sorted(len(names(cluster, half)) for half in halves) == [0, 40]


def test_the_hash_is_fnv_1a() -> None:
    """Recording 65: the pod with this uid is in the upper half."""
    metadata = {"name": "w", "namespace": "d", "uid": "504fd249-6493-40dd-809d-8b6dab52e155"}
    stored = StoredObject(Encoding(find_built_in("pods")), {"metadata": metadata}, 1)
    assert not ShardSelector.parse(LOWER).matches(stored)
    assert ShardSelector.parse(UPPER).matches(stored)


@pytest.mark.parametrize("text", [LOWER, UPPER, f"{LOWER} || {UPPER}"])
def test_the_text_of_a_selector_is_its_source(text: str) -> None:
    assert str(ShardSelector.parse(text.replace(" || ", "||"))) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LOWER.replace("uid", "name"), "unsupported field path"),
        (LOWER.replace("0x8", "8"), "must have '0x' prefix"),
        (LOWER.replace("0x8", "0x"), "16-digit hex value"),
        (UPPER.replace("0x10", "0x20"), "16-digit hex value"),
        (LOWER.replace("0x8", "0x0"), "must be less than end"),
        (f"{LOWER} && {UPPER}", "expected shardRange"),
        ("nonsense", "expected shardRange"),
        (
            f"{LOWER} || {UPPER.replace('uid', 'namespace')}",
            'must use the same field, got "object.metadata.uid" and "object.metadata.namespace"',
        ),
    ],
)
def test_a_selector_that_does_not_parse_is_a_failure_of_the_server(
    cluster: Cluster, text: str, reason: str
) -> None:
    """Recording 66."""
    with pytest.raises(ServerFailure, match="invalid shard selector") as caught:
        cluster.list("pods", shard=text)
    assert reason in caught.value.status.message

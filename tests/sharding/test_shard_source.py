"""The source and the check of one shard, of a group, and of all objects."""

from __future__ import annotations

from collections import deque

import pytest

from aioinformer import Client, Shard
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer.errors import UsageError
from aioinformer.sharding.feature import is_whole, read_shard
from aioinformer.sharding.state.shard_filter import ShardFilter
from tests.core.builders import NODES, PODS
from tests.runtime.scripted_source import ScriptedListerWatcher
from tests.sharding.memory_assignment import MemoryAssignment


def test_the_only_shard_of_a_resource_needs_no_filter() -> None:
    assert is_whole(Shard(0, 1))
    for other in (Shard(0, 2), MemoryAssignment(count=1)):
        assert not is_whole(other)


def test_a_fixed_shard_is_filtered_from_the_start_and_a_group_has_no_shard_yet() -> None:
    queue = DeltaQueue()
    unchanged, fixed = read_shard(Shard(1, 2), PODS, queue)
    _, group = read_shard(MemoryAssignment(by="namespace"), PODS, queue)

    assert unchanged is queue
    assert fixed.ranges == Shard(1, 2).ranges
    assert (group.ranges.by, bool(group.ranges)) == ("namespace", False)


@pytest.mark.parametrize(
    ("shard", "example"),
    [
        (Shard(1, 2, by="namespace"), r"Shard\(1, 2\) that splits by uid"),
        (MemoryAssignment(by="namespace"), "a group that splits by uid"),
    ],
)
def test_objects_without_a_namespace_are_not_divided_by_it(
    shard: Shard | MemoryAssignment, example: str
) -> None:
    with pytest.raises(UsageError, match=rf"^nodes are in no namespace.*pass {example}$"):
        read_shard(shard, NODES, DeltaQueue())


def test_a_source_that_takes_list_options_is_asked_for_the_shard_alone() -> None:
    shard = ShardFilter(Shard(1, 2).ranges)
    client = Client("http://127.0.0.1:1")
    source = client.lister_watcher(PODS, namespace=None, labels="", fields="")

    reflector = Reflector(source, DeltaQueue(), filter=shard)

    assert reflector.unfiltered_source is source
    assert shard.requested.selector in repr(reflector.source)
    assert Reflector(source, DeltaQueue()).source is source


def test_a_source_without_list_options_is_read_as_it_is() -> None:
    source = ScriptedListerWatcher(deque())

    assert Reflector(source, DeltaQueue(), filter=ShardFilter(Shard(1, 2).ranges)).source is source

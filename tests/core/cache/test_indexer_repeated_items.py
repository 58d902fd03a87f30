"""A list that names an object several times: the last item counts, in linear time."""

from __future__ import annotations

import gc
import sys
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from tests.core.builders import pod, replaced

_pods = st.lists(
    st.builds(
        pod, st.sampled_from("abcd"), rv=st.integers(1, 3).map(str), uid=st.sampled_from("uv")
    ),
    max_size=8,
)


def relist(indexer: Indexer, objects: list[KubeObject], rv: str) -> list[Event]:
    replacement = indexer.replace(replaced(objects, rv))
    while not replacement.step(64):
        pass
    events = [*replacement.commit()]
    while not replacement.step(64):
        pass
    return events


def last_items(objects: list[KubeObject]) -> list[KubeObject]:
    """Return the objects without those that a later object of the same key replaces."""
    last = {obj.key: number for number, obj in enumerate(objects)}
    return [obj for number, obj in enumerate(objects) if last[obj.key] == number]


def key_of(event: Event) -> ObjectKey:
    return event.obj.key


@pytest.mark.client_go(94)
@given(_pods, _pods)
def test_only_the_last_item_of_a_key_counts(
    before: list[KubeObject], after: list[KubeObject]
) -> None:
    repeated, single = Indexer(), Indexer()
    for version, objects in (("100", before), ("200", after)):
        events = relist(repeated, objects, version)
        expected = relist(single, last_items(objects), version)
        # Vanished objects come in the order in which the cache holds them.
        assert sorted(events, key=key_of) == sorted(expected, key=key_of)
        assert repeated.state.objects == single.state.objects


def test_a_list_that_names_each_object_twice_takes_linear_time_in_short_steps() -> None:
    objects = [pod(f"web-{number}", rv=rv) for rv in ("5", "6") for number in range(10_000)]
    replacement = Indexer().replace(replaced(objects, "100"))
    # Objects of earlier tests would make a garbage collection in a step as long as they are many.
    gc.collect()
    gc.freeze()
    steps, done = [time.thread_time()], False
    while not done:
        done = replacement.step(64)
        steps.append(time.thread_time())
    events = replacement.commit()

    assert len(events) == 10_000
    assert steps[-1] - steps[0] < 2  # 27 s, if each repetition is looked up among all changes
    assert max(after - before for before, after in pairwise(steps)) < 0.01


def test_the_changes_of_repeated_items_are_freed_in_steps() -> None:
    objects = [pod(f"web-{number}", rv=rv) for rv in ("5", "6") for number in range(10_000)]
    replacement = Indexer().replace(replaced(objects, "100"))
    blocks, done = [sys.getallocatedblocks()], False
    while not done:
        done = replacement.step(64)
        blocks.append(sys.getallocatedblocks())

    # All 10,000 discarded changes at once would be a long step for a larger list.
    assert max(before - after for before, after in pairwise(blocks)) < 1_000

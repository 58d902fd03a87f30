"""The detection of cached models that a program changes in place."""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import dataclass

import pytest

from aioinformer import Event, SharedInformer, SharedInformerFactory
from aioinformer.testing import CacheMutated, Cluster, ClusterSource, MutationDetector
from tests.runtime.scripted_source import wait_until


@dataclass
class Metadata:
    name: str
    labels: dict[str, str]


@dataclass
class Pod:
    metadata: Metadata


@dataclass(frozen=True)
class FrozenMetadata:
    name: str


@dataclass(frozen=True)
class FrozenPod:
    metadata: FrozenMetadata


def cluster_with_pods() -> Cluster:
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.create("pods", {"metadata": {"name": name, "labels": {"app": "shop"}}})
    return cluster


async def test_a_handler_that_changes_a_cached_model_is_detected() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods())) as informers:
        pods, changed = informers.informer("pods", model=Pod), list[str]()
        detector = MutationDetector(pods).__enter__()

        @pods.on_add
        def change(obj: Pod, *, initial: bool) -> None:
            if obj.metadata.name == "b":
                obj.metadata.labels["seen"] = str(initial)
                changed.append("b")

        await informers.wait_synced(timeout=30)
        await wait_until(lambda: changed == ["b"])
        with pytest.raises(CacheMutated, match=r"pods.* in place: default/b; copy an") as caught:
            detector.__exit__(None, None, None)
    assert [key.name for key in caught.value.keys] == ["b"]
    assert "shop" not in str(caught.value), "objects may be secret"


@dataclass
class SlowPod:
    """A model whose copy takes longer than the slice of time that the handlers share."""

    metadata: Metadata

    def __deepcopy__(self, memo: dict[int, object]) -> SlowPod:
        """Hold the loop for a moment."""
        due = time.monotonic() + 0.01
        while time.monotonic() < due:
            pass
        return SlowPod(deepcopy(self.metadata, memo))


async def test_changes_are_detected_although_copies_take_long() -> None:
    cluster, changed = cluster_with_pods(), list[str]()
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", model=SlowPod)
        detector = MutationDetector(pods).__enter__()

        @pods.on_add
        def change(obj: SlowPod, *, initial: bool) -> None:
            obj.metadata.labels["seen"] = str(initial)
            changed.append(obj.metadata.name)

        await informers.wait_synced(timeout=30)
        for name in "cdef":
            cluster.create("pods", {"metadata": {"name": name, "labels": {"app": "shop"}}})
        await wait_until(lambda: sorted(changed) == [*"abcdef"])
        with pytest.raises(CacheMutated) as caught:
            detector.__exit__(None, None, None)
    assert sorted(key.name for key in caught.value.keys) == [*"abcdef"]


@pytest.mark.parametrize("model", [Pod, FrozenPod])
async def test_a_program_that_only_reads_passes(model: type[Pod] | type[FrozenPod]) -> None:
    cluster, names = cluster_with_pods(), list[str]()
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", model=model)
        with MutationDetector(pods) as detector:

            def note(event: Event[Pod | FrozenPod]) -> None:
                names.append(event.obj.metadata.name)

            pods.add_handler(note)
            await informers.wait_synced(timeout=30)
            await wait_until(lambda: sorted(names) == ["a", "b"])
            cluster.delete("pods", "a")
            await wait_until(lambda: len(pods.lister) == 1)
        assert repr(detector).endswith(" objects=2>")
        assert len(pods.registrations) == 1, "the detector has left"


async def test_read_only_objects_are_not_copied() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods())) as informers:
        pods = informers.informer("pods")
        with MutationDetector(pods) as detector:
            await pods.registrations[0].wait_synced(timeout=30)
        assert repr(detector) == "<MutationDetector of pods objects=0>"


async def test_an_error_of_the_block_is_raised_itself() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods())) as informers:
        pods, mine = informers.informer("pods", model=Pod), LookupError("mine")
        with pytest.raises(LookupError, match="mine"):
            await _change_and_raise(pods, mine)


async def _change_and_raise(pods: SharedInformer[Pod], error: LookupError) -> None:
    with MutationDetector(pods):
        await pods.registrations[0].wait_synced(timeout=30)
        pods.lister["default/a"].metadata.name = "changed"
        raise error

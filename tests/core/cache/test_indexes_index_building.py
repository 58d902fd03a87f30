"""An index that is built over a cache in use."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import Delta, Event, Indexer, IndexFunction, KubeObject
from aioinformer._core.cache.indexer import StagedReplacement
from aioinformer._core.cache.indexes import IndexBuild
from aioinformer.errors import IndexFailed, UsageError
from tests.core.builders import deleted, pod, replaced, updated


def by_node(obj: KubeObject) -> str:
    node: str = obj["spec"]["nodeName"]
    if node == "raise":
        raise ValueError("no such node")
    return node


def holding(*objects: KubeObject) -> Indexer:
    indexer = Indexer()
    relist(indexer, objects)
    return indexer


def relist(indexer: Indexer, objects: Sequence[KubeObject], rv: str = "10") -> StagedReplacement:
    """Stage and install a state, without freeing the old one."""
    replacement = indexer.replace(replaced(objects, rv))
    finish(replacement)
    replacement.commit()
    return replacement


def finish(work: IndexBuild | StagedReplacement) -> None:
    while not work.step(1):
        pass


def building(indexer: Indexer, function: IndexFunction = by_node) -> IndexBuild:
    made = indexer.build_index("node", function)
    assert made is not None
    return made


def nodes(indexer: Indexer) -> dict[str, list[str]]:
    """Return the index's content, sorted, after checking that its objects are the cached ones."""
    state = indexer.state
    filed = state.indexes["node"].buckets
    for bucket in filed.values():
        assert bucket
        assert all(state.objects[key] is obj for key, obj in bucket.items())
    return {node: sorted(obj.name for obj in bucket.values()) for node, bucket in filed.items()}


def expected(indexer: Indexer) -> dict[str, list[str]]:
    """Return the content of a new index over the cached objects."""
    held = sorted(indexer.state.objects.values(), key=lambda obj: obj.name)
    return {node: [o.name for o in held if by_node(o) == node] for node in map(by_node, held)}


PODS = [pod(name, node=f"n{number % 2}") for number, name in enumerate("abcdef")]


# -- growing -----------------------------------------------------------------------------------


def test_the_index_becomes_visible_when_it_is_complete() -> None:
    indexer = holding(*PODS)
    work = building(indexer)
    steps = 0
    while not work.step(2):
        assert "node" not in indexer.state.indexes
        steps += 1
    assert steps == 3
    assert "node" not in indexer.state.indexes
    work.commit()

    assert nodes(indexer) == {"n0": ["a", "c", "e"], "n1": ["b", "d", "f"]}
    assert indexer.state.building == ()


@pytest.mark.parametrize("staged", [0, 1, 3])
def test_an_index_covers_a_state_that_is_being_staged(staged: int) -> None:
    """Otherwise the installed state would lack the index."""
    indexer = holding(*PODS)
    replacement = indexer.replace(replaced([pod("x", rv="30", node="n9"), *PODS[1:4]], "30"))
    if staged:
        replacement.step(staged)
    work = building(indexer)
    finish(work)
    work.commit()
    assert nodes(indexer) == expected(indexer)
    finish(replacement)
    replacement.commit()

    assert nodes(indexer) == expected(indexer)
    assert len(indexer.state.objects) == 4


def test_the_references_to_a_replaced_state_are_released_in_steps() -> None:
    indexer = holding(*PODS)
    work = building(indexer)
    work.step(3)
    relist(indexer, [], "30")
    steps = 0
    while not work.step(1):
        steps += 1
    assert steps >= len(PODS) - 4, "all but those that were filed, and the one that showed the end"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "delete", "step", "stage", "swap"]),
            st.sampled_from("abcd"),
            st.sampled_from(["n1", "n2"]),
        ),
        max_size=25,
    )
)
def test_a_built_index_equals_a_new_one_after_any_changes(
    steps: list[tuple[str, str, str]],
) -> None:
    indexer = holding(*PODS)
    work, staging = building(indexer), None
    for number, (what, name, node) in enumerate(steps, start=100):
        obj = pod(name, rv=str(number), node=node)
        if what == "step":
            work.step(1)
        elif what == "stage":
            staging = staging or indexer.replace(replaced([obj, *PODS[3:]], str(number)))
            staging.step(2)
        elif what == "swap" and staging is not None:
            finish(staging)
            staging.commit()
            staging = None
        elif staging is None:  # nothing else is applied while a state is staged
            kind = deleted(obj) if what == "delete" else updated(obj)
            indexer.apply(kind, [])
    finish(work)
    work.commit()
    if staging is not None:
        finish(staging)
        staging.commit()

    assert nodes(indexer) == expected(indexer)
    assert all(state.building == () for state in indexer.states)


# -- failing -----------------------------------------------------------------------------------


def test_a_failed_build_names_the_object_and_changes_nothing() -> None:
    indexer = holding(*PODS, pod("z", node="raise"))
    indexer_before = dict(indexer.state.objects)
    work = building(indexer)

    with pytest.raises(IndexFailed) as caught:
        finish(work)
    work.abandon()

    assert str(caught.value) == (
        "the index 'node' was not added: its function raised at pods web/z: "
        "ValueError: no such node"
    )
    assert (caught.value.index, caught.value.key) == ("node", "web/z")
    assert isinstance(caught.value.__cause__, ValueError)
    assert indexer.state.indexes == {}
    assert indexer.state.building == ()
    assert indexer.state.objects == indexer_before
    assert indexer.rejected == {}


def test_a_change_that_the_new_index_function_raises_at_is_still_cached() -> None:
    indexer = holding(*PODS)
    work, events = building(indexer), list[Event]()
    work.step(1)
    assert indexer.apply(Delta("Updated", pod("c", rv="20", node="raise")), events) is None
    assert len(events) == 1
    with pytest.raises(IndexFailed, match="web/c"):
        work.step(1)
    work.abandon()

    assert indexer.rejected == {}
    assert indexer.apply(Delta("Updated", pod("c", rv="21", node="raise")), events) is None


def test_an_abandoned_build_leaves_no_trace() -> None:
    indexer = holding(*PODS)
    work = building(indexer)
    work.step(2)
    work.abandon()

    assert indexer.state.building == ()
    assert indexer.state.indexes == {}
    work.abandon()


# -- names -------------------------------------------------------------------------------------


def test_an_index_that_exists_already_is_not_built_again() -> None:
    indexer = holding(*PODS)
    work = building(indexer)
    finish(work)
    work.commit()

    assert indexer.build_index("node", by_node) is None
    with pytest.raises(UsageError, match="'node' already, with another function"):
        indexer.build_index("node", lambda obj: obj.name)


def test_the_first_completed_build_of_a_name_wins() -> None:
    indexer = holding(*PODS)
    first, second = building(indexer), building(indexer, lambda obj: obj.name)
    finish(first)
    finish(second)
    first.commit()
    with pytest.raises(UsageError, match="'node' by now"):
        second.commit()
    second.abandon()

    assert nodes(indexer) == expected(indexer)
    assert indexer.state.building == ()


def test_the_second_of_two_equal_builds_adds_nothing() -> None:
    indexer = holding(*PODS)
    first, second = building(indexer), building(indexer)
    finish(first)
    finish(second)
    first.commit()
    index = indexer.state.indexes["node"]
    second.commit()

    assert indexer.state.indexes["node"] is index
    assert indexer.state.building == ()


def test_the_repr_shows_the_number_of_filed_objects() -> None:
    work = building(holding(*PODS))
    work.step(2)
    assert repr(work) == "<IndexBuild node filed=2>"

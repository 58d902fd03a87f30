"""Finalizers: the next step, and patches that touch one entry only."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.controllers.state.finalizer_steps import (
    adding_patch,
    check_finalizer_name,
    next_step,
    removing_patch,
)
from aioinformer.errors import Invalid
from aioinformer.testing.writes.patches import JsonPatch
from tests.core.builders import make_object

OURS = "example.com/cleanup"
OTHERS = [f"example.com/{name}" for name in ("first", "second", "third")]


def body(
    finalizers: list[str] | None, *, uid: str = "u", deleted: bool = False, rv: str = "1"
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "a", "uid": uid, "resourceVersion": rv}
    if finalizers is not None:
        metadata["finalizers"] = finalizers
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata}


def patched(server: dict[str, Any], patch: Any) -> list[str]:
    """Return the finalizers of the server's object after a patch."""
    return list(JsonPatch(patch).apply(server)["metadata"].get("finalizers") or ())


@pytest.mark.parametrize(
    ("deleted", "present", "step"),
    [
        (False, False, "add"),
        (False, True, "reconcile"),
        (True, True, "cleanup"),
        (True, False, "ignore"),
    ],
)
def test_the_step_depends_on_the_deletion_and_on_our_entry(
    deleted: bool, present: bool, step: str
) -> None:
    finalizers = [OTHERS[0], OURS] if present else [OTHERS[0]]
    assert next_step(make_object(body(finalizers, deleted=deleted)), OURS) == step


lists_of_others = st.one_of(st.none(), st.lists(st.sampled_from(OTHERS), unique=True))


@given(cached=lists_of_others, served=lists_of_others)
def test_adding_keeps_the_entries_of_others_or_fails(
    cached: list[str] | None, served: list[str] | None
) -> None:
    """The cache may be behind the server in any way."""
    patch = adding_patch(make_object(body(cached)), OURS)
    try:
        assert patched(body(served), patch) == [*(served or ()), OURS]
    except Invalid:
        assert served != cached  # then the newest object is read


@given(
    cached=st.lists(st.sampled_from([*OTHERS, OURS]), unique=True),
    served=st.lists(st.sampled_from([*OTHERS, OURS]), unique=True),
)
def test_removing_takes_our_entry_only_or_fails(cached: list[str], served: list[str]) -> None:
    patch = removing_patch(make_object(body(cached, deleted=True)), OURS)
    if patch is None:
        assert OURS not in cached
        return
    try:
        assert patched(body(served, deleted=True), patch) == [
            each for each in served if each != OURS
        ]
    except Invalid:
        assert served != cached


@pytest.mark.parametrize("present", [[], [OURS]])
def test_an_object_that_was_created_again_is_not_changed(present: list[str]) -> None:
    old = make_object(body(present))
    patch = adding_patch(old, OURS) or removing_patch(old, OURS)
    with pytest.raises(Invalid):
        patched(body(present, uid="another"), patch)


def test_nothing_is_added_twice_nor_to_an_object_that_is_being_deleted() -> None:
    assert adding_patch(make_object(body([OURS])), OURS) is None
    assert adding_patch(make_object(body([OTHERS[0]], deleted=True)), OURS) is None


@pytest.mark.parametrize("name", ["example.com/cleanup", "a.b-c.io/Clean_up.v1"])
def test_a_qualified_name_is_a_finalizer(name: str) -> None:
    check_finalizer_name(name)


@pytest.mark.parametrize(
    "name", ["cleanup", "example.com/", "/cleanup", "Example.com/x", "a/b/c", "a.io/x y", ""]
)
def test_another_name_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=r"such as 'example\.com/cleanup'"):
        check_finalizer_name(name)


def test_a_finalizer_that_is_no_text_is_rejected() -> None:
    with pytest.raises(TypeError, match="not 5"):
        check_finalizer_name(5)

"""The memory of applied children: an apply is needless if nothing has changed since the last."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aioinformer import KubeObject, ObjectKey, Resource
from aioinformer._core.objects.readonly import freeze
from aioinformer.controllers.state.applied_children import HASH_SIZE, AppliedChildren, hash_body

BARS = Resource("samples.example.com", "v1", "bars", "Bar")
OWNER = ObjectKey("default", "a")


def stored(version: int, uid: str = "u", name: str = "child") -> KubeObject:
    return KubeObject(ObjectKey("default", name), uid, str(version), b"{}", BARS)


def digest_of(body: Any) -> bytes:
    found = hash_body(body, field_manager="op", force=True)
    assert found is not None
    return found


def test_a_hash_depends_on_the_content_and_not_on_the_order_of_fields() -> None:
    assert digest_of({"a": 1, "b": [1, 2]}) == digest_of({"b": [1, 2], "a": 1})
    assert digest_of({"a": [1, 2]}) != digest_of({"a": [2, 1]})
    assert digest_of({"a": 1}) != hash_body({"a": 1}, field_manager="other", force=True)
    assert digest_of({"a": 1}) != hash_body({"a": 1}, field_manager="op", force=False)
    assert digest_of({"a": freeze({"b": [1]})}) == digest_of({"a": {"b": [1]}})
    assert hash_body({"a": object()}, field_manager="op", force=True) is None


def test_a_hash_is_short_since_it_is_kept_for_each_child() -> None:
    assert len(digest_of({"a": "b" * 1000})) == HASH_SIZE


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("apply", "write", "discard", "rewind")),
        st.integers(0, 1),
        st.integers(0, 2),
    )
)


@given(STEPS)
def test_an_apply_is_skipped_only_if_the_object_is_unchanged_since_the_same_apply(
    steps: list[Step],
) -> None:
    """The model: each child has a version and the body of the last apply since its last write."""
    memory, rewinds = AppliedChildren(), 0
    versions, left = [1, 1], [-1, -1]
    for action, child, body in steps:
        digest, cached = digest_of({"size": body}), stored(versions[child], name=f"c{child}")
        if action == "write":
            versions[child] += 1
            left[child] = -1
        elif action == "discard":
            memory.discard(OWNER, BARS, cached.key)
            left[child] = -1
        elif action == "rewind":
            rewinds, versions, left = rewinds + 1, [1, 1], [-1, -1]
        elif memory.is_current(OWNER, BARS, cached, digest, rewinds):
            assert left[child] == body
        else:
            assert left[child] != body
            versions[child] += 1
            written = stored(versions[child], name=f"c{child}")
            memory.record(OWNER, BARS, written, digest, rewinds)
            left[child] = body


def test_the_children_of_an_absent_owner_are_forgotten() -> None:
    memory = AppliedChildren()
    memory.record(OWNER, BARS, stored(5), b"x", 0)
    assert memory.is_current(OWNER, BARS, stored(5), b"x", 0)
    assert not memory.is_current(OWNER, BARS, stored(5, uid="other"), b"x", 0)
    assert len(memory) == 1
    memory.forget(OWNER)
    assert not memory.is_current(OWNER, BARS, stored(5), b"x", 0)
    assert len(memory) == 0


def test_only_the_child_that_was_written_otherwise_is_discarded() -> None:
    memory = AppliedChildren()
    for name in ("c", "d"):
        memory.record(OWNER, BARS, stored(5, name=name), b"x", 1)
    memory.discard(OWNER, BARS, stored(5, name="c").key)
    memory.discard(stored(5).key, BARS, stored(5, name="d").key)

    assert not memory.is_current(OWNER, BARS, stored(5, name="c"), b"x", 1)
    assert memory.is_current(OWNER, BARS, stored(5, name="d"), b"x", 1)
    assert not memory.is_current(OWNER, BARS, stored(5, name="d"), b"x", 2)
    assert not memory.is_current(OWNER, BARS, stored(6, name="d"), b"x", 1)
    assert repr(memory) == "<AppliedChildren of 1 owners>"
    memory.forget(stored(5).key)
    assert len(memory) == 1

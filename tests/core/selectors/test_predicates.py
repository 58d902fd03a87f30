"""Predicates: over one state of an object, over two, and joined."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer import (
    ChangePredicate,
    CombinedPredicate,
    KubeObject,
    ObjectPredicate,
    Predicate,
    annotations_changed,
    changed,
    generation_changed,
    labelled,
    labels_changed,
    where,
)
from aioinformer.errors import InvalidPath, InvalidSelector
from tests.core.builders import make_object


def pod(**more: Any) -> KubeObject:
    """Create a pod with these labels, annotations, generation, or spec."""
    metadata = {"name": "a", "namespace": "web", "uid": "u"}
    metadata |= {key: value for key, value in more.items() if key != "spec"}
    return make_object({"metadata": metadata, "spec": more.get("spec", {})})


# -- over objects ------------------------------------------------------------------------------


def test_labelled_is_a_label_selector() -> None:
    assert labelled("app in (shop, till),!canary")(pod(labels={"app": "shop"}))
    assert not labelled({"app": "shop"})(pod())


def test_the_predicate_where_passes_for_any_of_its_values() -> None:
    on_one = where("spec.nodeName", "node-1", "node-2")

    assert on_one(pod(spec={"nodeName": "node-2"}))
    assert not on_one(pod(spec={"nodeName": "node-3"}))
    assert where("spec.nodeName", None)(pod())
    assert where("spec.replicas", 3)(pod(spec={"replicas": 3}))
    assert where("spec.replicas", 3)(pod(spec={"replicas": 3.0}))


@pytest.mark.parametrize("decoded", [False, True])
@pytest.mark.parametrize(("value", "other"), [(1, True), (True, 1), (0, False), (False, 0)])
def test_the_predicate_where_distinguishes_numbers_and_booleans(
    value: object, other: object, decoded: bool
) -> None:
    obj, of_other_type = pod(spec={"a": value}), pod(spec={"a": other})
    if decoded:
        assert (obj["spec"]["a"], of_other_type["spec"]["a"]) == (value, other)

    assert where("spec.a", value)(obj)
    assert where("spec.a", "x", other, value)(obj)
    assert not where("spec.a", value)(of_other_type)


def test_an_invalid_predicate_is_an_error_at_once() -> None:
    with pytest.raises(InvalidSelector):
        labelled("app in")
    with pytest.raises(InvalidPath):
        where("spec.", 1)
    with pytest.raises(ValueError, match=r"~where\('spec\.a', None\)$"):
        where("spec.a")
    with pytest.raises(ValueError, match=r"^changed\(\) has no field; .* changed\('spec'\)$"):
        changed()


# -- over changes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make_predicate", "old", "new", "passes"),
    [
        (lambda: generation_changed, {"generation": 1}, {"generation": 2}, True),
        (
            lambda: generation_changed,
            {"generation": 2, "labels": {"a": "b"}},
            {"generation": 2},
            False,
        ),
        (lambda: generation_changed, {}, {"labels": {"a": "b"}}, True),
        (lambda: labels_changed, {"labels": {"a": "b"}}, {"labels": {"a": "c"}}, True),
        (lambda: labels_changed, {"labels": None}, {"labels": {}}, False),
        (lambda: labels_changed, {"labels": {"a": "b"}}, {"annotations": {"a": "b"}}, True),
        (lambda: labels_changed, {}, {"annotations": {"a": "b"}}, False),
        (lambda: annotations_changed, {}, {"annotations": {"a": "b"}}, True),
        (lambda: annotations_changed, {}, {"annotations": {}, "labels": {"a": "b"}}, False),
        (lambda: changed("spec.a", "spec.b"), {"spec": {"a": 1}}, {"spec": {"a": 1, "b": 2}}, True),
        (
            lambda: changed("spec.a", "spec.b"),
            {"spec": {"a": 1}},
            {"spec": {"a": 1, "c": 2}},
            False,
        ),
        (lambda: changed("spec"), {"spec": {"a": [1]}}, {"spec": {"a": [1, 2]}}, True),
        (lambda: changed("spec"), {"spec": {"a": [1]}}, {"spec": {"a": [True]}}, True),
        (lambda: changed("spec.a"), {"spec": {"a": 0}}, {"spec": {"a": False}}, True),
        (lambda: changed("spec"), {"spec": {"a": 1, "b": 2}}, {"spec": {"b": 2, "a": 1.0}}, False),
        (lambda: changed("spec"), {"spec": {"a": {"b": [1]}}}, {"spec": {"a": {"b": [1]}}}, False),
    ],
)
def test_a_change_predicate_compares_only_its_fields(
    make_predicate: Callable[[], ChangePredicate],
    old: dict[str, Any],
    new: dict[str, Any],
    passes: bool,
) -> None:
    predicate = make_predicate()

    assert predicate(pod(**old), pod(**new)) is passes
    assert (~predicate)(pod(**old), pod(**new)) is not passes


# -- joined ------------------------------------------------------------------------------------

bits = st.integers(0, 3)
ODD = ObjectPredicate(lambda obj: int(obj.uid) & 1, "odd")
HIGH = ObjectPredicate(lambda obj: int(obj.uid) & 2, "high")
GROWS = ChangePredicate(lambda old, new: old.uid < new.uid, "grows")
TURNS = ChangePredicate(lambda old, new: ODD(old) != ODD(new), "turns")


def numbered(number: int) -> KubeObject:
    return make_object({"metadata": {"name": "a", "uid": str(number)}})


@settings(max_examples=20)
@given(bits, bits)
def test_predicates_of_objects_are_boolean_algebra(first: int, second: int) -> None:
    odd, high = bool(first & 1), bool(first & 2)
    obj = numbered(first)

    assert (ODD & HIGH)(obj) is (odd and high)
    assert (ODD | HIGH)(obj) is (odd or high)
    assert (~ODD)(obj) is (not odd)
    assert (~(ODD | ~HIGH) & ODD)(obj) is False

    states = (obj, numbered(second))
    assert (GROWS & TURNS)(*states) is (first < second and odd != bool(second & 1))
    assert (GROWS | TURNS)(*states) is (first < second or odd != bool(second & 1))
    assert (~GROWS)(*states) is (first >= second)


def test_a_predicate_of_objects_and_one_of_changes_are_joined_by_and() -> None:
    joined = ODD & labels_changed & HIGH & ~generation_changed
    backwards = ~generation_changed & (labels_changed & (ODD & HIGH))
    both = (ODD & labels_changed) & (HIGH & ~generation_changed)
    ahead = ODD & (HIGH & (labels_changed & ~generation_changed))

    for each in (joined, backwards, both, ahead):
        assert isinstance(each, CombinedPredicate)
        assert [each.objects(numbered(number)) for number in range(4)] == [
            False,
            False,
            False,
            True,
        ]
        assert each.changes(pod(), pod(generation=1)) is False
        assert each.changes(pod(generation=1), pod(generation=2, labels={"a": "b"})) is False
        assert each.changes(pod(generation=1), pod(generation=1)) is False
        assert each.changes(pod(generation=1), pod(generation=1, labels={"a": "b"})) is True


def everything(obj: KubeObject) -> bool:
    return True


@pytest.mark.parametrize(
    "other",
    [labels_changed, everything, ODD & labels_changed],
    ids=["a change", "a function", "a combination"],
)
def test_object_and_change_predicates_can_only_be_joined_by_and(other: object) -> None:
    with pytest.raises(TypeError, match=r"^odd \| .* can be joined by & only"):
        ODD | cast("ObjectPredicate", other)  # pyright: ignore[reportUnusedExpression] - it raises
    with pytest.raises(TypeError, match=r"^labels_changed \| odd: .* can be joined by & only"):
        labels_changed | cast("ChangePredicate", ODD)  # pyright: ignore[reportUnusedExpression]


def test_a_combination_of_both_can_not_be_negated_or_joined_by_or() -> None:
    both: Any = where("spec.nodeName", "here") & changed("spec")

    with pytest.raises(
        TypeError, match=r"~\(.*\): a predicate of objects and a predicate of changes"
    ):
        _ = ~both
    with pytest.raises(TypeError, match="joined by & only"):
        _ = both | both


@pytest.mark.parametrize("predicate", [ODD, labels_changed, ODD & labels_changed], ids=repr)
def test_a_predicate_can_not_be_joined_with_a_plain_function(predicate: Predicate) -> None:
    with pytest.raises(TypeError):
        predicate & cast("ObjectPredicate", everything)  # pyright: ignore[reportUnusedExpression]


def on_a_node(obj: KubeObject) -> bool:
    return bool(obj["spec"].get("nodeName"))


@pytest.mark.parametrize(
    ("make_predicate", "text"),
    [
        (lambda: labelled("tier = a , app"), "labelled('app,tier=a')"),
        (lambda: where("spec.x", 1, None), "where('spec.x', 1, None)"),
        (lambda: changed("a", "b"), "changed('a', 'b')"),
        (lambda: ObjectPredicate(on_a_node), "on_a_node"),
        (lambda: ODD & HIGH & ODD, "odd & high & odd"),
        (lambda: ODD & (HIGH & ODD), "odd & high & odd"),
        (lambda: ODD | (HIGH | ODD), "odd | high | odd"),
        (lambda: (ODD | HIGH) & ~ODD, "(odd | high) & ~odd"),
        (lambda: ODD & HIGH | ODD & ODD, "(odd & high) | (odd & odd)"),
        (lambda: ~(ODD & HIGH) | ODD, "~(odd & high) | odd"),
        (lambda: ~(ODD | HIGH), "~(odd | high)"),
        (lambda: ~~ODD, "~~odd"),
        (lambda: where("a", " | ") & ODD, "where('a', ' | ') & odd"),
        (lambda: ODD & labels_changed, "odd & labels_changed"),
        (lambda: ~labels_changed, "~labels_changed"),
        (lambda: ~(GROWS & TURNS), "~(grows & turns)"),
        (lambda: GROWS & (GROWS & TURNS), "grows & grows & turns"),
        (lambda: GROWS & TURNS | GROWS | TURNS, "(grows & turns) | grows | turns"),
        (lambda: GROWS | (GROWS | TURNS), "grows | grows | turns"),
        (lambda: (GROWS | TURNS) & ODD, "odd & (grows | turns)"),
        (lambda: GROWS & TURNS & ODD, "odd & grows & turns"),
    ],
)
def test_the_repr_is_the_expression_that_makes_the_predicate(
    make_predicate: Callable[[], object], text: str
) -> None:
    assert repr(make_predicate()) == text


def test_the_repr_shows_the_name_of_a_local_function_and_the_type_of_another_callable() -> None:
    def local(obj: KubeObject) -> bool:
        return True

    assert repr(ObjectPredicate(local)).endswith("_of_another_callable.local")
    assert repr(ObjectPredicate(partial(everything))) == "partial"
    assert repr(ChangePredicate(lambda old, new: old != new)).endswith("_callable.<lambda>")

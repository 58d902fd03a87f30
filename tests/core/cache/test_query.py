"""Queries, and the index that answers them with the fewest reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import FieldSelector, IndexFunction, KubeObject, LabelSelector, field, label_index
from aioinformer._core.cache.query import Query
from aioinformer._core.cache.store import CacheState, Index
from aioinformer.errors import InvalidPath, InvalidSelector
from tests.core.builders import make_object, pod, pod_body


def state(objects: list[KubeObject], **functions: IndexFunction) -> CacheState:
    """Return a cache of these objects with these indexes."""
    made = CacheState(indexes={name: Index(name, function) for name, function in functions.items()})
    for obj in objects:
        made.put(obj, None)
    return made


def found(query: Query, held: CacheState) -> list[str]:
    return sorted(obj.name for obj in query.search(held).all())


A = pod("a", labels={"app": "shop", "tier": "web"}, node="n1")
B = pod("b", labels={"app": "blog", "tier": "web"}, node="n1")
C = pod("c", labels={"app": "cart"}, node="n2")
D = pod("d", namespace="other", node="")
ALL = [A, B, C, D]


# -- what is selected --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (Query.of(), "abcd"),
        (Query.of(namespace="web"), "abc"),
        (Query.of(namespace="other"), "d"),
        (Query.of(namespace=""), ""),
        (Query.of(labels="app=shop"), "a"),
        (Query.of(labels="app in (shop,blog)"), "ab"),
        (Query.of(labels="app in (shop,blog),tier=web,!zone"), "ab"),
        (Query.of(labels="app"), "abc"),
        (Query.of(labels="!app"), "d"),
        (Query.of(labels="app!=shop"), "bcd"),
        (Query.of(labels="app=nothing"), ""),
        (Query.of(labels={"tier": "web"}, namespace="other"), ""),
        (Query.of(fields="spec.nodeName=n1"), "ab"),
        (Query.of(fields="spec.nodeName!=n1"), "cd"),
        (Query.of(fields="spec.nodeName="), "d"),
        (Query.of(fields="spec.nodeName=n1,metadata.name!=a"), "b"),
        (Query.of(fields={"metadata.name": "c"}), "c"),
        (Query.of(fields="metadata.namespace=other"), "d"),
        (Query.of(fields=FieldSelector.parse("spec.absent=x")), ""),
        (Query.of(labels=LabelSelector.parse("tier=web"), where=lambda obj: obj.name > "a"), "b"),
    ],
    ids=lambda value: str(value.labels or value.fields) if isinstance(value, Query) else value,
)
@pytest.mark.parametrize("indexed", [False, True], ids=["scanned", "indexed"])
def test_what_is_selected_does_not_depend_on_indexes(
    query: Query, names: str, *, indexed: bool
) -> None:
    functions: dict[str, IndexFunction] = {
        "labels": label_index(),
        "app": label_index("app"),
        "node": field("spec.nodeName"),
        "namespace": field("metadata.namespace"),
    }
    assert found(query, state(ALL, **functions if indexed else {})) == list(names)


SELECTORS = st.sampled_from(["=", "!=", " in ", " notin "])
CONDITIONS = st.lists(
    st.tuples(
        st.sampled_from("xyz"), SELECTORS, st.lists(st.sampled_from("123"), min_size=1, max_size=3)
    ),
    max_size=3,
)
LABELS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("123"), max_size=3)


@given(CONDITIONS, st.lists(LABELS, max_size=6), st.lists(st.sampled_from("xyz"), unique=True))
def test_an_index_by_some_labels_never_changes_an_answer(
    conditions: list[tuple[str, str, list[str]]], labels: list[dict[str, str]], keys: list[str]
) -> None:
    text = ",".join(
        f"{key}{how}({','.join(values)})" if "in" in how else f"{key}{how}{values[0]}"
        for key, how, values in conditions
    )
    objects = [pod(f"p{number}", labels=each) for number, each in enumerate(labels)]
    query = Query.of(labels=text)

    plain = found(query, state(objects))
    assert found(query, state(objects, labels=label_index(*keys))) == plain
    selector = LabelSelector.parse(text)
    assert plain == [obj.name for obj in objects if selector.matches(obj.labels)]


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (3, "3"), ("x", "x"), (None, ""), ([1], ""), ({}, "")],
    ids=repr,
)
def test_fields_are_compared_as_a_server_prints_them(value: object, text: str) -> None:
    obj = make_object(pod_body("a") | {"spec": {"it": value}})
    for function in (field("spec.other"), field("metadata.name")):
        held = state([obj], some=function)
        assert found(Query.of(fields=f"spec.it={text}"), held) == ["a"]
        assert found(Query.of(fields=f"spec.it!={text}"), held) == []


def test_a_path_with_quoted_keys_is_a_field_too() -> None:
    held = state(ALL)
    assert found(Query.of(fields="metadata.labels['app']=shop"), held) == ["a"]


# -- how much is looked at ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "count"),
    [
        (Query.of(labels="app in (shop,cart)"), 2),
        (Query.of(labels="app=nothing"), 0),
        (Query.of(fields="spec.nodeName=n1"), 2),
        (Query.of(labels="app=cart", fields="spec.nodeName=n1"), 1),
        (Query.of(namespace="other", labels="app!=cart"), 1),
        (Query.of(labels="tier=web"), 4),
        (Query.of(labels="app"), 4),
        (Query.of(fields="spec.nodeName="), 4),
    ],
    ids=lambda value: str(value.labels or value.fields) if isinstance(value, Query) else "",
)
def test_only_what_an_index_has_filed_is_looked_at(query: Query, count: int) -> None:
    held = state(
        ALL,
        labels=label_index("app"),
        node=field("spec.nodeName"),
        namespace=field("metadata.namespace"),
    )
    assert repr(query.search(held)) == f"<Search searched=0/{count}>"


def test_what_the_index_has_answered_is_not_asked_again() -> None:
    """The labels of a body that can't be read would be an error."""
    held = state([A], labels=label_index("app"))
    held.indexes["labels"].buckets["app=shop"][A.key] = broken = make_object(pod_body("a"))
    assert Query.of(labels="app=shop").search(held).all() == [broken]
    assert Query.of(labels="app=shop,tier=web").search(held).all() == []


def test_an_object_in_two_places_is_found_once() -> None:
    """A thread may see a moving object in its old and in its new bucket."""
    held, newer = state([A], labels=label_index("app")), pod("a", rv="2", labels={"app": "cart"})
    held.indexes["labels"].buckets["app=cart"] = {newer.key: newer}

    (only,) = Query.of(labels="app in (cart,shop)").search(held).all()
    assert only in (A, newer)


def test_a_search_can_be_made_bit_by_bit_and_shows_the_state_at_its_beginning() -> None:
    held = state(ALL)
    search = Query.of(labels="app").search(held)
    held.remove(C)

    assert (search.step(1), search.done) == ([A], False)
    assert (search.step(2), search.done) == ([B, C], False)
    assert (search.step(5), search.done) == ([], True)
    assert search.all() == []
    assert repr(search) == "<Search searched=4/4>"


def test_the_rest_of_a_search_can_be_had_at_once() -> None:
    search = Query.of(labels="app").search(state(ALL))
    search.step(1)
    assert search.all() == [B, C]


# -- what can't be asked -----------------------------------------------------------------------


def test_what_does_not_parse_is_an_error_before_anything_is_looked_at() -> None:
    with pytest.raises(InvalidSelector):
        Query.of(labels="app in (")
    with pytest.raises(InvalidSelector):
        Query.of(fields="spec.nodeName")
    with pytest.raises(InvalidPath):
        Query.of(fields="spec..nodeName=x")

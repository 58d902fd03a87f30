"""Queries, and the index that answers them with the fewest reads."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import (
    FieldSelector,
    IndexFunction,
    KubeObject,
    LabelSelector,
    field,
    label_index,
    labelled,
)
from aioinformer._core.cache.protocols import ReadableState
from aioinformer._core.cache.query import Query, field_selector, label_selector
from aioinformer._core.cache.store import CacheState, Index
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.view import model_view
from aioinformer.errors import InvalidPath, InvalidSelector, UsageError
from aioinformer.namespaces.state.partitions import PartitionedIndexer
from tests.core.builders import make_object, pod, pod_body
from tests.core.models import Pod


def state(objects: list[KubeObject], **functions: IndexFunction) -> CacheState:
    """Return a cache of these objects with these indexes."""
    made = CacheState(indexes={name: Index(name, function) for name, function in functions.items()})
    for obj in objects:
        made.put(obj, None)
    return made


def is_behind_a(obj: KubeObject) -> bool:
    return obj.name > "a"


def asked(**options: Any) -> partial[Query]:
    """Return a function that makes the query."""
    return partial(Query.of, **options)


def found(query: Query, held: ReadableState) -> list[str]:
    return sorted(obj.name for obj in query.search(held).all())


A = pod("a", labels={"app": "shop", "tier": "web"}, node="n1")
B = pod("b", labels={"app": "blog", "tier": "web"}, node="n1")
C = pod("c", labels={"app": "cart"}, node="n2")
D = pod("d", namespace="other", node="")
ALL = [A, B, C, D]


# -- what is selected --------------------------------------------------------------------------


def described(arguments: dict[str, Any]) -> str:
    """Return the arguments of a query, functions by name: each worker needs the same test id."""
    return ", ".join(
        f"{name}={getattr(value, '__name__', value)}" for name, value in arguments.items()
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        (asked(), "abcd"),
        (asked(namespace="web"), "abc"),
        (asked(namespace="other"), "d"),
        (asked(namespace=""), ""),
        (asked(labels="app=shop"), "a"),
        (asked(labels="app in (shop,blog)"), "ab"),
        (asked(labels="app in (shop,blog),tier=web,!zone"), "ab"),
        (asked(labels="app"), "abc"),
        (asked(labels="!app"), "d"),
        (asked(labels="app!=shop"), "bcd"),
        (asked(labels="app=nothing"), ""),
        (asked(labels={"tier": "web"}, namespace="other"), ""),
        (asked(fields="spec.nodeName=n1"), "ab"),
        (asked(fields="spec.nodeName!=n1"), "cd"),
        (asked(fields="spec.nodeName="), "d"),
        (asked(fields="spec.nodeName=n1,metadata.name!=a"), "b"),
        (asked(fields={"metadata.name": "c"}), "c"),
        (asked(fields="metadata.namespace=other"), "d"),
        (asked(fields=FieldSelector.parse("spec.absent=x")), ""),
        (asked(labels=LabelSelector.parse("tier=web"), where=is_behind_a), "b"),
    ],
    ids=lambda value: described(value.keywords) if isinstance(value, partial) else value,
)
@pytest.mark.parametrize("indexed", [False, True], ids=["scanned", "indexed"])
def test_a_selection_does_not_depend_on_indexes(
    query: partial[Query], names: str, *, indexed: bool
) -> None:
    functions: dict[str, IndexFunction] = {
        "labels": label_index(),
        "app": label_index("app"),
        "node": field("spec.nodeName"),
        "namespace": field("metadata.namespace"),
    }
    assert found(query(), state(ALL, **functions if indexed else {})) == list(names)


SELECTORS = st.sampled_from(["=", "!=", " in ", " notin "])
CONDITIONS = st.lists(
    st.tuples(
        st.sampled_from("xyz"), SELECTORS, st.lists(st.sampled_from("123"), min_size=1, max_size=3)
    ),
    max_size=3,
)
LABELS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("123"), max_size=3)


@given(CONDITIONS, st.lists(LABELS, max_size=6), st.lists(st.sampled_from("xyz"), unique=True))
def test_an_index_by_some_labels_never_changes_a_result(
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
        (asked(labels="app in (shop,cart)"), 2),
        (asked(labels="app=nothing"), 0),
        (asked(fields="spec.nodeName=n1"), 2),
        (asked(labels="app=cart", fields="spec.nodeName=n1"), 1),
        (asked(namespace="other", labels="app!=cart"), 1),
        (asked(labels="tier=web"), 4),
        (asked(labels="app"), 4),
        (asked(fields="spec.nodeName="), 4),
    ],
    ids=lambda value: str(value.keywords) if isinstance(value, partial) else "",
)
def test_a_search_reads_only_the_objects_that_an_index_has_filed(
    query: partial[Query], count: int
) -> None:
    held = state(
        ALL,
        labels=label_index("app"),
        node=field("spec.nodeName"),
        namespace=field("metadata.namespace"),
    )
    assert repr(query().search(held)) == f"<Search searched=0/{count}>"


def test_a_condition_that_an_index_has_answered_is_not_checked_again() -> None:
    """The labels of a body that can't be read would be an error."""
    held = state([A], labels=label_index("app"))
    held.indexes["labels"].buckets["app=shop"][A.key] = broken = make_object(pod_body("a"))
    assert Query.of(labels="app=shop").search(held).all() == [broken]
    assert Query.of(labels="app=shop,tier=web").search(held).all() == []


def test_an_object_that_two_buckets_contain_is_found_once() -> None:
    """A thread may see a moving object in its old and in its new bucket."""
    held, newer = state([A], labels=label_index("app")), pod("a", rv="2", labels={"app": "cart"})
    held.indexes["labels"].buckets["app=cart"] = {newer.key: newer}

    (only,) = Query.of(labels="app in (cart,shop)").search(held).all()
    assert only in (A, newer)


def test_a_search_runs_in_steps_over_the_state_at_its_beginning() -> None:
    held = state(ALL)
    search = Query.of(labels="app").search(held)
    held.remove(C)

    assert (search.step(1), search.done) == ([A], False)
    assert (search.step(2), search.done) == ([B, C], False)
    assert (search.step(5), search.done) == ([], True)
    assert search.all() == []
    assert repr(search) == "<Search searched=4/4>"


def test_all_returns_the_rest_of_a_search() -> None:
    search = Query.of(labels="app").search(state(ALL))
    search.step(1)
    assert search.all() == [B, C]


def test_the_search_of_a_namespace_reads_the_objects_of_that_namespace() -> None:
    indexer = PartitionedIndexer()
    for obj in (A, D):
        namespace = obj.key.namespace
        indexer.add_scope(namespace)
        replacement = indexer.replace(Replaced((obj,), "1", scope=namespace))
        while not replacement.step(1):
            pass
        replacement.commit()

    assert repr(Query.of(namespace="web").search(indexer.state)) == "<Search searched=0/1>"
    assert found(Query.of(namespace="other"), indexer.state) == ["d"]


def test_the_selectors_of_equal_texts_are_parsed_once() -> None:
    assert label_selector("app=once") is label_selector("app=once")
    assert field_selector("spec.nodeName=once") is field_selector("spec.nodeName=once")


# -- what can't be asked -----------------------------------------------------------------------


def test_an_invalid_selector_is_an_error_before_the_search() -> None:
    with pytest.raises(InvalidSelector):
        Query.of(labels="app in (")
    with pytest.raises(InvalidSelector):
        Query.of(fields="spec.nodeName")
    with pytest.raises(InvalidPath):
        Query.of(fields="spec..nodeName=x")


@pytest.mark.parametrize("condition", ["x", {"app": "shop"}, 3])
def test_a_condition_that_is_no_function_is_a_type_error(condition: Any) -> None:
    message = r"where= must be a function of an object, or a predicate such as where\('status"
    with pytest.raises(TypeError, match=message):
        Query.of(where=condition)


def test_an_async_condition_is_an_error_that_names_it() -> None:
    async def is_ready(obj: KubeObject) -> bool:
        return obj.name == "a"

    with pytest.raises(TypeError, match=r"where=.*is_ready"):
        Query.of(where=is_ready)


def test_selectors_that_read_json_are_errors_where_none_is_kept() -> None:
    view = model_view(Pod)
    with pytest.raises(UsageError, match=r"^the label selector 'app=shop' reads an object's JSON"):
        Query.of(labels="app=shop", view=view)
    with pytest.raises(UsageError, match=r"^the field selector 'spec.nodeName=n1' reads an obj"):
        Query.of(fields="spec.nodeName=n1", view=view)
    with pytest.raises(UsageError, match=r"^where: .* reads an object's JSON"):
        Query.of(where=labelled("app=shop"), view=view)
    Query.of(fields="metadata.name=a", namespace="web", where=is_behind_a, view=view)


def test_the_matches_of_a_query_ignore_its_where_function() -> None:
    matches = Query.of(
        namespace="web", labels="tier=web", fields="spec.nodeName=n1", where=lambda _: False
    ).matches()

    assert [matches(each) for each in (A, B, C, D)] == [True, True, False, False]
    assert all(map(Query.of().matches(), ALL))

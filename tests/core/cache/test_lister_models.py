"""Listers, queries and filters of informers whose objects are models, or are converted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.indexes import label_index
from aioinformer._core.cache.lister import Lister
from aioinformer._core.cache.store import Indexers
from aioinformer._core.codec.shape import Shape
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, Updated
from aioinformer._core.selectors.event_filter import EventFilter, Filter
from aioinformer._core.selectors.predicates import changed, labelled, where
from aioinformer._core.selectors.projections import field
from aioinformer.errors import IndexFailed, ModelMismatch, NotCached, UsageError
from tests.core.builders import PODS, key, pod
from tests.core.models import Pod

OBJECTS = (
    pod("a", node="node-1", labels={"app": "shop"}),
    pod("b", node="node-2", labels={"app": "cart"}),
    pod("c", node="node-2", labels={"app": "shop"}, namespace="other"),
)


def node_of(seen: Pod) -> str:
    return seen.spec.nodeName


def name_of(seen: Pod) -> str:
    return seen.metadata.name


def shout(obj: KubeObject) -> str:
    """Convert an object to its name in capitals, or raise for the node ``raise``."""
    if obj["spec"]["nodeName"] == "raise":
        raise ValueError("no")
    return obj.name.upper()


def cache_of(
    shape: Shape[Any], *objects: KubeObject, indexers: Indexers[Any] | None = None
) -> Indexer:
    keep: Callable[[KubeObject], KubeObject] = shape.converter() or (lambda obj: obj)
    functions: Any = indexers
    indexer = Indexer(functions, view=shape.view())
    replacement = indexer.replace(Replaced(tuple(map(keep, objects)), "100"))
    while not replacement.step(64):
        pass
    replacement.commit()
    return indexer


def modelled(**indexers: Callable[[Pod], str]) -> Lister[Pod]:
    return Lister(cache_of(Shape.of(model=Pod), *OBJECTS, indexers=indexers), PODS)


def converted(*more: KubeObject) -> Lister[str]:
    indexers: Indexers[str] = {
        "node": field("spec.nodeName"),
        "labels": label_index("app"),
        "first": lambda text: text[0],
    }
    return Lister(cache_of(Shape.of(convert=shout), *OBJECTS, *more, indexers=indexers), PODS)


# -- models ------------------------------------------------------------------------------------


def test_every_read_gives_models() -> None:
    pods = modelled(node=node_of)
    b = pods["web/b"]

    assert isinstance(b, Pod)
    assert pods.get(key("b")) is b
    assert pods.get("web/none") is None
    assert sorted(map(name_of, pods.list())) == ["a", "b", "c"]
    assert sorted(map(name_of, pods.list(namespace="web"))) == ["a", "b"]
    assert list(map(name_of, pods.list(where=lambda seen: seen.spec.nodeName == "node-1"))) == ["a"]
    assert sorted(map(name_of, pods)) == ["a", "b", "c"]
    assert sorted(map(name_of, pods.by_index("node", "node-2"))) == ["b", "c"]
    assert sorted(map(name_of, pods.index("node", b))) == ["b", "c"]
    assert pods.count(namespace="other") == 1
    assert pods.unsynced.get("web/b") is b
    assert key("b") in pods
    with pytest.raises(NotCached):
        pods["web/none"]


@pytest.mark.parametrize(
    "choice",
    [
        {"labels": "app=shop"},
        {"fields": "spec.nodeName=node-1"},
        {"where": where("spec.nodeName", "node-1")},
        {"where": field("spec.nodeName")},
    ],
)
def test_selectors_that_need_json_are_errors_that_name_an_alternative(choice: Any) -> None:
    with pytest.raises(UsageError, match="keeps none: give a plain function of Pod"):
        modelled().list(**choice)


def test_the_cache_selects_models_by_name_and_namespace() -> None:
    assert list(map(name_of, modelled().list(fields="metadata.name=b"))) == ["b"]
    assert len(modelled().list(where=field("metadata.namespace"))) == 3


def test_the_error_of_an_index_function_for_an_uncached_value_names_no_key() -> None:
    stranger: Any = 7

    with pytest.raises(IndexFailed, match="a int"):
        modelled(node=node_of).index("node", stranger)


# -- conversions -------------------------------------------------------------------------------


def test_every_read_returns_converted_objects() -> None:
    pods = converted()

    assert pods["web/a"] == "A"
    assert sorted(pods.list(labels="app=shop")) == ["A", "C"]
    assert sorted(pods.list(fields="spec.nodeName=node-2")) == ["B", "C"]
    assert sorted(pods.list(labels="app=shop", where=lambda text: text > "B")) == ["C"]
    assert pods.list(where=labelled("app=cart")) == ["B"]
    assert pods.by_index("first", "A") == ["A"]
    assert pods.by_index("node", "node-1") == ["A"]
    assert pods.index("first", "Anything") == ["A"]


def test_the_error_of_a_conversion_is_raised_to_the_reader() -> None:
    pods: Lister[str] = Lister(cache_of(Shape.of(convert=shout), pod("bad", node="raise")), PODS)

    assert len(pods) == 1
    assert key("bad") in pods
    assert pods.list(namespace="other") == []
    for read in (lambda: pods["web/bad"], pods.list, lambda: list(pods)):
        with pytest.raises(ModelMismatch, match="pods web/bad at resourceVersion 1"):
            read()


def cancelled(obj: KubeObject) -> str:
    raise asyncio.CancelledError


def test_a_cancelled_error_in_a_conversion_does_not_cancel_the_reader() -> None:
    pods: Lister[str] = Lister(cache_of(Shape.of(convert=cancelled), pod("a")), PODS)

    with pytest.raises(ModelMismatch, match="CancelledError"):
        pods.list()


# -- filters -----------------------------------------------------------------------------------


def reported(passing: Filter[Any], shape: Shape[Any], event: Event) -> Event | None:
    failures: list[BaseException] = []
    result = EventFilter(passing, lambda _, error: failures.append(error), view=shape.view()).apply(
        event
    )
    assert not failures
    return result


def test_a_filter_receives_the_converted_object() -> None:
    a, b = pod("a"), pod("b")
    converting: Shape[str] = Shape.of(convert=shout)

    assert reported(lambda text: text == "A", converting, Added(a)) == Added(a)
    assert reported(lambda text: text == "A", converting, Added(b)) is None


def test_a_predicate_reads_the_object_itself() -> None:
    old, new = pod("a"), pod("a", rv="2", node="node-2")
    converting: Shape[str] = Shape.of(convert=shout)
    wanted = where("spec.nodeName", "node-1") & changed("spec")

    assert reported(wanted, converting, Updated(old, new)) == Deleted(old, "filtered")
    assert reported(changed("spec"), converting, Updated(old, new)) == Updated(old, new)


@pytest.mark.parametrize(
    "passing", [labelled("app=shop"), changed("spec"), labelled("a") & changed("spec")]
)
def test_predicates_that_read_json_are_errors_where_none_is_kept(passing: Filter) -> None:
    with pytest.raises(UsageError, match=r"the filter .* reads an object's JSON"):
        EventFilter(passing, lambda _obj, _error: None, view=Shape.of(model=Pod).view())

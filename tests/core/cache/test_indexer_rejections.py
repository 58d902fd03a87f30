"""Excluded and rejected objects: the last accepted version stays cached."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.codec.shape import Shape
from aioinformer._core.codec.watch_decoder import WatchDecoder
from aioinformer._core.objects.deltas import Delta, Replaced
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
)
from aioinformer._core.objects.stored import ExcludedObject, ModelObject
from aioinformer._core.selectors.projections import field
from aioinformer.errors import UsageError
from aioinformer.verification.state.verification import Comparison
from tests.core.builders import (
    PODS,
    added,
    deleted,
    encode,
    key,
    line,
    pod,
    pod_body,
    pod_list,
    updated,
)
from tests.core.models import Pod

NO = ValueError("no")
END = {"metadata": {"resourceVersion": "3", "annotations": {"k8s.io/initial-events-end": "true"}}}


def misfit(name: str, *, rv: str, uid: str | None = None) -> ExcludedObject:
    return ExcludedObject.of(pod(name, rv=rv, uid=uid), NO)


def dropped(name: str, *, rv: str) -> ExcludedObject:
    return ExcludedObject.of(pod(name, rv=rv))


def holding(*objects: KubeObject) -> Indexer:
    indexer = Indexer({"node": field("spec.nodeName")})
    relist(indexer, objects, rv="1")
    return indexer


def apply(indexer: Indexer, *deltas: Delta) -> list[Event]:
    events: list[Event] = []
    for each in deltas:
        indexer.apply(each, events)
    return events


def relist(indexer: Indexer, objects: Iterable[KubeObject], *, rv: str = "100") -> list[Event]:
    replacement = indexer.replace(Replaced(tuple(objects), rv))
    while not replacement.step(64):
        pass
    events = [*replacement.commit()]
    while not replacement.step(64):
        pass
    return events


def held(indexer: Indexer) -> dict[str, str]:
    """Return the cached versions, after checking that the index holds the same."""
    state = indexer.state
    filed = {
        obj.key for bucket in state.indexes["node"].buckets.values() for obj in bucket.values()
    }
    assert filed == set(state.objects)
    return {obj.name: obj.resource_version for obj in state.objects.values()}


# -- changes -----------------------------------------------------------------------------------


def test_a_version_that_does_not_fit_leaves_the_previous_one_cached() -> None:
    indexer = holding(pod("a", rv="1"))

    assert indexer.apply(updated(misfit("a", rv="2")), []) is NO
    assert held(indexer) == {"a": "1"}
    assert indexer.rejected == {key("a"): NO}
    assert indexer.state.resource_version == "2"


def test_an_object_that_never_fitted_is_absent_and_listed_as_rejected() -> None:
    indexer = holding()

    assert apply(indexer, added(misfit("a", rv="2"))) == []
    assert held(indexer) == {}
    assert list(indexer.rejected) == [key("a")]


def test_a_version_that_fits_again_is_an_update_of_the_last_accepted_version() -> None:
    indexer = holding(good := pod("a", rv="1"))
    events = apply(indexer, updated(misfit("a", rv="2")), updated(again := pod("a", rv="3")))

    assert events == [Updated(good, again)]
    assert not indexer.rejected


def test_the_cached_version_that_comes_again_ends_the_rejection_of_a_newer_one() -> None:
    """The server was restored, for example."""
    indexer = holding(pod("a", rv="1"))
    events = apply(indexer, updated(misfit("a", rv="2")), updated(pod("a", rv="1")))

    assert events == []
    assert not indexer.rejected


def test_an_object_that_fits_for_the_first_time_is_an_addition() -> None:
    indexer = holding()

    events = apply(indexer, added(misfit("a", rv="2")), updated(fits := pod("a", rv="3")))
    assert events == [Added(fits)]


@pytest.mark.parametrize("last", [pod("a", rv="3"), misfit("a", rv="3"), dropped("a", rv="3")])
def test_a_deletion_is_applied_for_every_form_of_its_last_state(last: KubeObject) -> None:
    indexer = holding(good := pod("a", rv="1"))
    events = apply(indexer, updated(misfit("a", rv="2")), deleted(last))

    assert events == [Deleted(good)]
    assert not held(indexer)
    assert not indexer.rejected


def test_a_deletion_whose_last_state_does_not_fit_delivers_the_cached_object() -> None:
    indexer = holding(good := pod("a", rv="1"))

    assert apply(indexer, deleted(misfit("a", rv="2"))) == [Deleted(good)]


def test_an_object_that_a_transform_drops_is_deleted() -> None:
    indexer = holding(good := pod("a", rv="1"))

    events = apply(indexer, updated(dropped("a", rv="2")))
    assert events == [Deleted(good, "dropped")]
    assert indexer.state.resource_version == "2"
    assert apply(indexer, updated(dropped("a", rv="3"))) == []
    assert apply(indexer, updated(back := pod("a", rv="4"))) == [Added(back)]


def test_a_rejected_object_that_is_dropped_is_no_longer_rejected() -> None:
    indexer = holding(good := pod("a", rv="1"))
    events = apply(indexer, updated(misfit("a", rv="2")), updated(dropped("a", rv="3")))

    assert events == [Deleted(good, "dropped")]
    assert not indexer.rejected


def test_a_rejected_object_with_another_uid_deletes_the_cached_one() -> None:
    indexer = holding(old := pod("a", rv="1"))

    assert apply(indexer, added(misfit("a", rv="2", uid="another"))) == [Deleted(old, "vanished")]
    assert list(indexer.rejected) == [key("a")]


def index_by_node(obj: KubeObject) -> str:
    """Return the node of a pod, as an index function that raises for some pods."""
    if (node := str(obj["spec"]["nodeName"])) == "raise":
        raise ValueError("no such node")
    return node


def indexed(*objects: KubeObject) -> Indexer:
    """Return a cache of these objects whose index function raises for some pods."""
    indexer = Indexer({"node": index_by_node})
    relist(indexer, objects, rv="1")
    return indexer


def test_a_re_created_object_that_an_index_function_rejects_deletes_the_cached_one() -> None:
    indexer = indexed(old := pod("a", rv="1"))

    assert apply(indexer, updated(pod("a", rv="2", uid="another", node="raise"))) == [
        Deleted(old, "vanished")
    ]
    assert held(indexer) == {}
    assert list(indexer.rejected) == [key("a")]

    events = apply(indexer, updated(fits := pod("a", rv="3", uid="another")))
    assert events == [Added(fits)]
    assert not indexer.rejected


def test_the_next_version_of_an_object_that_an_index_function_rejects_leaves_the_cached_one() -> (
    None
):
    indexer = indexed(pod("a", rv="1"))

    assert apply(indexer, updated(pod("a", rv="2", node="raise"))) == []
    assert held(indexer) == {"a": "1"}
    assert list(indexer.rejected) == [key("a")]


# -- lists -------------------------------------------------------------------------------------


def test_a_list_with_rejected_objects_keeps_their_cached_versions() -> None:
    a, b, c = pod("a", rv="1"), pod("b", rv="1"), pod("c", rv="1")
    indexer = holding(a, b, c)
    new = pod("b", rv="9")
    events = relist(indexer, [misfit("a", rv="8"), new, misfit("d", rv="9")])

    assert events == [Deleted(c, "vanished"), Updated(b, new)]
    assert held(indexer) == {"a": "1", "b": "9"}
    assert set(indexer.rejected) == {key("a"), key("d")}


def test_a_list_in_which_an_object_fits_again_ends_its_rejection() -> None:
    indexer = holding(good := pod("a", rv="1"))
    relist(indexer, [misfit("a", rv="2")])

    assert relist(indexer, [fits := pod("a", rv="3")]) == [Updated(good, fits)]
    assert not indexer.rejected


def test_a_list_without_a_rejected_object_ends_its_rejection_and_delivers_its_deletion() -> None:
    indexer = holding(good := pod("a", rv="1"))
    relist(indexer, [misfit("a", rv="2")])

    assert relist(indexer, []) == [Deleted(good, "vanished")]
    assert not indexer.rejected


def test_an_object_of_a_list_that_a_transform_drops_is_deleted_as_dropped() -> None:
    a, b = pod("a", rv="1"), pod("b", rv="1")
    indexer = holding(a, b)

    events = relist(indexer, [dropped("a", rv="2"), dropped("new", rv="3")])
    assert events == [Deleted(a, "dropped"), Deleted(b, "vanished")]


def test_a_rejected_object_of_a_list_with_another_uid_deletes_the_cached_one() -> None:
    indexer = holding(old := pod("a", rv="1"))

    assert relist(indexer, [misfit("a", rv="2", uid="another")]) == [Deleted(old, "vanished")]
    assert list(indexer.rejected) == [key("a")]


def test_a_re_created_object_of_a_list_that_an_index_function_rejects_deletes_the_cached_one() -> (
    None
):
    indexer = indexed(old := pod("a", rv="1"), same := pod("b", rv="1"))
    items = [pod("a", rv="2", uid="another", node="raise"), pod("b", rv="2", node="raise")]

    assert relist(indexer, items) == [Deleted(old, "vanished")]
    assert held(indexer) == {"b": same.resource_version}
    assert sorted(indexer.rejected) == [key("a"), key("b")]


@pytest.mark.parametrize("last", [misfit("a", rv="3"), dropped("a", rv="3"), pod("a", rv="3")])
def test_the_last_of_several_forms_of_one_object_in_a_list_counts(last: KubeObject) -> None:
    indexer = holding(pod("a", rv="1"))
    relist(indexer, [pod("a", rv="2"), misfit("a", rv="2"), dropped("a", rv="2"), last])
    expected = {"rejected": {"a": "1"}, "dropped": {}}.get(repr(last).split()[-1][:-1], {"a": "3"})

    assert held(indexer) == expected
    assert bool(indexer.rejected) == (expected == {"a": "1"})


def test_only_the_first_rejection_of_a_list_has_its_traceback() -> None:
    errors: list[Exception] = []
    for _ in range(2):
        try:
            raise ValueError
        except ValueError as error:
            errors.append(error)
    indexer = holding()
    relist(indexer, [ExcludedObject.of(pod(name), e) for name, e in zip("ab", errors, strict=True)])

    assert errors[0].__traceback__ is not None
    assert errors[1].__traceback__ is None


def test_models_of_an_equal_version_are_compared() -> None:
    keep = Shape.of(model=Pod).converter()
    assert keep is not None
    indexer = Indexer(view=Shape.of(model=Pod).view())
    relist(indexer, [keep(pod("a", rv="5")), keep(pod("b", rv="5"))], rv="5")
    events = relist(indexer, [keep(pod("a", rv="5")), keep(pod("b", rv="5", node="x"))])

    assert [(type(event), event.key) for event in events] == [(Updated, key("b"))]


STATES = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.sampled_from(["fits", "misfit", "dropped", "deleted", "list"])
    ),
    max_size=12,
)


@given(STATES)
def test_the_events_and_the_cache_agree_for_any_history_of_rejections(
    history: list[tuple[str, str]],
) -> None:
    """Changes one by one and in lists give the same cache as a model that is a dict."""
    indexer, server, reported = holding(), dict[str, KubeObject](), dict[ObjectKey, str]()
    good = dict[str, str]()
    for number, (name, what) in enumerate(history, 2):
        events: list[Event] = []
        obj, rv = pod(name, rv=str(number)), str(number)
        seen = {"misfit": misfit(name, rv=rv), "dropped": dropped(name, rv=rv)}.get(what, obj)
        if what == "list":
            events = relist(indexer, server.values(), rv=rv)
        elif what != "deleted":
            indexer.apply(updated(seen), events)
            server[name] = seen
        elif name in server:
            indexer.apply(deleted(seen), events)
            del server[name]
        if what in ("dropped", "deleted"):
            good.pop(name, None)
        elif what == "fits":
            good[name] = rv
        for event in events:
            if isinstance(event, Deleted):
                del reported[event.key]
            else:
                reported[event.key] = event.obj.resource_version
        rejected = {n for n, each in server.items() if type(each) is ExcludedObject and each.error}

        assert held(indexer) == good
        assert reported == {key(name): version for name, version in good.items()}
        assert {each.name for each in indexer.rejected} == rejected


# -- on the way there --------------------------------------------------------------------------


def test_the_queue_counts_models_as_the_bytes_of_their_json() -> None:
    keep = Shape.of(model=Pod).converter()
    assert keep is not None
    fifo, obj = DeltaFIFO(), pod("a")
    fifo.push(added(keep(obj)))

    assert fifo.size == len(obj.raw)
    fifo.pop()
    assert fifo.size == 0


def test_every_drop_moves_the_version_on() -> None:
    fifo = DeltaFIFO()
    for rv in ("2", "3"):
        fifo.push(updated(dropped("a", rv=rv)))

    assert len(fifo) == 2


@pytest.mark.client_go(31, 77, 95)
def test_a_transform_is_called_once_for_each_event_of_any_kind() -> None:
    asked: list[str] = []

    def transform(obj: KubeObject) -> KubeObject:
        asked.append(obj.resource_version)
        return obj

    initial = InitialList(lambda obj: obj)
    decoder = WatchDecoder(
        PODS, initial=initial, converter=Shape.of(transform=transform).converter()
    )
    lines = [
        line("ADDED", pod_body("a", rv="2")),
        line("BOOKMARK", END),
        line("MODIFIED", pod_body("a", rv="4")),
        line("DELETED", pod_body("a", rv="5")),
        line("BOOKMARK", {"metadata": {"resourceVersion": "6"}}),
    ]
    batch = decoder.feed(b"\n".join(lines) + b"\n")

    assert asked == ["2", "4", "5"]
    assert batch.initial_list is not None
    assert [obj.name for obj in batch.initial_list.objects()] == ["a"]
    assert len(batch.entries) == 3


def test_an_initial_list_contains_its_rejected_objects() -> None:
    initial = InitialList(lambda obj: obj)
    decoder = WatchDecoder(PODS, initial=initial, converter=Shape.of(model=Pod).converter())
    bad = pod_body("a", rv="2") | {"spec": {"nodeName": 7}}
    lines = [
        line("ADDED", bad),
        line("ADDED", pod_body("b", rv="2")),
        line("BOOKMARK", END),
    ]
    found = decoder.feed(b"\n".join(lines) + b"\n").initial_list

    assert found is not None
    assert [type(obj) for obj in found.objects()] == [ExcludedObject, ModelObject]


# -- proofs ------------------------------------------------------------------------------------


def compared(indexer: Indexer, *server: KubeObject) -> str:
    comparison = Comparison(
        indexer.state.objects.copy(), "100", rejected=frozenset(indexer.rejected), contents=True
    )
    for obj in server:
        comparison.add_server_object(obj)
    while not comparison.step(10):
        pass
    return str(comparison.close())


def test_an_object_that_a_transform_drops_is_not_missing() -> None:
    indexer = holding(a := pod("a"))

    assert compared(indexer, a, dropped("b", rv="2")).startswith("the cache agrees")
    assert "web/a (surplus)" in compared(indexer, dropped("a", rv="1"))


def test_a_rejected_object_is_left_out_of_a_comparison() -> None:
    indexer = holding(pod("a"))
    apply(indexer, updated(misfit("a", rv="2")))

    assert compared(indexer, misfit("a", rv="2")).endswith("1 rejected ones left out")


def test_models_are_compared_by_their_contents() -> None:
    keep = Shape.of(model=Pod).converter()
    assert keep is not None
    indexer = Indexer()
    relist(indexer, [keep(pod("a"))])

    assert compared(indexer, keep(pod("a"))).startswith("the cache agrees")
    assert "web/a (content)" in compared(indexer, keep(pod("a", node="other")))


# -- index functions ---------------------------------------------------------------------------


def test_index_functions_get_models() -> None:
    shape = Shape.of(model=Pod)
    keep = shape.converter()
    assert keep is not None
    indexer = Indexer({"node": lambda seen: seen.spec.nodeName}, view=shape.view())
    relist(indexer, [keep(pod("a")), keep(pod("b", node="node-2"))])
    building = indexer.build_index("name", lambda seen: seen.metadata.name)
    assert building is not None
    while not building.step(10):
        pass
    building.commit()
    apply(indexer, updated(keep(pod("a", rv="2", node="node-2"))), added(keep(pod("c", rv="3"))))
    indexes = indexer.state.indexes

    assert {v: [o.name for o in b.values()] for v, b in indexes["node"].buckets.items()} == {
        "node-2": ["b", "a"],
        "node-1": ["c"],
    }
    assert set(indexes["name"].buckets) == {"a", "b", "c"}


def test_an_index_function_that_reads_json_is_an_error_where_none_is_kept() -> None:
    view = Shape.of(model=Pod).view()

    with pytest.raises(UsageError, match=r"the index 'node': field\('spec.nodeName'\) reads"):
        Indexer({"node": field("spec.nodeName")}, view=view)
    with pytest.raises(UsageError, match="the index 'node':"):
        Indexer(view=view).build_index("node", field("spec.nodeName"))
    Indexer({"namespace": field("metadata.namespace")}, view=view)


def test_an_object_that_can_not_be_converted_for_an_index_is_rejected() -> None:
    def clumsy(obj: KubeObject) -> str:
        if obj["spec"]["nodeName"] == "raise":
            raise NO
        return obj.name

    indexer = Indexer(
        {"name": str.upper, "node": field("spec.nodeName")}, view=Shape.of(convert=clumsy).view()
    )
    apply(indexer, added(pod("a")), updated(pod("a", rv="2", node="raise")))

    assert held(indexer) == {"a": "1"}
    assert list(indexer.state.indexes["name"].buckets) == ["A"]
    assert "web/a at resourceVersion 2" in str(indexer.rejected[key("a")])


def test_the_items_of_a_list_fit_the_model_of_watch_events() -> None:
    decoder = ListDecoder(PODS)
    (obj,) = decoder.feed(encode(pod_list([pod_body("a")]))) or decoder.close()[0]
    keep = Shape.of(model=Pod).converter()

    assert keep is not None
    assert type(keep(obj)) is ModelObject

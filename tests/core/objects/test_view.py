"""Views, conversions, and the events of converted objects."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import traceback
import weakref
from typing import Any

import pytest

from aioinformer._core.cache.indexes import label_index
from aioinformer._core.objects.decode_errors import iter_related
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, Updated
from aioinformer._core.objects.resources import Resource, find_built_in
from aioinformer._core.objects.stored import ModelObject
from aioinformer._core.objects.view import (
    MAX_CONVERTED,
    Conversion,
    EventView,
    ObjectSnapshot,
    ObjectView,
    conversion_view,
    model_view,
)
from aioinformer._core.selectors.projections import field
from aioinformer.errors import ModelMismatch, ObjectDecodeError, UsageError
from tests.core.builders import PODS, key, make_object, pod, pod_body, undecodable_pod
from tests.core.models import Metadata, Pod, Spec

CANARY = "sEcReTc4nary7q"


class Converter:
    """A ``convert=`` function that returns names, and records the objects of its calls."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, obj: KubeObject) -> str:
        self.names.append(obj.name)
        if obj["spec"]["nodeName"] == "raise":
            raise ValueError("no such node")
        return f"{obj.name}@{obj.resource_version}"


def model_object(name: str, *, rv: str = "1") -> ModelObject:
    model = Pod(Metadata(name), Spec("node-1"))
    return ModelObject(
        key(name), b"", PODS, stored_uid=f"uid-{name}", stored_version=rv, model=model
    )


# -- events ------------------------------------------------------------------------------------


def test_events_have_models_in_them() -> None:
    view, a, newer = model_view(Pod), model_object("a"), model_object("a", rv="2")

    def contents(event: Event) -> tuple[object, ...]:
        match EventView(view).convert(event):
            case Added(obj, initial):
                return obj, initial
            case Updated(old, new, resync):
                return old, new, resync
            case Deleted(obj, reason):
                return obj, reason

    assert contents(Added(a, True)) == (a.model, True)
    assert contents(Updated(a, newer, True)) == (a.model, newer.model, True)
    assert contents(Deleted(a, "vanished")) == (a.model, "vanished")


@pytest.mark.parametrize(
    "event",
    [
        Added(model_object("a")),
        Updated(model_object("a"), model_object("a")),
        Deleted(model_object("a")),
    ],
)
def test_events_of_models_have_the_key_of_the_object(event: Event) -> None:
    assert EventView(model_view(Pod)).convert(event).key == key("a")
    assert event.key == key("a")


def test_the_key_of_an_event_that_a_program_made_of_a_model_is_an_error() -> None:
    with pytest.raises(TypeError, match="cannot derive a key from a Pod"):
        str(Added(model_object("a").model).key)


def test_events_of_models_are_equal_to_plain_ones_and_shown_like_them() -> None:
    model = model_object("a").model
    shown: list[Event[Pod]] = [
        EventView(model_view(Pod)).convert(event)
        for event in (
            Added(model_object("a")),
            Updated(model_object("a"), model_object("a")),
            Deleted(model_object("a")),
        )
    ]
    plain: list[Event[Pod]] = [Added(model), Updated(model, model), Deleted(model)]

    assert shown == plain
    assert plain == shown
    for event, other in zip(shown, plain, strict=True):
        assert not event != other  # noqa: SIM202 - the operator is the point
        assert event != Added(model, True)
    assert shown != [Added(model, True), Updated(model, model, True), Deleted(model, "dropped")]
    assert list(map(repr, shown)) == list(map(repr, plain))
    assert [hash(event.obj.metadata.name) for event in shown] == [hash("a")] * 3
    assert [type(event).__name__ for event in shown] == ["Added", "Updated", "Deleted"]
    assert pickle.loads(pickle.dumps(shown)) == plain  # noqa: S301 - our own bytes
    assert copy.copy(shown[0]) == plain[0]


def test_a_hashable_model_makes_hashable_events() -> None:
    event = EventView(conversion_view(Converter())).convert(Added(pod("a")))

    assert hash(event) == hash(Added("a@1"))


def test_the_garbage_collector_frees_a_model_that_refers_to_its_event() -> None:
    class Mutable:
        event: Event[Any] | None = None

    def circle() -> weakref.ref[Mutable]:
        made = Mutable()
        made.event = EventView(ObjectView(lambda _: made, "it", has_json=True)).convert(
            Added(pod("a"))
        )
        return weakref.ref(made)

    alive = circle()
    gc.collect()

    assert alive() is None


def test_a_resync_shows_one_object_twice() -> None:
    converter, obj = Converter(), pod("a")
    event = EventView(conversion_view(converter)).convert(Updated(obj, obj, True))

    assert isinstance(event, Updated)
    assert event.old is event.new
    assert converter.names == ["a"]


# -- conversions -------------------------------------------------------------------------------


def test_an_object_is_converted_once_while_its_result_is_kept() -> None:
    converter = Converter()
    conversion, a = Conversion(converter), pod("a")

    assert conversion(a) is conversion(a)
    for number in range(MAX_CONVERTED):
        conversion(pod(f"p-{number}"))
    conversion(a)

    assert converter.names.count("a") == 2
    assert repr(conversion).endswith(f"results={MAX_CONVERTED}>")


def test_another_version_is_another_object() -> None:
    conversion = Conversion(Converter())

    assert [conversion(pod("a", rv=rv)) for rv in ("1", "2", "3")] == ["a@1", "a@2", "a@3"]


def test_the_error_of_a_conversion_names_the_object() -> None:
    view = conversion_view(Converter())

    with pytest.raises(ModelMismatch) as caught:
        view.convert(pod("a", rv="7", node="raise"))
    assert str(caught.value).startswith("pods web/a at resourceVersion 7: convert= ")
    assert str(caught.value).endswith(" failed: ValueError: no such node")
    assert isinstance(caught.value.__cause__, ValueError)
    assert (caught.value.key, caught.value.resource_version) == ("web/a", "7")
    assert view.failures == 1


def test_the_error_of_a_conversion_of_a_secret_shows_no_secret() -> None:
    body = pod_body("a") | {"data": {"password": CANARY}}
    secret = make_object(body, resource=find_built_in("secrets"))

    def convert(obj: KubeObject) -> None:
        raise ValueError(f"no password: {obj['data']}")

    with pytest.raises(ModelMismatch, match="ValueError: its text may quote the Secret") as caught:
        Conversion(convert)(secret)
    related = list(iter_related(caught.value))
    assert related == [caught.value]
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_only_the_core_groups_secrets_are_secrets() -> None:
    secrets = Resource("example.com", "v1", "secrets", "Secret")

    def convert(obj: KubeObject) -> None:
        raise ValueError(f"no password: {obj['data']}")

    with pytest.raises(ModelMismatch, match=rf"convert= \S+\.convert failed: .*{CANARY}") as caught:
        Conversion(convert)(make_object(pod_body("a") | {"data": CANARY}, resource=secrets))
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_conversion_is_raised(interrupt: type[BaseException]) -> None:
    def stop(obj: KubeObject) -> None:
        raise interrupt

    conversion = Conversion(stop)
    with pytest.raises(interrupt):
        conversion(pod("a"))
    assert conversion.failures == 0


def test_views_and_conversions_show_what_they_convert_to() -> None:
    def local(obj: KubeObject) -> str:
        return obj.name

    assert repr(model_view(Pod)) == "<View of Pod>"
    assert repr(conversion_view(Converter())) == "<View of what Converter returns>"
    assert repr(Conversion(Converter())) == "<Conversion by Converter results=0>"
    assert repr(Conversion(local)).startswith("<Conversion by test_views_and_conversions_")
    assert repr(Conversion(local)).endswith("_convert_to.local results=0>")


def test_only_a_view_of_models_is_fast() -> None:
    assert model_view(Pod).is_fast
    assert not conversion_view(Converter()).is_fast
    assert model_view(Pod).failures == 0


def test_the_oldest_result_is_forgotten_first() -> None:
    converter = Converter()
    conversion = Conversion(converter)
    objects = [pod(f"p-{number}") for number in range(MAX_CONVERTED + 1)]
    for obj in (*objects, *objects[1:], objects[0]):
        conversion(obj)

    assert converter.names == [*(obj.name for obj in objects), "p-0"]


def test_an_object_that_is_no_json_is_a_decode_error_of_a_conversion() -> None:
    view = conversion_view(Converter())

    for number in (1, 2):
        with pytest.raises(ObjectDecodeError):
            view.convert(undecodable_pod())
        assert view.failures == number
    for number in (3, 4):
        with pytest.raises(ModelMismatch):
            view.convert(pod("a", node="raise"))
        assert view.failures == number


def test_an_update_from_what_can_not_be_converted_is_an_addition() -> None:
    bad, good = pod("a", node="raise"), pod("a", rv="2")
    view = conversion_view(Converter())

    assert EventView(view).convert(Updated(bad, good)) == Added("a@2")
    assert EventView(view).convert(Updated(bad, good)).key == key("a")
    with pytest.raises(ModelMismatch):
        EventView(view).convert(Updated(good, bad))


@pytest.mark.parametrize(
    "last", [pod("a", rv="3", node="raise"), undecodable_pod()], ids=["raises", "is no JSON"]
)
def test_a_deletion_shows_the_cached_state_if_the_last_one_can_not_be_converted(
    last: KubeObject,
) -> None:
    bad, good = pod("a", rv="2", node="raise"), pod("a", rv="2")
    view = conversion_view(Converter())

    shown = EventView(view).convert(Deleted(last, "deleted", good))
    assert shown == Deleted("a@2")
    assert shown.key == last.key
    assert view.failures == 1
    assert EventView(view).convert(Deleted(good, "deleted", bad)) == Deleted("a@2")


def test_an_object_that_can_not_be_converted_is_held_as_it_was_shown_last() -> None:
    good, bad, worse = pod("a"), pod("a", rv="2", node="raise"), pod("a", rv="3", node="raise")
    events = EventView(conversion_view(Converter()))

    for event in (Updated(good, bad), Updated(bad, worse), Updated(worse, worse, True)):
        with pytest.raises(ModelMismatch):
            events.convert(event)
        assert events.held(key("a")) == ("a@1",)
    assert events.convert(Updated(worse, pod("a", rv="4"))) == Updated("a@1", "a@4")
    assert events.held(key("a")) == ()
    with pytest.raises(ModelMismatch):
        events.convert(Updated(pod("a", rv="4"), bad))
    assert events.convert(Deleted(worse, "vanished")) == Deleted("a@4", "vanished")
    assert repr(events) == "<EventView held=0>"


@pytest.mark.parametrize("reason", ["deleted", "vanished"])
def test_the_deletion_of_an_object_that_was_never_shown_has_its_key_alone(reason: Any) -> None:
    bad = pod("a", rv="2", node="raise")
    events = EventView(conversion_view(Converter()))
    with pytest.raises(ModelMismatch):
        events.convert(Added(bad))
    with pytest.raises(ModelMismatch):
        events.convert(Updated(bad, pod("a", rv="3", node="raise")))

    shown = events.convert(Deleted(bad, reason))
    assert isinstance(shown, Deleted)
    assert (shown.key, shown.reason) == (key("a"), reason)
    assert type(shown).__name__ == "Deleted"
    with pytest.raises(ModelMismatch, match="at resourceVersion 2: convert= "):
        _ = shown.obj
    assert shown == EventView(conversion_view(Converter())).convert(Deleted(bad, reason))
    assert shown != Deleted("a@2", reason)
    assert hash(shown)
    assert "resourceVersion 2" in repr(shown)
    assert repr(events) == "<EventView held=0>"


def test_an_object_that_fits_for_the_first_time_is_an_addition() -> None:
    bad = pod("a", node="raise")
    events = EventView(conversion_view(Converter()))
    with pytest.raises(ModelMismatch):
        events.convert(Added(bad))

    assert events.convert(Updated(bad, pod("a", rv="2"))) == Added("a@2")
    with pytest.raises(ModelMismatch):
        events.convert(Added(bad))
    assert events.convert(Added(pod("a", rv="3"))) == Added("a@3")
    assert repr(events) == "<EventView held=0>"


def test_an_error_without_a_printable_message_is_reported_by_its_class() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    def clumsy(_: KubeObject) -> None:
        raise Silent

    with pytest.raises(ModelMismatch, match=r"Silent: \(its message can't be shown\)"):
        Conversion(clumsy)(pod("a"))


def test_concurrent_threads_get_the_results_of_their_own_objects() -> None:
    conversion = Conversion(Converter())
    objects = [pod(f"p-{number}") for number in range(MAX_CONVERTED * 2)]
    wrong: list[str] = []

    def read() -> None:
        wrong.extend(obj.name for obj in objects * 3 if conversion(obj) != f"{obj.name}@1")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


# -- readers of JSON ---------------------------------------------------------------------------


def test_functions_that_read_bytes_receive_the_object_and_others_its_conversion() -> None:
    view = conversion_view(Converter())

    assert view.adapter_for(field("spec.nodeName"), "the index 'x':") is None
    assert view.adapter_for(label_index(), "the index 'x':") is None
    assert view.adapter_for(str.upper, "the index 'x':") is view.convert


def test_an_informer_with_a_model_has_no_bytes_to_read() -> None:
    view = model_view(Pod)

    with pytest.raises(UsageError) as caught:
        view.adapter_for(field("spec.nodeName"), "the index 'node':")
    assert str(caught.value) == (
        "the index 'node': field('spec.nodeName') reads an object's JSON, and an informer with "
        "model= keeps none: give a plain function of Pod"
    )
    assert view.adapter_for(field("metadata.namespace"), "the index 'ns':") is None
    assert view.adapter_for(str.upper, "the index 'x':") is view.convert


def test_a_snapshot_converts_an_object_when_it_is_read() -> None:
    converter = Converter()
    snapshot = ObjectSnapshot({key("a"): pod("a"), key("b"): pod("b")}, conversion_view(converter))

    assert len(snapshot) == 2
    assert key("a") in snapshot
    assert key("c") not in snapshot
    assert list(snapshot) == [key("a"), key("b")]
    assert not converter.names
    assert snapshot[key("a")] == "a@1"
    assert repr(snapshot) == "<ObjectSnapshot objects=2>"

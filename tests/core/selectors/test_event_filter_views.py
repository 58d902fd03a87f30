"""Filters of an informer that shows its objects in another form, and interrupts of a filter."""

from __future__ import annotations

import pytest

from aioinformer import Added, KubeObject, Updated, changed, labels_changed, where
from aioinformer._core.objects.stored import ModelObject
from aioinformer._core.objects.view import conversion_view, model_view
from aioinformer._core.selectors.event_filter import EventFilter
from aioinformer._core.selectors.predicates import ChangePredicate, ObjectPredicate
from aioinformer.errors import UsageError
from tests.core.builders import PODS, key, pod
from tests.core.models import Metadata, Pod, Spec

HERE = where("spec.nodeName", "here")
IN, OUT = pod("a", node="here"), pod("b", node="there")


def failed(obj: KubeObject, error: BaseException) -> None:
    raise AssertionError(f"the filter raised at {obj}") from error


def name_of(obj: KubeObject) -> str:
    return obj.name


def modelled(name: str, *, rv: str = "1") -> ModelObject:
    model = Pod(Metadata(name), Spec("here"))
    return ModelObject(key(name), b"", PODS, stored_uid="u", stored_version=rv, model=model)


def test_a_function_receives_the_form_that_the_program_sees() -> None:
    seen: list[str] = []

    def is_a(name: str) -> bool:
        seen.append(name)
        return name == "a"

    passing = EventFilter(is_a, failed, view=conversion_view(name_of))

    assert (passing.apply(Added(IN)), passing.apply(Added(OUT))) == (Added(IN), None)
    assert seen == ["a", "b"]


def test_a_predicate_receives_the_stored_object() -> None:
    passing = EventFilter(HERE, failed, view=conversion_view(name_of))

    assert (passing.apply(Added(IN)), passing.apply(Added(OUT))) == (Added(IN), None)


def test_a_predicate_of_changes_receives_stored_objects() -> None:
    passing = EventFilter(changed("spec.nodeName"), failed, view=conversion_view(name_of))

    assert passing.apply(Updated(IN, pod("a", rv="2", node="there"))) is not None
    assert passing.apply(Updated(IN, pod("a", rv="2", node="here"))) is None
    assert passing.apply(Added(IN)) == Added(IN)


def test_a_function_receives_the_model() -> None:
    def is_a(model: Pod) -> bool:
        return model.metadata.name == "a"

    passing = EventFilter(is_a, failed, view=model_view(Pod))
    first, second = modelled("a"), modelled("b")

    assert (passing.apply(Added(first)), passing.apply(Added(second))) == (Added(first), None)


def test_predicates_that_read_json_are_errors_where_none_is_kept() -> None:
    view = model_view(Pod)
    with pytest.raises(UsageError, match=r"^the filter where\('spec.nodeName', 'here'\) reads an"):
        EventFilter(HERE, failed, view=view)
    with pytest.raises(UsageError, match=r"^the filter labels_changed reads an object's JSON"):
        EventFilter(labels_changed, failed, view=view)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_of_a_filter_reaches_the_program(interrupt: type[BaseException]) -> None:
    def stop(*objects: KubeObject) -> bool:
        raise interrupt

    with pytest.raises(interrupt):
        EventFilter(ObjectPredicate(stop), failed).apply(Added(IN))
    with pytest.raises(interrupt):
        EventFilter(ChangePredicate(stop), failed).apply(Updated(IN, pod("a", rv="2")))


def test_the_repr_shows_the_predicate() -> None:
    assert repr(EventFilter(HERE, failed)) == "<EventFilter where('spec.nodeName', 'here')>"

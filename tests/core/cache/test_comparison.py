"""The comparison of versions of an object."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec import Struct

from aioinformer._core.cache.comparison import (
    append_change,
    has_equal_content,
    is_same_content,
    removal_reason,
    without_traceback,
)
from aioinformer._core.cache.store import CacheState, Index
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, Updated
from aioinformer._core.objects.resources import Resource
from aioinformer._core.objects.stored import ExcludedObject, ModelObject
from aioinformer.errors import IndexFailed
from tests.core.builders import PODS, WIDGETS, key, make_object, pod, pod_body, undecodable_pod
from tests.core.models import Metadata, Pod, Spec


def held(node: str) -> ModelObject:
    model = Pod(Metadata("a"), Spec(node))
    return ModelObject(key("a"), b"", PODS, stored_uid="uid-a", stored_version="1", model=model)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (pod("a"), True),
        (make_object(pod_body("a") | {"kind": "Pod", "apiVersion": "v1"}), True),
        (pod("a", node="node-2"), False),
        (pod("a", rv="2"), False),
        (pod("a", uid="another"), False),
        (ExcludedObject.of(pod("a")), False),
    ],
)
def test_objects_are_the_same_in_version_and_content(new: KubeObject, expected: bool) -> None:
    assert is_same_content(pod("a"), new) is expected


def test_a_number_in_the_place_of_a_boolean_is_other_content() -> None:
    """A schema that was corrected shows it so, without a write."""
    body = pod_body("a")
    one, true = (make_object(body | {"spec": {"on": value}}) for value in (1, True))
    assert not is_same_content(one, true)
    assert is_same_content(one, make_object({"spec": {"on": 1.0}} | body | {"spec": {"on": 1.0}}))


def test_models_are_compared_with_each_other() -> None:
    assert is_same_content(held("node-1"), held("node-1"))
    assert not is_same_content(held("node-1"), held("node-2"))


@dataclass(eq=False)
class ByIdentity:
    """A model whose instances are never equal."""

    node: str


def test_models_without_a_comparison_are_compared_by_their_json() -> None:
    one, same, other = (
        ModelObject(
            key("a"), b"", PODS, stored_uid="uid-a", stored_version="1", model=ByIdentity(node)
        )
        for node in ("node-1", "node-1", "node-2")
    )

    assert is_same_content(one, same)
    assert not is_same_content(one, other)


class Touchy(Struct):
    """A model that can't be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")


def test_models_that_can_not_be_compared_are_taken_to_differ() -> None:
    one, two = (
        ModelObject(key("a"), b"", PODS, stored_uid="uid-a", stored_version="1", model=Touchy())
        for _ in "12"
    )

    assert not is_same_content(one, two)


def test_a_body_that_cannot_be_decoded_is_compared_by_its_bytes() -> None:
    assert is_same_content(undecodable_pod(), undecodable_pod())
    other = KubeObject(key("web-0"), "uid", "7", undecodable_pod().raw + b" ", PODS)
    assert not is_same_content(undecodable_pod(), other)


def test_an_object_equals_itself_without_a_comparison_of_its_model() -> None:
    one = ModelObject(key("a"), b"", PODS, stored_uid="uid-a", stored_version="1", model=Touchy())
    assert is_same_content(one, one)


def test_objects_of_two_api_versions_differ() -> None:
    later = Resource("example.com", "v2", "widgets", "Widget")
    body = pod_body("a")
    assert is_same_content(make_object(body, resource=WIDGETS), make_object(body, resource=WIDGETS))
    assert not is_same_content(
        make_object(body, resource=WIDGETS), make_object(body, resource=later)
    )


@pytest.mark.parametrize(
    ("field", "value"), [("kind", "PartialObjectMetadata"), ("apiVersion", "meta.k8s.io/v1")]
)
def test_a_kind_and_an_api_version_that_one_of_the_objects_lacks_do_not_count(
    field: str, value: str
) -> None:
    """The items of a list lack both; a watch event may name a form of the object."""
    assert has_equal_content(make_object(pod_body("a") | {field: value}), pod("a"))


def test_the_order_of_keys_and_white_space_do_not_count() -> None:
    body = pod_body("a")
    turned = make_object({name: body[name] for name in reversed(body)})
    assert turned.raw != pod("a").raw
    assert has_equal_content(turned, pod("a"))


class Interrupting(Struct):
    """A model during whose comparison the user ends the program."""

    signal: type[BaseException]

    def __eq__(self, other: object) -> bool:
        raise self.signal


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_during_a_comparison_is_raised(signal: type[BaseException]) -> None:
    one, two = (
        ModelObject(
            key("a"), b"", PODS, stored_uid="u", stored_version="1", model=Interrupting(signal)
        )
        for _ in "12"
    )
    with pytest.raises(signal):
        has_equal_content(one, two)


# -- what follows ----------------------------------------------------------------------------------


def test_an_excluded_version_removes_the_object_unless_it_was_rejected() -> None:
    old, error = pod("a"), ValueError("no model")
    assert removal_reason(old, ExcludedObject.of(pod("a", rv="2"))) == "dropped"
    assert removal_reason(old, ExcludedObject.of(pod("a", rv="2"), error)) is None
    assert removal_reason(old, ExcludedObject.of(pod("a", uid="new"))) == "vanished"
    assert removal_reason(old, ExcludedObject.of(pod("a", uid="new"), error)) == "vanished"


def fail_with_a_cause() -> None:
    try:
        raise KeyError("spec")
    except KeyError as cause:
        raise ValueError("no model") from cause


def test_an_error_without_its_traceback_keeps_its_message_and_its_cause() -> None:
    with pytest.raises(ValueError, match="no model") as caught:
        fail_with_a_cause()
    error, cause = caught.value, caught.value.__cause__
    assert without_traceback(error) is error
    assert error.__traceback__ is None
    assert isinstance(cause, KeyError)
    assert cause.__traceback__ is None
    assert without_traceback(KeyError("no cause")).__traceback__ is None


def test_an_error_without_its_traceback_has_no_traceback_in_any_of_its_causes() -> None:
    with pytest.raises(IndexFailed) as caught:
        CacheState(indexes={"x": Index("x", lambda _: fail_with_a_cause())}).put(pod("a"), None)
    error: BaseException | None = without_traceback(caught.value)
    chain: list[BaseException] = []
    while error is not None:
        chain.append(error)
        error = error.__cause__
    assert [type(each) for each in chain] == [IndexFailed, ValueError, KeyError]
    assert [each.__traceback__ for each in chain] == [None] * 3


def test_a_change_of_one_object_is_an_update_and_a_re_created_object_is_two_events() -> None:
    old, new, reborn = pod("a"), pod("a", rv="2"), pod("a", rv="3", uid="new")
    events: list[Event] = []
    append_change(old, new, events)
    append_change(new, reborn, events)
    assert events == [Updated(old, new), Deleted(new, "vanished"), Added(reborn)]

"""The stored and the shown form of objects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import pydantic
import pytest
from msgspec import Struct

from aioinformer._core.codec.shape import Converter, Shape, with_type_meta
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import ExcludedObject, ModelObject
from aioinformer.errors import ModelMismatch, TransformFailed, UsageError
from tests.core.builders import WIDGETS, make_object, pod, pod_body
from tests.core.models import AttrsPod, DataPod, Metadata, Pod, PodDict, RaisingModel


def keeping(shape: Shape[Any]) -> Converter:
    keep = shape.converter()
    assert keep is not None
    return keep


def model_of(model: type[Any], obj: KubeObject) -> Any:
    """Return the model that the cache stores and a view returns."""
    shape = Shape.of(model=model)
    stored, view = keeping(shape)(obj), shape.view()
    assert view is not None
    assert isinstance(stored, ModelObject), stored
    return view.convert(stored)


def misfit(model: type[Any], obj: KubeObject) -> Exception:
    stored = keeping(Shape.of(model=model))(obj)
    assert isinstance(stored, ExcludedObject)
    assert stored.error is not None
    return stored.error


def named(obj: KubeObject) -> str:
    return obj.name


def same(obj: KubeObject) -> KubeObject:
    return obj


# -- models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Pod, DataPod, AttrsPod])
def test_a_model_has_what_it_declares(model: type[Any]) -> None:
    assert model_of(model, pod("a", node="node-7")).spec.nodeName == "node-7"


def test_a_typed_dict_is_a_model() -> None:
    assert model_of(PodDict, pod("a"))["spec"] == {"nodeName": "node-1"}
    assert "metadata" not in model_of(PodDict, pod("a"))


def test_an_object_with_a_model_keeps_no_bytes() -> None:
    obj = pod("a")
    stored = keeping(Shape.of(model=Pod))(obj)

    assert isinstance(stored, ModelObject)
    assert (stored.raw, stored.size) == (b"", len(obj.raw))
    assert (stored.key, stored.uid, stored.resource_version) == (obj.key, obj.uid, "1")


def test_a_model_may_declare_the_kind_which_items_of_a_list_lack() -> None:
    listed, watched = pod("a"), make_object(pod_body("a") | {"kind": "Other", "apiVersion": "v7"})

    assert model_of(DataPod, listed).kind == "Pod"
    assert model_of(DataPod, watched).kind == "Other"
    assert model_of(AttrsPod, make_object(pod_body("w"), resource=WIDGETS)).apiVersion == (
        "example.com/v1"
    )
    assert model_of(PodDict, listed)["kind"] == "Pod"
    assert with_type_meta(listed).startswith(b'{"apiVersion":"v1","kind":"Pod","metadata":')


def test_a_rejected_object_is_excluded_with_an_error() -> None:
    error = misfit(Pod, make_object(pod_body("a", rv="7") | {"spec": {"nodeName": 7}}))

    assert isinstance(error, ModelMismatch)
    assert (error.key, error.resource_version) == ("web/a", "7")
    assert str(error) == (
        "pods web/a at resourceVersion 7: it doesn't fit the model Pod: ValidationError: "
        "Expected `str`, got `int` - at `$.spec.nodeName`"
    )
    assert error.__cause__ is not None


@pytest.mark.parametrize(
    ("obj", "what"),
    [
        (pod("a", node="raise"), "RuntimeError: not on this node"),
        (make_object(pod_body("a") | {"spec": None}), "ValidationError"),
    ],
)
def test_every_exception_of_a_model_is_a_mismatch(obj: KubeObject, what: str) -> None:
    assert what in str(misfit(RaisingModel, obj))


class Cancelling(Struct):
    """A model with a CancelledError of its own, which would end the task that reads it."""

    metadata: Metadata

    def __post_init__(self) -> None:
        raise asyncio.CancelledError


class Final(Struct):
    metadata: Metadata

    def __post_init__(self) -> None:
        raise SystemExit


def test_a_cancelled_error_in_a_model_is_a_mismatch() -> None:
    assert "CancelledError" in str(misfit(Cancelling, pod("a")))
    with pytest.raises(SystemExit):
        misfit(Final, pod("a"))


class PydanticPod(pydantic.BaseModel):
    spec: dict[str, str]


class Annotated(Struct):
    spec: NoSuchType  # type: ignore[name-defined]  # noqa: F821 # pyright: ignore[reportUndefinedVariable]


ANOTHER_WAY = "; convert= takes any function of an object, and aioinformer.adapters has some"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PydanticPod, f"PydanticPod{ANOTHER_WAY}"),
        (dict, f"dict{ANOTHER_WAY}"),
        (KubeObject, "KubeObject, which is what objects are without model="),
        (Annotated, "Annotated: name 'NoSuchType' is not defined"),
    ],
)
def test_a_type_that_cannot_be_a_model_is_an_error_when_it_is_passed(
    model: Any, message: str
) -> None:
    start = "model= takes a msgspec.Struct, dataclass, TypedDict or attrs class, not"
    with pytest.raises(UsageError) as caught:
        Shape.of(model=model)
    assert str(caught.value) == f"{start} {message}"


def test_a_function_as_a_model_is_an_error() -> None:
    wrong: Any = named
    with pytest.raises(UsageError, match=r"TypedDict or attrs class, not named"):
        Shape.of(model=wrong)


# -- conversions -------------------------------------------------------------------------------


def test_an_object_that_is_converted_keeps_its_bytes() -> None:
    shape = Shape.of(convert=named)
    view = shape.view()

    assert shape.converter() is None
    assert view is not None
    assert view.convert(pod("a")) == "a"


def test_model_and_convert_exclude_each_other() -> None:
    with pytest.raises(UsageError, match=r"^model= and convert= exclude each other: .* one form$"):
        Shape.checked(Pod, named, None)


# -- transforms --------------------------------------------------------------------------------


def no_node(obj: KubeObject) -> Mapping[str, Any] | None:
    return None if obj.name == "drop" else {**obj, "spec": {"nodeName": 0}}


def test_a_transform_comes_before_a_model() -> None:
    keep = keeping(Shape.of(model=Pod, transform=no_node))
    misfit, dropped = keep(pod("a")), keep(pod("drop"))

    assert isinstance(misfit, ExcludedObject)
    assert isinstance(misfit.error, ModelMismatch)
    assert isinstance(dropped, ExcludedObject)
    assert dropped.error is None


def test_a_transform_that_raises_does_not_reach_the_model() -> None:
    def clumsy(obj: KubeObject) -> None:
        raise ValueError("no")

    stored = keeping(Shape.of(model=Pod, transform=clumsy))(pod("a"))

    assert isinstance(stored, ExcludedObject)
    assert isinstance(stored.error, TransformFailed)


# -- identity ----------------------------------------------------------------------------------


def test_shapes_of_the_same_functions_are_the_same() -> None:
    assert Shape.of() == Shape.of()
    assert Shape.of(model=Pod, transform=same) == Shape.of(model=Pod, transform=same)
    assert (
        len({Shape.of(), Shape.of(model=Pod), Shape.of(model=DataPod), Shape.of(convert=same)}) == 4
    )
    assert Shape.of(transform=same) != Shape.of(transform=lambda obj: obj)


def test_the_text_of_a_shape_names_its_parts() -> None:
    assert str(Shape.of()) == ""
    assert str(Shape.of(model=Pod)) == "as Pod"
    assert str(Shape.of(convert=named, transform=same)) == "as named through same"
    assert str(Shape.of(transform=partial(same))) == "through partial"
    assert str(Shape.of(metadata_only=True)) == "with metadata only"
    assert str(Shape.of(model=Pod, metadata_only=True)) == "with metadata only as Pod"
    assert repr(keeping(Shape.of(transform=same))) == "<Transformer by same>"
    assert repr(keeping(Shape.of(model=Pod))) == "<ModelDecoder Pod>"


def test_objects_are_whole_unless_a_part_is_kept_or_a_transform_may_replace_them() -> None:
    assert Shape.of().is_whole
    assert Shape.checked(None, None, None) == Shape.of()
    assert Shape.of(convert=named).is_whole
    for other in (Shape.of(transform=same), Shape.of(metadata_only=True), Shape.of(model=Pod)):
        assert not other.is_whole


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, obj: KubeObject) -> str:
        return obj.name


async def late(obj: KubeObject) -> str:
    return obj.name


class Late:
    async def __call__(self, obj: KubeObject) -> str:
        return obj.name


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("no function", " is a function of an object, not 'no function'"),
        (late, " late is async; it must be a plain function"),
        (Late(), " Late is async; it must be a plain function"),
        (
            Unhashable(),
            " Unhashable has no hash, by which informers are distinguished; give a function or a"
            " hashable object",
        ),
    ],
)
def test_an_argument_that_is_no_function_of_an_object_is_a_type_error(
    function: Any, message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        Shape.of(convert=function)
    assert str(caught.value) == f"convert={message}"
    with pytest.raises(TypeError) as caught:
        Shape.of(transform=function)
    assert str(caught.value) == f"transform={message}"

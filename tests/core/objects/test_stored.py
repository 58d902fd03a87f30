"""The replacements for whole objects: models, and records of excluded objects."""

from __future__ import annotations

import gc

import pytest

from aioinformer._core.objects.stored import ExcludedObject, ModelObject, NeedsJson, size_of
from aioinformer._core.selectors.projections import field, fields
from tests.core.builders import PODS, key, pod
from tests.core.models import Metadata, Pod, Spec


def modelled(name: str = "a", *, rv: str = "1", node: str = "node-1") -> ModelObject:
    model = Pod(Metadata(name), Spec(node))
    return ModelObject(
        key(name), b"", PODS, stored_uid=f"uid-{name}", stored_version=rv, model=model, size=300
    )


def test_an_object_of_which_a_model_is_kept_has_no_bytes() -> None:
    obj = modelled()

    assert obj.raw == b""
    assert size_of(obj) == 300


def test_the_key_uid_and_version_of_a_model_object_can_be_read() -> None:
    read = fields("metadata.name", "metadata.namespace", "metadata.uid")

    assert read(modelled()) == ("a", "web", "uid-a")
    assert not read.needs_bytes
    assert field("spec").needs_bytes


def test_a_model_object_equals_the_same_version_with_an_equal_model() -> None:
    assert modelled() == modelled()
    assert hash(modelled()) == hash(modelled())
    assert modelled() != modelled(rv="2")
    assert modelled() != modelled(node="node-2")
    assert modelled() != pod("a")


def test_the_repr_does_not_show_the_model() -> None:
    assert repr(modelled(node="hidden")) == "<Pod web/a rv=1 as Pod>"


def test_the_garbage_collector_does_not_track_an_object_of_a_model_without_gc() -> None:
    obj = modelled()

    assert not gc.is_tracked(obj)
    assert not gc.is_tracked(obj.model)


def test_an_excluded_object_keeps_only_its_identity() -> None:
    obj = ExcludedObject.of(pod("a", rv="7"), ValueError("no"))

    assert (obj.key, obj.uid, obj.resource_version, obj.raw) == (key("a"), "uid-a", "7", b"")
    assert repr(obj) == "<Pod web/a rv=7 rejected>"
    assert repr(ExcludedObject.of(pod("a", rv="7"))) == "<Pod web/a rv=7 dropped>"


def test_a_model_object_differs_from_one_of_another_key_or_uid() -> None:
    obj = modelled()
    other_uid = ModelObject(
        obj.key, b"", PODS, stored_uid="another", stored_version="1", model=obj.model, size=300
    )

    assert (obj.uid, obj.resource_version) == ("uid-a", "1")
    assert obj != other_uid
    assert obj != modelled("b")
    assert (obj == "a") is False
    assert hash(obj) != hash(modelled(rv="2"))
    assert size_of(pod("a")) == len(pod("a").raw)


def test_a_function_that_needs_json_reads_bytes_by_default() -> None:
    function = NeedsJson()

    assert function.needs_bytes
    with pytest.raises(NotImplementedError):
        function(pod("a"))


def test_an_excluded_object_keeps_its_error_and_its_resource() -> None:
    error = ValueError("no")
    obj = ExcludedObject.of(pod("a", rv="7"), error)

    assert (obj.error, obj.resource) == (error, PODS)
    assert ExcludedObject.of(pod("a")).error is None

"""One object's bytes become a ``KubeObject``."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from aioinformer._core.codec.object_decoder import (
    decode_envelope,
    decode_object,
    encode_type_meta,
    remove_managed_fields,
)
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from tests.core import strategies
from tests.core.builders import PODS, WIDGETS, encode, key
from tests.core.strategies import JsonStyle

MANAGED: list[Any] = [{"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}}]


def built(raw: bytes, *, keep: bool = False) -> KubeObject:
    """Return the object in ``raw``."""
    return decode_object(PODS, decode_envelope(raw).metadata, raw, 0, len(raw), managed_fields=keep)


def unmanaged(body: dict[str, Any]) -> dict[str, Any]:
    """``body`` without its ``metadata.managedFields``, and with every other one."""
    found = copy.deepcopy(body)
    found["metadata"].pop("managedFields", None)
    return found


@given(strategies.objects_full_of_managed_fields(), strategies.json_styles)
def test_the_managed_fields_of_metadata_are_cut_and_no_other(
    body: dict[str, Any], spelling: JsonStyle
) -> None:
    assert json.loads(built(spelling(body)).raw) == unmanaged(body)


@given(strategies.objects_full_of_managed_fields(), strategies.json_styles)
def test_the_rest_of_the_bytes_is_not_touched(body: dict[str, Any], spelling: JsonStyle) -> None:
    """The result is the bytes before and after the cut."""
    whole, cut = spelling(body), built(spelling(body)).raw

    at = next((n for n, (a, b) in enumerate(zip(whole, cut, strict=False)) if a != b), len(cut))
    assert whole.endswith(cut[at:])


@given(strategies.objects_full_of_managed_fields(), strategies.json_styles)
def test_managed_fields_that_are_kept_leave_the_bytes_identical(
    body: dict[str, Any], spelling: JsonStyle
) -> None:
    assert built(spelling(body), keep=True).raw == spelling(body)


@given(strategies.objects(), strategies.json_styles)
def test_an_object_without_managed_fields_is_left_as_it_is(
    body: dict[str, Any], spelling: JsonStyle
) -> None:
    assert built(spelling(body)).raw == spelling(body)


@given(strategies.objects())
def test_the_metadata_pass_finds_what_the_cache_needs(body: dict[str, Any]) -> None:
    obj, metadata = built(encode(body)), body["metadata"]

    assert obj.key == key(metadata["name"], metadata.get("namespace", ""))
    assert (obj.uid, obj.resource_version) == (metadata["uid"], metadata["resourceVersion"])
    assert obj.resource is PODS


@pytest.mark.parametrize(
    ("metadata", "left"),
    [
        (b'{"managedFields":[],"name":"a"}', b'{"name":"a"}'),
        (b'{"name":"a","managedFields":[]}', b'{"name":"a"}'),
        (b'{"name":"a","managedFields":[],"uid":"u"}', b'{"name":"a","uid":"u"}'),
        (b'{"name":"a" , "managedFields" : [] }', b'{"name":"a"  }'),
        (b'{ "managedFields": [] , "name":"a"}', b'{  "name":"a"}'),
        (b'{"name":"a","managedFields":null}', b'{"name":"a"}'),
    ],
    ids=["first", "last", "middle", "spaced last", "spaced first", "null"],
)
def test_one_comma_is_cut_with_the_managed_fields(metadata: bytes, left: bytes) -> None:
    raw = b'{"metadata":%s,"spec":{}}' % metadata

    assert built(raw).raw == b'{"metadata":%s,"spec":{}}' % left


def test_managed_fields_are_cut_wherever_they_stand() -> None:
    raw = b'{"metadata":{"managedFields":[{}],"name":"a"}}'

    assert remove_managed_fields(raw, b"[{}]") == b'{"metadata":{"name":"a"}}'


@pytest.mark.parametrize(
    "spelled", [b'"managedFields":[],', b'"managedFields": [],', b'"managedFields" :[],']
)
def test_managed_fields_behind_metadata_stay_in_any_spelling(spelled: bytes) -> None:
    for before in (b"", b'"uid":"u",'):
        raw = b'{"metadata":{%b%b"name":"a"},"data":{"a":1,"managedFields":[]}}'

        assert built(raw % (before, spelled)).raw == raw % (before, b"")


def test_a_value_that_begins_like_the_managed_fields_stays() -> None:
    """The decoder tries the longer number first, and what is left of it is no JSON."""
    raw = b'{"data":{"managedFields":12},"metadata":{"name":"a","managedFields":1}}'

    assert built(raw).raw == b'{"data":{"managedFields":12},"metadata":{"name":"a"}}'


def test_an_equal_value_in_data_before_metadata_stays() -> None:
    """The first match is not the right one here: metadata does not lead."""
    body = {"data": {"managedFields": MANAGED}, "metadata": {"name": "a", "managedFields": MANAGED}}

    assert json.loads(built(encode(body)).raw) == {
        "data": {"managedFields": MANAGED},
        "metadata": {"name": "a"},
    }


def test_an_equal_value_between_two_metadata_stays() -> None:
    """A pod template has metadata of its own, and custom resources may come in any order."""
    template = {"metadata": {"name": "x", "managedFields": MANAGED}}
    body = {
        "a": {"metadata": {"managedFields": MANAGED}},
        "spec": template,
        "metadata": {"managedFields": MANAGED, "name": "a"},
        "z": template,
    }

    assert json.loads(built(encode(body)).raw) == body | {"metadata": {"name": "a"}}


@pytest.mark.parametrize("value", [b"[]", b"null"])
def test_a_key_of_that_name_beside_metadata_stays(value: bytes) -> None:
    """The object's first brace is the one of its metadata, and yet the match is not in there."""
    raw = b'{"managedFields":%b,"metadata":{"name":"a","managedFields":%b}}' % (value, value)

    assert built(raw).raw == b'{"managedFields":%b,"metadata":{"name":"a"}}' % value


def test_metadata_in_an_array_is_not_taken_for_the_metadata_of_the_object() -> None:
    body: dict[str, Any] = {
        "conditions": [{"metadata": {"managedFields": []}}],
        "metadata": {"name": "a", "managedFields": []},
    }

    assert json.loads(built(encode(body)).raw) == body | {"metadata": {"name": "a"}}


def test_an_annotation_that_quotes_them_stays() -> None:
    """The annotation of ``kubectl apply`` is a whole object as text, with managedFields."""
    text = json.dumps({"metadata": {"managedFields": MANAGED}}, separators=(",", ":"))
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": text, "managedFields": "[]"}
    body = {"metadata": {"name": "a", "annotations": annotations, "managedFields": MANAGED}}

    obj = built(encode(body))

    assert obj.annotations == annotations
    assert b'"managedFields":[{' not in obj.raw


def test_an_escaped_spelling_of_the_key_leaves_the_object_as_it_is() -> None:
    """No server writes this; cutting the wrong bytes would be worse than cutting none."""
    raw = b'{"metadata":{"name":"a","managed\\u0046ields":[]}}'

    assert built(raw).raw == raw


def test_an_escaped_spelling_beside_a_look_alike_leaves_both() -> None:
    raw = b'{"data":{"managedFields":[]},"metadata":{"name":"a","managed\\u0046ields":[]}}'

    assert built(raw).raw == raw


def test_only_the_given_part_of_the_source_counts() -> None:
    source = b'[{"metadata":{"name":"a","managedFields":[]}},{"metadata":{"name":"b"}}]'
    end = source.index(b"}},") + 2

    obj = decode_object(
        PODS, decode_envelope(source[1:end]).metadata, source, 1, end, managed_fields=False
    )

    assert obj.raw == b'{"metadata":{"name":"a"}}'


def test_metadata_behind_the_object_is_not_taken_for_its_own() -> None:
    raw = b'{"a":1,"managedFields":[1],"metadata":{"name":"a","managedFields":[1]}}'
    source = raw + b',{"metadata":{'

    obj = decode_object(
        PODS, decode_envelope(raw).metadata, source, 0, len(raw), managed_fields=False
    )

    assert obj.raw == b'{"a":1,"managedFields":[1],"metadata":{"name":"a"}}'


def test_the_object_has_bytes_of_its_own() -> None:
    """A view kept for one object would keep a whole response alive."""
    source = b"x" * 1000 + b'{"metadata":{"name":"a"}}' + b"x" * 1000

    obj = decode_object(
        PODS, decode_envelope(source[1000:1025]).metadata, source, 1000, 1025, managed_fields=False
    )

    assert type(obj.raw) is bytes
    assert obj.raw == source[1000:1025]


def test_objects_of_a_namespace_share_one_string_for_it() -> None:
    first, second = (
        built(b'{"metadata":{"name":"%s","namespace":"team-blue"}}' % name) for name in (b"a", b"b")
    )

    assert first.namespace is second.namespace


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b'{"metadata":{}}',
        b'{"metadata":{"name":1}}',
        b'{"metadata":{"name":"a"}',
        b'{"metadata":{"name":"a"}},',
        b'{"metadata":{"name":"a"}}{}',
    ],
)
def test_an_envelope_is_exactly_one_object_with_a_name(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_envelope(raw)


@pytest.mark.parametrize(
    "raw",
    [
        rb'{"spec":{"x\"managedFields":[1]},"metadata":{"name":"a","managedFields":[1]}}',
        rb'{"a\"metadata":{"managedFields":[1]},"metadata":{"name":"a","managedFields":[1]}}',
        rb'{"metadata":{"labels":{"x\"managedFields":"[1]"},"name":"a","managedFields":[1]}}',
    ],
)
def test_a_key_that_ends_in_an_escaped_look_alike_is_another_key(raw: bytes) -> None:
    assert json.loads(built(raw).raw) == unmanaged(json.loads(raw))


# -- one object of many ------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_an_object_is_decoded_in_the_middle_of_other_bytes(packed: bool) -> None:
    def body(name: str) -> dict[str, Any]:
        metadata = {
            "name": name,
            "namespace": "web",
            "labels": {"of": name},
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "managedFields": MANAGED,
        }
        return {"metadata": metadata, "spec": {"of": name}}

    raws = [encode(body(name)) for name in "abc"]
    source, start = b",".join(raws), len(raws[0]) + 1
    end = start + len(raws[1])
    obj = decode_object(
        PODS,
        decode_envelope(raws[1]).metadata,
        source,
        start,
        end,
        managed_fields=False,
        packed=packed,
    )

    assert obj.raw == encode(unmanaged(body("b")))
    assert (obj.key, obj.uid, obj.resource_version) == (key("b"), "uid-b", "7")


@pytest.mark.parametrize("packed", [False, True])
def test_uid_and_version_are_those_of_the_metadata_wherever_they_stand(packed: bool) -> None:
    raw = b'{"metadata":{"name":"a","uid":"\\u0075","resourceVersion":"7"}}'
    obj = decode_object(
        PODS,
        decode_envelope(raw).metadata,
        raw,
        0,
        len(raw),
        managed_fields=False,
        packed=packed,
    )

    assert (obj.uid, obj.resource_version, obj.raw) == ("u", "7", raw)


@pytest.mark.parametrize(
    ("raw", "typed"),
    [
        (
            b'{"metadata":{"name":"a"},"spec":{}}',
            b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{}}',
        ),
        (b'{"kind":"Pod","metadata":{"name":"a"}}', b'{"kind":"Pod","metadata":{"name":"a"}}'),
    ],
)
def test_an_item_that_begins_with_its_metadata_receives_its_type(raw: bytes, typed: bytes) -> None:
    obj = decode_object(
        PODS,
        decode_envelope(raw).metadata,
        raw,
        0,
        len(raw),
        managed_fields=False,
        type_meta=encode_type_meta(PODS),
    )

    assert obj.raw == typed


def test_the_type_of_an_object_is_the_beginning_of_its_bytes_in_a_watch() -> None:
    assert encode_type_meta(PODS) == b'{"kind":"Pod","apiVersion":"v1",'
    assert encode_type_meta(WIDGETS) == b'{"kind":"Widget","apiVersion":"example.com/v1",'
    assert encode_type_meta(Resource("example.com", "v1", "widgets", "")) == b""

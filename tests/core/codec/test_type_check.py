"""The check of the kind and of the namespace of objects."""

from __future__ import annotations

import msgspec
import pytest

from aioinformer._core.codec.type_check import (
    PLAIN_HEADS,
    find_other_namespace,
    find_other_type,
    iter_line_heads,
    read_other_type,
)
from aioinformer._core.objects.resources import Resource
from tests.core.builders import PODS, WIDGETS


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("Pod", "v1"),
        ("", "v1"),
        ("Pod", ""),
        ("", ""),
        ("PartialObjectMetadata", "meta.k8s.io/v1"),
        ("PartialObjectMetadata", "anything"),
    ],
)
def test_an_object_of_the_resource_has_no_other_type(kind: str, api_version: str) -> None:
    assert find_other_type(PODS, kind, api_version) == ""


@pytest.mark.parametrize(
    ("kind", "api_version", "shown"),
    [
        ("Node", "v1", "Node of v1"),
        ("", "v2", "no kind of v2"),
        ("Node", "", "Node of no apiVersion"),
        ("Pod", "v2", "Pod of v2"),
        ("Pod", "v" * 80, "Pod of " + "v" * 80),
        ("Pod", "v" * 81, "Pod of " + "v" * 80 + "..."),
    ],
)
def test_another_type_is_described(kind: str, api_version: str, shown: str) -> None:
    assert find_other_type(PODS, kind, api_version) == (
        f"of another kind: {shown}, where Pod of v1 was expected"
    )


@pytest.mark.parametrize(
    ("api_version", "hint"),
    [("example.com/v1", "; is the kind= of the Resource right?"), ("example.com/v2", "")],
)
def test_a_kind_that_the_program_has_named_is_doubted(api_version: str, hint: str) -> None:
    shops = Resource("example.com", "v1", "shops", "Store")
    assert find_other_type(shops, "Shop", api_version) == (
        f"of another kind: Shop of {api_version}, where Store of example.com/v1 was expected{hint}"
    )


def test_any_type_is_accepted_of_a_resource_without_a_kind() -> None:
    assert find_other_type(Resource("example.com", "v1", "widgets", ""), "Node", "v1") == ""


def test_the_type_is_read_from_the_bytes_of_an_object() -> None:
    assert read_other_type(PODS, b'{"kind":"Pod","apiVersion":"v1","spec":{}}') == ""
    assert read_other_type(PODS, b"{}") == ""
    other = read_other_type(PODS, b'{"apiVersion":"v1","spec":{},"kind":"Node"}')
    assert other == "of another kind: Node of v1, where Pod of v1 was expected"
    with pytest.raises(msgspec.DecodeError):
        read_other_type(PODS, b'{"kind":1}')


@pytest.mark.parametrize(
    ("expected", "namespace", "description"),
    [
        (None, "web", ""),
        ("web", "web", ""),
        ("web", "shop", "in another namespace: shop"),
        ("web", "", "in another namespace: none"),
        ("", "shop", "in another namespace: shop"),
        ("web", "n" * 81, "in another namespace: " + "n" * 80 + "..."),
    ],
)
def test_another_namespace_is_described(
    expected: str | None, namespace: str, description: str
) -> None:
    assert find_other_namespace(expected, namespace) == description


def test_the_head_of_a_line_ends_before_the_next_member() -> None:
    begin = b'{"type":"ADDED","object":'
    assert PLAIN_HEADS[b"A"] == ("Added", begin + b"{", len(begin))
    assert [(letter, kind) for letter, (kind, _, _) in PLAIN_HEADS.items()] == [
        (b"A", "Added"),
        (b"M", "Updated"),
        (b"D", "Deleted"),
    ]


def test_each_usual_spelling_of_the_type_has_a_head() -> None:
    begin = b'{"type":"MODIFIED","object":'
    assert [heads[b"M"] for heads in iter_line_heads(WIDGETS)] == [
        ("Updated", begin + type_meta, len(begin))
        for type_meta in (
            b'{"kind":"Widget","apiVersion":"example.com/v1",',
            b'{"apiVersion":"example.com/v1","kind":"Widget",',
            b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",',
            b'{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",',
        )
    ]

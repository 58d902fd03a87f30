"""The decoder of labels."""

from __future__ import annotations

import msgspec
import pytest

from aioinformer._core.objects.label_decoder import decode_labels


@pytest.mark.parametrize(
    ("raw", "labels"),
    [
        (b'{"metadata":{"labels":{"a":"b","c":""}},"spec":{"labels":1}}', {"a": "b", "c": ""}),
        (b'{"metadata":{"labels":{}}}', {}),
        (b'{"metadata":{"labels":null}}', {}),
        (b'{"metadata":{"name":"a"}}', {}),
        (b'{"metadata":{"labels":{"a":"b"}},"x":' + b"[" * 3000 + b"]" * 3000 + b"}", {"a": "b"}),
    ],
    ids=["two", "an empty mapping", "null", "none", "a deep body"],
)
def test_the_labels_are_read_and_nothing_else(raw: bytes, labels: dict[str, str]) -> None:
    assert decode_labels(raw) == labels


@pytest.mark.parametrize("raw", [b'{"metadata":{"labels":{"a":1}}}', b"{}", b"x"])
def test_invalid_labels_are_an_error(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_labels(raw)

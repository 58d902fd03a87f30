"""Tests of YAML bodies: the scalars of Go's library; the real server's answers are recorded."""

from __future__ import annotations

import pytest

from aioinformer.testing.wire.yaml_bodies import decode_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("Off", False),
        ("'y'", "y"),
        ("2026-01-01", "2026-01-01"),
        ("12:30", "12:30"),
        ("1e3", 1000),
        ("1.5", 1.5),
        ("0x10", 16),
        ("010", 8),
        ("~", None),
        ("{2: a, true: b, null: c}", {"2": "a", "true": "b", "null": "c"}),
        ("- a\n- {b: [1]}", ["a", {"b": [1]}]),
        ("1.2.3", "1.2.3"),
        ("yesterday", "yesterday"),
        ("", None),
    ],
)
def test_scalars_are_decoded_as_by_the_yaml_library_of_go(text: str, value: object) -> None:
    assert decode_yaml(text.encode()) == value


@pytest.mark.parametrize(
    "body", [b"a: [", b"a: b: c", b"a\n---\nb", b"\xff\xfe\xff", b"!!python/x 1"]
)
def test_invalid_yaml_raises_an_error_of_one_line(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"^yaml: [^\n]*$"):
        decode_yaml(body)

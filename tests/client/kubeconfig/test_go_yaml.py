"""YAML by the rules of Go's library; the judge of each value is sigs.k8s.io/yaml 1.6."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from aioinformer._client.kubeconfig.go_yaml import YamlError, decode_yaml, decode_yaml_documents
from tests.client.kubeconfig.kubectl_cases import BOMB


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
        ("08", 8),
        ("1_0", 10),
        ("0b11", 3),
        ("-0o17", -15),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 18446744073709551616),
        ("0xFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFF"),
        ("1e21", 1e21),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        (".5", 0.5),
        ("._5", "._5"),
        ("=", "="),
        ("~", None),
        ("! 1", "1"),
        ("!!str 1", "1"),
        ("!!float 1", 1),
        ("!!binary YQ==", "a"),
        ("!!binary /w==", "\ufffd"),
        ("!!python/x 1", "1"),
        ("{2: a, true: b, 1.5: c}", {"2": "a", "true": "b", "1.5": "c"}),
        ("{a: &x [1], b: *x, c: &x 2, d: *x}", {"a": [1], "b": [1], "c": 2, "d": 2}),
        ("{<<: {a: 1}, a: 2}", {"a": 2}),
        ("{a: 2, <<: {a: 1}}", {"a": 1}),
        ("{<<: [{a: 1}, {a: 2, b: 3}]}", {"a": 1, "b": 3}),
        ("{'<<': 1}", {"<<": 1}),
        ("a\n---\nb", "a"),
        ("- a\n- {b: [1]}", ["a", {"b": [1]}]),
        ("1.2.3", "1.2.3"),
        ("yesterday", "yesterday"),
        ("", None),
    ],
)
def test_scalars_are_decoded_as_by_the_yaml_library_of_go(text: str, value: object) -> None:
    assert decode_yaml(text.encode()) == value


@pytest.mark.parametrize(
    "body",
    [
        b"a: [",
        b"a: b: c",
        b"\xff\xfe\xff",
        b"{null: c}",
        b"{[a]: c}",
        b"!!int a",
        b"!!bool 1",
        b"!!binary '*'",
        b".inf",
        b"-.nan: 1\n.nan: .NaN",
        b"*a",
        b"&a [*a]",
        b"<<: 1",
        b"- " * 5000,
    ],
)
def test_invalid_yaml_raises_an_error_of_one_line(body: bytes) -> None:
    with pytest.raises(YamlError, match=r"^[^\n]+$"):
        decode_yaml(body)


def test_each_document_of_a_stream_is_read_when_it_is_asked_for() -> None:
    documents = decode_yaml_documents(b"a\n---\n---\n1\n---\n[\n")

    assert [next(documents) for _ in range(3)] == ["a", None, 1]
    with pytest.raises(YamlError, match="line"):
        next(documents)


# -- aliases -----------------------------------------------------------------------------------

LONG = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 5000)}]"


@pytest.mark.parametrize("text", [BOMB, LONG], ids=["of aliases", "of a long text"])
def test_excessive_aliases_are_refused_before_they_take_memory(text: str) -> None:
    tracemalloc.start()
    with pytest.raises(YamlError, match=r"document contains excessive aliasing$"):
        decode_yaml(text.encode())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 10_000_000


def test_the_values_of_aliases_are_not_shared() -> None:
    found: Any = decode_yaml(b"{a: &x [[1]], b: *x}")

    found["a"][0].append(2)
    assert found == {"a": [[1, 2]], "b": [[1]]}

"""Scanners of JSON that arrives in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.codec.json_scanner import MAX_KEY_BYTES, BraceScanner, ItemsScanner

TEXTS = st.text(alphabet='a{}[]":,\\ ', max_size=5)
VALUES = st.recursive(
    TEXTS | st.integers(0, 9),
    lambda inner: st.dictionaries(TEXTS, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)


def find_end(data: bytes, size: int) -> int | None:
    """Scan the data in pieces of that size, and return the offset of the end in all of it."""
    scanner = BraceScanner()
    for start in range(0, len(data), size):
        end = scanner.find_end(data[start : start + size], 0)
        if end is not None:
            return start + end
    return None


def find_array(data: bytes, size: int) -> tuple[int | None, int]:
    """Scan a buffer that grows by that size; return the offset and the number of keys."""
    scanner = ItemsScanner()
    for end in range(size, len(data) + size, size):
        found = scanner.find_array(data[:end])
        if found is not None:
            return found, scanner.occurrences
    return None, scanner.occurrences


@given(st.dictionaries(TEXTS, VALUES, max_size=3), st.integers(1, 9))
def test_the_closing_brace_of_any_object_is_found(value: dict[str, Any], size: int) -> None:
    data = json.dumps(value).encode()

    assert find_end(data + b"} ,{", size) == len(data)
    assert find_end(data[:-1], size) is None


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 100])
@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b'{"a\\"}":"{"}',
        b'{"\\\\":{"}":"{"},"b":[{}]}',
        b'{"a":"\\\\\\"}","b":{"c":{}}}',
        b'{"\\u007d}\\n":"\\"{\\"","":[{"a":{}},{}]}',
    ],
)
def test_the_closing_brace_is_found_wherever_the_bytes_are_cut(data: bytes, size: int) -> None:
    assert find_end(data + b'} ,{"', size) == len(data)
    assert all(find_end(data[:end], size) is None for end in range(len(data)))


def test_the_scan_of_an_object_begins_at_the_offset() -> None:
    assert BraceScanner().find_end(b'}"{}', 2) == 4


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("before", "key"),
    [
        (b"{", b'"items"'),
        (b'{"metadata":{"items":[1],"x":"}"},', b'"items"'),
        (b'{"a":"\\"items\\":[",', b'"items"'),
        (b'{"a":"items","b":"\\\\",', b'"items"'),
        (b'{"a":{"b":{"c":{}},"items":[2]},', b'"items"'),
        (b'{"itemz":[{"items":[]}],"a" :1, ', b'"items"'),
        (b"{", b'"\\u0069tems"'),
        (b"{", b'"\\u0069\\u0074\\u0065\\u006d\\u0073"'),
        (b'{"\\ud800":1,"\\x":2,"' + b"i" * MAX_KEY_BYTES + b'":3,', b'"items"'),
    ],
)
def test_the_array_of_the_outermost_object_is_found(before: bytes, key: bytes, size: int) -> None:
    data = before + key + b' : \n[{"a":1}]}'

    assert find_array(data, size) == (data.index(b"[{", len(before)) + 1, 1)


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"{}", 0),
        (b'{"a":["items",1]}', 0),
        (b'{"items":null}', 1),
        (b'{"items":', 1),
        (b'{"items":null,"items" :{}}', 2),
        (b'{"items":"[","a":"["}', 1),
        (b'{"a":{"items":[]}}', 0),
    ],
)
def test_a_value_of_another_type_is_no_array(data: bytes, count: int, size: int) -> None:
    assert find_array(data, size) == (None, count)


def test_a_key_behind_the_array_counts_as_well() -> None:
    scanner = ItemsScanner()
    head = b'{"items":['
    assert scanner.find_array(head) == len(head)
    scanner.rebase()

    assert scanner.find_array(b'],"a":1,"items') is None
    assert scanner.occurrences == 1
    assert scanner.find_array(b'],"a":1,"items":null}') is None
    assert scanner.occurrences == 2


def test_a_text_before_the_array_is_no_key_of_another_buffer() -> None:
    scanner = ItemsScanner()
    head = b'{"items":['
    scanner.find_array(head)
    scanner.rebase()

    scanner.find_array(b'"items"'[:7].ljust(len(head)) + b":1")
    assert scanner.occurrences == 2, "the key begins at the start of the buffer"


def test_a_colon_without_a_text_before_it_belongs_to_no_key() -> None:
    scanner = ItemsScanner()
    scanner.find_array(b'{"items":[')
    scanner.rebase()
    scanner.find_array(b' "items":'[9:] + b"]:  ")

    assert scanner.occurrences == 1

"""The layout of a line that has metadata with managedFields at its end, before the next member."""

from __future__ import annotations

import pytest
from msgspec import UNSET, Raw, UnsetType

from aioinformer._core.codec.metadata_head import find_end

TYPE = b'{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1",'
NAMES = b'"metadata":{"name":"a","uid":"u","resourceVersion":"7"'
FIELDS = b'[{"manager":"m"}]'
FOUND = Raw(FIELDS)
CUT = b',"managedFields":'
REST = b'},"spec":{"x":[{"managedFields":1}]}}}'
LINE = TYPE + NAMES + CUT + FIELDS + REST


def end_of(
    line: bytes, *, start: int = len(TYPE), managed_fields: Raw | UnsetType = FOUND
) -> bytes:
    return find_end(line, start, managed_fields)


def test_the_end_is_that_of_metadata_with_the_name_of_the_next_member() -> None:
    assert end_of(LINE) == b']},"spec":'
    assert end_of(LINE.replace(b'"spec"', b'"binaryData"')) == b']},"binaryData":'


def test_an_earlier_line_of_the_same_buffer_does_not_count() -> None:
    assert end_of(LINE + b"\n" + LINE, start=len(LINE) + 1 + len(TYPE)) == b']},"spec":'
    other = LINE.replace(b'"spec"', b'"data"')
    assert end_of(other + b"\n" + LINE, start=len(LINE) + 1 + len(TYPE)) == b']},"spec":'


def test_the_first_managed_fields_are_those_of_metadata() -> None:
    nested = b'},"spec":{"a":1,"managedFields":[{"manager":"m"}]},"status":{}}}'
    assert end_of(TYPE + NAMES + CUT + FIELDS + nested) == b']},"spec":'


def test_a_bracket_before_the_managed_fields_does_not_end_them() -> None:
    owners = NAMES + b',"ownerReferences":[{"name":"o"}]'
    assert end_of(TYPE + owners + CUT + FIELDS + REST) == b']},"spec":'


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(TYPE + NAMES + REST, id="no managedFields"),
        pytest.param(TYPE + NAMES + CUT + FIELDS + b',"z":1' + REST, id="not the last member"),
        pytest.param(TYPE + NAMES + CUT + FIELDS + b"}}}", id="no next member"),
        pytest.param(TYPE + NAMES + CUT + FIELDS + b'},"a b":1}}', id="a name with a space"),
        pytest.param(TYPE + NAMES.replace(b'":{', b'" :{') + CUT + FIELDS + REST, id="a space"),
        pytest.param(TYPE + b'"spec":{},' + LINE[len(TYPE) :], id="another member before"),
        pytest.param(
            TYPE + NAMES.replace(b',"uid":"u"', b"") + CUT + FIELDS + b',"uid":"u"' + REST,
            id="the uid is behind",
        ),
        pytest.param(
            TYPE + b'"metadata":{"name":"a","resourceVersion":"7"' + CUT + FIELDS + REST,
            id="no uid",
        ),
        pytest.param(
            TYPE + NAMES + b',"x":{"y":1' + CUT + FIELDS + b'},"z":1}' + REST,
            id="those of another member",
        ),
    ],
)
def test_a_line_of_another_layout_has_no_end(line: bytes) -> None:
    assert end_of(line) == b""


def test_other_bytes_than_the_value_that_was_found_are_another_layout() -> None:
    assert end_of(LINE, managed_fields=Raw(b'[{"manager":"n"}]')) == b""
    assert end_of(LINE, managed_fields=UNSET) == b""


def test_brackets_in_a_string_of_the_managed_fields_are_another_layout() -> None:
    fields = b'[{"manager":"]},\\"spec\\":"}]'
    line = TYPE + NAMES + CUT + fields + REST
    assert end_of(line, managed_fields=Raw(fields)) == b""

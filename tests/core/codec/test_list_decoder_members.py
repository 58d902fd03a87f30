"""The members of a list are found in any legal spelling, or the list is rejected."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.errors import ProtocolError
from tests.core import strategies
from tests.core.builders import WIDGETS

ITEM = '{"metadata":{"name":"a"}}'
TYPE = {"kind": WIDGETS.kind, "apiVersion": WIDGETS.api_version}
VERSION = '"metadata":{"resourceVersion":"7"}'


def decode(body: bytes, size: int = 10**9) -> list[KubeObject]:
    """Decode a list that arrives in pieces of ``size`` bytes."""
    decoder = ListDecoder(WIDGETS)
    objects: list[KubeObject] = []
    for start in range(0, len(body), size):
        objects += decoder.feed(body[start : start + size])
    return objects + decoder.close()[0]


def escaped(text: str, which: int) -> str:
    """Return ``text`` as JSON, in which the letters that ``which`` has a bit for are escaped."""
    letters = [
        f"\\u{ord(letter):04x}" if which >> place & 1 else letter
        for place, letter in enumerate(text)
    ]
    return f'"{"".join(letters)}"'


@pytest.mark.parametrize("size", [1, 7, 10**9])
@pytest.mark.parametrize("which", [1, 4, 31])
def test_an_escaped_key_is_the_same_key(which: int, size: int) -> None:
    body = f"{{{VERSION},{escaped('items', which)}:[{ITEM}]}}".encode()

    assert [obj.name for obj in decode(body, size)] == ["a"]


@pytest.mark.parametrize("size", [1, 7, 10**9])
@pytest.mark.parametrize(
    "members",
    [
        f'"items":[],"items":[{ITEM}]',
        f'"items":[{ITEM}],"items":[]',
        f'"items":[{ITEM}],"it\\u0065ms":null',
        f'"items":null,"items":[{ITEM}]',
        f'"items":[{ITEM}],"items":[{ITEM}]',
        '"items":null,"items":null',
    ],
)
def test_items_that_occur_twice_are_rejected(members: str, size: int) -> None:
    with pytest.raises(ProtocolError, match="'items' occurs more than once"):
        decode(f"{{{VERSION},{members}}}".encode(), size)


_spaces = st.sampled_from(["", "", " ", "\n\t", "\r\n"])
_items_keys = st.integers(0, 31).map(lambda which: escaped("items", which))
_other_keys = st.sampled_from(["kind", "item", "Items", "items ", 'it"ems', "x", ""]).map(
    json.dumps
) | strategies.texts.map(json.dumps)
_arrays = st.lists(strategies.objects(), max_size=3)


@st.composite
def list_texts(draw: st.DrawFn) -> bytes:
    """Draw a list whose keys are spelled in any way, and may occur several times."""

    def member(key: str, value: object) -> str:
        spelled = draw(strategies.json_styles)(value).decode()
        return f"{key}{draw(_spaces)}:{draw(_spaces)}{spelled}"

    members = [member(draw(_items_keys), draw(_arrays)) for _ in range(draw(st.integers(0, 2)))]
    members += [
        member(draw(_other_keys), draw(strategies.values)) for _ in range(draw(st.integers(0, 3)))
    ]
    members.append(member(escaped("metadata", draw(st.integers(0, 255))), {"resourceVersion": "7"}))
    separator = f"{draw(_spaces)},{draw(_spaces)}"
    return f"{{{separator.join(draw(st.permutations(members)))}}}".encode()


def has_other_type(item: dict[str, Any]) -> bool:
    """Return True if an item states a type that is not that of the resource."""
    return any(item.get(key, own) != own for key, own in TYPE.items())


@given(list_texts(), st.sampled_from([1, 5, 64, 10**9]))
def test_a_list_has_the_items_that_json_loads_finds_or_is_rejected(body: bytes, size: int) -> None:
    expected: dict[str, Any] = json.loads(body)

    try:
        objects = decode(body, size)
    except ProtocolError:
        pairs = json.loads(body, object_pairs_hook=list)
        # A kind that is no text is rejected, too, and so is an item of another type.
        assert (
            [key for key, _ in pairs].count("items") != 1
            or any(key == "kind" for key, _ in pairs)
            or any(has_other_type(item) for item in expected["items"])
        )
    else:
        # An item in the server's usual spelling is stored with the type that it has in a watch.
        stored = [TYPE | json.loads(obj.raw) for obj in objects]
        assert stored == [TYPE | item for item in expected["items"]]


# -- work --------------------------------------------------------------------------------------

MAX_CPU = 10.0
"""CPU seconds for a body of 2 MB: 0.2 to 1.1 on a machine without other work. Work that grows with
the square of the size takes 60 times as long."""


def feed_in_slices(body: bytes, most: int = 128 * 1024) -> tuple[list[str], float, float]:
    """Return the names, the CPU seconds in all, and those of the longest call."""
    decoder, names, longest, total = ListDecoder(WIDGETS), list[str](), 0.0, 0.0
    start = 0
    while start < len(body):
        end = start + min(decoder.slice_bytes, most)
        began = time.thread_time()
        names += [obj.name for obj in decoder.feed(body[start:end])]
        took = time.thread_time() - began
        start, total, longest = end, total + took, max(longest, took)
    return names + [obj.name for obj in decoder.close()[0]], total, longest


@pytest.mark.parametrize(
    "look_alike",
    ['{"items":[]}', '"\\"items\\":["', '"\\\\",{"a":"items"}', "{}", '"items"'],
)
def test_false_beginnings_in_a_head_take_linear_time(look_alike: str) -> None:
    many = ",".join([look_alike] * (1_000_000 // (len(look_alike) + 1)))
    names, total, longest = feed_in_slices(f'{{{VERSION},"x":[{many}],"items":[{ITEM}]}}'.encode())

    assert names == ["a"]
    assert total < MAX_CPU
    assert longest < 0.04  # CPU seconds of a machine that may be busy; 0.004 on an idle one


@pytest.mark.parametrize("filler", ['"xxxxxxxxxxxxxxxx",', "{},", '"\\n",'], ids=repr)
def test_the_bytes_of_a_long_item_are_scanned_and_copied_a_few_times_only(filler: str) -> None:
    count = 2_000_000 // len(filler)
    item = f'{{"metadata":{{"name":"a"}},"spec":[{filler * count}0]}}'
    body = f'{{{VERSION},"items":[{item},{ITEM}]}}'.encode()
    names, total, _ = feed_in_slices(body, 64 * 1024)

    assert names == ["a", "a"]
    assert total < MAX_CPU


def test_a_long_item_in_tiny_pieces_takes_memory_in_proportion_to_its_size() -> None:
    decoder = ListDecoder(WIDGETS)
    decoder.feed(f'{{{VERSION},"items":[{{"metadata":{{"name":"a"}},"x":"'.encode())
    for _ in range(100_000):
        decoder.feed(b"xy")
    (obj,) = decoder.feed(b'"}]}')

    assert len(obj.raw) > 200_000
    assert decoder.close()[1].resource_version == "7"

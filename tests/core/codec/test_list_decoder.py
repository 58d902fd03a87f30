"""A list response's bytes become objects."""

from __future__ import annotations

import copy
import json
import re
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._core.codec.line_splitter import LINE_CAP
from aioinformer._core.codec.list_decoder import HEAD_CAP, ITEM_CAP, ListDecoder, ListEnvelope
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import ProtocolError, UnexpectedObject
from tests.client.recordings import read_recording
from tests.core import strategies
from tests.core.builders import PODS, WIDGETS, encode, pod_body, pod_list
from tests.core.strategies import JsonStyle

RECORDED: dict[str, tuple[Resource, int, bool]] = {
    # recording: what is listed, items, whether there are more pages
    "10-list-page-1": (PODS, 3, True),
    "11-list-page-2": (PODS, 3, True),
    "12-list-page-3-last": (PODS, 2, False),
    "13-list-rv0": (PODS, 8, False),
    "14-list-rv0-limit3": (PODS, 8, False),
    "15-list-rv-exact": (PODS, 2, True),
    "16-list-label-selector": (PODS, 3, False),
    "17-list-field-selector": (PODS, 4, False),
    "18-list-all-namespaces": (PODS, 9, False),
    "19-list-partial-metadata": (PODS, 2, True),
    "44-list-pretty-for-browser-agent": (WIDGETS, 2, True),
    "50-cr-list": (WIDGETS, 3, False),
    "54-list-shard-selector": (PODS, 8, False),
    "56-list-chunked-large": (PODS, 40, True),
    "57-list-expired-continue": (PODS, 5, True),
    "58-list-exact-compacted": (PODS, 2, True),
    "65-list-shard-lower": (PODS, 0, False),
    "65-list-shard-upper": (PODS, 1, False),
}

ALL_LISTS = pytest.mark.parametrize("name", RECORDED)


def decoded(
    pieces: list[bytes], resource: Resource = PODS, *, managed_fields: bool = True
) -> tuple[list[KubeObject], ListEnvelope]:
    """Decode a response that arrives in ``pieces``."""
    decoder = ListDecoder(resource, managed_fields=managed_fields)
    objects = [obj for piece in pieces for obj in decoder.feed(piece)]
    rest, frame = decoder.close()
    assert decoder.count == len(objects) + len(rest)
    return objects + rest, frame


TYPE_META = b'{"kind":"Pod","apiVersion":"v1",'


def sent_bytes(obj: KubeObject) -> bytes:
    """Return the bytes of the list, without the type that the decoder has added."""
    completed = obj.raw.startswith(TYPE_META + b'"metadata":{')
    return b"{" + obj.raw.removeprefix(TYPE_META) if completed else obj.raw


def bodies(objects: list[KubeObject]) -> list[Any]:
    """Return the JSON of each, by its own bytes, without its type."""
    return untyped([json.loads(obj.raw) for obj in objects])


def untyped(items: list[Any]) -> list[Any]:
    """Return copies of items without the type of a pod, which the decoder adds where it lacks."""
    added = {"kind": "Pod", "apiVersion": "v1"}
    return [
        {name: value for name, value in item.items() if added.get(name, ...) != value}
        for item in items
    ]


def cut(data: bytes, size: int) -> list[bytes]:
    """Cut ``data`` into pieces of ``size`` bytes."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def held(decoder: ListDecoder) -> int:
    """Return the bytes in its buffer."""
    found = re.search(r"held=(\d+) B", repr(decoder))
    assert found
    return int(found[1])


# -- recorded lists ------------------------------------------------------------------------------


@ALL_LISTS
def test_a_recorded_list_is_decoded(name: str) -> None:
    resource, count, more = RECORDED[name]
    sent = json.loads(read_recording(name).body)

    objects, frame = decoded([read_recording(name).body], resource)

    assert bodies(objects) == untyped(sent["items"])
    assert len(objects) == count
    assert frame.resource_version == sent["metadata"]["resourceVersion"]
    assert frame.continue_token == sent["metadata"].get("continue", "")
    assert frame.remaining == sent["metadata"].get("remainingItemCount")
    assert bool(frame.continue_token) == more


@ALL_LISTS
def test_a_recorded_list_loses_its_managed_fields(name: str) -> None:
    resource = RECORDED[name][0]
    items = copy.deepcopy(json.loads(read_recording(name).body)["items"])
    for item in items:
        item["metadata"].pop("managedFields", None)

    objects, _ = decoded([read_recording(name).body], resource, managed_fields=False)

    assert bodies(objects) == untyped(items)


@ALL_LISTS
@given(data=st.data())
@settings(max_examples=settings().max_examples // 4)  # of each of the lists
def test_a_recorded_list_is_decoded_the_same_in_any_chunks(name: str, data: st.DataObject) -> None:
    resource, body = RECORDED[name][0], read_recording(name).body

    objects, frame = decoded(data.draw(strategies.chunks(body)), resource)

    assert (objects, frame) == decoded([body], resource)


def test_an_object_is_returned_when_the_next_one_begins() -> None:
    """The response is never held whole."""
    body = read_recording("13-list-rv0").body
    decoder = ListDecoder(PODS)

    arrived: list[int] = []
    for piece in cut(body, 500):
        decoder.feed(piece)
        arrived.append(decoder.count)

    assert arrived[-1] == 7, "all but the last"
    assert arrived == sorted(arrived)
    assert len(set(arrived)) == 8
    assert len(decoder.close()[0]) == 1


# -- any list ------------------------------------------------------------------------------------


@given(strategies.lists(), strategies.json_styles, st.data())
def test_any_list_in_any_spelling_and_any_pieces_is_decoded(
    body: dict[str, Any], spelling: JsonStyle, data: st.DataObject
) -> None:
    """Key order, separators, look-alikes of both inside, chunks of any size."""
    objects, frame = decoded(data.draw(strategies.chunks(spelling(body))))

    assert bodies(objects) == untyped(body["items"])
    assert [obj.name for obj in objects] == [item["metadata"]["name"] for item in body["items"]]
    assert frame.resource_version == body["metadata"]["resourceVersion"]


@given(
    strategies.lists(),
    st.lists(strategies.objects_full_of_managed_fields(), max_size=4),
    strategies.json_styles,
    st.data(),
)
def test_a_list_loses_the_managed_fields_of_its_items_and_nothing_that_looks_like_them(
    body: dict[str, Any], items: list[dict[str, Any]], spelling: JsonStyle, data: st.DataObject
) -> None:
    """Those of data, nested metadata and texts stay; and wherever they are, the cuts are right."""
    body["items"] = items
    left = copy.deepcopy(items)
    for item in left:
        item["metadata"].pop("managedFields", None)

    objects, frame = decoded(data.draw(strategies.chunks(spelling(body))), managed_fields=False)

    assert bodies(objects) == untyped(left)
    assert frame.resource_version == body["metadata"]["resourceVersion"]


@pytest.mark.client_go(29)
@given(strategies.lists(), strategies.json_styles)
def test_each_object_has_exactly_its_own_bytes(body: dict[str, Any], spelling: JsonStyle) -> None:
    """Nothing refers to the buffer: one object kept would keep the whole response alive."""
    written = spelling(body)

    objects, _ = decoded([written])

    at = 0
    for obj in objects:
        assert type(obj.raw) is bytes
        assert sys.getsizeof(obj.raw) == sys.getsizeof(b"") + len(obj.raw)
        assert obj.raw[:1] + obj.raw[-1:] == b"{}"
        # The decoder adds a type to items without one, and others have been sent with the same.
        sent = obj.raw if obj.raw in written[at:] else sent_bytes(obj)
        at = written.index(sent, at) + len(sent)


@pytest.mark.parametrize(
    "item",
    [
        {"kind": "Service", "apiVersion": "v1"} | pod_body("b"),
        pod_body("b") | {"kind": "Service"},
        pod_body("b") | {"apiVersion": "v2"},
        pod_body("b", namespace="shop"),
    ],
)
@pytest.mark.parametrize("before", range(3))
def test_a_list_with_an_object_of_another_kind_or_namespace_is_rejected(
    item: dict[str, Any], before: int
) -> None:
    items = [pod_body(f"a-{number}") for number in range(before)]
    body = encode(pod_list([*items, item, *items]))

    def read() -> None:
        decoder = ListDecoder(PODS, namespace="web")
        decoder.feed(body)
        decoder.close()

    with pytest.raises(UnexpectedObject, match=r"the list of pods has an object (of|in) another"):
        read()


def test_an_item_without_a_type_is_stored_with_the_bytes_of_a_watch() -> None:
    items = [pod_body("a"), {"apiVersion": "v1", "kind": "Pod"} | pod_body("b")]
    (one, two), _ = decoded([encode(pod_list(items))])
    (widget,), _ = decoded([encode({"metadata": {}, "items": [pod_body("c")]})], WIDGETS)

    assert one.raw == encode({"kind": "Pod", "apiVersion": "v1"} | items[0])
    assert two.raw == encode(items[1])
    assert json.loads(widget.raw)["apiVersion"] == "example.com/v1"


@given(strategies.lists(), strategies.json_styles, st.data())
def test_a_list_that_breaks_off_is_a_protocol_error(
    body: dict[str, Any], spelling: JsonStyle, data: st.DataObject
) -> None:
    written = spelling(body)
    end = data.draw(st.integers(0, len(written) - 1))

    with pytest.raises(ProtocolError) as caught:
        decoded(data.draw(strategies.chunks(written[:end])))
    assert caught.value.phase == "list"


ITEM_LOOK_ALIKES: list[Any] = [
    [{"metadata": {"name": "inner"}}, {"metadata": {"name": "inner"}}],
    {"items": [{"metadata": {"name": "inner"}}]},
    {"items": []},
    '},{"metadata":{"name":"text"}}',
    '{"items":[{',
    ["\\", '"', '\\"', '"}', "]}", "{", "\\\\", '\\\\"},{"metadata":'],
    {'"items":[': {"}": "{"}},
]


@pytest.mark.parametrize("order", ["built-in", "custom resource"])
@pytest.mark.parametrize("look_alike", ITEM_LOOK_ALIKES, ids=repr)
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_text_that_looks_like_the_beginning_of_an_item_splits_no_item(
    order: str, look_alike: object, size: int
) -> None:
    items = [pod_body(f"web-{number}") | {"z": look_alike} for number in range(4)]
    body = pod_list(items)
    if order == "custom resource":
        body = dict(sorted(body.items()))
        body["items"] = [{"apiVersion": "example.com/v1", **item} for item in items]

    objects, _ = decoded(cut(encode(body), size), PODS if order == "built-in" else WIDGETS)

    assert bodies(objects) == untyped(body["items"])


@pytest.mark.parametrize(
    "metadata",
    [
        {"items": [{"metadata": {"name": "no item"}}]},
        {"note": '"items":[{"metadata":{"name":"no item"}}'},
        {"deep": {"items": []}},
    ],
    ids=["key", "text", "empty"],
)
def test_items_inside_the_metadata_are_not_those_of_the_list(metadata: dict[str, Any]) -> None:
    body = pod_list([pod_body("web-0")])
    body["metadata"] |= metadata

    for size in (1, 10**6):
        objects, frame = decoded(cut(encode(body), size))
        assert [obj.name for obj in objects] == ["web-0"]
        assert frame.resource_version == "100"


@pytest.mark.parametrize("size", [1, 10**6])
def test_items_with_different_beginnings_are_separated(size: int) -> None:
    """An aggregated API server may write each item as it likes."""
    items = [
        pod_body("a"),
        {"apiVersion": "v1", "kind": "Pod"} | pod_body("b"),
        {"z": 1} | pod_body("c"),
        pod_body("d"),
        {"kind": "Pod"} | pod_body("e"),
    ]

    objects, _ = decoded(cut(encode(pod_list(items)), size))

    assert bodies(objects) == untyped(items)


@pytest.mark.parametrize("items", [[], None], ids=["empty", "null"])
@pytest.mark.parametrize("size", [1, 10**6])
def test_a_list_without_items_is_decoded(items: list[Any] | None, size: int) -> None:
    objects, frame = decoded(cut(encode(pod_list(items, rv="42")), size))

    assert objects == []
    assert frame.resource_version == "42"


def test_an_empty_indented_list_is_decoded() -> None:
    body = b'{\n  "items": [\n  ],\n  "metadata": {"resourceVersion": "42"}\n}\n'

    assert decoded(cut(body, 1))[1].resource_version == "42"


@pytest.mark.parametrize("size", [65_536, 10**9])
def test_a_very_large_item_is_decoded_in_any_place(size: int) -> None:
    large = pod_body("large") | {"data": 'x{}"\\' * (128 * 1024)}
    for items in ([large, pod_body("b")], [pod_body("a"), pod_body("b"), large, pod_body("c")]):
        objects, _ = decoded(cut(encode(pod_list(items)), size))
        assert bodies(objects) == untyped(items)


def test_invalid_utf_8_outside_the_metadata_does_not_stop_the_list() -> None:
    body = (
        b'{"metadata":{},"items":[{"metadata":{"name":"a"},"d":"\xff"},{"metadata":{"name":"b"}}]}'
    )

    objects, _ = decoded([body])

    assert [obj.name for obj in objects] == ["a", "b"]


def test_the_frame_has_the_metadata_of_the_list() -> None:
    body = pod_list([pod_body("a")], rv="7", token="next", remainingItemCount=5)

    _, frame = decoded([encode(body)])

    assert (frame.resource_version, frame.continue_token, frame.remaining) == ("7", "next", 5)
    assert frame.kind == "PodList"


# -- what is no list -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"404 page not found\n",
        b"<html>",
        b"null",
        b"[]",
        b"{}",
        b'"items":[]',
        b'{"kind":"PodList","metadata":{}}',
        b'{"items":[]}',
        b'{"items":[],"metadata":null}',
        b'{"items":{},"metadata":{}}',
        b'{"items":"x","metadata":{}}',
        b'{"metadata":{},"items":[1]}',
        b'{"metadata":{},"items":["x"]}',
        b'{"metadata":{},"items":[null]}',
        b'{"metadata":{},"items":[{}]}',
        b'{"metadata":{},"items":[{"metadata":{}}]}',
        b'{"metadata":{},"items":[{"metadata":{"name":"a"}}}',
        b'{"metadata":{},"items":[{"metadata":{"name":"a"}}]',
        b'{"metadata":{},"items":[{"metadata":{"name":"a"}}]}}',
        b'{"metadata":{},"items":[{"metadata":{"name":"a"}}]}{}',
        b'{"metadata":{},"items":[{"metadata":{"name":"a"}]}',
        b'{"metadata":{},"items":[{"metadata":{"name":"\xff"}}]}',
        b'{"metadata":{},"items":[{"metadata":{"name":"a"},"x":tru}]}',
        b'{"metadata":{},"items":[],"kind":"\xff"}',
    ],
)
@pytest.mark.parametrize("size", [1, 10**6])
def test_a_body_that_is_no_list_is_a_protocol_error(body: bytes, size: int) -> None:
    with pytest.raises(ProtocolError, match="the list of pods is malformed") as caught:
        decoded(cut(body, size))
    assert caught.value.phase == "list"


@pytest.mark.client_go(32)
def test_the_protocol_error_for_a_table_names_it() -> None:
    """A client that requests tables by mistake, as kubectl does, would cache nothing."""
    with pytest.raises(ProtocolError, match="the response is a Table without items"):
        decoded([read_recording("28-list-table").body])


def test_a_table_with_items_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="Table"):
        decoded([encode(pod_list([]) | {"kind": "Table"})])


def test_a_status_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="the response is a Status without items"):
        decoded([read_recording("25-list-forbidden").body])


@pytest.mark.parametrize("item", [b"1", b'"x"', b"null", b"[]"])
def test_an_item_that_is_no_object_is_an_error_when_it_begins(item: bytes) -> None:
    """The rest of the response need not be read."""
    decoder = ListDecoder(PODS)

    with pytest.raises(ProtocolError, match="an item begins with"):
        decoder.feed(b'{"metadata":{},"items":[%s' % item)


def test_the_error_names_the_number_of_decoded_items() -> None:
    body = encode(pod_list([pod_body("a"), pod_body("b"), pod_body("c")]))
    decoder = ListDecoder(PODS)
    decoder.feed(body[:-40])

    with pytest.raises(ProtocolError, match="after 2 items: the response broke off"):
        decoder.close()


def test_an_error_does_not_quote_an_object() -> None:
    """It may be a Secret."""
    body = b'{"metadata":{},"items":[{"metadata":{},"data":{"password":"hunter2"}}]}'

    with pytest.raises(ProtocolError) as caught:
        decoded([body])
    assert "hunter2" not in str(caught.value)


def test_a_response_without_items_is_read_up_to_a_limit() -> None:
    decoder = ListDecoder(PODS)
    decoder.feed(b'{"kind":"')
    while held(decoder) <= HEAD_CAP - 65_536:
        assert decoder.feed(b"x" * 65_536) == []

    with pytest.raises(ProtocolError, match="no items in its first"):
        decoder.feed(b"x" * 65_536)


@pytest.mark.parametrize("size", [1, 64, 500])
def test_an_item_without_an_end_is_an_error_at_the_limit(size: int) -> None:
    """A watch event has such a cap too."""
    decoder = ListDecoder(PODS, cap=2000)
    decoder.feed(b'{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}},')
    decoder.feed(b'{"metadata":{"name":"c"},"spec":"')

    while held(decoder) + size <= 2000:
        assert decoder.feed(b"x" * size) == []
    with pytest.raises(ProtocolError, match=r"after 2 items: item 3 is longer than 2000") as caught:
        decoder.feed(b"x" * size)
    assert caught.value.phase == "list"


def test_many_items_may_be_longer_than_the_cap_together() -> None:
    body = encode(pod_list([pod_body(f"web-{number}") for number in range(500)]))
    decoder = ListDecoder(PODS, cap=len(body) // 10)

    objects = [obj for piece in cut(body, 64) for obj in decoder.feed(piece)]

    assert len(objects) + len(decoder.close()[0]) == 500


def test_an_item_may_be_as_long_as_an_event_of_a_watch() -> None:
    assert ITEM_CAP == LINE_CAP


def test_the_data_after_the_items_is_read_up_to_a_limit() -> None:
    decoder = ListDecoder(PODS)
    decoder.feed(b'{"metadata":{},"items":[],"more":"')

    while held(decoder) <= HEAD_CAP - 65_536:
        assert decoder.feed(b"x" * 65_536) == []
    with pytest.raises(ProtocolError, match="bytes after its items"):
        decoder.feed(b"x" * 65_536)


# -- work and memory -----------------------------------------------------------------------------


def full_of_look_alikes(count: int) -> bytes:
    """Two items, and in each an array that looks like ``count`` further items."""
    inner = b",".join([b'{"metadata":{"name":"x"}}'] * count)
    item = b'{"metadata":{"name":"%s"},"spec":[' + inner + b"]}"
    return b'{"metadata":{},"items":[' + item % b"a" + b"," + item % b"b" + b"]}"


@pytest.mark.parametrize("size", [16_384, 10**9], ids=["in chunks", "at once"])
def test_an_item_with_many_false_beginnings_takes_linear_time(size: int) -> None:
    """Trying each of 75,000 cuts would take minutes."""
    body = full_of_look_alikes(37_500)

    began = time.process_time()
    objects, _ = decoded(cut(body, size))

    assert [obj.name for obj in objects] == ["a", "b"]
    assert time.process_time() - began < 5


def test_the_buffer_does_not_grow_when_no_item_begins_like_the_first() -> None:
    """The separator learned from the first pair never comes again."""
    second = encode({"apiVersion": "v1", "metadata": {"name": "b"}, "spec": "x" * 5000})
    body = (
        b'{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}},'
        + b",".join([second] * 400)
        + b"]}"
    )
    decoder, most = ListDecoder(PODS), 0
    for piece in cut(body, 16_384):
        decoder.feed(piece)
        most = max(most, held(decoder))
    decoder.close()

    assert decoder.count == 402
    assert most < 400_000


@pytest.mark.client_go(29)
def test_the_bytes_of_decoded_items_are_released() -> None:
    body = encode(pod_list([pod_body(f"web-{number}") for number in range(5000)]))
    decoder = ListDecoder(PODS)

    most = 0
    for piece in cut(body, 4096):
        decoder.feed(piece)
        most = max(most, held(decoder))

    assert most < 2 * 4096
    assert repr(decoder).startswith("<ListDecoder pods items=4999 held=")


def test_an_item_that_is_nested_too_deeply_is_still_an_object() -> None:
    """A writer of custom resources must not be able to stop their readers."""
    deep = b"[" * 100_000 + b"]" * 100_000
    decoder = ListDecoder(PODS)
    item = b'{"metadata":{"name":"a"},"spec":' + deep + b"}"
    (obj,) = decoder.feed(b'{"items":[' + item + b"]}")
    assert (obj.name, sent_bytes(obj)) == ("a", item)


@pytest.mark.parametrize("kind", ["ServiceList", "Status", "PodLust\\u001b"])
def test_a_list_of_another_kind_is_a_protocol_error(kind: str) -> None:
    """Taken for a state without pods, it would delete every one of them."""
    body = f'{{"kind":"{kind}","metadata":{{"resourceVersion":"7"}},"items":[]}}'.encode()
    decoder = ListDecoder(PODS)
    decoder.feed(body)

    with pytest.raises(ProtocolError, match="not a PodList") as caught:
        decoder.close()
    assert str(caught.value).isprintable()


@pytest.mark.client_go(32)
def test_a_list_of_custom_resources_may_have_any_kind() -> None:
    body = b'{"kind":"Gadgetry","metadata":{"resourceVersion":"7"},"items":[]}'
    decoder = ListDecoder(WIDGETS)
    decoder.feed(body)

    assert decoder.close()[0] == []

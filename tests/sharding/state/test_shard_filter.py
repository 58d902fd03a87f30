"""Objects of other shards are dropped while the bytes of a list or watch are cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.codec.watch_decoder import WatchBatch, WatchDecoder
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.errors import ProtocolError
from aioinformer.sharding.state.ranges import HashRanges
from aioinformer.sharding.state.shard import Shard
from aioinformer.sharding.state.shard_filter import ShardFilter
from tests.client.recordings import read_recording
from tests.core.builders import PODS, WIDGETS, encode

LOWER, UPPER = (HashRanges.of([index], 2, "uid") for index in (0, 1))
IN_UPPER = "504fd249-6493-40dd-809d-8b6dab52e155"
"""A uid that a real server has in the upper half."""
IN_LOWER = "1527234e-85fb-452f-8a65-a73befa06fb2"


def object_body(name: str, uid: str | None, version: int = 1, namespace: str = "d") -> Any:
    metadata = {"name": name, "namespace": namespace, "resourceVersion": str(version)}
    return {"metadata": metadata if uid is None else metadata | {"uid": uid}}


def event_line(kind: str, body: Any) -> bytes:
    return encode({"type": kind, "object": {"kind": "Pod", "apiVersion": "v1"} | body}) + b"\n"


def bookmark_line(version: int, *, ends_initial: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if ends_initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return encode({"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": metadata}}) + b"\n"


def list_body(items: list[Any], *, echo: str = "", items_first: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": "9"}
    if echo:
        metadata["shardInfo"] = {"selector": echo}
    if items_first:
        return encode({"kind": "List", "items": items, "metadata": metadata})
    return encode({"kind": "List", "metadata": metadata, "items": items})


def read_list(
    data: bytes, shard: ShardFilter, resource: Any = PODS, step: int = 7
) -> list[KubeObject]:
    decoder = ListDecoder(resource, filter=shard)
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    objects = [obj for piece in pieces for obj in decoder.feed(piece)]
    objects += decoder.close()[0]
    assert decoder.count == len(objects) + decoder.excluded
    return objects


def names(objects: list[KubeObject]) -> list[str]:
    return [obj.name for obj in objects]


def watch(shard: ShardFilter, *lines: bytes, initial: InitialList | None = None) -> WatchBatch:
    return WatchDecoder(PODS, admit=shard.admits, initial=initial).feed(b"".join(lines))


# -- lists ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [7, 100_000])
def test_the_shards_of_a_list_that_no_server_has_cut_are_the_whole_list(step: int) -> None:
    """Recording 54: a server without the gate ignores the selector."""
    body = read_recording("54-list-shard-selector").body
    lower, upper = (read_list(body, ShardFilter(each), step=step) for each in (LOWER, UPPER))
    assert sorted(names(lower + upper)) == [f"web-{number}" for number in range(8)]
    assert lower
    assert upper


@pytest.mark.parametrize(
    ("recording", "ranges"), [("65-list-shard-lower", LOWER), ("65-list-shard-upper", UPPER)]
)
def test_a_list_that_the_server_has_cut_is_read_as_a_whole(
    recording: str, ranges: HashRanges
) -> None:
    body = read_recording(recording).body
    whole = ListDecoder(PODS)
    expected = [*whole.feed(body), *whole.close()[0]]
    assert names(read_list(body, ShardFilter(ranges))) == names(expected)


def test_the_objects_of_a_cut_list_are_not_hashed_again() -> None:
    """Only so a list that names the shard costs nothing."""
    shard = ShardFilter(LOWER)
    foreign = list_body([object_body("a", IN_UPPER)], echo=LOWER.selector)
    assert names(read_list(foreign, shard)) == ["a"]


def test_objects_before_the_metadata_are_checked() -> None:
    """Recording 50: a list of custom resources has its metadata at the end."""
    shard = ShardFilter(LOWER)
    items = [object_body("a", IN_UPPER), object_body("b", IN_LOWER)]
    body = list_body(items, echo=LOWER.selector, items_first=True)
    assert names(read_list(body, shard, WIDGETS)) == ["b"]


def test_a_list_of_another_shard_is_an_error() -> None:
    body = list_body([object_body("a", IN_LOWER)], echo=UPPER.selector)
    with pytest.raises(ProtocolError, match="the server has applied another shard selector"):
        read_list(body, ShardFilter(LOWER))


def test_the_rest_of_a_wider_selector_is_dropped_here() -> None:
    """A server is asked for 32 ranges at most, so that the URL stays short."""
    shard = ShardFilter(HashRanges.of(range(0, 200, 2), 200, "uid"))
    assert (shard.ranges.count, shard.requested.count) == (100, 32)
    assert len(shard.requested.selector) < 3000
    uids = [f"uid-{number}" for number in range(50)]
    items = [object_body(uid, uid) for uid in uids]
    own = [uid for uid in uids if shard.ranges.has(uid, "")]
    assert names(read_list(list_body(items, echo=shard.requested.selector), shard)) == own
    with pytest.raises(ProtocolError, match="another shard selector"):
        read_list(list_body([], echo=shard.ranges.selector), shard)


def test_a_selector_in_an_unknown_form_proves_nothing() -> None:
    items = [object_body("a", IN_UPPER), object_body("b", IN_LOWER)]
    shard = ShardFilter(LOWER)
    assert names(read_list(list_body(items, echo="shards[0]"), shard)) == ["b"]


def test_a_page_counts_the_objects_of_other_shards() -> None:
    """The number is compared with the remaining ones that the first page announces."""
    decoder = ListDecoder(PODS, filter=ShardFilter(LOWER))
    decoder.feed(list_body([object_body("a", IN_UPPER), object_body("b", IN_LOWER)]))
    decoder.close()
    assert (decoder.count, decoder.excluded) == (2, 1)


# -- watches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_of_another_shard_moves_the_version_alone(kind: str) -> None:
    batch = watch(ShardFilter(LOWER), event_line(kind, object_body("a", IN_UPPER, 41)))
    assert batch.entries == [Bookmark("41")]
    assert (batch.resource_version, batch.excluded, batch.bookmarks) == ("41", 1, 0)
    assert batch.event_count == 1


def test_a_later_event_has_the_version_already() -> None:
    batch = watch(
        ShardFilter(LOWER),
        event_line("ADDED", object_body("a", IN_UPPER, 41)),
        event_line("DELETED", object_body("b", IN_LOWER, 42)),
    )
    (delta,) = batch.entries
    assert isinstance(delta, Delta)
    assert (delta.kind, delta.obj.name, batch.excluded) == ("Deleted", "b", 1)


def test_many_events_of_other_shards_are_one_entry() -> None:
    lines = [event_line("MODIFIED", object_body("a", IN_UPPER, number)) for number in range(9, 99)]
    batch = watch(ShardFilter(LOWER), *lines)
    assert (batch.entries, batch.excluded) == ([Bookmark("98")], 90)


def test_a_bookmark_of_the_server_stays_and_counts() -> None:
    batch = watch(
        ShardFilter(LOWER), event_line("ADDED", object_body("a", IN_UPPER, 4)), bookmark_line(5)
    )
    assert (batch.entries, batch.bookmarks) == ([Bookmark("5")], 1)


def test_an_unusual_spelling_is_checked_too() -> None:
    body = {"kind": "Pod", "apiVersion": "v1"} | object_body("a", IN_UPPER, 7)
    line = encode({"object": body, "type": "ADDED"}) + b"\n"
    assert watch(ShardFilter(LOWER), line).entries == [Bookmark("7")]
    assert len(watch(ShardFilter(UPPER), line).entries) == 1


def test_an_initial_list_has_its_shard_alone() -> None:
    initial = InitialList(lambda obj: obj)
    shard = ShardFilter(LOWER)
    batch = watch(
        shard,
        event_line("ADDED", object_body("a", IN_UPPER, 3)),
        event_line("ADDED", object_body("b", IN_LOWER, 2)),
        bookmark_line(5, ends_initial=True),
        event_line("MODIFIED", object_body("a", IN_UPPER, 6)),
        initial=initial,
    )
    assert names(list(initial.objects())) == ["b"]
    assert initial.resource_version == "5"
    assert batch.entries == [Bookmark("6")]
    assert batch.excluded == 2


def test_an_object_without_a_uid_is_in_one_shard() -> None:
    """A server hashes an empty text then, which has a hash as well."""
    line = event_line("ADDED", object_body("a", None, 7))
    shown = [len(watch(ShardFilter(Shard(index, 4).ranges), line).entries) for index in range(4)]
    assert shown == [1, 1, 1, 1]
    deltas = [
        isinstance(watch(ShardFilter(Shard(index, 4).ranges), line).entries[0], Delta)
        for index in range(4)
    ]
    assert sum(deltas) == 1


def test_a_shard_by_namespace_keeps_a_namespace_together() -> None:
    items = [object_body(name, uid, 1, "shop") for name, uid in (("a", IN_LOWER), ("b", IN_UPPER))]
    shown = [
        names(read_list(list_body(items), ShardFilter(Shard(index, 3, by="namespace").ranges)))
        for index in range(3)
    ]
    assert sorted(shown) == [[], [], ["a", "b"]]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["ADDED", "MODIFIED", "DELETED"]),
        st.text(alphabet="abcdef0123456789-", max_size=36),
        st.sampled_from(["shop", "cart", "x"]),
    ),
    max_size=30,
)


@given(EVENTS, st.integers(1, 9), st.sampled_from(["uid", "namespace"]), st.integers(1, 400))
def test_the_shards_of_a_stream_are_disjoint_and_complete(
    events: list[tuple[str, str, str]], count: int, by: Any, step: int
) -> None:
    lines = [
        event_line(kind, object_body(f"pod-{number}", uid, number + 1, namespace))
        for number, (kind, uid, namespace) in enumerate(events)
    ]
    data = b"".join(lines)
    shown: list[str] = []
    for index in range(count):
        decoder = WatchDecoder(PODS, admit=ShardFilter(Shard(index, count, by).ranges).admits)
        batches = [decoder.feed(data[at : at + step]) for at in range(0, len(data), step)]
        entries = [entry for batch in batches for entry in batch.entries]
        own = [entry.obj.name for entry in entries if isinstance(entry, Delta)]
        assert own == sorted(own, key=lambda name: int(name[4:]))
        shown += own
        versions = [batch.resource_version for batch in batches if batch.resource_version]
        assert (versions[-1] if versions else "") == (str(len(events)) if events else "")
        assert sum(batch.excluded for batch in batches) == len(events) - len(own)
    assert sorted(shown) == sorted(f"pod-{number}" for number in range(len(events)))


def test_changes_that_the_state_of_a_gained_shard_contains_are_dropped_until_its_version() -> None:
    both, lower = Shard(0, 1).ranges, Shard(0, 2).ranges
    shard = ShardFilter(Shard(1, 2).ranges)
    shard.extend(both, lower, "100")
    lines = [
        event_line("MODIFIED", object_body(name, uid, version, "shop"))
        for name, uid, version in (
            ("a", IN_LOWER, 99),
            ("b", IN_UPPER, 99),
            ("c", IN_LOWER, 100),
            ("d", IN_LOWER, 101),
            ("e", IN_UPPER, 102),
        )
    ]
    batch = watch(shard, *lines)
    kept = shard.drop_repeated(batch.entries)
    assert [each.obj.name for each in kept if isinstance(each, Delta)] == ["b", "d", "e"]
    assert batch.excluded == 0
    assert shard.read_ahead == []


def test_a_dropped_change_moves_the_version_on() -> None:
    shard = ShardFilter(Shard(1, 2).ranges)
    shard.extend(Shard(0, 1).ranges, Shard(0, 2).ranges, "100")
    batch = watch(shard, event_line("MODIFIED", object_body("a", IN_LOWER, 99, "shop")))
    assert batch.resource_version == "99"
    assert shard.drop_repeated(batch.entries) == [Bookmark("99")]
    assert shard.read_ahead


def test_a_read_of_the_whole_state_ends_the_comparison_of_versions() -> None:
    shard = ShardFilter(Shard(1, 2).ranges)
    shard.extend(Shard(0, 1).ranges, Shard(0, 2).ranges, "100")
    shard.complete_state()
    assert shard.read_ahead == []

"""Objects reduced to their metadata."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from aioinformer import Delta, KubeObject, Shape
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.codec.metadata_form import keep_metadata
from aioinformer._core.codec.watch_decoder import WatchDecoder
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._core.objects.resources import find_built_in
from aioinformer._core.objects.stored import ExcludedObject, ModelObject
from tests.client.recordings import read_recording
from tests.core.builders import make_object, pod_body
from tests.core.models import Metadata


class MetadataModel(Struct):
    metadata: Metadata
    kind: str
    spec: str = "none"


PODS = find_built_in("pods")
PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


def listed(recording: str) -> dict[ObjectKey, KubeObject]:
    """Return the objects of a recorded list, reduced."""
    decoder = ListDecoder(PODS)
    objects = decoder.feed(read_recording(recording).body)
    return {obj.key: keep_metadata(obj) for obj in objects + decoder.close()[0]}


def watched(recording: str) -> list[KubeObject]:
    """Return the objects of a recorded watch, reduced."""
    decoder = WatchDecoder(PODS, converter=keep_metadata)
    batch = decoder.feed(read_recording(recording).body)
    return [entry.obj for entry in batch.entries if isinstance(entry, Delta)]


def test_whole_objects_and_partial_ones_become_the_same_bytes() -> None:
    whole, partial = listed("10-list-page-1"), listed("19-list-partial-metadata")
    both = whole.keys() & partial.keys()
    assert len(both) == 2
    for key in both:
        assert whole[key].raw == partial[key].raw
        assert whole[key].raw.startswith(b'{"metadata":{"name":"web-')
        assert "spec" not in whole[key]


def test_watched_objects_have_the_form_of_listed_ones() -> None:
    objects = watched("32-watch-partial-metadata")
    assert objects
    for obj in objects:
        assert (obj["kind"], obj["apiVersion"]) == ("Pod", "v1")
        assert set(obj) == {"kind", "apiVersion", "metadata"}
        assert obj.labels["tier"] == "frontend"
        assert b"managedFields" not in obj.raw


texts = st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    metadata=st.dictionaries(
        st.sampled_from(["labels", "annotations", "x", '"{']), values, max_size=3
    ),
    rest=st.dictionaries(st.sampled_from(["spec", "status", "kind"]), values, max_size=3),
    partial=st.booleans(),
)
def test_the_metadata_is_unchanged_and_nothing_else_is_left(
    metadata: dict[str, object], rest: dict[str, object], partial: bool
) -> None:
    metadata = {"name": "web-0", **metadata}
    body = PARTIAL | {"metadata": metadata} if partial else {**rest, "metadata": metadata}
    obj = KubeObject(ObjectKey("", "web-0"), "u", "1", msgspec.json.encode(body), PODS)
    assert msgspec.json.decode(keep_metadata(obj).raw) == {"metadata": metadata}


def test_a_transform_and_a_model_see_the_metadata() -> None:
    seen: list[set[str]] = []

    def transform(obj: KubeObject) -> KubeObject | None:
        seen.append(set(obj))
        return None if obj.name == "b" else obj

    keep = Shape.of(model=MetadataModel, transform=transform, metadata_only=True).converter()
    assert keep is not None
    kept, dropped = (keep(make_object(pod_body(name, node="n"))) for name in "ab")
    assert seen == [{"kind", "apiVersion", "metadata"}] * 2
    assert type(dropped) is ExcludedObject
    assert isinstance(kept, ModelObject)
    assert kept.model == MetadataModel(Metadata("a"), "Pod")

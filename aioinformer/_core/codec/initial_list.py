"""The initial list of a WatchList: the objects that the watch has shown up to its end mark.

The list is meaningful only as a whole. The objects are kept in segments, so that a list of a
million objects is never copied, freed, or moved to a larger dict in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import overload

from aioinformer._core.objects.deltas import Delta
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey, pack_identity

SEGMENT_SIZE = 10_922
"""Objects of a segment of an initial list: as many as a dict of 0.3 MB holds. The dict of a million
objects would be copied several times as it grows, for 20 ms at last, and is freed in one step."""


class InitialObjects(Sequence[KubeObject]):
    """The objects of a complete initial list, read from its segments without a copy."""

    __slots__ = ("_segments",)

    def __init__(self, segments: Sequence[Mapping[ObjectKey, KubeObject]]) -> None:
        """Read ``segments``, which no longer change."""
        self._segments = segments

    @property
    def chunks(self) -> list[Collection[KubeObject]]:
        return [segment.values() for segment in self._segments]

    def __len__(self) -> int:
        return sum(map(len, self._segments))

    def __iter__(self) -> Iterator[KubeObject]:
        return chain.from_iterable(self.chunks)

    @overload
    def __getitem__(self, index: int) -> KubeObject: ...
    @overload
    def __getitem__(self, index: slice) -> list[KubeObject]: ...
    def __getitem__(self, index: int | slice) -> KubeObject | list[KubeObject]:
        return list(self)[index]  # walks over all objects, which nothing but a test does

    def __repr__(self) -> str:
        return f"<InitialObjects objects={len(self)}>"


class InitialList:
    """The objects that a WatchList has shown so far.

    The objects are kept in segments of ``SEGMENT_SIZE`` in order of arrival, so that no step takes
    longer with a longer list. An addition is not looked up in the earlier segments. A server that
    shows an object twice therefore leaves two versions of the object, and the indexer, which reads
    the list in this order, keeps the last one, as of any list.
    """

    def __init__(self, deduplicate: Callable[[KubeObject], KubeObject]) -> None:
        """Create an empty list. ``deduplicate`` returns the equal cached object, or its own."""
        self.resource_version = ""
        """The version of the state. Empty until the end mark has arrived."""
        self._segments: list[dict[ObjectKey, KubeObject]] = [{}]
        self._deduplicate = deduplicate

    def apply(self, delta: Delta) -> None:
        """Apply a synthetic addition, or a change that happened meanwhile."""
        obj = delta.obj
        if delta.kind == "Deleted":
            for segment in self._segments:
                segment.pop(obj.key, None)
            return
        pack_identity(obj)
        segment = self._segments[-1]
        if delta.kind == "Updated":
            segment = self._find_segment(obj.key) or segment
        segment[obj.key] = self._deduplicate(obj)
        if len(segment) >= SEGMENT_SIZE and segment is self._segments[-1]:
            self._segments.append({})

    def _find_segment(self, key: ObjectKey) -> dict[ObjectKey, KubeObject] | None:
        return next((segment for segment in reversed(self._segments) if key in segment), None)

    def objects(self) -> InitialObjects:
        return InitialObjects(self._segments)

    def __len__(self) -> int:
        return sum(map(len, self._segments))

    def __repr__(self) -> str:
        return f"<InitialList objects={len(self)}>"

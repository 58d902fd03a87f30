"""Whether a cache is right: its state at one version, compared with the server's of that version.

The server's objects are shown one by one as they arrive and let go at once; what is compared with
them is a copy of the cache's dict, so that both may go on. Asking the server is ``verifying``'s.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeAlias

from aioinformer._core.cache.indexer import has_equal_content
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.stored import ExcludedObject

__all__ = ["Comparison", "Difference", "Verification"]

Difference: TypeAlias = Literal["missing", "surplus", "uid", "version", "content"]
"""How the cache differs from the server. ``missing``: the server has the object, the cache hasn't.
``surplus``: the other way round. ``uid``: it is another object of that name. ``version``: another
version of it. ``content``: the same version, with something else in it."""

MAX_SHOWN = 5
"""Differences that are written out in a sentence."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a comparison has found. True if there was no difference."""

    resource_version: str
    """Of which version both states were."""
    objects: int
    """How many objects the server has, but those that ``transform=`` drops."""
    differences: Mapping[ObjectKey, Difference] = field(default_factory=dict[ObjectKey, Difference])
    """What differs, and how."""
    rejected: int = 0
    """How many objects were not compared, because their newest version was rejected: the cache
    keeps the one before, and ``health.rejected`` lists them."""

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        at = f"{self.objects} objects at resourceVersion {self.resource_version}"
        left_out = f", {self.rejected} rejected ones left out" if self.rejected else ""
        if not self.differences:
            return f"the cache agrees with the server: {at}{left_out}"
        shown = [f"{key} ({how})" for key, how in islice(self.differences.items(), MAX_SHOWN)]
        more = ", ..." if len(self.differences) > MAX_SHOWN else ""
        count = len(self.differences)
        return f"the cache differs in {count} of {at}{left_out}: {', '.join(shown)}{more}"


class Comparison:
    """A comparison under way."""

    def __init__(
        self,
        cached: dict[ObjectKey, KubeObject],
        resource_version: str,
        *,
        rejected: Container[ObjectKey] = (),
        contents: bool = False,
    ) -> None:
        """Begin.

        Args:
            cached: what the cache held at that version; a dict to keep.
            resource_version: that version.
            rejected: which objects not to compare.
            contents: whether to compare what is in them as well.
        """
        self.resource_version = resource_version
        self._unmatched = cached
        self._excluded = rejected
        self._compare_content = contents
        self._differences: dict[ObjectKey, Difference] = {}
        self._rejected = 0
        self._server_count = 0

    def add_server_object(self, obj: KubeObject) -> None:
        """The server has this object."""
        if type(obj) is ExcludedObject and obj.error is None:
            return  # what a transform drops is not to be cached: if it is, that's a surplus
        self._server_count += 1
        held = self._unmatched.pop(obj.key, None)
        if obj.key in self._excluded or type(obj) is ExcludedObject:
            self._rejected += 1
        elif how := self._find_difference(held, obj):
            self._differences[obj.key] = how

    def _find_difference(self, held: KubeObject | None, obj: KubeObject) -> Difference | None:
        if held is None:
            return "missing"
        if held.uid != obj.uid:
            return "uid"
        if held.resource_version != obj.resource_version:
            return "version"
        if self._compare_content and not has_equal_content(held, obj):
            return "content"
        return None

    def step(self, n: int) -> bool:
        """The server has no more: look at ``n`` objects that it didn't show; whether that's all."""
        for _ in range(min(n, len(self._unmatched))):
            key, _ = self._unmatched.popitem()
            if key not in self._excluded:
                self._differences[key] = "surplus"
        return not self._unmatched

    def close(self) -> Verification:
        """What was found; to be called when ``step`` is done."""
        return Verification(
            self.resource_version, self._server_count, self._differences, self._rejected
        )

    def __repr__(self) -> str:
        return f"<Comparison rv={self.resource_version} seen={self._server_count} left={len(self._unmatched)}>"

"""The comparison of the cache at one version with the server's state of the same version.

The server's objects are added one by one as they arrive, compared with a copy of the cache's dict,
and released at once.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeAlias

from aioinformer._core.cache.comparison import has_equal_content
from aioinformer._core.objects.deltas import Correction, CorrectionGuard
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.object_key import oldest_version
from aioinformer._core.objects.stored import ExcludedObject
from aioinformer._core.quantities import quantity

Difference: TypeAlias = Literal["missing", "surplus", "uid", "version", "content"]
"""The difference of an object: ``missing`` from the cache, a ``surplus`` that the server lacks,
another object of that name (``uid``), another ``version``, or another ``content`` of an equal
version."""

MAX_SHOWN = 5
"""Differences that ``str()`` of a verification lists."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a comparison. A ``Verification`` is true if there is no difference."""

    resource_version: str
    """The version of both states."""
    objects: int
    """The number of the server's objects, without those that ``transform=`` drops."""
    differences: Mapping[ObjectKey, Difference] = field(default_factory=dict[ObjectKey, Difference])
    rejected: int = 0
    """Objects that are not compared: ``health.rejected`` lists them. Older versions are cached."""

    repaired: int = 0
    """Differences that ``repair=True`` repaired and delivered; others had changed meanwhile."""

    @classmethod
    def merge(cls, results: Sequence[Verification]) -> Verification:
        """Return several results as one, with the oldest version; empty if they have no order."""
        if len(results) == 1:
            return results[0]
        return cls(
            oldest_version(each.resource_version for each in results),
            sum(each.objects for each in results),
            {key: how for each in results for key, how in each.differences.items()},
            sum(each.rejected for each in results),
            repaired=sum(each.repaired for each in results),
        )

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        at = f"{quantity(self.objects, 'object')} at resourceVersion {self.resource_version}"
        left_out = f", {self.rejected} rejected ones left out" if self.rejected else ""
        if not self.differences:
            return f"the cache agrees with the server: {at}{left_out}"
        shown = [f"{key} ({how})" for key, how in islice(self.differences.items(), MAX_SHOWN)]
        more = ", ..." if len(self.differences) > MAX_SHOWN else ""
        count = len(self.differences)
        repaired = f"; {self.repaired} repaired" if self.repaired else ""
        return f"the cache differs in {count} of {at}{left_out}: {', '.join(shown)}{more}{repaired}"


class Comparison:
    """A comparison in progress."""

    def __init__(
        self,
        cached: MutableMapping[ObjectKey, KubeObject],
        resource_version: str,
        *,
        rejected: Container[ObjectKey] = (),
        contents: bool = False,
        guard: CorrectionGuard | None = None,
    ) -> None:
        """Begin to compare a server's state with ``cached``, which this comparison consumes.

        ``rejected`` objects are left out. ``contents`` compares content, too. With a ``guard``,
        corrections are collected.
        """
        self.corrections: list[Correction] = []
        self._guard = guard
        self.resource_version = resource_version
        self._unmatched = cached
        self._excluded = rejected
        self._compare_content = contents
        self._differences: dict[ObjectKey, Difference] = {}
        self._rejected = 0
        self._server_count = 0

    def add_server_object(self, obj: KubeObject) -> None:
        """Compare one object of the server's with the cache."""
        if type(obj) is ExcludedObject and obj.error is None:
            return  # dropped by the transform: a cached object of that key is a surplus
        self._server_count += 1
        cached = self._unmatched.pop(obj.key, None)
        if obj.key in self._excluded or type(obj) is ExcludedObject:
            self._rejected += 1
        elif how := self._find_difference(cached, obj):
            self._differences[obj.key] = how
            self._correct(obj.key, cached, obj)

    def _correct(self, key: ObjectKey, cached: KubeObject | None, obj: KubeObject | None) -> None:
        if self._guard is not None:
            self.corrections.append(Correction(key, cached, obj, self._guard))

    def _find_difference(self, cached: KubeObject | None, obj: KubeObject) -> Difference | None:
        if cached is None:
            return "missing"
        if cached.uid != obj.uid:
            return "uid"
        if cached.resource_version != obj.resource_version:
            return "version"
        if self._compare_content and not has_equal_content(cached, obj):
            return "content"
        return None

    def step(self, n: int) -> bool:
        """Count ``n`` objects that the server lacks as a surplus; return True if that was all."""
        for _ in range(min(n, len(self._unmatched))):
            key, cached = self._unmatched.popitem()
            if key not in self._excluded:
                self._differences[key] = "surplus"
                self._correct(key, cached, None)
        return not self._unmatched

    def close(self) -> Verification:
        """Return the result; called when ``step`` is done."""
        return Verification(
            self.resource_version, self._server_count, self._differences, self._rejected
        )

    def __repr__(self) -> str:
        counts = f"compared={self._server_count} left={len(self._unmatched)}"
        return f"<Comparison rv={self.resource_version} {counts}>"

"""The index of an informer with ``compress=``.

This is a module of its own so that programs without ``compress=`` do not load the modules of the
compression.
"""

from __future__ import annotations

from aioinformer._core.cache.store import Index, IndexValues
from aioinformer._core.compression.compressed_object import CompressedBytes
from aioinformer._core.objects.kube_object import KubeObject

__all__ = ["CompressedIndex"]


class CompressedIndex(Index):
    """An index of an informer with ``compress=``.

    A compressed object has the values under which it was filed beside it, so that it need not be
    decompressed to be filed again, or removed.
    """

    __slots__ = ()

    def values(self, obj: KubeObject) -> IndexValues:
        """Return the values of a cached object; raise whatever the function raises."""
        stored = obj.stored
        if type(stored) is CompressedBytes:
            known = stored.group.values.get(self.name)
            if known is not None:
                return known
        return Index.values(self, obj)

"""The index of an informer with ``compress=``.

The index has a module of its own so that programs without ``compress=`` do not load the modules of
the compression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aioinformer._core.cache.store import Index, IndexFunction, IndexValues
from aioinformer._core.compression.compressed_object import CompressedBytes
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey

__all__ = ["CompressedIndex"]

MAX_KEPT: Final = 4096
"""Objects whose values are kept until they are compressed, 0.8 MB at most. After a list, nearly all
values are read once more."""


class CompressedIndex(Index):
    """An index of an informer with ``compress=``.

    A compressed object has the values under which it was filed beside it, so that it need not be
    decompressed to be filed again, or removed.
    """

    def __init__(
        self,
        name: str,
        function: IndexFunction[Any],
        adapter: Callable[[KubeObject], Any] | None = None,
    ) -> None:
        """Make an index without objects; the arguments are those of ``Index``."""
        super().__init__(name, function, adapter)
        self._kept: dict[ObjectKey, tuple[int, IndexValues]] = {}
        """The values found last for a key, and the identity of the object.

        An entry holds the identity of its object, so that the entry doesn't keep the object alive.
        Every object is filed when it is cached. So the entry of a key is of the object that is
        cached now or was cached last, and an equal identity means the same object.
        """

    def values(self, obj: KubeObject) -> IndexValues:
        """Return the values of a cached object. Exceptions of the function pass through."""
        stored = obj.stored
        if type(stored) is CompressedBytes:
            known = stored.known_values.get(self.name)
            return Index.values(self, obj) if known is None else known
        found = Index.values(self, obj)
        kept = self._kept
        if len(kept) >= MAX_KEPT:
            kept.clear()
        kept[obj.key] = id(obj), found
        return found

    def take_values(self, obj: KubeObject) -> IndexValues:
        """Return the values under which a cached object was filed, which is compressed now.

        The values that were kept are freed. If none were, the function is called.
        """
        identity, found = self._kept.pop(obj.key, (0, ()))
        if identity == id(obj):
            return found
        found = self.values(obj)
        self._kept.pop(obj.key, None)
        return found

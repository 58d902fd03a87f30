"""``ObjectKey``: which object is meant, among all of one resource.

Whatever is kept or told of an object is kept and told under its key, whatever its form. A key says
nothing of the object's identity: one that is deleted and created again has the same key and
another uid.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["ObjectKey"]


class ObjectKey(Struct, frozen=True, order=True, gc=False):
    """Which object: its namespace (empty if cluster-scoped) and its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """The key that ``str()`` wrote: ``namespace/name``, or ``name``.

        Raises:
            ValueError: more than one slash.
        """
        namespace, _, name = text.rpartition("/")
        if "/" in namespace:
            raise ValueError(f"a key is 'namespace/name' or 'name', not {text!r}")
        return cls(namespace, name)

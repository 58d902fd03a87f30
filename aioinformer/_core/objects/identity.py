"""``ObjectKey``: which object is meant, among all of one resource.

Whatever is kept or told of an object is kept and told under its key, whatever its form. A key says
nothing of the object's identity: one that is deleted and created again has the same key and
another uid.

resourceVersions: which of two is the older one.

They are decimal numbers of any length on every conformant server, and may be compared (KEP-5504).
Some aggregated servers have versions of another form; of those nothing is known but whether two
are equal. Source: client-go's ``resourceversion.CompareResourceVersion``, which refuses the empty
one, zero and leading zeros too.
"""

from __future__ import annotations

from msgspec import Struct

from aioinformer.errors import NotComparable

__all__ = ["ObjectKey", "as_int", "has_reached", "is_numeric", "is_older"]


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


def is_numeric(version: str) -> bool:
    """Whether it is a decimal number, as KEP-5504 demands."""
    return version.isascii() and version.isdecimal() and not version.startswith("0")


def is_older(version: str, than: str) -> bool:
    """Return True if ``version`` is certainly older than ``than``.

    Versions that are no numbers can't be ordered, so the result is False for them.
    """
    # The order first: of a watch's versions it is mostly False, and then nothing else is checked.
    in_order = (len(version), version) < (len(than), than)
    return in_order and is_numeric(version) and is_numeric(than)


def has_reached(version: str, wanted: str) -> bool:
    """Whether ``version`` is ``wanted`` or a later one. The empty one is before all others.

    Raises:
        NotComparable: they differ, and one is no number.
    """
    if not version or version == wanted:
        return version == wanted
    return as_int(version) >= as_int(wanted)


def as_int(version: str) -> int:
    """The number that it is.

    Raises:
        NotComparable: it is none.
    """
    if not is_numeric(version):
        raise NotComparable(version)
    return int(version)

"""resourceVersions: which of two is the older one.

They are decimal numbers of any length on every conformant server, and may be compared (KEP-5504).
Some aggregated servers have versions of another form; of those nothing is known but whether two
are equal. Source: client-go's ``resourceversion.CompareResourceVersion``, which refuses the empty
one, zero and leading zeros too.
"""

from __future__ import annotations

from aioinformer.errors import NotComparable

__all__ = ["comparable", "number", "older", "reached"]


def comparable(version: str) -> bool:
    """Whether it is a decimal number, as KEP-5504 demands."""
    return version.isascii() and version.isdecimal() and not version.startswith("0")


def older(version: str, than: str) -> bool:
    """Whether a resourceVersion is certainly the older one of two."""
    if not (comparable(version) and comparable(than)):
        return False
    return (len(version), version) < (len(than), than)


def reached(version: str, wanted: str) -> bool:
    """Whether ``version`` is ``wanted`` or a later one. The empty one is before all others.

    Raises:
        NotComparable: they differ, and one is no number.
    """
    if not version or version == wanted:
        return version == wanted
    return number(version) >= number(wanted)


def number(version: str) -> int:
    """The number that it is.

    Raises:
        NotComparable: it is none.
    """
    if not comparable(version):
        raise NotComparable(version)
    return int(version)

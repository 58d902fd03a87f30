"""The identity of objects: ``ObjectKey``, and the order of resourceVersions.

resourceVersions are decimal numbers of any length on every conformant server, and can be ordered
(KEP-5504). Versions of some aggregated servers can only be compared for equality. As in client-go's
``resourceversion.CompareResourceVersion``, the empty version, zero and leading zeros are rejected.
Versions are compared as strings of digits and never as ``int``, which rejects thousands of digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Protocol, TypeAlias

from msgspec import Meta, Struct

from aioinformer.errors import NotComparable

MAX_VERSION_LENGTH = 256
"""The longest accepted resourceVersion, in characters. etcd's have 20 digits at most; a version is
repeated in URLs, health and metrics."""

VersionText: TypeAlias = Annotated[str, Meta(max_length=MAX_VERSION_LENGTH)]


Admit: TypeAlias = Callable[[str, str], bool]
"""Returns True for the uid and the namespace of an object that belongs to the cache."""


class ObjectFilter(Protocol):
    """Selects some objects of a source. A server may be able to select them too, or send others."""

    @property
    def list_options(self) -> Mapping[str, str]:
        """The query parameters that ask a server for these objects."""
        ...

    def admits(self, uid: str, namespace: str) -> bool: ...

    def of_cache(self, version: str) -> tuple[ObjectFilter, Admit | None]:
        """Return the filter of the cached objects whose state is that of ``version``, the cache's.
        They may differ from the objects that are read, while this filter changes. The second value
        admits cached objects of a later state; ``None`` if there are none.
        """
        ...

    def check_list(self, envelope: bytes) -> bool:
        """Return True if a list, without its items, proves that the server has selected them.

        Raises:
            ProtocolError: the server has selected other objects than ``list_options`` ask for.
        """
        ...


class ObjectKey(Struct, frozen=True, order=True, gc=False):
    """The key of an object: its namespace (empty if cluster-scoped) and its name.

    A key doesn't identify one object for ever: an object that is created again has another uid.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the key as one printable line, which ``parse`` accepts.

        Kubernetes allows names with line breaks and escape sequences, such as those of a
        ClusterRole, and none with a percent sign: their characters are escaped as in URLs.
        """
        text = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return text if text.isprintable() and "%" not in text else _escape(text)

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """Return the key of ``namespace/name`` or ``name``, the form of ``str()``.

        Characters that ``str()`` has escaped (``%0A``) are those of the key.

        Raises:
            ValueError: there is more than one slash.
        """
        namespace, _, name = text.rpartition("/")
        if "/" in namespace:
            raise ValueError(f"a key is 'namespace/name' or 'name', not {text!r}")
        if "%" in text:
            from urllib.parse import unquote  # for odd names alone

            return cls(*(unquote(each, errors="surrogatepass") for each in (namespace, name)))
        return cls(namespace, name)


def _escape(text: str) -> str:
    from urllib.parse import quote

    return "".join(
        each if each.isprintable() and each != "%" else quote(each, "", errors="surrogatepass")
        for each in text
    )


def is_numeric(version: str) -> bool:
    """Return True if ``version`` is a decimal number of a sensible length, as KEP-5504 demands."""
    if len(version) > MAX_VERSION_LENGTH:
        return False
    return version.isascii() and version.isdecimal() and not version.startswith("0")


def is_older(version: str, than: str) -> bool:
    """Return True if ``version`` is certainly older than ``than``: both are numbers."""
    # Numbers without leading zeros order by length, then by digits. The order is compared first:
    # it is False for nearly all versions of a watch, and then the digits need no check.
    in_order = (len(version), version) < (len(than), than)
    return in_order and is_numeric(version) and is_numeric(than)


def has_reached(version: str, wanted: str) -> bool:
    """Return True if ``version`` is ``wanted`` or later. The empty version is before all others.

    Raises:
        NotComparable: the versions differ, and one of them is no number.
    """
    if not version or version == wanted:
        return version == wanted
    for each in (version, wanted):
        if not is_numeric(each):
            raise NotComparable(each)
    return not is_older(version, wanted)


def oldest_version(versions: Iterable[str]) -> str:
    """Return the oldest of the versions that aren't empty; empty if they can't be ordered."""
    known = {*versions} - {""}
    if len(known) > 1 and not all(map(is_numeric, known)):
        return ""
    return min(known, key=lambda version: (len(version), version), default="")

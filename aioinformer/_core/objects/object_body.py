"""The state of a cached object's body: closed, or decoded; and where its uid and version are.

Both are in the object's JSON, where every API server writes one after the other. An
``IdentityPlace`` says where, and all objects with the same places share it, so that an object of a
list stores neither string, which take 160 bytes. Finding the places takes half a microsecond. An
object of a watch is read and compared at once, and has the strings in an ``IdentityText``.

Decoding a pod takes ten microseconds, and a handler reads its object several times, so the last
bodies are kept. A decoded body is six times as large as its bytes, so not all of them are kept.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

MAX_DECODED = 16
"""The number of decoded bodies that are kept. A handler reads one or two objects at a time. 16
typical pods are 0.2 MB of dicts, which fit into a processor's cache: with 64, reading a few fields
of each event costs a sixth more, with 256 a third."""

LARGE_BODY_BYTES = 64 * 1024

MAX_DECODED_LARGE = 8
"""The number of large bodies that are kept besides: 256 ConfigMaps of 1 MiB must not stay open."""

UID_LENGTH: Final = 36
"""Characters of a UUID, which the uid of every object of an API server is."""

MAX_POSITION: Final = 4096
"""The last place in an object's bytes at which its uid is looked for. A name, a generateName and a
namespace before it have 569 characters at most. The limit bounds the number of places."""

_VERSION_BITS: Final = 5
_MAX_VERSION: Final = (1 << _VERSION_BITS) - 1
"""The longest resourceVersion that is left in the bytes. etcd's have 20 digits at most."""

_UID_KEY = b'"uid":"'
_UID_KEY_LENGTH = len(_UID_KEY)
_BETWEEN = '","resourceVersion":"'


class IdentityPlace:
    """The state of a listed object: the places of its uid and version in its bytes.

    This type and ``DecodedBody`` also keep msgspec from encoding the fields of an object as if they
    were its content: msgspec doesn't know the types, and shows their name in the error.
    """

    __slots__ = ("identity", "uid", "version")

    content: ClassVar[None] = None
    """The decoded body: none."""

    def __init__(self, at: int, length: int) -> None:
        """Create the state for a uid at the offset ``at``, and a version of ``length`` digits."""
        version = at + UID_LENGTH + len(_BETWEEN)
        self.uid = slice(at, at + UID_LENGTH)
        self.version = slice(version, version + length)
        self.identity = slice(at, version + length + 1)
        """Both, with the quote behind the version, so that no longer version is equal."""

    @property
    def closed(self) -> IdentityPlace:
        """The state of the object while its body isn't decoded: this one."""
        return self


NO_PLACE = IdentityPlace(0, 0)
"""The state of objects that have uid and version as fields of their own."""


class IdentityText(Struct, gc=False):
    """The state of a watched object, or one whose bytes are unusual: uid and version."""

    content: ClassVar[None] = None
    """The decoded body: none."""

    uid: str
    version: str
    not_encodable: IdentityPlace = NO_PLACE
    """Makes msgspec reject this state, as it rejects the others."""

    @property
    def closed(self) -> IdentityText:
        """The state of the object while its body isn't decoded: this one."""
        return self


class DecodedBody:
    """The state of a body that is decoded."""

    __slots__ = ("closed", "content", "uid", "version")

    def __init__(self, content: dict[str, Any], closed: IdentityPlace | IdentityText) -> None:
        self.content = content
        self.closed = closed
        """The state of the object before and afterwards."""
        self.uid = closed.uid
        self.version = closed.version


ObjectBody: TypeAlias = IdentityPlace | IdentityText | DecodedBody
"""The state of an object's body."""

for _type in (IdentityPlace, DecodedBody):
    _type.__name__ = "KubeObject (send its raw bytes, or encode its to_dict())"

_places: dict[int, IdentityPlace] = {}


def find_place(raw: bytes, uid: str, version: str) -> IdentityPlace | None:
    """Return the places of a uid and version in ``raw``; ``None`` if they can't be found.

    The values are known, so any place will do at which exactly these values stand.
    """
    at = raw.find(_UID_KEY) + _UID_KEY_LENGTH
    length = len(version)
    # With another version than ASCII the number of its bytes is not that of its characters.
    if not 0 < length <= _MAX_VERSION or at > MAX_POSITION or not version.isascii():
        return None
    place = _places.get(at << _VERSION_BITS | length) or _add_place(at, length)
    try:
        identity = f'{uid}{_BETWEEN}{version}"'.encode()
    except UnicodeEncodeError:  # a program may pass anything
        return None
    # Another spelling, another kind of uid, or text that isn't ASCII has other bytes there.
    return place if raw[place.identity] == identity else None


def _add_place(at: int, length: int) -> IdentityPlace:
    # ``setdefault`` is atomic: objects may be made in several threads.
    return _places.setdefault(at << _VERSION_BITS | length, IdentityPlace(at, length))


class DecodedBodyCache:
    """The objects that were opened last, whose decoded bodies are kept in their ``_body``.

    First in, first out: reading needs no bookkeeping, and an object that is read all day is decoded
    again now and then, which costs microseconds. Every step is one atomic operation of ``deque``,
    so that readers in threads may race: at worst a body is decoded twice.
    """

    def __init__(self) -> None:
        self._small: deque[tuple[Struct, DecodedBody]] = deque()
        self._large: deque[tuple[Struct, DecodedBody]] = deque()

    def add(self, obj: Struct, body: DecodedBody, size: int) -> None:
        """Keep the ``body`` of ``obj``, whose JSON has ``size`` bytes; close the oldest ones."""
        force_setattr(obj, "_body", body)
        opened, limit = (
            (self._small, MAX_DECODED)
            if size < LARGE_BODY_BYTES
            else (self._large, MAX_DECODED_LARGE)
        )
        opened.append((obj, body))
        while len(opened) > limit:
            try:
                oldest, decoded = opened.popleft()
            except IndexError:  # another thread was faster
                return
            force_setattr(oldest, "_body", decoded.closed)

    def objects(self) -> list[Struct]:
        return [obj for obj, _ in (*self._small.copy(), *self._large.copy())]

    def __repr__(self) -> str:
        return f"<DecodedBodyCache small={len(self._small)} large={len(self._large)}>"


decoded_bodies = DecodedBodyCache()
"""The decoded bodies of all informers of this process."""

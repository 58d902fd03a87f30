"""Which cached objects have their decoded body at hand: those that were opened last.

Decoding a pod takes ten microseconds, and a handler reads its object several times; but a body
is six times as large as its bytes, so that a cache of 100,000 objects must not keep them all.
What is decoded, and how it is shown, is ``objects``'.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

__all__ = ["CLOSED", "Body", "OpenBodies"]

OPEN_OBJECTS = 16
"""How many decoded bodies are kept. A handler and the code that it calls read one or two objects
at a time. 16 typical pods are 0.2 MB of dicts, which a processor's cache holds beside all else:
with 64, reading a few fields of each event costs a sixth more, with 256 a third."""

LARGE = 64 * 1024
"""Bytes of JSON from which on a body counts as large."""

OPEN_LARGE_OBJECTS = 8
"""How many large ones are kept beside them: 256 ConfigMaps of 1 MiB must not stay open."""


class Body:
    """Where an object has its decoded body; ``CLOSED`` if it isn't decoded.

    It is also what keeps msgspec from encoding the fields of an object as if they were its
    content: a type that msgspec doesn't know, and whose name is all that it tells the caller.
    """

    __slots__ = ("content",)

    def __init__(self, content: dict[str, Any] | None) -> None:
        self.content = content


Body.__name__ = "KubeObject (send its raw bytes, or encode its to_dict())"
CLOSED = Body(None)


class OpenBodies:
    """Keeps the decoded bodies of the objects that were opened last, in their ``_body``.

    First in, first out: an object that is read all day is decoded again once in a while, which
    costs microseconds, and reading one needs no bookkeeping. Every step is one atomic operation
    of ``deque``, so that readers in threads may race here: the worst is a body decoded twice.
    """

    def __init__(self) -> None:
        """None yet."""
        self._small: deque[Struct] = deque()
        self._large: deque[Struct] = deque()

    def keep(self, obj: Struct, body: dict[str, Any], size: int) -> None:
        """``obj``, of so many bytes, was decoded; another one is closed for it, if need be."""
        force_setattr(obj, "_body", Body(body))
        kept, most = (
            (self._small, OPEN_OBJECTS) if size < LARGE else (self._large, OPEN_LARGE_OBJECTS)
        )
        kept.append(obj)
        while len(kept) > most:
            try:
                oldest = kept.popleft()
            except IndexError:  # another thread was faster
                return
            force_setattr(oldest, "_body", CLOSED)

    def __repr__(self) -> str:
        return f"<OpenBodies small={len(self._small)} large={len(self._large)}>"

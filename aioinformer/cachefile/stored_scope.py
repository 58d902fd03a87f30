"""The stored state of a scope, the writes that change it, and the problem that ends both."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from aioinformer._core.objects.object_key import Admit
from aioinformer.cachefile.state.change_record import Changes


class CacheFileProblem(Exception):
    """A cache file can't be used. The text says why, and what to do."""


class StoredScope(Struct, frozen=True):
    """The state of one scope in a file."""

    number: int
    identity: str
    slot: int
    """Tells apart the states that several informers keep of the same objects."""
    scope: str
    """The namespace in an informer of several namespaces; or empty."""
    version: str
    """The resourceVersion that the objects are the state of."""
    written: float
    """The time of the last write, in seconds since the epoch."""
    reread: bool
    """True if newer versions of some objects were rejected, so that a list is needed."""
    handlers: frozenset[str]
    """The durable listeners that have handled this state."""
    parts: str = ""
    """The parts of the objects whose state this is, in the words of ``StateParts``; or empty."""
    leaving: bool = False
    """True if the durable listeners may have received the removal of these objects."""
    blocks: int = 0
    """The digest of the blocks with the objects."""


class ScopeWrite(Struct):
    """The changes that make a stored state of one scope a later one."""

    identity: str
    version: str
    """The version of the later state; empty to remove the scope."""
    reread: bool
    handlers: Sequence[str]
    changes: Changes
    parts: str = ""
    """The parts of the objects whose state this is."""
    outdated: Admit | None = None
    """Objects whose rows of an earlier run are removed, unless they are among the changes."""
    slot: int = 0
    family: str = ""
    """The identity of an informer of several namespaces, without the namespace; or empty."""
    scope: str = ""
    leaving: bool = False

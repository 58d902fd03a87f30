"""The children that a controller has applied, so that an equal apply need not be sent again.

A request is needless if the applied body has the hash of the last one, and the cache shows the
child in the version that the last one led to. Any write of anyone gives the child another version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, cast

import msgspec

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource

HASH_SIZE = 16


def _to_plain(value: object) -> object:
    """Convert read-only views of a cached object, which a body may hold."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a body can't hold a {type(value).__name__}")


_encode = msgspec.json.Encoder(order="deterministic", enc_hook=_to_plain).encode


def hash_body(body: object, *, field_manager: str, force: bool) -> bytes | None:
    """Return a hash of an apply; ``None`` if the body is no JSON, which its request reports."""
    try:
        encoded = _encode([field_manager, force, body])
    except (TypeError, ValueError, RecursionError):
        return None
    return blake2b(encoded, digest_size=HASH_SIZE).digest()


@dataclass(frozen=True, slots=True)
class _Applied:
    digest: bytes
    uid: str
    resource_version: str
    rewinds: int


class AppliedChildren:
    """The last apply of each child, by the owner's key: about 400 bytes for each child."""

    def __init__(self) -> None:
        self._applied: dict[ObjectKey, dict[tuple[Resource, ObjectKey], _Applied]] = {}

    def record(
        self, owner: ObjectKey, resource: Resource, written: KubeObject, digest: bytes, rewinds: int
    ) -> None:
        """Note that an apply with the hash ``digest`` led to ``written``.

        ``rewinds`` is how often the server of the child's informer went back in time so far: after
        a restored backup, versions are given out a second time.
        """
        applied = _Applied(digest, written.uid, written.resource_version, rewinds)
        self._applied.setdefault(owner, {})[resource, written.key] = applied

    def is_current(
        self, owner: ObjectKey, resource: Resource, cached: KubeObject, digest: bytes, rewinds: int
    ) -> bool:
        """Return True if an apply with this hash would change nothing in the cached child."""
        applied = self._applied.get(owner, {}).get((resource, cached.key))
        return applied == _Applied(digest, cached.uid, cached.resource_version, rewinds)

    def discard(self, owner: ObjectKey, resource: Resource, child: ObjectKey) -> None:
        """Forget one child, since the owner's run has written or deleted it otherwise."""
        children = self._applied.get(owner)
        if children is not None:
            children.pop((resource, child), None)

    def forget(self, owner: ObjectKey) -> None:
        """Forget the children of an owner, which doesn't exist any more."""
        self._applied.pop(owner, None)

    def __len__(self) -> int:
        """Return the number of owners."""
        return len(self._applied)

    def __repr__(self) -> str:
        return f"<AppliedChildren of {len(self)} owners>"

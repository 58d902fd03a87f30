"""The comparison of a cache with the server's own LIST, object by object, by content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aioinformer import KubeObject, ObjectKey
from aioinformer._core.quantities import quantity

MAX_NAMED = 3
"""Objects that a message names; the rest are counted."""


@dataclass(frozen=True, slots=True)
class CacheComparison:
    objects: int
    differing: tuple[str, ...]
    """Keys of objects that the cache lacks, holds in another state, or holds in excess."""
    handler_differing: tuple[str, ...]
    """The same keys for the versions that were delivered to the handler."""

    @property
    def equal(self) -> bool:
        return not (self.differing or self.handler_differing)

    def __str__(self) -> str:
        if self.equal:
            return (
                f"cache equals the server: {quantity(self.objects, 'object')}, every body; "
                "the handler received the same"
            )
        parts = (
            [_describe_keys(self.differing, "cache DIFFERS from the server")]
            if self.differing
            else []
        )
        if self.handler_differing:
            parts.append(
                _describe_keys(self.handler_differing, "the handler received something ELSE")
            )
        return "; ".join(parts)


def compare_cache(
    served: bytes, cached: Iterable[KubeObject], handled: Mapping[ObjectKey, str]
) -> CacheComparison:
    """Compare the body of a LIST with a cache and the versions that a handler received last."""
    items: list[dict[str, Any]] = msgspec.json.decode(served)["items"]
    expected = {_key(item): item for item in items}
    found = {obj.key: _untyped_body(obj) for obj in cached}
    versions = {key: item["metadata"]["resourceVersion"] for key, item in expected.items()}
    return CacheComparison(
        len(expected), _find_differing(expected, found), _find_differing(versions, handled)
    )


def _find_differing(
    expected: Mapping[ObjectKey, object], found: Mapping[ObjectKey, object]
) -> tuple[str, ...]:
    keys = expected.keys() | found.keys()
    return tuple(str(key) for key in sorted(keys) if expected.get(key) != found.get(key))


def _key(item: dict[str, Any]) -> ObjectKey:
    metadata = item["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata["name"])


def _untyped_body(obj: KubeObject) -> dict[str, Any]:
    """Return the cached body without its type, which watch events have and list items lack."""
    body = obj.to_dict()
    return {name: value for name, value in body.items() if name not in ("kind", "apiVersion")}


def _describe_keys(keys: tuple[str, ...], what: str) -> str:
    more = f" and {len(keys) - MAX_NAMED} more" if len(keys) > MAX_NAMED else ""
    return f"{what}: {', '.join(keys[:MAX_NAMED])}{more}"

"""Whether a cache is what the server has, object by object and byte for byte's worth.

The server's side comes from a plain list that the informer had no part in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aioinformer import KubeObject, ObjectKey

__all__ = ["CacheComparison", "compare_cache"]

MAX_NAMED = 3
"""Objects that a message names; the rest are counted."""


@dataclass(frozen=True, slots=True)
class CacheComparison:
    """What a comparison found."""

    objects: int
    """On the server."""
    differing: tuple[str, ...]
    """Keys of objects that the cache lacks, has in another state, or shouldn't have."""
    handler_differing: tuple[str, ...]
    """The same for what the handler was told."""

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not (self.differing or self.handler_differing)

    def __str__(self) -> str:
        if self.equal:
            return (
                f"cache equals the server: {self.objects} objects, every body; "
                "the handler heard the same"
            )
        parts = (
            [_describe_keys(self.differing, "cache DIFFERS from the server")]
            if self.differing
            else []
        )
        if self.handler_differing:
            parts.append(_describe_keys(self.handler_differing, "the handler heard something ELSE"))
        return "; ".join(parts)


def compare_cache(
    served: bytes, cached: Iterable[KubeObject], handled: Mapping[ObjectKey, str]
) -> CacheComparison:
    """Compare.

    Args:
        served: a list of all objects, as the server's JSON.
        cached: the informer's objects.
        handled: the resourceVersion of each object as a handler knows it.
    """
    items: list[dict[str, Any]] = msgspec.json.decode(served)["items"]
    there = {_key(item): item for item in items}
    held = {obj.key: _untyped_body(obj) for obj in cached}
    versions = {key: item["metadata"]["resourceVersion"] for key, item in there.items()}
    return CacheComparison(
        len(there), _find_differing(there, held), _find_differing(versions, handled)
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
    """What was cached, without the type: items of a list carry none, watch events do."""
    body = obj.to_dict()
    return {name: value for name, value in body.items() if name not in ("kind", "apiVersion")}


def _describe_keys(keys: tuple[str, ...], what: str) -> str:
    more = f" and {len(keys) - MAX_NAMED} more" if len(keys) > MAX_NAMED else ""
    return f"{what}: {', '.join(keys[:MAX_NAMED])}{more}"

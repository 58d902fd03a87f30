"""The kinds of patch: what is there in, what shall be there out.

A ``Patch`` knows no storage and no rules of objects; ``registry`` gives it the newest state and
checks what comes of it as it checks an update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from aioinformer.testing.json_patch import patched

__all__ = ["JsonPatch", "MergePatch", "Patch"]

Body = dict[str, Any]


class Patch(Protocol):
    """A change of a body."""

    def change(self, body: Body) -> Body:
        """The body after it. No part of the old one is written to.

        Raises:
            ServerError: it can't be applied.
        """
        ...


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7396."""

    patch: Mapping[str, Any]

    def change(self, body: Body) -> Body:
        """The body, merged with the patch."""
        changed: Body = merged(body, self.patch)
        return changed


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902."""

    operations: list[dict[str, Any]]

    def change(self, body: Body) -> Body:
        """The body after all operations."""
        return patched(body, self.operations)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396: objects are merged, ``null`` removes, anything else replaces. No copy is made."""
    if not isinstance(patch, Mapping):
        return patch
    result: Body = dict(cast("Body", target)) if isinstance(target, dict) else {}
    for name, value in cast("Mapping[str, Any]", patch).items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result

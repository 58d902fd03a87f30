"""JSON merge patches (RFC 7386), reduced to the part that changes something.

The removal of a member from an object that doesn't exist counts as nothing, although RFC 7386
creates the object for it: many servers don't store an empty object, so that each run would send the
removal again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aioinformer._core.objects.readonly import is_same_json


def reduce_merge_patch(current: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a merge patch that changes ``current``; empty if nothing changes.

    Both are decoded JSON or a read-only view: ``None`` removes a member, a list replaces a list.
    """
    reduced: dict[str, Any] = {}
    for name, value in patch.items():
        present, old = name in current, current.get(name)
        if value is None:
            if present:
                reduced[name] = None
        elif not present and _only_removes(value):
            continue
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            below = reduce_merge_patch(cast("Any", old), cast("Any", value))
            if below:
                reduced[name] = below
        elif not present or not is_same_json(old, cast("Any", value)):
            reduced[name] = value
    return reduced


def _only_removes(patch: object) -> bool:
    """Return True for a patch that removes members and sets none. ``{}`` sets an empty object."""
    if not isinstance(patch, Mapping) or not patch:
        return False
    values = cast("Mapping[str, object]", patch).values()
    return all(each is None or _only_removes(each) for each in values)


def has_list(patch: object) -> bool:
    """Return True if a merge patch replaces a list."""
    if isinstance(patch, Mapping):
        return any(map(has_list, cast("Mapping[str, object]", patch).values()))
    return isinstance(patch, Sequence) and not isinstance(patch, str)

"""Server-side apply: a configuration, what is there, and who owns what, made the next state.

What the real server does (structured-merge-diff), without schemas: maps are merged, keyed lists
item by item (``field_sets`` says which lists are keyed), everything else is replaced. What the
manager named before and no longer does is removed, unless somebody else owns it too. To change what
others own is a conflict, but for ``force``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from aioinformer.testing import write_statuses
from aioinformer.testing.encoding import Encoding
from aioinformer.testing.field_sets import Fields, Path, named_fields, parts
from aioinformer.testing.ownership import Manager, Owners, change_between, first_owners

__all__ = ["Applied", "applied"]

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Applied:
    """A configuration, and who applies it."""

    config: Body
    manager: Manager
    force: bool
    now: dt.datetime


def applied(encoding: Encoding, live: Mapping[str, Any], wanted: Applied) -> Body:
    """The next state of an object; of a new one, ``live`` has nothing but its metadata.

    Raises:
        Conflict: it would change fields that other managers own.
    """
    custom, manager = encoding.custom, wanted.manager
    owners = Owners.of(live)
    if not owners.entries:
        stamp = live["metadata"].get("creationTimestamp") or ""
        version = encoding.resource.api_version
        owners = first_owners(live, version, custom=custom, stamp=stamp)
    named = named_fields(wanted.config, custom=custom)
    kept = named.union(*owners.others(manager).values())
    dropped = owners.fields_of(manager) - kept
    result = cast("Body", merged((), deepcopy(dict(live)), wanted.config, custom=custom))
    result = cast("Body", without((), result, dropped, kept, custom=custom))
    change = change_between(live, result, custom=custom)
    conflicts = owners.conflicts(manager, change)
    if conflicts and not wanted.force:
        raise write_statuses.apply_conflict(
            {str(one): [shown(path) for path in paths] for one, paths in conflicts.items()}
        )
    managed = owners.after(manager, change, named, wanted.now)
    metadata = {**result["metadata"]}
    metadata.pop("managedFields", None)
    return result | {"metadata": metadata | ({"managedFields": managed} if managed else {})}


def merged(path: Path, live: Any, config: Any, *, custom: bool) -> Any:
    """What is there with what is wanted put over it."""
    inside, there = parts(path, config, custom=custom), parts(path, live, custom=custom)
    if config is None:
        return live
    if inside is None or there is None:
        return config
    result = dict(there)
    for element, part in inside:
        deeper = (*path, element)
        result[element] = (
            merged(deeper, result[element], part, custom=custom) if element in result else part
        )
    return _assembled(config, result)


def without(path: Path, live: Any, dropped: Fields, kept: Fields, *, custom: bool) -> Any:
    """What is there without what nobody wants any more. A map that this leaves empty goes, too,
    unless somebody owns it.
    """
    inside = parts(path, live, custom=custom)
    if inside is None:
        return live
    result: dict[str, Any] = {}
    for element, part in inside:
        deeper = (*path, element)
        held = deeper in kept or any(one[: len(deeper)] == deeper for one in kept)
        if deeper in dropped and not held:
            continue
        left = without(deeper, part, dropped, kept, custom=custom)
        if part and not left and isinstance(left, dict | list) and not held:
            continue
        result[element] = left
    return _assembled(live, result)


def _assembled(like: Any, members: Mapping[str, Any]) -> Any:
    """The map or list that has these members."""
    if isinstance(like, dict):
        return {element[2:]: part for element, part in members.items()}
    return list(members.values())


def shown(path: Path) -> str:
    """A path as the server writes it: ``.spec.containers[name="web"].image``."""
    return "".join(_element(element) for element in path)


def _element(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "v:":
        return f"[={rest}]"
    name, value = next(iter(cast("dict[str, str]", msgspec.json.decode(rest)).items()))
    return f"[{name}={msgspec.json.encode(value).decode()}]"

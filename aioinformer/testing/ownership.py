"""Who owns which fields of an object: ``metadata.managedFields``, kept as the server keeps them.

Written from the first apply on, and by requests that name a ``fieldManager``; the real server
writes them always, with the User-Agent for a name. What was there before the first apply belongs
to ``before-first-apply`` then, as it does there for objects from before managedFields.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from aioinformer.testing.field_sets import Fields, Path, decoded, encoded, nodes

__all__ = ["BEFORE", "Change", "Manager", "Owners", "change_between"]

BEFORE = "before-first-apply"


@dataclass(frozen=True, slots=True, order=True)
class Manager:
    """One who owns fields."""

    operation: Literal["Apply", "Update"]
    name: str
    api_version: str
    subresource: str = ""

    def __str__(self) -> str:
        part = f' with subresource "{self.subresource}"' if self.subresource else ""
        version = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.name}"{part}{version}'


@dataclass(frozen=True, slots=True)
class Change:
    """What is different from one state of an object to the next."""

    written: Fields
    """Fields that are new, or have another value."""
    removed: Fields

    def __bool__(self) -> bool:
        return bool(self.written or self.removed)


def change_between(old: Mapping[str, Any], new: Mapping[str, Any], *, custom: bool) -> Change:
    """What was changed."""
    before, after = nodes(old, custom=custom), nodes(new, custom=custom)
    written = {path for path, value in after.items() if path not in before or before[path] != value}
    return Change(frozenset(written), frozenset(before.keys() - after.keys()))


@dataclass(frozen=True, slots=True)
class Entry:
    """What one manager owns."""

    fields: Fields
    time: str


@dataclass(frozen=True, slots=True)
class Owners:
    """All the managers of an object."""

    entries: Mapping[Manager, Entry]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Owners:
        """Those that an object names."""
        entries: dict[Manager, Entry] = {}
        for each in body["metadata"].get("managedFields") or ():
            named = each.get("manager", ""), each.get("apiVersion", "")
            manager = Manager(each.get("operation", "Update"), *named, each.get("subresource", ""))
            entries[manager] = Entry(decoded(each.get("fieldsV1") or {}), each.get("time", ""))
        return cls(entries)

    def fields_of(self, manager: Manager) -> Fields:
        """What one owns."""
        entry = self.entries.get(manager)
        return entry.fields if entry else frozenset()

    def others(self, manager: Manager) -> dict[Manager, Fields]:
        """What all the others own."""
        return {one: entry.fields for one, entry in self.entries.items() if one != manager}

    def conflicts(self, manager: Manager, change: Change) -> dict[Manager, list[Path]]:
        """Fields of others that a change would write, in the server's order."""
        found = {one: fields & change.written for one, fields in self.others(manager).items()}
        # Members first, then what is inside of them.
        return {
            one: sorted(fields, key=lambda path: (len(path), path))
            for one, fields in sorted(found.items(), key=lambda pair: pair[0].name)
            if fields
        }

    def after(
        self, manager: Manager, change: Change, owned: Fields, now: dt.datetime
    ) -> list[dict[str, Any]]:
        """``managedFields`` after a change by one of them, who owns ``owned`` then."""
        stamp = now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        lost = change.written | change.removed
        entries = {
            one: replace(entry, fields=entry.fields - lost)
            for one, entry in self.entries.items()
            if one != manager
        }
        before = self.entries.get(manager)
        kept = before is not None and before.fields == owned
        entries[manager] = before if before is not None and kept else Entry(owned, stamp)
        ranks = {(one.operation, entry.time, one): entry for one, entry in entries.items()}
        return [_written(rank[-1], ranks[rank]) for rank in sorted(ranks) if ranks[rank].fields]

    def updated(self, manager: Manager, change: Change, now: dt.datetime) -> list[dict[str, Any]]:
        """``managedFields`` after an update, which takes over whatever it writes."""
        owned = (self.fields_of(manager) | change.written) - change.removed
        return self.after(manager, change, owned, now)


def _written(manager: Manager, entry: Entry) -> dict[str, Any]:
    written = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": encoded(entry.fields),
    }
    return written | ({"subresource": manager.subresource} if manager.subresource else {})


def first_owners(body: Mapping[str, Any], api_version: str, *, custom: bool, stamp: str) -> Owners:
    """The owners of an object that has none: all of it was there before."""
    every = frozenset(nodes(body, custom=custom))
    if not every:
        return Owners({})
    return Owners({Manager("Update", BEFORE, api_version): Entry(every, stamp)})

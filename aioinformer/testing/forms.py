"""The forms other than whole in which objects can be asked for: metadata alone.

``Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`` and its singular;
recordings 19 and 32. Unlike the objects themselves these are Go structs for every resource, so
they are written in one dialect. Tables are ``tables``'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aioinformer.testing.encoding import (
    EventType,
    Frame,
    Stored,
    bookmark_metadata,
    event_line,
    json_bytes,
    ordered,
)

__all__ = ["META", "MetadataForm", "partial_object"]

META = "meta.k8s.io/v1"
"""The group version of these forms."""


@dataclass(frozen=True, slots=True)
class MetadataForm:
    """Objects of any resource as ``PartialObjectMetadata``; all of them are alike."""

    def line(self, event: EventType, stored: Stored) -> bytes:
        """One event of a watch."""
        return event_line(event, json_bytes(partial_object(stored.body["metadata"])))

    def bookmark(self, version: int, *, initial_events_end: bool = False) -> bytes:
        """A bookmark."""
        metadata = bookmark_metadata(version, initial_events_end)
        return event_line("BOOKMARK", json_bytes(partial_object(metadata)))

    def first(self, line: bytes) -> bytes:
        """The event as it is."""
        return line

    def page(self, rows: Iterable[Stored], frame: Frame) -> bytes:
        """A list, or one page of it."""
        head = {"kind": "PartialObjectMetadataList", "apiVersion": META}
        items = [partial_object(stored.body["metadata"]) for stored in rows]
        return json_bytes(head | {"metadata": frame.metadata(), "items": items}) + b"\n"


def partial_object(metadata: dict[str, Any]) -> dict[str, Any]:
    """An object's type and metadata."""
    head = {"kind": "PartialObjectMetadata", "apiVersion": META}
    return head | {"metadata": ordered(metadata)}

"""Kubernetes Events as notes on objects: what ``aioinformer watch --events`` shows between changes.

An Event is an object of its own that says something of another one: scheduled, pulled, killed.
Which Events are about what is watched is decided here; reading them is an informer's work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from aioinformer import Event, KubeObject, ObjectKey, Resource
from aioinformer._cli.demo.counters import event_type

__all__ = ["KubeEvent", "RelatedEvents"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeEvent:
    """What an Event says."""

    type: str
    """``Normal`` or ``Warning``."""
    namespace: str
    name: str
    """Of what it is about."""
    text: str

    @property
    def is_warning(self) -> bool:
        """Whether somebody may want to do something about it."""
        return self.type == "Warning"

    @classmethod
    def from_object(cls, obj: KubeObject) -> KubeEvent:
        """The note that an Event is."""
        about = _mapping(obj.get("involvedObject"))
        series = _mapping(obj.get("series"))
        count = obj.get("count") or series.get("count") or 1
        times = f" (x{count})" if isinstance(count, int) and count > 1 else ""
        return cls(
            type=str(obj.get("type") or "Normal"),
            namespace=str(about.get("namespace") or ""),
            name=str(about.get("name") or ""),
            text=f"{obj.get('reason') or '-'}: {obj.get('message') or ''}{times}",
        )


@dataclass(frozen=True, slots=True)
class RelatedEvents:
    """Which Events belong to what is watched."""

    resource: Resource
    is_watched: Callable[[ObjectKey], bool]
    """Whether an object of the resource is among what is watched."""

    @property
    def selector(self) -> str:
        """The field selector that spares the server the others."""
        return f"involvedObject.kind={self.resource.kind}"

    def includes(self, event: Event) -> bool:
        """Whether it is news of something that is watched: a new Event, or one more of a kind.

        An Event that is deleted has expired. What was there at first is the past.
        """
        if event_type(event) == "DELETED" or getattr(event, "initial", False):
            return False
        about = _mapping(event.obj.get("involvedObject"))
        group, _, version = str(about.get("apiVersion") or "").rpartition("/")
        if version and group != self.resource.group:
            return False
        place = str(about.get("namespace") or "") if self.resource.namespaced else ""
        return self.is_watched(ObjectKey(place, str(about.get("name") or "")))


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}

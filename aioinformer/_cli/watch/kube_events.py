"""Kubernetes Events about watched objects, for ``aioinformer watch --events``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from aioinformer import Event, KubeObject, ObjectKey, Resource
from aioinformer._cli.terminal.style import event_type


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeEvent:
    type: str
    """``Normal`` or ``Warning``."""
    namespace: str
    name: str
    """The name of the object that the Event is about."""
    text: str
    """The reason, the message, and the count if it is above 1."""

    @property
    def is_warning(self) -> bool:
        return self.type == "Warning"

    @classmethod
    def from_object(cls, obj: KubeObject) -> KubeEvent:
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
    resource: Resource
    is_watched: Callable[[ObjectKey], bool]

    @property
    def selector(self) -> str:
        return f"involvedObject.kind={self.resource.kind}"

    def includes(self, event: Event) -> bool:
        """Return True for a new or repeated Event about a watched object.

        A deleted Event has expired, and an Event of the initial list is old: both give False.
        """
        if event_type(event) == "DELETED" or getattr(event, "initial", False):
            return False
        about = _mapping(event.obj.get("involvedObject"))
        group, _, version = str(about.get("apiVersion") or "").rpartition("/")
        if version and group != self.resource.group:
            return False
        namespace = str(about.get("namespace") or "") if self.resource.namespaced else ""
        return self.is_watched(ObjectKey(namespace, str(about.get("name") or "")))


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}

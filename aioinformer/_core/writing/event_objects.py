"""Something that a controller tells of an object: the body of an ``events.k8s.io/v1`` Event.

Values only. What is one occurrence and what repeats another is ``aggregation``'s to decide; sending
is ``recording``'s work. The rules are those of the API (``ValidateEventCreate``): what is too long
is cut here, since an event that is refused tells nobody anything.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.errors import UsageError

__all__ = [
    "EventRecord",
    "EventType",
    "ObjectReference",
    "ReportingController",
    "event_name",
    "format_stamp",
]

EventType: TypeAlias = Literal["Normal", "Warning"]
"""``Warning`` for what somebody may want to do something about."""

EVENT_TYPES = ("Normal", "Warning")

MAX_NOTE_BYTES = 1024
"""Bytes of a note."""
MAX_WORD_BYTES = 128
"""Bytes of a reason, an action, a reporting instance."""
MAX_NAME_LENGTH = 253
"""Characters of an object's name."""

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What an event may be called (RFC 1123). Other objects may have other names: ``system:node``."""

DEFAULT_NAMESPACE = "default"
"""Where events of cluster-scoped objects are."""


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """An object that an event is about: a ``v1.ObjectReference``."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> ObjectReference:
        """The reference to an object.

        Raises:
            UsageError: it doesn't say what it is.
        """
        if isinstance(obj, KubeObject):
            return cls(obj.api_version, obj.kind, obj.namespace, obj.name, obj.uid)
        body = _mapping(obj)
        named = _mapping(body.get("metadata"))
        texts = (body.get("apiVersion"), body.get("kind"), named.get("name"))
        others = (named.get("namespace") or "", named.get("uid") or "")
        if not all(texts) or not all(isinstance(text, str) for text in (*texts, *others)):
            raise UsageError(
                "an event is of an object with apiVersion, kind and metadata.name: pass one from a "
                "cache or a writer"
            )
        version, kind, name = map(str, texts)
        return cls(version, kind, str(others[0]), name, str(others[1]))

    def to_dict(self) -> dict[str, Any]:
        """As an Event has it."""
        texts = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {name: text for name, text in texts.items() if text}

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


@dataclass(frozen=True, slots=True)
class ReportingController:
    """Who tells."""

    controller: str
    """The name of the controller, such as ``example.com/foo``."""
    instance: str
    """Which of its replicas."""

    def to_dict(self) -> dict[str, Any]:
        """As an Event has it."""
        return {
            "reportingController": self.controller,
            "reportingInstance": _truncate(self.instance, MAX_WORD_BYTES),
        }


@dataclass(frozen=True, slots=True)
class EventRecord:
    """What has happened to what.

    Two are the same event if all of this is equal but the note (client-go's ``getKey``; the
    resourceVersion that it counts in as well would make every occurrence another event).

    Raises:
        UsageError: the type is neither of the two, or there is no reason.
    """

    regarding: ObjectReference
    type: EventType
    reason: str
    note: str = ""
    action: str = ""
    """What was done or tried; the reason, if nothing is said."""
    related: ObjectReference | None = None

    def __post_init__(self) -> None:
        if self.type not in EVENT_TYPES:
            raise UsageError(f"the type of an event is Normal or Warning, not {self.type!r}")
        for name in ("reason", "note", "action"):
            if not isinstance(text := getattr(self, name), str):
                raise UsageError(f"the {name} of an event is text, not {type(text).__name__}")
        if not self.reason:
            raise UsageError("an event needs a reason: one word in CamelCase, such as 'Created'")

    @property
    def key(self) -> tuple[object, ...]:
        """What is the same in the occurrences of one event."""
        return self.regarding, self.type, self.reason, self.action, self.related

    @property
    def namespace(self) -> str:
        """Where the event is."""
        return self.regarding.namespace or DEFAULT_NAMESPACE

    def to_dict(self, name: str, stamp: int, reporter: ReportingController) -> dict[str, Any]:
        """The Event.

        Args:
            name: its name.
            stamp: when it happened, in nanoseconds since 1970.
            reporter: who tells.
        """
        event: dict[str, Any] = {
            "metadata": {"name": name, "namespace": self.namespace},
            "eventTime": format_stamp(stamp),
            **reporter.to_dict(),
            "action": _truncate(self.action or self.reason, MAX_WORD_BYTES),
            "reason": _truncate(self.reason, MAX_WORD_BYTES),
            "regarding": self.regarding.to_dict(),
            "note": _truncate(self.note, MAX_NOTE_BYTES, end="..."),
            "type": self.type,
        }
        return event | ({"related": self.related.to_dict()} if self.related else {})

    def __str__(self) -> str:
        return f"{self.type} {self.reason} of {self.regarding}"


def event_name(name: str, stamp: int) -> str:
    """The name of an event: the object's, and when it happened; client-go's
    ``GenerateEventName``. Of a name that no event may have, its letters and digits.
    """
    suffix = f".{stamp:x}"
    start = name[: MAX_NAME_LENGTH - len(suffix)].rstrip(".-")
    if SUBDOMAIN.fullmatch(start) is None:
        start = re.sub("[^a-z0-9]+", "-", start.lower()).strip("-") or "event"
    return start + suffix


def format_stamp(stamp: int) -> str:
    """Nanoseconds since 1970 as a ``MicroTime``."""
    moment = dt.datetime.fromtimestamp(stamp // 1_000_000_000, dt.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{stamp // 1000 % 1_000_000:06d}Z"


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _truncate(text: str, max_bytes: int, *, end: str = "") -> str:
    """The text, in at most so many bytes. What can't be encoded, such as an undecodable byte of a
    file's name, becomes a question mark.
    """
    encoded = text.encode(errors="replace")
    if len(encoded) <= max_bytes:
        return encoded.decode()
    return encoded[: max_bytes - len(end)].decode(errors="ignore") + end

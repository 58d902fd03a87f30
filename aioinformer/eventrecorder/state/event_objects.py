"""Bodies of ``events.k8s.io/v1`` Events, by the rules of the API (``ValidateEventCreate``).

Texts that are too long are cut here, since the server would reject the whole Event.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.writing.write_requests import EventType
from aioinformer.errors import UsageError
from aioinformer.errors.texts import printable

EVENT_TYPES = ("Normal", "Warning")

MAX_NOTE_BYTES = 1024
MAX_WORD_BYTES = 128
"""The most bytes of a reason, an action, a reporting instance."""
MAX_NAME_LENGTH = 253

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""The form of an Event's name (RFC 1123), which other names may not have: ``system:node``."""

DEFAULT_NAMESPACE = "default"
"""The namespace of Events about cluster-scoped objects."""


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A reference to the object of an Event: a ``v1.ObjectReference``."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> ObjectReference:
        """Return the reference to an object; raise a ``UsageError`` without apiVersion, kind or
        name.
        """
        if isinstance(obj, KubeObject):
            return cls(obj.api_version, obj.kind, obj.namespace, obj.name, obj.uid)
        body = _mapping(obj)
        named = _mapping(body.get("metadata"))
        texts = (body.get("apiVersion"), body.get("kind"), named.get("name"))
        others = (named.get("namespace") or "", named.get("uid") or "")
        if not all(texts) or not all(isinstance(text, str) for text in (*texts, *others)):
            raise UsageError(
                "an event needs an object with apiVersion, kind and metadata.name, such as one "
                "from a cache or a writer"
            )
        version, kind, name = map(str, texts)
        return cls(version, kind, str(others[0]), name, str(others[1]))

    def to_dict(self) -> dict[str, Any]:
        """Return the reference in the form of the API, without empty fields."""
        texts = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {name: text for name, text in texts.items() if text}

    def __str__(self) -> str:
        return printable(f"{self.kind} {ObjectKey(self.namespace, self.name)}")


@dataclass(frozen=True, slots=True)
class ReportingController:
    """The controller that reports an Event."""

    controller: str
    instance: str

    def to_dict(self) -> dict[str, Any]:
        """Return the two fields of an Event."""
        return {
            "reportingController": self.controller,
            "reportingInstance": _truncate(self.instance, MAX_WORD_BYTES),
        }


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One record: something that happened to an object.

    Two records belong to the same Event if everything but the note is equal (client-go's ``getKey``
    also compares the resourceVersion, which would make every record a new Event).

    Raises:
        UsageError: the type is neither Normal nor Warning, or the reason is empty.
    """

    regarding: ObjectReference
    type: EventType
    reason: str
    note: str = ""
    action: str = ""
    """The action that was done or tried; the reason is sent if this is empty."""
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
        """The part that is equal in all records of one Event."""
        return self.regarding, self.type, self.reason, self.action, self.related

    @property
    def namespace(self) -> str:
        """The namespace of the Event."""
        return self.regarding.namespace or DEFAULT_NAMESPACE

    def to_dict(self, name: str, stamp: int, reporter: ReportingController) -> dict[str, Any]:
        """Return the Event of a record at ``stamp``, in nanoseconds since 1970."""
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
    """Return the name of an Event: the object's name, or its letters and digits where an Event's
    name can't have that form, and the time (client-go's ``GenerateEventName``).
    """
    suffix = f".{stamp:x}"
    start = name[: MAX_NAME_LENGTH - len(suffix)].rstrip(".-")
    if SUBDOMAIN.fullmatch(start) is None:
        start = re.sub("[^a-z0-9]+", "-", start.lower()).strip("-") or "event"
    return start + suffix


def format_stamp(stamp: int) -> str:
    """Return nanoseconds since 1970 as a ``MicroTime``."""
    moment = dt.datetime.fromtimestamp(stamp // 1_000_000_000, dt.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{stamp // 1000 % 1_000_000:06d}Z"


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _truncate(text: str, max_bytes: int, *, end: str = "") -> str:
    """Return the text in at most ``max_bytes`` bytes, with ``?`` for characters that can't be
    encoded.
    """
    encoded = text.encode(errors="replace")
    if len(encoded) <= max_bytes:
        return encoded.decode()
    return encoded[: max_bytes - len(end)].decode(errors="ignore") + end

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

__all__ = ["EventType", "Occurrence", "Reference", "Reporter", "event_name", "micro_time"]

EventType: TypeAlias = Literal["Normal", "Warning"]
"""``Warning`` for what somebody may want to do something about."""

TYPES = ("Normal", "Warning")

NOTE = 1024
"""Bytes of a note."""
WORD = 128
"""Bytes of a reason, an action, a reporting instance."""
NAME = 253
"""Characters of an object's name."""

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What an event may be called (RFC 1123). Other objects may have other names: ``system:node``."""

DEFAULT = "default"
"""Where events of cluster-scoped objects are."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An object that an event is about: a ``v1.ObjectReference``."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Reference:
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

    def body(self) -> dict[str, Any]:
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
class Reporter:
    """Who tells."""

    controller: str
    """The name of the controller, such as ``example.com/foo``."""
    instance: str
    """Which of its replicas."""

    def body(self) -> dict[str, Any]:
        """As an Event has it."""
        return {
            "reportingController": self.controller,
            "reportingInstance": _cut(self.instance, WORD),
        }


@dataclass(frozen=True, slots=True)
class Occurrence:
    """What has happened to what.

    Two are the same event if all of this is equal but the note (client-go's ``getKey``; the
    resourceVersion that it counts in as well would make every occurrence another event).

    Raises:
        UsageError: the type is neither of the two, or there is no reason.
    """

    regarding: Reference
    type: EventType
    reason: str
    note: str = ""
    action: str = ""
    """What was done or tried; the reason, if nothing is said."""
    related: Reference | None = None

    def __post_init__(self) -> None:
        if self.type not in TYPES:
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
        return self.regarding.namespace or DEFAULT

    def body(self, name: str, stamp: int, reporter: Reporter) -> dict[str, Any]:
        """The Event.

        Args:
            name: its name.
            stamp: when it happened, in nanoseconds since 1970.
            reporter: who tells.
        """
        event: dict[str, Any] = {
            "metadata": {"name": name, "namespace": self.namespace},
            "eventTime": micro_time(stamp),
            **reporter.body(),
            "action": _cut(self.action or self.reason, WORD),
            "reason": _cut(self.reason, WORD),
            "regarding": self.regarding.body(),
            "note": _cut(self.note, NOTE, end="..."),
            "type": self.type,
        }
        return event | ({"related": self.related.body()} if self.related else {})

    def __str__(self) -> str:
        return f"{self.type} {self.reason} of {self.regarding}"


def event_name(name: str, stamp: int) -> str:
    """The name of an event: the object's, and when it happened; client-go's
    ``GenerateEventName``. Of a name that no event may have, its letters and digits.
    """
    suffix = f".{stamp:x}"
    start = name[: NAME - len(suffix)].rstrip(".-")
    if SUBDOMAIN.fullmatch(start) is None:
        start = re.sub("[^a-z0-9]+", "-", start.lower()).strip("-") or "event"
    return start + suffix


def micro_time(stamp: int) -> str:
    """Nanoseconds since 1970 as a ``MicroTime``."""
    moment = dt.datetime.fromtimestamp(stamp // 1_000_000_000, dt.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{stamp // 1000 % 1_000_000:06d}Z"


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _cut(text: str, most: int, *, end: str = "") -> str:
    """The text, in at most so many bytes. What can't be encoded, such as an undecodable byte of a
    file's name, becomes a question mark.
    """
    encoded = text.encode(errors="replace")
    if len(encoded) <= most:
        return encoded.decode()
    return encoded[: most - len(end)].decode(errors="ignore") + end

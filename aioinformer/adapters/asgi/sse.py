"""Objects as frames of an event stream, each encoded once for all clients.

Two hundred clients are told the same of an object. What differs between them is when, so that
what was made of it is kept for a while, by informer, uid and resourceVersion: by the informer's
identity, since those of several selectors or transforms share a name.

Source: the HTML standard, section 9.2 "Server-sent events".
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject
from aioinformer._runtime.delivery.streams import EventSource

__all__ = ["RESET_FRAME", "SYNCED_FRAME", "Encode", "FrameEncoder", "metadata"]

log = logging.getLogger("aioinformer.adapters.asgi")

Encode: TypeAlias = Callable[[EventSource, KubeObject], bytes | None]
"""JSON of an object, for every client; ``None`` to send nothing. Must be quick, and depend on
nothing but the informer and the object: of one version it may be asked once or more often."""

RETRY_MILLISECONDS = 1000
"""Milliseconds after which a browser comes back; its own choice would be three to five seconds."""

RESET_FRAME = b"retry: %d\nevent: reset\ndata: {}\n\n" % RETRY_MILLISECONDS
SYNCED_FRAME = b"event: synced\ndata: {}\n\n"

DATA_PREFIX = b"data: "

MAX_CACHE_BYTES = 8 * 1024 * 1024
"""Bytes of encoded objects that are kept for the clients who have yet to be told: 10,000 rows of a
table, so that clients who come together are told of as many objects for the price of one."""

ENTRY_OVERHEAD = 400
"""Bytes that keeping one costs beside its text: the key, and its place."""


def metadata(informer: EventSource, obj: KubeObject) -> bytes:
    """Name, namespace, uid, resourceVersion and labels; never a Secret's content, nor anything
    else's. Annotations are left out, in which kubectl keeps what was applied.
    """
    return msgspec.json.encode(
        {
            "informer": informer.name,
            "namespace": obj.namespace,
            "name": obj.name,
            "uid": obj.uid,
            "resourceVersion": obj.resource_version,
            "labels": dict(obj.labels),
        }
    )


class FrameEncoder:
    """What events are as frames."""

    def __init__(self, encode: Encode) -> None:
        """Nothing was encoded yet."""
        self._encode = encode
        self._cache: dict[tuple[object, ...], bytes] = {}
        self._size = 0

    def encode(self, informer: EventSource, event: Event) -> bytes:
        """The frame of an event; empty if there is nothing to send."""
        obj = event.obj
        key = (id(informer), obj.key, obj.uid, obj.resource_version)
        text = self._cache.get(key)
        if text is None:
            text = self._remember(key, self._encode_object(informer, obj))
        if not text.startswith(DATA_PREFIX):  # nothing, or a failure, which is a whole frame
            return text
        match event:
            case Added():
                return b"event: added\n" + text
            case Deleted():
                return b"event: deleted\n" + text
            case _:
                return b"event: updated\n" + text

    def _encode_object(self, informer: EventSource, obj: KubeObject) -> bytes:
        try:
            data = self._encode(informer, obj)
        except Exception as error:
            log.exception("%s: %s can't be encoded for an event stream", informer.name, obj.key)
            return (
                b"event: failed\n" + DATA_PREFIX + _encode_failure(informer, obj, error) + b"\n\n"
            )
        return b"" if data is None else DATA_PREFIX + _strip_line_breaks(data) + b"\n\n"

    def _remember(self, key: tuple[object, ...], text: bytes) -> bytes:
        self._cache[key] = text
        self._size += ENTRY_OVERHEAD + len(text)
        while self._size > MAX_CACHE_BYTES:
            self._size -= ENTRY_OVERHEAD + len(self._cache.pop(next(iter(self._cache))))
        return text

    def __repr__(self) -> str:
        return f"<FrameEncoder of {len(self._cache)} objects, {self._size} B>"


def _strip_line_breaks(data: bytes) -> bytes:
    """JSON without line breaks, which would end the line that it is sent on. In JSON they are
    white space: a string can't have any.
    """
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data


def _encode_failure(informer: EventSource, obj: KubeObject, error: Exception) -> bytes:
    """Which object, and the error's type: its text may quote what must not leave."""
    return msgspec.json.encode(
        {
            "informer": informer.name,
            "namespace": obj.namespace,
            "name": obj.name,
            "error": type(error).__name__,
        }
    )

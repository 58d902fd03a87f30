"""Events as frames of an event stream. Each object is encoded once for all clients.

Clients receive the same data at different times, so encoded data is kept for a while: by the
informer itself (informers with different selectors or transforms have the same name) and by the
object's identity, version and content, because a server may serve other content under an unchanged
resourceVersion. The hash represents the content, since a reference to the object would keep old
states in memory. CPython computes the hash of the bytes of an object once.

If ``encode`` leaves an object out, or raises, in some of its states, the frame also depends on the
earlier state, so that each client knows exactly the objects that were not left out last. The
earlier state is encoded again if its data is no longer kept.

Source: the HTML standard, section 9.2 "Server-sent events".
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias, cast
from weakref import ref

import msgspec

from aioinformer._core.callables import check_not_async, check_signature
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    Updated,
    held_state,
)
from aioinformer._core.objects.view import name_of
from aioinformer._core.quantities import quantity
from aioinformer._runtime.delivery.streams import EventSource
from aioinformer._runtime.reporting.error_hook import LogThrottle
from aioinformer._runtime.reporting.error_texts import describe_error

log = logging.getLogger("aioinformer.adapters.asgi")

Encode: TypeAlias = Callable[[EventSource, KubeObject], bytes | str | None]
"""Returns the JSON of an object, for every client, as bytes or text; ``None`` to leave the object
out: clients that have received an earlier state of it receive ``deleted`` with the data of that
state. The function must be quick, and its result must depend on the informer and the object only:
it is called at least once for a state of the object."""

RETRY_MILLISECONDS = 1000
"""Milliseconds after which a browser reconnects; its own default is three to five seconds."""

RESET_FRAME = b"retry: %d\nevent: reset\ndata: {}\n\n" % RETRY_MILLISECONDS
SYNCED_FRAME = b"event: synced\ndata: {}\n\n"

ADDED = b"event: added\n"
UPDATED = b"event: updated\n"
DELETED = b"event: deleted\n"
FAILED = b"event: failed\n"
DATA_PREFIX = b"data: "

MAX_CACHE_BYTES = 8 * 1024 * 1024
"""Bytes of encoded objects that are kept for clients that have not received them yet: 10,000 rows
of a table, so that objects are encoded once for clients that connect together."""

ENTRY_OVERHEAD = 450
"""Bytes of an entry in addition to its data: the key, and the slot in the dict."""


def metadata(informer: EventSource, obj: KubeObject) -> bytes:
    """Return name, namespace, uid, resourceVersion and labels as JSON, and no content.

    Annotations are left out, since kubectl keeps the applied object in one of them.
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
    """An encoder of events as frames, with a cache of encoded objects."""

    def __init__(self, encode: Encode) -> None:
        """Start with an empty cache; raise ``TypeError`` unless ``encode`` is a plain function."""
        name = name_of(encode)
        if not callable(cast("object", encode)):
            raise TypeError(f"encode= is a function of an informer and an object, not {name}")
        check_not_async(encode, f"encode={name}")
        check_signature(encode, f"encode={name}", "informer", "obj")
        self._encode = encode
        self._has_gaps = False
        """True once ``encode`` has returned no data of an object: a client may not know it then."""
        self._traceback_throttle = LogThrottle()
        self._cache: dict[tuple[object, ...], bytes] = {}
        self._size = 0

    def encode(self, informer: EventSource, event: Event) -> bytes:
        """Return the frame of an event; empty if there is nothing to send."""
        text = self._encode_once(informer, event.obj)
        if self._has_gaps:
            return self._encode_change(informer, event, text)
        return _frame(event, text)

    def _encode_change(self, informer: EventSource, event: Event, text: bytes) -> bytes:
        """Return the frame of an event for clients that received the earlier state, or none."""
        match event:
            case Updated(old, _):
                before = self._encode_once(informer, old)
                if not text:
                    return _as_deleted(before)
                return ADDED + text if not before and _is_data(text) else _frame(event, text)
            case Deleted():
                before = self._encode_once(informer, held_state(event))
                return _as_deleted(text if before and _is_data(text) else before)
            case _:
                return _frame(event, text)

    def _encode_once(self, informer: EventSource, obj: KubeObject) -> bytes:
        version = (obj.api_version, obj.resource_version, hash(obj.raw))
        key = (ref(informer), obj.key, obj.uid, *version)
        text = self._cache.get(key)
        return self._remember(key, self._encode_object(informer, obj)) if text is None else text

    def _encode_object(self, informer: EventSource, obj: KubeObject) -> bytes:
        try:
            data = self._call_encode(informer, obj)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a program's function may raise anything
            self._log_failure(informer, obj, error)
            self._has_gaps = True
            return FAILED + DATA_PREFIX + _encode_failure(informer, obj, error) + b"\n\n"
        if data is None:
            self._has_gaps = True
            return b""
        return DATA_PREFIX + _strip_line_breaks(data) + b"\n\n"

    def _call_encode(self, informer: EventSource, obj: KubeObject) -> bytes | None:
        """Return the data of an object as bytes.

        The type is checked here: a dict would fail later, where neither function nor object is
        named.
        """
        data = cast("object", self._encode(informer, obj))
        if isinstance(data, str):
            return data.encode()
        if data is None or isinstance(data, bytes):
            return data
        raise TypeError(
            f"encode={name_of(self._encode)} returned a {type(data).__name__}, not JSON as bytes "
            "or str: write json.dumps(...), or model_dump_json() of a pydantic model"
        )

    def _log_failure(self, informer: EventSource, obj: KubeObject, error: BaseException) -> None:
        """Log a line for each object, and a traceback once a second at most."""
        log.error(
            "%s: %s can't be encoded for an event stream: %s",
            informer.name,
            obj.key,
            describe_error(error),
            exc_info=error if self._traceback_throttle.allows() else None,
        )

    def _remember(self, key: tuple[object, ...], text: bytes) -> bytes:
        self._cache[key] = text
        self._size += ENTRY_OVERHEAD + len(text)
        while self._size > MAX_CACHE_BYTES:
            self._size -= ENTRY_OVERHEAD + len(self._cache.pop(next(iter(self._cache))))
        return text

    def __repr__(self) -> str:
        return f"<FrameEncoder of {quantity(len(self._cache), 'object')}, {self._size} B>"


def _is_data(text: bytes) -> bool:
    return text.startswith(DATA_PREFIX)


def _frame(event: Event, text: bytes) -> bytes:
    if not _is_data(text):
        return text
    match event:
        case Added():
            return ADDED + text
        case Deleted():
            return DELETED + text
        case _:
            return UPDATED + text


def _as_deleted(text: bytes) -> bytes:
    """Return the ``deleted`` frame of an encoded object; empty if clients don't know the object.

    After a ``failed`` frame, the data of that frame names the object.
    """
    return DELETED + text.removeprefix(FAILED) if text else b""


def _strip_line_breaks(data: bytes) -> bytes:
    """Return JSON without line breaks, which are white space there and would end the data line."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data


def _encode_failure(informer: EventSource, obj: KubeObject, error: BaseException) -> bytes:
    """Return the object's identity and the error's type: the error's text may be secret."""
    return msgspec.json.encode(
        {
            "informer": informer.name,
            "namespace": obj.namespace,
            "name": obj.name,
            "uid": obj.uid,
            "error": type(error).__name__,
        }
    )

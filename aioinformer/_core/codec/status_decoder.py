"""A server's ``v1.Status`` object, read from the body of a response or an ERROR event.

Both the client and the watch decoder meet it; what it means for the next request is ``cursor``'s
business, and which exception it becomes is ``errors.server_error``'s.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from aioinformer.errors import Status

__all__ = ["decode_status", "one_line"]

MAX_TEXT_LENGTH = 1000
"""Characters of a sentence of a server's that are kept. It goes into errors, logs and terminals;
kube-apiserver's own have some hundred."""


class _StatusMetadata(msgspec.Struct, rename={"continue_token": "continue"}):
    continue_token: str = ""


class _Status(msgspec.Struct, tag_field="kind", tag="Status"):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Any = None  # an object, if the server keeps to the API
    metadata: _StatusMetadata | None = None


_decode_body = msgspec.json.Decoder(_Status).decode

_MAX_RETRY_AFTER = 2**31 - 1
"""``retryAfterSeconds`` is an int32 in Kubernetes; a larger number is nonsense, no long wait."""


def decode_status(body: bytes, *, code: int = 500) -> Status:
    """The Status in ``body``.

    Args:
        body: JSON.
        code: what to assume if the body names none, or one that can't be; an HTTP response has
            its own.

    Parts of a wrong form that nothing depends on (details, the wait) are left out.

    Raises:
        msgspec.DecodeError: the body is no ``Status`` object.
        UnicodeDecodeError: a string in it is no UTF-8.
    """
    try:
        found = _decode_body(body)
    except RecursionError as error:  # arrays inside arrays, by the thousand
        raise msgspec.DecodeError("the body is nested too deeply") from error
    given: Any = found.details
    details = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    return Status(
        found.code if 0 < found.code < 1000 else code,
        one_line(found.reason),
        one_line(found.message),
        details,
        retry_after=_read_seconds(details.get("retryAfterSeconds")),
        continue_token=found.metadata.continue_token if found.metadata else "",
    )


def one_line(text: str, cap: int = MAX_TEXT_LENGTH) -> str:
    """``text`` as it may be shown: at most ``cap`` characters, in one line, nothing in it that a
    terminal would obey.
    """
    shown = " ".join("".join(c if c.isprintable() else " " for c in text[:cap]).split())
    return shown if len(text) <= cap else f"{shown}..."


def _read_seconds(sent: object) -> float | None:
    """A wait, if that is what was sent. JSON's ``true`` is an ``int`` here; zero means none."""
    if not isinstance(sent, int) or isinstance(sent, bool) or not 0 < sent <= _MAX_RETRY_AFTER:
        return None
    return float(sent)

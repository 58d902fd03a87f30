"""The decoder of a server's ``v1.Status``, from the body of a response or from an ERROR event."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from aioinformer._core.quantities import quantity
from aioinformer.errors import Status
from aioinformer.errors.texts import one_line

MAX_REASON_LENGTH = 100
"""Characters of a reason that are kept. Reasons are words such as ``AlreadyExists``."""

_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")


class _StatusMetadata(msgspec.Struct, rename={"continue_token": "continue"}):
    continue_token: str = ""


class _Status(msgspec.Struct, tag_field="kind", tag="Status"):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Any = None  # an object, if the server follows the API
    metadata: _StatusMetadata | None = None


_decode_body = msgspec.json.Decoder(_Status).decode

_MAX_RETRY_AFTER = 2**31 - 1
"""``retryAfterSeconds`` is an int32 in Kubernetes. A larger number is invalid, not a long wait."""


def decode_status(body: bytes, *, code: int = 500) -> Status:
    """Return the Status in ``body``; the HTTP status ``code`` is assumed if it has no valid one.

    Parts of a wrong form that nothing depends on (details, the wait) are left out.

    Raises:
        msgspec.DecodeError: the body is no ``Status`` object.
        UnicodeDecodeError: a string in the body is no UTF-8.
    """
    try:
        found = _decode_body(body)
    except RecursionError as error:  # thousands of nested arrays
        raise msgspec.DecodeError("the body is nested too deeply") from error
    given: Any = found.details
    details = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    return Status(
        found.code if 0 < found.code < 1000 else code,
        one_line(found.reason, MAX_REASON_LENGTH),
        one_line(found.message),
        details,
        retry_after=_read_seconds(details.get("retryAfterSeconds")),
        continue_token=found.metadata.continue_token if found.metadata else "",
    )


def quote_kind(kind: str) -> str:
    """Return ``kind`` as an error may show it: any text that is no kind may be part of a Secret."""
    return (
        kind if not kind or _KIND.fullmatch(kind) else f"kind of {quantity(len(kind), 'character')}"
    )


def _read_seconds(sent: object) -> float | None:
    """Return a valid wait, else ``None``. JSON's ``true`` is an ``int``, and zero means no wait."""
    if not isinstance(sent, int) or isinstance(sent, bool) or not 0 < sent <= _MAX_RETRY_AFTER:
        return None
    return float(sent)

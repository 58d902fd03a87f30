"""A server's ``v1.Status`` object, read from the body of a response or an ERROR event.

Both the client and the watch decoder meet it; what it means for the next request is ``cursor``'s
business, and which exception it becomes is ``errors.server_error``'s.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer.errors import Status

__all__ = ["read_status"]


class _Metadata(msgspec.Struct, rename={"continue_token": "continue"}):
    continue_token: str = ""


class _Status(msgspec.Struct, tag_field="kind", tag="Status"):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: dict[str, Any] | None = None
    metadata: _Metadata | None = None


_decode = msgspec.json.Decoder(_Status).decode


def read_status(body: bytes, *, code: int = 500) -> Status:
    """The Status in ``body``.

    Args:
        body: JSON.
        code: what to assume if the body names none; an HTTP response has its own.

    Raises:
        msgspec.DecodeError: the body is no ``Status`` object.
        UnicodeDecodeError: a string in it is no UTF-8.
    """
    found = _decode(body)
    details = found.details or {}
    retry_after = details.get("retryAfterSeconds")
    return Status(
        found.code or code,
        found.reason,
        found.message,
        details,
        retry_after=float(retry_after) if isinstance(retry_after, int) and retry_after else None,
        continue_token=found.metadata.continue_token if found.metadata else "",
    )

"""What is written to a Secret stays out of what is told of the answer.

A server, an admission webhook or a policy says why it refuses, and may quote what it refuses: all
of the object, or the value that it doesn't like. What was sent is known, and is hidden as
credentials are, in each of its spellings. What was stored before isn't: where a sentence may have
that, it is not told.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import msgspec

from aioinformer._client.calls import Call
from aioinformer._client.write_advice import TARGET, causes_of
from aioinformer.errors import Status

__all__ = ["unquoted", "values_sent"]

OPEN = frozenset({"apiVersion", "kind", "type", "metadata", "op", "path", "from", "immutable"})
"""Fields of a Secret, or of an operation of a JSON patch, that are none."""

QUOTING = (400, 422)
"""Codes of what a server can't read or finds invalid: a merge patch that makes a label a number
comes back with all of the object."""

DENIED = re.compile(r"(denied (?:the )?request)\b.*", re.DOTALL)
"""What an admission webhook or a policy says behind this are somebody else's words."""


def unquoted(status: Status, path: str) -> Status:
    """``status`` without the server's sentence where that may quote a Secret.

    Of a Secret that is invalid only the fields are told; of one that was denied, by whom.
    """
    if not _is_secret(path):
        return status
    if status.code not in QUOTING:
        said = DENIED.sub(r"\1; why may quote the Secret, and is not shown", status.message)
        return status if said == status.message else replace(status, message=said, details={})
    causes = [
        {name: cause[name] for name in ("reason", "field") if name in cause}
        for cause in causes_of(status)
    ]
    fields = ", ".join(dict.fromkeys(str(cause["field"]) for cause in causes if "field" in cause))
    about = f": it is about {fields}" if fields else ""
    said = f"the server's sentence may quote the Secret, and is not shown{about}"
    return replace(status, message=said, details={"causes": causes} if causes else {})


def values_sent(call: Call) -> Iterator[tuple[str, str]]:
    """The values of the Secret that was sent, each as it was and in and out of base64; named like
    headers, for a ``Mask``.
    """
    if not call.body or not _is_secret(call.path):
        return
    for text in _texts(msgspec.json.decode(call.body)):
        for spelling in (text, b64encode(text.encode()).decode(), _decoded(text)):
            yield "", spelling


def _is_secret(path: str) -> bool:
    found = TARGET.search(path)
    return found is not None and (found["plural"], found["group"]) == ("secrets", None)


def _texts(value: object) -> Iterator[str]:
    """All texts in it, but for those that are no secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _texts(each)
    elif isinstance(value, Mapping):
        for name, each in cast("Mapping[str, object]", value).items():
            if name not in OPEN:
                yield from _texts(each)


def _decoded(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode()
    except ValueError:  # UnicodeDecodeError and binascii.Error are
        return ""

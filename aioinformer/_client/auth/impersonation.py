"""Impersonation headers: ``as``, ``as-uid``, ``as-groups`` and ``as-user-extra`` of a kubeconfig.

The names of the headers and the spelling of an extra's key follow client-go
(``transport/round_trippers.go``).
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import Any

from aioinformer.errors import ConfigurationError

PREFIX = "Impersonate-"

HEADER_NAME_BYTES = frozenset(f"{string.ascii_letters}{string.digits}!#$&'*+-.^_`|~".encode())
"""The bytes that a header name may contain (RFC 7230), except ``%``, which escapes all others."""


def impersonation_headers(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the headers for a user of a kubeconfig. A name may occur several times.

    Raises:
        ConfigurationError: groups, a uid or extras are given without a user, or a value can't be
            sent in a header. The message doesn't quote the value.
    """
    found = tuple(_iter_headers(user))
    if found and not user.get("as"):
        raise ConfigurationError(
            "its user impersonates groups, a uid or extras, but no user: set `as:` as well"
        )
    if not all(value.isprintable() for _, value in found):
        raise ConfigurationError(
            "a value of as, as-uid, as-groups or as-user-extra contains a line break or control "
            "character, which no header may contain"
        )
    return found


def has_impersonation_headers(headers: Mapping[str, str]) -> bool:
    """Return True if the program's own headers impersonate, which overrides the kubeconfig."""
    return any(name.lower().startswith(PREFIX.lower()) for name in headers)


def _iter_headers(user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, name in (("as", "User"), ("as-uid", "Uid")):
        if user.get(key):
            yield f"{PREFIX}{name}", user[key]
    for group in user.get("as-groups", ()):
        yield f"{PREFIX}Group", group
    extras: Mapping[str, list[str] | None] = user.get("as-user-extra", {})
    for key, values in extras.items():
        for value in values or ():
            yield f"{PREFIX}Extra-{_escape_key(key)}", value


def _escape_key(key: str) -> str:
    """Escape the key of an extra, such as ``example.com/team``, for the name of a header."""
    return "".join(
        chr(byte) if byte in HEADER_NAME_BYTES else f"%{byte:02X}" for byte in key.encode()
    )

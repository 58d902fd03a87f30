"""Impersonation headers: ``as``, ``as-uid``, ``as-groups`` and ``as-user-extra`` of a kubeconfig.

The names of the headers and the spelling of an extra's key follow client-go
(``transport/round_trippers.go``).
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import Any, cast

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
    try:
        found = tuple(_iter_headers(user))
    except (AttributeError, TypeError, ValueError):
        found = None
    if found is None:
        raise ConfigurationError(
            "as and as-uid must be strings, as-groups a list of strings, and as-user-extra a "
            "mapping to lists of strings"
        )
    if found and not user.get("as"):
        raise ConfigurationError(
            "its user impersonates groups, a uid or extras, but no user: set `as:` as well"
        )
    return found


def has_impersonation_headers(headers: Mapping[str, str]) -> bool:
    """Return True if the program's own headers impersonate, which overrides the kubeconfig."""
    return any(name.lower().startswith(PREFIX.lower()) for name in headers)


def _iter_headers(user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, name in (("as", "User"), ("as-uid", "Uid")):
        if user.get(key):
            yield f"{PREFIX}{name}", _check_text(user[key])
    for group in _check_texts(user.get("as-groups")):
        yield f"{PREFIX}Group", group
    extras: Mapping[str, Any] = user.get("as-user-extra") or {}
    for key, values in extras.items():
        for value in _check_texts(values):
            yield f"{PREFIX}Extra-{_escape_key(_check_text(key))}", value


def _check_texts(value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError
    return [_check_text(each) for each in cast("list[object]", value)]


def _check_text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise TypeError
    return value


def _escape_key(key: str) -> str:
    """Escape the key of an extra, such as ``example.com/team``, for the name of a header."""
    return "".join(
        chr(byte) if byte in HEADER_NAME_BYTES else f"%{byte:02X}" for byte in key.encode()
    )

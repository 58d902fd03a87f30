"""Who a kubeconfig's user acts as: ``as``, ``as-uid``, ``as-groups`` and ``as-user-extra``.

The API server lets whoever may impersonate ask in the name of somebody else, told in headers.
kubernetes_asyncio doesn't read these keys: a program that asked as itself would see, or be
refused, other things than kubectl with the same file. Which headers those are, and how the name
of an extra is spelt in one, follows client-go (``transport/round_trippers.go``).
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from typing import Any, cast

from aioinformer.errors import ConfigurationError

__all__ = ["has_impersonation_headers", "impersonation_headers"]

PREFIX = "Impersonate-"

HEADER_NAME_BYTES = frozenset(f"{string.ascii_letters}{string.digits}!#$&'*+-.^_`|~".encode())
"""What the name of a header may have in it (RFC 7230), but for the ``%`` that marks the rest."""


def impersonation_headers(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers for what a user of a kubeconfig says; one name may come more than once.

    Raises:
        ConfigurationError: groups, a uid or extras for nobody, or what can't be a header. Doesn't
            quote it.
    """
    try:
        found = tuple(_iter_headers(user))
    except (AttributeError, TypeError, ValueError):
        found = None
    if found is None:
        said = "as, as-uid, as-groups or as-user-extra are not what they should be: texts, a list "
        raise ConfigurationError(f"{said}of texts, and lists of texts by name")
    if found and not user.get("as"):
        said = "its user impersonates groups, a uid or extras, and no user: it needs `as:`, too"
        raise ConfigurationError(said)
    return found


def has_impersonation_headers(headers: Mapping[str, str]) -> bool:
    """Whether a program's own headers say whom it acts as; then a kubeconfig's don't count."""
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
    """The name of an extra, such as ``example.com/team``, as a part of a header's."""
    return "".join(
        chr(byte) if byte in HEADER_NAME_BYTES else f"%{byte:02X}" for byte in key.encode()
    )

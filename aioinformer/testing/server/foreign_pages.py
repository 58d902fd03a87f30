"""Refusal of requests that a web page of another site may have sent.

A browser on the same machine sends requests of any page to a loopback port. It names the host of
the URL in ``Host``: a page whose own name resolves to this machine (DNS rebinding) sends that name.
It names the site of the page in ``Origin`` with each request that may write. Other clients send no
``Origin``, and a client without ``Host`` is not a browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aioinformer._client.auth.proxies import is_loopback
from aioinformer.errors import ServerError
from aioinformer.testing.wire import statuses

_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+?)\.?)(?::\d*)?")
_SHOWN = 100
"""Characters of a ``Host`` or an ``Origin`` that an error shows."""


def parse_accepted_hosts(given: Iterable[str]) -> frozenset[str]:
    """Return the names of hosts; raise ``ValueError`` for a text that names none."""
    if isinstance(given, str):
        raise TypeError(f"accept_hosts is a collection of names, such as [{given!r}], not a text")
    names = {_read_host(text): text for text in given}
    if "" in names:
        raise ValueError(
            f"accept_hosts: {names['']!r} is not a host; give a name or an address, such as "
            "'api.test' or '[fd00::1]'"
        )
    return frozenset(names)


def find_refusal(headers: Mapping[str, str], accepted: frozenset[str]) -> ServerError | None:
    """Return the error for a host or an origin that is neither accepted nor the loopback's."""
    host, origin = headers.get("Host"), headers.get("Origin")
    if host and not _is_accepted(host, accepted):
        return statuses.refused_sender(f"for the host {host[:_SHOWN]!r}")
    if origin is not None and not _is_accepted(origin.partition("://")[2], accepted):
        return statuses.refused_sender(f"of a web page of {origin[:_SHOWN]!r}")
    return None


def _is_accepted(authority: str, accepted: frozenset[str]) -> bool:
    name = _read_host(authority)
    return name in accepted or (is_loopback(name) and not name.endswith("."))


def _read_host(authority: str) -> str:
    """Return the host of ``host:port`` in lower case, without brackets; empty for other texts."""
    found = _AUTHORITY.fullmatch(authority.lower())
    return (found[1] or found[2]) if found else ""

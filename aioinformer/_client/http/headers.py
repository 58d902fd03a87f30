"""A program's own headers: the same ones for every request, or asked for each.

Asked for, they can carry what differs from one request to the next: the trace that it belongs to
(``traceparent``), or whom the program acts for. Headers that the request itself needs (``Accept``,
``Authorization``...) are ``transport``'s and go before these.

``Warning`` headers: what a server says beside an answer that it gives.

An API that will go, a field that it doesn't know and has dropped: the one place where a program's
typo shows that is no error. client-go logs each of them; here each is logged once a client, since
a controller writes the same object over and over.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from multidict import CIMultiDictProxy

from aioinformer._client.auth.redaction import Redactor
from aioinformer._core.codec.status_decoder import one_line
from aioinformer.errors import FetchError

__all__ = ["Headers", "ServerWarnings", "check_headers", "current_headers"]


Headers: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""The headers, or a function that returns them. It is called in the event loop, in the context of
whoever asks, for each request that goes out: so it must be quick and not wait."""


def check_headers(headers: Headers) -> Headers:
    """A copy that nobody changes any more; a function as it is, whose answers are checked later.

    Raises:
        ValueError: there is a control character in one.
    """
    return headers if callable(headers) else _check_mapping(headers)


def current_headers(headers: Headers) -> Mapping[str, str]:
    """The headers for a request that goes out now.

    Raises:
        FetchError: the function raised, or what it returned can't be sent. Without them the request
            would be another one, made by somebody else perhaps, so that it isn't sent.
    """
    if not callable(headers):
        return headers
    try:
        return _check_mapping(headers())
    except Exception as error:
        # Its class alone: what it says is the program's, and may hold what is in the headers.
        said = f"the client's headers= failed with {type(error).__name__}; nothing was sent"
        raise FetchError(said, phase="credentials") from error


def _check_mapping(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not (name.isprintable() and value.isprintable()):
            raise ValueError(f"the header {name!r} has a newline or control character in it")
    return dict(headers)


log = logging.getLogger("aioinformer.client")

WARNING_HEADER = re.compile(r'299 (?:\S+) "((?:[^"\\]|\\.)*)"')
"""``299 - "text"``, as API servers write it: RFC 7234's warn-code for anything else, an agent, and
a quoted string. A header may have several, after commas."""

MAX_REMEMBERED = 500
"""Texts that are known to have been logged. Some name the object, and a server has many."""


class ServerWarnings:
    """The warnings of one server."""

    def __init__(self) -> None:
        """None came yet."""
        self._logged: dict[str, None] = {}

    def log(self, headers: CIMultiDictProxy[str], redactor: Redactor) -> None:
        """Log what an answer's headers warn of, unless that was done.

        Args:
            headers: of the answer.
            redactor: hides what was sent.
        """
        for header in headers.getall("Warning", ()):
            for found in WARNING_HEADER.finditer(header):
                text = one_line(redactor.redact_complete(re.sub(r"\\(.)", r"\1", found[1])))
                if text not in self._logged:
                    self._remember(text)
                    log.warning("the server warns: %s", text)

    def _remember(self, text: str) -> None:
        if len(self._logged) >= MAX_REMEMBERED:
            del self._logged[next(iter(self._logged))]
        self._logged[text] = None

    def __repr__(self) -> str:
        return f"<ServerWarnings, {len(self._logged)} told>"

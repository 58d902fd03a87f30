"""The program's own request headers, and the ``Warning`` headers of responses.

The headers that a request itself needs (``Accept``, ``Authorization``...) override the program's.

A server sends ``Warning`` headers with successful responses, for example for a deprecated API or
for an unknown field that it has dropped: only they show a misspelt field. client-go logs each
warning; this module logs each text once per client, since a controller repeats its writes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from multidict import CIMultiDictProxy

from aioinformer._client.auth.redaction import Redactor, describe_place
from aioinformer._client.http.secret_errors import is_secret_path, redact_secret_sentence
from aioinformer.errors import FetchError
from aioinformer.errors.texts import one_line

log = logging.getLogger("aioinformer.client")

Headers: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""The headers, or a function that returns them. The client calls the function in the event loop and
in the context of the task that sends the request, for each request: it must return quickly."""

# -- request headers ---------------------------------------------------------------------------


def check_headers(headers: Headers) -> Headers:
    """Return a checked copy of a mapping; a function is returned unchanged.

    Raises:
        ValueError: a header contains a control character, or its name a space or a colon.
    """
    return headers if callable(headers) else _check_mapping(headers)


def current_headers(headers: Headers) -> Mapping[str, str]:
    """Return the headers for a request that is sent now.

    Raises:
        FetchError: the function raised, or returned headers that can't be sent. The request is not
            sent, because without these headers it might act for another user.
    """
    if not callable(headers):
        return headers
    try:
        return _check_mapping(headers())
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the program's code; raised below
        # The class and the line alone: the text is the program's and may contain the values of
        # headers.
        place = describe_place(error, without=__file__)
        fault = f"{type(error).__name__}; nothing was sent{f' (raised {place})' if place else ''}"
    # Raised outside of the handler, so that the program's exception is neither cause nor context.
    raise FetchError(f"the client's headers= failed with {fault}", phase="credentials")


HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The characters of a header's name (RFC 9110, ``token``). A server or a proxy may read a name with
a space or a colon as another header."""


def _check_mapping(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not (name.isprintable() and value.isprintable()):
            raise ValueError(f"the header {name!r} contains a newline or control character")
        if not HEADER_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of a header: it may contain letters, digits and hyphens, "
                "and no space or colon"
            )
    return dict(headers)


# -- the server's warnings ---------------------------------------------------------------------

WARNING_HEADER = re.compile(r'299 (?:\S+) "((?:[^"\\]|\\.)*)"')
"""``299 - "text"``, as API servers write a warning: RFC 7234's code for miscellaneous warnings, an
agent, and a quoted string. A header may contain several warnings, separated by commas."""

MAX_REMEMBERED = 500
"""The number of logged texts that are remembered. Some texts name the object."""


def read_warnings(
    headers: CIMultiDictProxy[str], make_redactor: Callable[[], Redactor], path: str = ""
) -> list[str]:
    """Return the warnings in a response's headers. One about a Secret may quote it: redact it."""
    redactor = make_redactor()
    texts = [
        one_line(redactor.redact_complete(re.sub(r"\\(.)", r"\1", found[1])))
        for header in headers.getall("Warning", ())
        for found in WARNING_HEADER.finditer(header)
    ]
    return [redact_secret_sentence(each) for each in texts] if is_secret_path(path) else texts


class ServerWarnings:
    def __init__(self) -> None:
        self._logged: dict[str, None] = {}  # an ordered set: the oldest text is dropped first

    def log(self, texts: Iterable[str]) -> None:
        """Log the warnings that were not logged before."""
        for text in texts:
            if text not in self._logged:
                if len(self._logged) >= MAX_REMEMBERED:
                    del self._logged[next(iter(self._logged))]
                self._logged[text] = None
                log.warning("the server warns: %s", text)

    def __repr__(self) -> str:
        return f"<ServerWarnings, {len(self._logged)} logged>"

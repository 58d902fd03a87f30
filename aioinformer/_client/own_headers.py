"""A program's own headers: the same ones for every request, or asked for each.

Asked for, they can carry what differs from one request to the next: the trace that it belongs to
(``traceparent``), or whom the program acts for. Headers that the request itself needs (``Accept``,
``Authorization``...) are ``transport``'s and go before these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from aioinformer.errors import FetchError

__all__ = ["Headers", "checked", "current"]

Headers: TypeAlias = Mapping[str, str] | Callable[[], Mapping[str, str]]
"""The headers, or a function that returns them. It is called in the event loop, in the context of
whoever asks, for each request that goes out: so it must be quick and not wait."""


def checked(headers: Headers) -> Headers:
    """A copy that nobody changes any more; a function as it is, whose answers are checked later.

    Raises:
        ValueError: there is a control character in one.
    """
    return headers if callable(headers) else _checked(headers)


def current(headers: Headers) -> Mapping[str, str]:
    """The headers for a request that goes out now.

    Raises:
        FetchError: the function raised, or what it returned can't be sent. Without them the request
            would be another one, made by somebody else perhaps, so that it isn't sent.
    """
    if not callable(headers):
        return headers
    try:
        return _checked(headers())
    except Exception as error:
        # Its class alone: what it says is the program's, and may hold what is in the headers.
        said = f"the client's headers= failed with {type(error).__name__}; nothing was sent"
        raise FetchError(said, phase="credentials") from error


def _checked(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not (name.isprintable() and value.isprintable()):
            raise ValueError(f"the header {name!r} has a newline or control character in it")
    return dict(headers)

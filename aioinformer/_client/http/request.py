"""``ApiRequest``, one HTTP request without server and credentials, and ``Timeouts``, its limits.

Every timeout is finite, because an informer that waits for ever would stand still without a sign.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field, fields
from typing import cast

from aioinformer._core.writing.write_requests import Method
from aioinformer.errors import Phase, ProtocolError

JSON = "application/json"

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Maximum bytes of a response that is collected as a whole, after decompression. A discovery
document of ten thousand resources has 5 MB; a few kilobytes of gzip may expand to gigabytes."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request; a GET by default."""

    phase: Phase
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    accept: str = JSON
    watch_timeout: int | None = None
    """The seconds after which the server is asked to end a watch; ``None`` if this is no watch."""
    method: Method = "GET"
    body: bytes = field(default=b"", repr=False)
    content_type: str = ""

    def __post_init__(self) -> None:
        # The URL library resolves dots, so the request would reach another path than the given one.
        if not self.path.startswith("/") or not {".", ".."}.isdisjoint(self.path.split("/")):
            raise ValueError(
                f"a path must begin with '/' and not contain '.' or '..': {self.path!r}"
            )
        try:
            "".join(self.query.values()).encode()
        except UnicodeEncodeError as error:  # the URL library drops half of a surrogate pair
            raise ValueError(f"a parameter of {self.path} can't be sent: {error}") from None

    @property
    def is_write(self) -> bool:
        """True if the request may change an object, so that it must not be sent twice."""
        return self.method != "GET"

    def is_success(self, code: int) -> bool:
        """Return True if this status code is a success: 200, for a write also 201 and 202."""
        return code == 200 or (self.is_write and code in (201, 202))


async def read_all(chunks: AsyncIterable[bytes], request: ApiRequest) -> bytes:
    """Return the whole body; raise ``ProtocolError`` if it is longer than ``MAX_BODY_BYTES``."""
    received, size = list[bytes](), 0
    async for chunk in chunks:
        received.append(chunk)
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            text = f"the response is longer than {MAX_BODY_BYTES} bytes, and was not read further"
            raise ProtocolError(f"{request.method} {request.path}: {text}", phase=request.phase)
    return b"".join(received)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The time limits of requests, in seconds.

    Raises:
        ValueError: a value is not a number, not above 0, or infinite.

    Example::

        slow = Timeouts(connect=30, read=120)  # for a slow network
        shop = Client("https://cluster.example.com", token="secret", timeouts=slow)
    """

    connect: float = 10.0
    """Maximum time to open a connection: DNS, TCP, proxy and TLS together. The refresh of a token
    and the reading of a kubeconfig have the same limit, because a file system may hang."""
    read: float = 75.0
    """Maximum time without a byte of the response to a list or a single request, the first byte
    included. kube-apiserver ends such requests after 60 s (``--request-timeout``); its own error
    should arrive first."""
    watch_start: float = 90.0
    """Maximum time until the head of the response to a watch. A server sends the head at once, but
    some proxies hold it back until the first byte of the body. On a quiet resource that is a
    bookmark, which comes once a minute: one minute, and half a minute for a late bookmark."""
    grace: float = 30.0
    """Maximum time that a watch may last beyond the end that the server was asked for."""
    whole: float = 120.0
    """Maximum time of a single request as a whole, such as a discovery document, even if bytes
    arrive steadily. Lists and watches, which are read as they arrive, have no such limit."""

    def __post_init__(self) -> None:
        for each in fields(self):
            seconds: object = getattr(self, each.name)
            number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not (number and 0 < cast("float", seconds) < math.inf):
                raise ValueError(f"{each.name} is a number of seconds above 0, not {seconds!r}")

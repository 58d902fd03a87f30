"""``ApiRequest``: one HTTP request, before anything is known of servers and credentials.

``transport`` sends it; what goes wrong is told in its words (``GET /api/v1/pods``). Lists and
watches are read as they arrive; an answer that is wanted in one piece is put together here.

``Timeouts``: how long a client waits for what.

Numbers only, each with its reason; ``transport``, ``sessions`` and ``access`` keep to them. None
is endless: a wait that nothing ends is an informer that stands still and doesn't say so.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field, fields
from typing import cast

from aioinformer._core.writing.write_requests import Method
from aioinformer.errors import Phase, ProtocolError

__all__ = ["JSON", "MAX_BODY_BYTES", "ApiRequest", "Timeouts", "read_all"]


JSON = "application/json"

MAX_BODY_BYTES = 64 * 1024 * 1024
"""Bytes of an answer that is kept whole, after decompression: a discovery document of ten thousand
resources has 5 MB, and a few kilobytes of gzip can hold gigabytes."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request; a GET, if nothing else is said."""

    phase: Phase
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    accept: str = JSON
    watch_timeout: int | None = None
    """For a watch: the seconds after which the server was asked to end it."""
    method: Method = "GET"
    body: bytes = field(default=b"", repr=False)
    content_type: str = ""
    """The body's."""

    def __post_init__(self) -> None:
        # A URL library resolves dots, and the request would reach what nobody meant to ask for.
        if not self.path.startswith("/") or not {".", ".."}.isdisjoint(self.path.split("/")):
            raise ValueError(f"a path begins with '/' and has no '.' or '..', not {self.path!r}")

    @property
    def is_write(self) -> bool:
        """Whether it may change something, so that sending it twice is not the same as once."""
        return self.method != "GET"

    def is_success(self, code: int) -> bool:
        """Whether an answer of this code carries what was asked for. A write may be ``201 Created``
        or ``202 Accepted`` as well.
        """
        return code == 200 or (self.is_write and code in (201, 202))


async def read_all(chunks: AsyncIterable[bytes], request: ApiRequest) -> bytes:
    """All of an answer, unless it is endless.

    Raises:
        ProtocolError: it is longer than ``MAX_BODY_BYTES``.
    """
    kept, size = list[bytes](), 0
    async for chunk in chunks:
        kept.append(chunk)
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            asked = f"{request.method} {request.path}"
            said = f"{asked}: the answer is longer than {MAX_BODY_BYTES} bytes, and was given up"
            raise ProtocolError(said, phase=request.phase)
    return b"".join(kept)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for what, in seconds.

    Raises:
        ValueError: one is no number, not above 0, or endless.
    """

    connect: float = 10.0
    """For a connection: name, TCP, proxy and TLS together. And, before that, for a token to be
    renewed, or a kubeconfig to be read: a file system that hangs must not leave an informer
    waiting for ever."""
    silence: float = 75.0
    """Without a byte of a list or single request, the first one included. kube-apiserver gives
    such requests 60 s (``--request-timeout``); its own answer shall come first."""
    watch_start: float = 90.0
    """For the head of a watch. A server sends it at once (recording 37), but some proxies hold
    it back until the first byte of the body. On a quiet resource that is a bookmark, one a
    minute: so a minute, and half of one for lateness."""
    grace: float = 30.0
    """What a watch may last beyond the time that the server was asked to end it after."""
    whole: float = 120.0
    """For all of a single request, such as a discovery document, however steadily it drips. Lists
    and watches, which are read as they arrive, have other ends."""

    def __post_init__(self) -> None:
        for each in fields(self):
            seconds: object = getattr(self, each.name)
            number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not (number and 0 < cast("float", seconds) < math.inf):
                raise ValueError(f"{each.name} is a number of seconds above 0, not {seconds!r}")

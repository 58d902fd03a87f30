"""``Call``: one HTTP request, before anything is known of servers and credentials.

``transport`` sends it; what goes wrong is told in its words (``GET /api/v1/pods``). Lists and
watches are read as they arrive; an answer that is wanted in one piece is put together here.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field

from aioinformer._core.writes import Method
from aioinformer.errors import Phase, ProtocolError

__all__ = ["CAP", "JSON", "Call", "all_of"]

JSON = "application/json"

CAP = 64 * 1024 * 1024
"""Bytes of an answer that is kept whole, after decompression: a discovery document of ten thousand
resources has 5 MB, and a few kilobytes of gzip can hold gigabytes."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request; a GET, if nothing else is said."""

    phase: Phase
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    accept: str = JSON
    watch: int | None = None
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
    def writes(self) -> bool:
        """Whether it may change something, so that sending it twice is not the same as once."""
        return self.method != "GET"

    def succeeded(self, code: int) -> bool:
        """Whether an answer of this code carries what was asked for. A write may be ``201 Created``
        or ``202 Accepted`` as well.
        """
        return code == 200 or (self.writes and code in (201, 202))


async def all_of(chunks: AsyncIterable[bytes], call: Call) -> bytes:
    """All of an answer, unless it is endless.

    Raises:
        ProtocolError: it is longer than ``CAP``.
    """
    kept, size = list[bytes](), 0
    async for chunk in chunks:
        kept.append(chunk)
        size += len(chunk)
        if size > CAP:
            asked = f"{call.method} {call.path}"
            said = f"{asked}: the answer is longer than {CAP} bytes, and was given up"
            raise ProtocolError(said, phase=call.phase)
    return b"".join(kept)

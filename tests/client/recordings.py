"""Recorded responses of a real API server, without the framing of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "recordings"


@dataclass(frozen=True, slots=True)
class Recording:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    """Without those that concern the connection."""
    body: bytes


def read_recording(name: str) -> Recording:
    """Read the response in ``NAME.response.http``."""
    head, _, body = (FOLDER / f"{name}.response.http").read_bytes().partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    if headers.pop("Transfer-Encoding", "") == "chunked":
        body = _decode_chunked(body)
    for framing in ("Connection", "Content-Length", "Date"):
        headers.pop(framing, None)
    return Recording(int(first.split()[1]), headers, body)


def _decode_chunked(body: bytes) -> bytes:
    parts: list[bytes] = []
    while True:
        size, _, rest = body.partition(b"\r\n")
        if (length := int(size, 16)) == 0:
            return b"".join(parts)
        parts.append(rest[:length])
        body = rest[length + 2 :]

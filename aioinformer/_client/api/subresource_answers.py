"""The answers of subresources that are not objects of the resource: ``scale`` and ``log``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from msgspec import Struct
from msgspec.json import Decoder

from aioinformer._core.objects.decode_errors import DECODE_ERRORS
from aioinformer._core.quantities import quantity
from aioinformer.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class Scale:
    """The number of replicas of an object that can be scaled (autoscaling/v1)."""

    replicas: int
    """The desired number."""
    current: int
    """The number that exists."""
    selector: str
    """A label selector for the pods, in text form; empty if the server doesn't say."""
    resource_version: str


class _ScaleMetadata(Struct, rename="camel"):
    resource_version: str = ""


class _ScaleSpec(Struct, frozen=True):
    replicas: int = 0


class _ScaleStatus(Struct, frozen=True):
    replicas: int = 0
    selector: str = ""


class _ScaleBody(Struct):
    kind: str
    metadata: _ScaleMetadata
    spec: _ScaleSpec = _ScaleSpec()
    status: _ScaleStatus = _ScaleStatus()


_decode = Decoder(_ScaleBody).decode


def decode_scale(body: bytes) -> Scale:
    """Return the ``Scale`` in an answer; raise ``ProtocolError`` for anything else."""
    try:
        found = _decode(body)
    except DECODE_ERRORS as error:
        # The reason could quote the body, so the error has the type of the mistake alone.
        message = (
            f"the answer of {quantity(len(body), 'byte')} is no Scale ({type(error).__name__})"
        )
        raise ProtocolError(message, phase="write") from None
    return Scale(
        found.spec.replicas,
        found.status.replicas,
        found.status.selector,
        found.metadata.resource_version,
    )


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    """Yield each line as it is completed, and the last one also without a line end."""
    parts = list[bytes]()  # of the line under way
    async for chunk in chunks:
        *lines, tail = chunk.split(b"\n")
        for line in lines:
            parts.append(line)
            yield b"".join(parts).decode(errors="replace")
            parts.clear()
        if tail:
            parts.append(tail)
    if parts:
        yield b"".join(parts).decode(errors="replace")

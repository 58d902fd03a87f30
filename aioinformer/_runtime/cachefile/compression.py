"""The compression of stored objects by zstd: of Python 3.14, or of the package ``zstandard``.

Without either, objects are stored as they are. A stored body tells by its first bytes if it is
compressed, so that a file may contain both forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from typing_extensions import Buffer

from aioinformer._core.compression.zstd import MAGIC, find_zstd

__all__ = ["MAGIC", "Codec", "CompressionMissing", "load_codec"]

LEVEL = 1
"""The level of compression: the fastest one makes a pod a third of its size."""


class CompressionMissing(Exception):
    """A stored object is compressed, and this Python can't decompress it."""


class Codec(NamedTuple):
    """The functions that compress and decompress bodies."""

    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]
    compress_all: Callable[[list[bytes]], Iterable[Buffer]]
    """Compresses several bodies: a call for many of them takes a fifth less time."""


def _keep(body: bytes) -> bytes:
    return body


def _keep_all(bodies: list[bytes]) -> list[bytes]:
    return bodies


def _decompress_nothing(body: bytes) -> bytes:
    if body.startswith(MAGIC):
        raise CompressionMissing
    return body


def load_codec() -> Codec:
    """Return functions of the installed zstd; without zstd, functions that keep a body.

    The functions belong to one thread at a time: their compressor has a state. A compressor that is
    made anew for each body takes twice as long.
    """
    module = find_zstd()
    if module is None:
        return Codec(_keep, _decompress_nothing, _keep_all)
    if module.__name__ == "zstandard":
        compressor, decompressor = module.ZstdCompressor(level=LEVEL), module.ZstdDecompressor()
        # Only its C extension has the call for several bodies.
        compress_all = getattr(compressor, "multi_compress_to_buffer", None)
        return _make_codec(compressor.compress, decompressor.decompress, compress_all)
    compressor = module.ZstdCompressor(level=LEVEL)
    compress = partial(compressor.compress, mode=module.ZstdCompressor.FLUSH_FRAME)
    return _make_codec(compress, module.decompress)


def _make_codec(
    compress_frame: Callable[[bytes], bytes],
    decompress_frame: Callable[[bytes], bytes],
    compress_frames: Callable[[list[bytes]], Iterable[Buffer]] | None = None,
) -> Codec:
    """Return a codec that reads bodies which were stored without compression, too."""

    def compress_all(bodies: list[bytes]) -> Iterable[Buffer]:
        # The call of zstandard raises for an empty list, and for an empty body.
        if compress_frames is None or not bodies or not all(bodies):
            return map(compress_frame, bodies)
        return compress_frames(bodies)

    def decompress(body: bytes) -> bytes:
        return decompress_frame(body) if body.startswith(MAGIC) else body

    return Codec(compress_frame, decompress, compress_all)

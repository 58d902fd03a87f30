"""The installed zstd: ``compression.zstd`` of Python 3.14, or the package ``zstandard``.

This module alone chooses between the two. ``BodyCodec`` hides their differences: both compress the
bodies of one informer with one trained dictionary. A zstd context isn't safe in two threads at
once, and caches are read in any thread. So each call of ``decompress`` has a context of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

__all__ = ["MAGIC", "BodyCodec", "find_zstd", "make_codec", "train_dictionary"]

MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""The first bytes of a zstd frame (RFC 8878). JSON never begins with them."""

LEVEL: Final = 2
"""The level of compression. Level 1 takes a quarter less time and leaves a tenth more bytes; level
3 takes a fifth longer for a thirtieth less."""

SEGMENT_BYTES: Final = 1024
"""The length of the parts of which a dictionary is made. Pods of one workload share long parts:
with parts of 200 bytes, a pod takes an eighth more."""

_MODULES = ("compression.zstd", "zstandard")


class BodyCodec:
    """The functions that compress and decompress bodies with one dictionary."""

    __slots__ = ("compress", "decompress", "dictionary_bytes")

    def __init__(
        self,
        compress: Callable[[bytes], bytes],
        decompress: Callable[[memoryview], bytes],
        dictionary_bytes: int,
    ) -> None:
        """Create a codec of these functions."""
        self.compress = compress
        """Return the frame of a body. Not for two threads at once."""
        self.decompress = decompress
        """Return the body of a frame. For any number of threads."""
        self.dictionary_bytes = dictionary_bytes
        """Bytes of the dictionary; 0 without one."""

    def __repr__(self) -> str:
        return f"<BodyCodec dictionary={self.dictionary_bytes} B>"


@cache
def find_zstd() -> Any:
    """Return the module of the installed zstd; ``None`` without one."""
    for name in _MODULES:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


def make_codec(module: Any, dictionary: bytes = b"") -> BodyCodec:
    """Return a codec of ``find_zstd()``'s module, with this dictionary; without one if empty."""
    if hasattr(module, "ZstdCompressionDict"):
        return _package_codec(module, dictionary)
    return _standard_codec(module, dictionary)


def train_dictionary(module: Any, samples: Sequence[bytes], size: int) -> bytes:
    """Return a dictionary of at most ``size`` bytes; empty if the samples don't make one.

    This takes up to half a second and releases the GIL, so it belongs into a thread.
    """
    try:
        if hasattr(module, "ZstdCompressionDict"):
            trained = module.train_dictionary(
                size, list(samples), k=SEGMENT_BYTES, d=8, level=LEVEL
            )
            found: bytes = trained.as_bytes()
        else:
            found = module.train_dict(samples, size).dict_content
    except (module.ZstdError, ValueError):  # too few samples, or samples without common parts
        return b""
    return found


def _package_codec(module: Any, dictionary: bytes) -> BodyCodec:
    """Return a codec of the package ``zstandard``."""
    shared = None
    if dictionary:
        shared = module.ZstdCompressionDict(dictionary)
        shared.precompute_compress(level=LEVEL)
    compress_frame = module.ZstdCompressor(
        level=LEVEL, dict_data=shared, write_dict_id=False
    ).compress
    idle: deque[Any] = deque()
    """Decompressors that no call uses now. Each operation of a deque is atomic."""

    def compress(body: bytes) -> bytes:
        # The package returns its buffer for the worst case, and so must be copied.
        return bytes(memoryview(compress_frame(body)))

    def decompress(frame: memoryview) -> bytes:
        try:
            decompressor = idle.pop()
        except IndexError:
            decompressor = module.ZstdDecompressor(dict_data=shared)
        body: bytes = decompressor.decompress(frame)
        idle.append(decompressor)
        return body

    return BodyCodec(compress, decompress, len(dictionary))


def _standard_codec(module: Any, dictionary: bytes) -> BodyCodec:
    """Return a codec of ``compression.zstd``."""
    parameter = module.CompressionParameter
    options = {parameter.compression_level: LEVEL, parameter.dict_id_flag: 0}
    shared = module.ZstdDict(dictionary) if dictionary else None
    digested = None if shared is None else shared.as_digested_dict
    compressor = module.ZstdCompressor(options=options, zstd_dict=digested)
    compress_frame, end = compressor.compress, module.ZstdCompressor.FLUSH_FRAME
    decompress_frame = module.decompress

    def compress(body: bytes) -> bytes:
        return bytes(memoryview(compress_frame(body, end)))

    def decompress(frame: memoryview) -> bytes:
        body: bytes = decompress_frame(frame, shared)
        return body

    return BodyCodec(compress, decompress, len(dictionary))

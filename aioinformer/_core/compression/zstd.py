"""The codecs of bodies: ``compression.zstd`` of Python 3.14, or its backport ``backports.zstd``.

Both modules have the same API. A ``DictionaryCodec`` compresses the bodies of one informer with one
trained dictionary, a ``ReferenceCodec`` those of one owner with one of these bodies as their
reference. A zstd context isn't safe in two threads at once, and caches are read in any thread. So
each call of ``decompress`` has a context of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

__all__ = [
    "MAGIC",
    "MIN_BATCH",
    "BodyCodec",
    "DictionaryCodec",
    "ReferenceCodec",
    "find_zstd",
    "train_dictionary",
]

MODULE: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"

MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""The first bytes of a zstd frame (RFC 8878). JSON never begins with them."""

LEVEL: Final = 2
"""The level of compression with a dictionary. Level 1 leaves an eighth more bytes with a large
dictionary. Level 3 has two tables, and takes twice as long where they aren't in the processor's
cache, as in a program that compresses now and then."""

REFERENCE_LEVEL: Final = 1
"""The level of compression with a reference. Level 1 takes the least time, and leaves no more than
level 3: the rest is random."""

MAX_HASH_LOG: Final = 12
"""The greatest binary logarithm of the places in the table of a compressor with a reference. A
table of 15 leaves not a hundredth less of bodies of 50 kB."""
BYTES_PER_PLACE_LOG: Final = 3
"""The binary logarithm of the bytes of a window for each place in that table. A table of twice the
size takes a tenth more time, and leaves nothing less."""

REFERENCE_MIN_MATCH: Final = 7
"""The bytes of the shortest match that is looked for: those with a reference are long. Fewer bytes
would be looked for at more places, and leave a fiftieth more."""

MIN_WINDOW_LOG: Final = 10
"""The binary logarithm of the smallest window that zstd allows."""


MIN_BATCH: Final = 2
"""The number of bodies from which one common compressor takes less time than a compressor for each
body. The common compressor makes the table of the reference once, in the time in which one body is
compressed."""


class BodyCodec(Protocol):
    """Compresses bodies."""

    @property
    def dictionary_bytes(self) -> int:
        """Bytes of the dictionary or reference; 0 without one."""
        ...

    def compress(self, body: bytes) -> bytes:
        """Return the frame of a body. Not for two threads at once."""
        ...

    def batch(self, count: int, largest: int) -> Callable[[bytes], bytes]:
        """Return a function that does what ``compress`` does, in less time for a whole batch.

        Args:
            count: about so many bodies will be compressed.
            largest: bytes of the largest of them. A larger one is compressed as without a batch.
        """
        ...

    def decompress(self, frame: memoryview) -> bytes:
        """Return the body of a frame. For any number of threads."""
        ...


class DictionaryCodec:
    """Compresses bodies with a trained dictionary, or each of them alone."""

    __slots__ = ("_compress_frame", "_decompress_frame", "_digested", "_end", "dictionary_bytes")

    def __init__(self, module: Any, dictionary: bytes = b"") -> None:
        """Create a codec.

        Args:
            module: the module that ``find_zstd`` has found.
            dictionary: the result of ``train_dictionary``; empty for none.
        """
        parameter = module.CompressionParameter
        # The objects of a codec have one dictionary: its number in each frame would say nothing.
        options = {parameter.compression_level: LEVEL, parameter.dict_id_flag: 0}
        self._digested = module.ZstdDict(dictionary).as_digested_dict if dictionary else None
        compressor = module.ZstdCompressor(options=options, zstd_dict=self._digested)
        self._compress_frame, self._end = compressor.compress, compressor.FLUSH_FRAME
        self._decompress_frame = module.decompress
        self.dictionary_bytes = len(dictionary)

    def compress(self, body: bytes) -> bytes:
        """Return the frame of a body. Not for two threads at once."""
        frame: bytes = self._compress_frame(body, self._end)
        return frame

    def batch(self, count: int, largest: int) -> Callable[[bytes], bytes]:
        """Return ``compress``: the codec has one compressor for all bodies."""
        return self.compress

    def decompress(self, frame: memoryview) -> bytes:
        """Return the body of a frame. For any number of threads."""
        body: bytes = self._decompress_frame(frame, self._digested)
        return body

    def __repr__(self) -> str:
        return f"<DictionaryCodec dictionary={self.dictionary_bytes} B>"


class ReferenceCodec:
    """Compresses bodies that are similar to one of them, the reference.

    A frame refers to whole parts of the reference, so that it holds little but the differences. As
    the prefix of a frame, the reference needs no tables that would be kept: the codec takes little
    more than the reference, and each frame has a compressor of its own. In a ``batch`` many bodies
    are compressed, and one compressor with a table of the reference serves all of them.
    """

    __slots__ = ("_dictionary", "_module", "dictionary_bytes")

    def __init__(self, module: Any, reference: bytes) -> None:
        """Create a codec.

        Args:
            module: the module that ``find_zstd`` has found.
            reference: the body, which is copied.
        """
        self._module = module
        self._dictionary = module.ZstdDict(reference, is_raw=True)
        self.dictionary_bytes = len(reference)

    def batch(self, count: int, largest: int) -> Callable[[bytes], bytes]:
        """Return a function with one compressor; the arguments are those of ``BodyCodec``."""
        if count < MIN_BATCH:
            return self.compress
        compress_frame = self._compressor(largest, self._dictionary.as_undigested_dict)
        flush_frame = self._module.ZstdCompressor.FLUSH_FRAME

        def compress(body: bytes) -> bytes:
            if len(body) > largest:
                return self.compress(body)
            return compress_frame(body, flush_frame)

        return compress

    def _compressor(self, largest: int, dictionary: Any) -> Callable[[bytes, int], bytes]:
        """Return a function that compresses bodies of at most ``largest`` bytes."""
        # A frame refers to as many bytes as its window has: all of the reference and the body.
        options = _reference_options(self._module, (self.dictionary_bytes + largest).bit_length())
        found: Callable[[bytes, int], bytes] = self._module.ZstdCompressor(
            options=options, zstd_dict=dictionary
        ).compress
        return found

    def compress(self, body: bytes) -> bytes:
        """Return the frame of a body. Not for two threads at once."""
        compress_frame = self._compressor(len(body), self._dictionary.as_prefix)
        return compress_frame(body, self._module.ZstdCompressor.FLUSH_FRAME)

    def decompress(self, frame: memoryview) -> bytes:
        """Return the body of a frame. For any number of threads."""
        body: bytes = self._module.decompress(frame, self._dictionary.as_prefix)
        return body

    def __repr__(self) -> str:
        return f"<ReferenceCodec reference={self.dictionary_bytes} B>"


@cache
def _reference_options(module: Any, window_log: int) -> dict[int, int]:
    parameter = module.CompressionParameter
    window_log = max(window_log, MIN_WINDOW_LOG)
    return {
        parameter.compression_level: REFERENCE_LEVEL,
        parameter.hash_log: min(window_log - BYTES_PER_PLACE_LOG, MAX_HASH_LOG),
        parameter.min_match: REFERENCE_MIN_MATCH,
        parameter.window_log: window_log,
        parameter.dict_id_flag: 0,
    }


@cache
def find_zstd() -> Any:
    """Return the module of the installed zstd; ``None`` without one."""
    try:
        return import_module(MODULE)
    except ImportError:
        return None


def train_dictionary(module: Any, samples: Sequence[bytes], size: int) -> bytes:
    """Return a dictionary of at most ``size`` bytes; empty if the samples don't make one.

    This takes up to a second and releases the GIL, so it belongs into a thread.
    """
    try:
        found: bytes = module.train_dict(samples, size).dict_content
    except (module.ZstdError, ValueError):  # too few samples, or samples without common parts
        return b""
    return found

"""The installed zstd: ``compression.zstd`` of Python 3.14, or the package ``zstandard``.

This module alone chooses between the two. ``BodyCodec`` hides their differences: both compress the
bodies of one informer with one trained dictionary, or the bodies of one owner with one of these
bodies as their reference. A zstd context isn't safe in two threads at once, and caches are read in
any thread. So each call of ``decompress`` has a context of its own.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

__all__ = [
    "MAGIC",
    "BodyCodec",
    "RecentCompressors",
    "find_zstd",
    "make_codec",
    "make_reference_codec",
    "train_dictionary",
]

MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""The first bytes of a zstd frame (RFC 8878). JSON never begins with them."""

LEVEL: Final = 2
"""The level of compression. Level 1 takes a quarter less time and leaves a tenth more bytes; level
3 takes a fifth longer for a thirtieth less."""

REFERENCE_LEVEL: Final = 1
"""The level of compression with a reference. Level 1 takes the least time, and level 19 leaves only
a twentieth less: the rest is random."""

REFERENCE_HASH_LOG: Final = 12
"""The binary logarithm of the places in the table of a compressor: enough for two pods, and quickly
made."""

RECENT_COMPRESSORS: Final = 4
"""Compressors with a reference that are kept. One takes 0.2 MB and 0.05 ms to create; compressing a
pod with one that exists takes 0.01 ms. Objects of one owner are compressed one after the other."""

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


class RecentCompressors:
    """The compressors of the references that were used last. Not for two threads at once."""

    def __init__(self) -> None:
        """Begin without compressors."""
        self._recent: OrderedDict[bytes, Callable[[bytes], bytes]] = OrderedDict()

    def open(
        self, reference: bytes, create: Callable[[], Callable[[bytes], bytes]]
    ) -> Callable[[bytes], bytes]:
        """Return the compressor of ``reference``; call ``create`` if it isn't kept."""
        recent = self._recent
        found = recent.get(reference)
        if found is None:
            found = recent[reference] = create()
            if len(recent) > RECENT_COMPRESSORS:
                recent.popitem(last=False)
        else:
            recent.move_to_end(reference)
        return found

    def clear(self) -> None:
        """Free all compressors."""
        self._recent.clear()

    def __repr__(self) -> str:
        return f"<RecentCompressors {len(self._recent)}>"


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


def make_reference_codec(module: Any, reference: bytes, recent: RecentCompressors) -> BodyCodec:
    """Return a codec for bodies that are similar to one of them.

    A frame refers to whole parts of the reference, so that it holds little but the differences.

    Args:
        module: the result of ``find_zstd()``.
        reference: the body; shorter than a block of zstd, 128 KB.
        recent: keeps the compressors.
    """
    if hasattr(module, "ZstdCompressionDict"):
        return _package_reference_codec(module, reference, recent)
    return _standard_reference_codec(module, reference, recent)


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


_idle_decompressors: deque[Any] = deque()
"""Decompressors of the package, without a dictionary, that no call uses now."""


def _package_reference_codec(module: Any, reference: bytes, recent: RecentCompressors) -> BodyCodec:
    """Return a codec of the package ``zstandard``.

    The package decompresses a chain of frames, each with the one before as its reference. So the
    reference is kept as a frame, and one decompressor serves all references. A decompressor for
    each of them would take 40 kB.
    """
    # The functions keep the frame alone, which contains the reference.
    size, head = len(reference), _stored_frame_head(len(reference))
    stored, start = head + reference, len(head)
    del reference

    def create() -> Callable[[bytes], bytes]:
        raw = module.ZstdCompressionDict(stored[start:], dict_type=module.DICT_TYPE_RAWCONTENT)
        parameters = module.ZstdCompressionParameters.from_level(
            REFERENCE_LEVEL, source_size=2 * size, hash_log=REFERENCE_HASH_LOG, write_dict_id=False
        )
        created: Callable[[bytes], bytes] = module.ZstdCompressor(
            compression_params=parameters, dict_data=raw
        ).compress
        return created

    def compress(body: bytes) -> bytes:
        return bytes(memoryview(recent.open(stored, create)(body)))

    def decompress(frame: memoryview) -> bytes:
        try:
            decompressor = _idle_decompressors.pop()
        except IndexError:
            decompressor = module.ZstdDecompressor()
        body: bytes = decompressor.decompress_content_dict_chain([stored, bytes(frame)])
        _idle_decompressors.append(decompressor)
        return body

    return BodyCodec(compress, decompress, size)


def _stored_frame_head(size: int) -> bytes:
    """Return what stands before ``size`` bytes in a frame of one block that isn't compressed.

    RFC 8878: the magic number, a descriptor (one segment, the size in four bytes), the size; the
    header of the block (its size, and that it is the last one).
    """
    block = size << 3 | 1
    return MAGIC + b"\xa0" + size.to_bytes(4, "little") + block.to_bytes(3, "little")


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


def _standard_reference_codec(
    module: Any, reference: bytes, recent: RecentCompressors
) -> BodyCodec:
    """Return a codec of ``compression.zstd``."""
    raw = module.ZstdDict(reference, is_raw=True)
    decompress_frame = module.decompress

    def create() -> Callable[[bytes], bytes]:
        options = {module.CompressionParameter.compression_level: REFERENCE_LEVEL}
        compressor = module.ZstdCompressor(options=options, zstd_dict=raw.as_undigested_dict)
        compress_frame, end = compressor.compress, module.ZstdCompressor.FLUSH_FRAME
        return lambda body: bytes(memoryview(compress_frame(body, end)))

    def compress(body: bytes) -> bytes:
        return recent.open(reference, create)(body)

    def decompress(frame: memoryview) -> bytes:
        body: bytes = decompress_frame(frame, raw.as_prefix)
        return body

    return BodyCodec(compress, decompress, len(reference))

"""The codecs of bodies by the installed zstd: that of Python 3.14, or its backport."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

from aioinformer._core.compression.zstd import (
    MAGIC,
    MIN_BATCH,
    BodyCodec,
    DictionaryCodec,
    ReferenceCodec,
    find_zstd,
    train_dictionary,
)
from tests.core.compression.rested import change, pod_bodies
from tests.zstd_modules import without_zstd


def codec_alone() -> BodyCodec:
    return DictionaryCodec(find_zstd())


def trained_codec() -> BodyCodec:
    dictionary = train_dictionary(find_zstd(), pod_bodies(), 64 * 1024)
    return DictionaryCodec(find_zstd(), dictionary)


def reference_codec() -> BodyCodec:
    return ReferenceCodec(find_zstd(), pod_bodies()[0])


codecs = pytest.mark.parametrize("make", [codec_alone, trained_codec, reference_codec])


@codecs
def test_a_body_is_the_same_after_compression_and_decompression(
    make: Callable[[], BodyCodec],
) -> None:
    codec = make()
    for body in (*pod_bodies()[:20], b"{}", b""):
        frame = codec.compress(body)
        assert frame[:4] == MAGIC
        assert codec.decompress(memoryview(frame)) == body


def test_a_dictionary_of_the_objects_makes_frames_far_smaller() -> None:
    alone, trained = codec_alone(), trained_codec()
    bodies = pod_bodies()
    size = sum(map(len, bodies))
    assert sum(len(alone.compress(body)) for body in bodies) > size / 4
    assert sum(len(trained.compress(body)) for body in bodies) < size / 6


@codecs
def test_a_frame_does_not_name_its_dictionary(make: Callable[[], BodyCodec]) -> None:
    frames = [make().compress(body) for body in pod_bodies()[:3]]
    assert [frame[len(MAGIC)] & 3 for frame in frames] == [0, 0, 0]  # RFC 8878, section 3.1.1.1


def test_a_frame_refers_to_the_whole_reference() -> None:
    reference = b"".join(pod_bodies()[:2])
    codec = ReferenceCodec(find_zstd(), reference)
    for body in (reference, reference[:1000], reference[-1000:]):
        frame = codec.compress(body)
        assert len(frame) < 64
        assert codec.decompress(memoryview(frame)) == body


def test_a_frame_is_smaller_than_with_zstds_own_options() -> None:
    zstd, reference = find_zstd(), pod_bodies()[0]
    codec = ReferenceCodec(zstd, reference)
    prefix = zstd.ZstdDict(reference, is_raw=True).as_prefix
    bodies = [change(reference, resourceVersion=str(1000 + 77 * number)) for number in range(20)]
    frames = [zstd.compress(body, zstd_dict=prefix) for body in bodies]
    assert [codec.decompress(memoryview(frame)) for frame in frames] == bodies
    own = sum(len(codec.compress(body)) for body in bodies)
    assert own < 0.95 * sum(map(len, frames))


def test_the_frames_of_a_batch_are_like_those_of_single_bodies() -> None:
    reference = pod_bodies()[0]
    codec = ReferenceCodec(find_zstd(), reference)
    bodies = [change(reference, resourceVersion=str(1000 + 77 * number)) for number in range(20)]
    single = [codec.compress(body) for body in bodies]
    compress = codec.batch(len(bodies), max(map(len, bodies)))
    frames = [compress(body) for body in bodies]
    assert [codec.decompress(memoryview(frame)) for frame in frames] == bodies
    assert sum(map(len, frames)) < 1.05 * sum(map(len, single))
    assert [codec.compress(body) for body in bodies] == single


class CompressorFactory:
    """Creates the compressors of the installed zstd, and counts them."""

    def __init__(self) -> None:
        self.count = 0
        self.FLUSH_FRAME = find_zstd().ZstdCompressor.FLUSH_FRAME

    def __call__(self, **options: Any) -> Any:
        self.count += 1
        return find_zstd().ZstdCompressor(**options)


@pytest.mark.parametrize(("count", "compressors"), [(1, 3), (2, 1), (100, 1)])
def test_the_bodies_of_a_batch_have_one_compressor(count: int, compressors: int) -> None:
    zstd, factory, body = ModuleType("zstd"), CompressorFactory(), pod_bodies()[3]
    installed: ModuleType = find_zstd()
    vars(zstd).update(vars(installed), ZstdCompressor=factory)
    codec = ReferenceCodec(zstd, pod_bodies()[0])
    compress = codec.batch(count, len(body))
    for _ in range(3):
        compress(body)
    assert factory.count == compressors
    compress(body + b" ")
    assert factory.count == compressors + 1, "a body larger than the largest"


@pytest.mark.parametrize("count", [1, MIN_BATCH, 100])
def test_a_batch_compresses_bodies_of_any_size(count: int) -> None:
    codec = reference_codec()
    bodies = [b"", b"{}", pod_bodies()[0], pod_bodies()[0] * 12]
    compress = codec.batch(count, 1000)
    frames = [compress(body) for body in bodies]
    assert [codec.decompress(memoryview(frame)) for frame in frames] == bodies
    assert max(map(len, frames)) < 1000


def test_the_reprs_show_the_bytes_of_dictionary_and_reference() -> None:
    size = len(train_dictionary(find_zstd(), pod_bodies(), 64 * 1024))
    assert repr(codec_alone()) == "<DictionaryCodec dictionary=0 B>"
    assert repr(trained_codec()) == f"<DictionaryCodec dictionary={size} B>"
    assert repr(reference_codec()) == f"<ReferenceCodec reference={len(pod_bodies()[0])} B>"


@codecs
def test_frames_and_bodies_take_no_more_memory_than_their_bytes(
    make: Callable[[], BodyCodec],
) -> None:
    codec, bodies = make(), pod_bodies()[:50]
    compressed = [codec.compress(body) for body in bodies]

    frames, taken = allocated(lambda: [codec.compress(body) for body in bodies])
    assert frames == compressed
    assert taken < 1.5 * sum(map(sys.getsizeof, frames))

    found, taken = allocated(lambda: [codec.decompress(memoryview(frame)) for frame in frames])
    assert found == list(bodies)
    assert taken < 1.5 * sum(map(sys.getsizeof, found))


def allocated(call: Callable[[], list[bytes]]) -> tuple[list[bytes], int]:
    """Return the result of a call, and the bytes that were allocated for it and are still."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("samples", [[], [b"{}"], [b"{}"] * 6])
def test_samples_that_make_no_dictionary_give_an_empty_one(samples: list[bytes]) -> None:
    assert train_dictionary(find_zstd(), samples, 16 * 1024) == b""


@codecs
def test_bodies_are_decompressed_in_several_threads_at_once(
    make: Callable[[], BodyCodec],
) -> None:
    codec, bodies = make(), pod_bodies()
    frames = [codec.compress(body) for body in bodies]

    def read_all() -> bool:
        return all(
            codec.decompress(memoryview(frame)) == body
            for _ in range(10)
            for frame, body in zip(frames, bodies, strict=True)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(each.result() for each in [pool.submit(read_all) for _ in range(8)])


def test_without_zstd_there_is_no_module() -> None:
    with without_zstd():
        assert find_zstd() is None
    assert find_zstd() is not None

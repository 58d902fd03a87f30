"""zstd as installed: the package, or the module of Python 3.14."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from aioinformer._core.compression.zstd import (
    MAGIC,
    BodyCodec,
    find_zstd,
    make_codec,
    train_dictionary,
)
from tests.core.compression.rested import pod_bodies
from tests.zstd_modules import without_zstd


def trained_codec() -> BodyCodec:
    return make_codec(find_zstd(), train_dictionary(find_zstd(), pod_bodies(), 64 * 1024))


@pytest.mark.parametrize("make", [lambda: make_codec(find_zstd()), trained_codec])
def test_a_body_is_the_same_after_compression_and_decompression(
    make: Callable[[], BodyCodec],
) -> None:
    codec = make()
    for body in (*pod_bodies()[:20], b"{}", b""):
        frame = codec.compress(body)
        assert frame[:4] == MAGIC
        assert codec.decompress(memoryview(frame)) == body


def test_a_dictionary_of_the_objects_makes_frames_far_smaller() -> None:
    alone, trained = make_codec(find_zstd()), trained_codec()
    bodies = pod_bodies()
    size = sum(map(len, bodies))
    assert sum(len(alone.compress(body)) for body in bodies) > size / 4
    assert sum(len(trained.compress(body)) for body in bodies) < size / 6


def test_a_frame_is_no_larger_in_memory_than_its_bytes() -> None:
    frame = trained_codec().compress(pod_bodies()[0])
    assert sys.getsizeof(frame) == sys.getsizeof(bytes(bytearray(frame)))


@pytest.mark.parametrize("samples", [[], [b"{}"], [b"{}"] * 6])
def test_samples_that_make_no_dictionary_give_an_empty_one(samples: list[bytes]) -> None:
    assert train_dictionary(find_zstd(), samples, 16 * 1024) == b""


def test_bodies_are_decompressed_in_several_threads_at_once() -> None:
    codec, bodies = trained_codec(), pod_bodies()
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

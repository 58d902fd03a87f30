"""The compression of blocks, with and without zstd."""

from __future__ import annotations

import pytest

from aioinformer._core.compression.block_codec import CompressionMissing, load_codec
from aioinformer._core.compression.zstd import MAGIC, find_zstd
from tests.core.builders import pod
from tests.zstd_modules import without_zstd


@pytest.mark.parametrize("block", [b"", b"{}", pod("a", node="n" * 1000).raw * 300])
def test_a_decompressed_block_equals_the_written_one(block: bytes) -> None:
    codec = load_codec()
    assert codec.decompress(codec.compress(block)) == block
    assert codec.decompress(block) == block, "a block that was stored without compression"
    with without_zstd():
        assert load_codec().compress(block) == block
        assert load_codec().decompress(block) == block


def test_an_installed_zstd_compresses_a_block() -> None:
    block = pod("a", node="n" * 1000).raw * 300
    if find_zstd() is None:
        assert load_codec().compress(block) == block
    else:
        assert len(load_codec().compress(block)) < len(block) / 50


def test_a_compressed_block_needs_zstd() -> None:
    with without_zstd(), pytest.raises(CompressionMissing):
        load_codec().decompress(MAGIC + b"...")


@pytest.mark.skipif(find_zstd() is None, reason="needs zstd")
def test_a_block_that_another_zstd_has_compressed_is_read() -> None:
    frame = MAGIC + bytes.fromhex(
        "6080014d010004027b226b696e64223a22506f64222c2261706956657273696f6e223a227631227d"
        "0100e8322af504"
    )  # as the package "zstandard" writes it
    assert load_codec().decompress(frame) == b'{"kind":"Pod","apiVersion":"v1"}' * 20


@pytest.mark.skipif(find_zstd() is None, reason="needs zstd")
@pytest.mark.parametrize("frame", [MAGIC, MAGIC + b"\xff" * 50])
def test_a_corrupt_block_is_a_value_error(frame: bytes) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        load_codec().decompress(frame)
    assert type(caught.value.__cause__) is find_zstd().ZstdError
    assert str(caught.value) == str(caught.value.__cause__)

"""The texts of sizes."""

from __future__ import annotations

import pytest

from aioinformer._cli.terminal.style import compact_bytes


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (1_104_000, "1.1 MB"),
        (5_000_000_000_000, "5000.0 GB"),
    ],
)
def test_compact_bytes_formats_a_size_with_a_unit(count: int, text: str) -> None:
    assert compact_bytes(count) == text

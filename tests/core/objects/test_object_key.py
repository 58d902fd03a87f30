"""The keys of objects, and the longest version."""

from __future__ import annotations

from aioinformer._core.objects.object_key import MAX_VERSION_LENGTH, is_numeric


def test_a_version_has_256_digits_at_most() -> None:
    assert is_numeric("9" * MAX_VERSION_LENGTH)
    assert not is_numeric("9" * (MAX_VERSION_LENGTH + 1))
    assert MAX_VERSION_LENGTH == 256

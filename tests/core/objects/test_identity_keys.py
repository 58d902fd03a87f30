"""The keys of objects, and the longest version."""

from __future__ import annotations

import pytest

from aioinformer._core.objects.identity import MAX_VERSION_LENGTH, ObjectKey, is_numeric


@pytest.mark.parametrize(
    ("text", "key"), [("web/web-0", ObjectKey("web", "web-0")), ("node-1", ObjectKey("", "node-1"))]
)
def test_a_key_is_read_as_it_is_written(text: str, key: ObjectKey) -> None:
    assert ObjectKey.parse(text) == key
    assert str(key) == text


def test_a_key_has_one_slash_at_most() -> None:
    with pytest.raises(ValueError, match=r"^a key is 'namespace/name' or 'name', not 'a/b/c'$"):
        ObjectKey.parse("a/b/c")


def test_a_version_has_256_digits_at_most() -> None:
    assert is_numeric("9" * MAX_VERSION_LENGTH)
    assert not is_numeric("9" * (MAX_VERSION_LENGTH + 1))
    assert MAX_VERSION_LENGTH == 256

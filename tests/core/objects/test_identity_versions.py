"""Which of two resourceVersions is the older one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.objects.identity import number, older, reached
from aioinformer.errors import NotComparable

OPAQUE = ["abc", "01", "0", "-1", "1.0", "٣", "1 "]


@given(st.integers(1, 10**20), st.integers(1, 10**20))
def test_versions_are_compared_as_numbers(a: int, b: int) -> None:
    assert older(str(a), str(b)) is (a < b)
    assert reached(str(a), str(b)) is (a >= b)
    assert number(str(a)) == a


@pytest.mark.parametrize(
    ("version", "than"),
    [("", "1"), ("1", ""), ("abc", "abd"), ("01", "2"), ("-1", "2"), ("1.0", "2"), ("٣", "4")],
)
def test_of_anything_else_nothing_is_certain(version: str, than: str) -> None:
    """Some aggregated servers have versions of another form (KEP-5504 is about conformant ones)."""
    assert not older(version, than)


@pytest.mark.parametrize("version", OPAQUE)
def test_whether_one_of_another_form_was_reached_is_an_error_that_names_it(version: str) -> None:
    with pytest.raises(NotComparable, match=r"no decimal number.*KEP-5504") as caught:
        reached("5", version)
    assert caught.value.version == version
    with pytest.raises(NotComparable):
        reached(version, "5")


@pytest.mark.parametrize("version", OPAQUE)
def test_the_very_same_one_was_reached_whatever_its_form(version: str) -> None:
    assert reached(version, version)


def test_nothing_was_reached_before_the_first_version() -> None:
    assert not reached("", "5")
    assert not reached("", "abc")

"""The order of resourceVersions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.objects.object_key import has_reached, is_numeric, is_older, oldest_version
from aioinformer.errors import NotComparable

OPAQUE = ["abc", "01", "0", "-1", "1.0", "٣", "1 "]


@given(st.integers(1, 10**20), st.integers(1, 10**20))
def test_versions_are_compared_as_numbers(a: int, b: int) -> None:
    assert is_older(str(a), str(b)) is (a < b)
    assert has_reached(str(a), str(b)) is (a >= b)


@pytest.mark.parametrize(
    ("version", "than"),
    [("", "1"), ("1", ""), ("abc", "abd"), ("01", "2"), ("-1", "2"), ("1.0", "2"), ("٣", "4")],
)
def test_is_older_is_false_for_versions_of_another_form(version: str, than: str) -> None:
    """Some aggregated servers have versions of another form (KEP-5504 is about conformant ones)."""
    assert not is_older(version, than)


@given(st.lists(st.integers(1, 10**20), min_size=1))
def test_the_oldest_version_is_the_least_number(numbers: list[int]) -> None:
    assert oldest_version([*map(str, numbers), ""]) == str(min(numbers))


@pytest.mark.parametrize("version", OPAQUE)
def test_versions_of_another_form_have_no_oldest(version: str) -> None:
    assert oldest_version(["5", version]) == ""
    assert oldest_version([version, version, ""]) == version
    assert oldest_version([]) == ""


@pytest.mark.parametrize("version", OPAQUE)
def test_a_comparison_with_a_version_of_another_form_is_an_error_that_names_it(
    version: str,
) -> None:
    with pytest.raises(NotComparable, match=r"not a decimal number.*KEP-5504") as caught:
        has_reached("5", version)
    assert caught.value.version == version
    with pytest.raises(NotComparable):
        has_reached(version, "5")


@pytest.mark.parametrize("version", OPAQUE)
def test_a_version_has_reached_itself_in_any_form(version: str) -> None:
    assert has_reached(version, version)


def test_an_empty_version_has_reached_no_other() -> None:
    assert not has_reached("", "5")
    assert not has_reached("", "abc")


def test_versions_of_thousands_of_digits_are_not_comparable() -> None:
    """``int`` raises a ValueError at them, which would end the pump."""
    for version in ("9" * 5000, "x" * 5000):
        assert not is_numeric(version)
        assert not is_older("5", version)
        with pytest.raises(NotComparable) as caught:
            has_reached("5", version)
        assert len(str(caught.value)) < 200
    assert has_reached("1" + "0" * 200, "9" * 200)
    assert is_older("9" * 200, "1" + "0" * 200)

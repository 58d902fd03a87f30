"""The pages of a list come to an end, or the list is rejected."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.listwatch.page_sequence import MAX_EMPTY_PAGES, MAX_PAGES, PageSequence
from aioinformer.errors import ProtocolError


@given(st.lists(st.integers(1, 500), min_size=1, max_size=60), st.booleans())
def test_the_pages_of_a_list_with_an_end_are_accepted(sizes: list[int], announces: bool) -> None:
    pages, left = PageSequence(), sum(sizes)
    for number, size in enumerate(sizes, 1):
        left -= size
        last = number == len(sizes)
        pages.add(size, None if last or not announces else left, "" if last else f"t{number}")

    assert (pages.pages, pages.items) == (len(sizes), sum(sizes))


def read_for_ever(pages: PageSequence, items: int, remaining: int | None) -> None:
    for number in count(1):
        pages.add(items, remaining, f"t{number}")


@pytest.mark.parametrize(
    ("items", "remaining", "most"),
    [
        (0, None, MAX_EMPTY_PAGES),
        (500, 0, 5),
        (500, 1500, 11),
        (500, None, MAX_PAGES),
        (0, 10**6, MAX_EMPTY_PAGES),
        (1, -5, 1003),
    ],
)
def test_pages_without_an_end_are_rejected(items: int, remaining: int | None, most: int) -> None:
    pages = PageSequence()
    with pytest.raises(ProtocolError, match="the list does not end") as caught:
        read_for_ever(pages, items, remaining)
    assert pages.pages <= most
    assert caught.value.phase == "list"
    assert f"after {pages.pages} pages with {pages.items} objects" in str(caught.value)


def test_a_token_that_comes_again_is_rejected() -> None:
    pages = PageSequence()
    pages.add(5, None, "a")
    pages.add(5, None, "b")
    with pytest.raises(ProtocolError, match="its token was that of an earlier page"):
        pages.add(5, None, "a")


def test_the_last_page_is_accepted_in_any_case() -> None:
    pages = PageSequence()
    pages.add(1, 0, "a")
    pages.add(100_000, None, "")
    assert repr(pages) == "<PageSequence pages=2 items=100001>"

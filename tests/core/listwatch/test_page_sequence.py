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
    ("items", "remaining", "pages_read", "reason"),
    [
        (0, None, MAX_EMPTY_PAGES, "the last 10 pages were empty"),
        (0, 10**6, MAX_EMPTY_PAGES, "the last 10 pages were empty"),
        (500, 0, 5, "its first page announced 500 objects"),
        (500, 1500, 11, "its first page announced 2000 objects"),
        (1, -5, 1003, "its first page announced 1 object"),
        (500, None, MAX_PAGES, "a list may have 10000 pages; a larger page_size makes fewer"),
    ],
)
def test_pages_without_an_end_are_rejected(
    items: int, remaining: int | None, pages_read: int, reason: str
) -> None:
    pages = PageSequence()
    with pytest.raises(ProtocolError, match="the list does not end") as caught:
        read_for_ever(pages, items, remaining)
    assert pages.pages == pages_read
    assert caught.value.phase == "list"
    read = f"after {pages.pages} pages with {pages.items} objects the server offers another page"
    assert f"{read}, although {reason}" in str(caught.value)


def test_empty_pages_between_others_are_accepted() -> None:
    pages = PageSequence()
    for number in range(3 * MAX_EMPTY_PAGES):
        pages.add(0 if number % MAX_EMPTY_PAGES else 1, None, f"t{number}")
    assert (pages.pages, pages.items) == (3 * MAX_EMPTY_PAGES, 3)


def test_the_first_page_alone_announces_the_length_of_a_list() -> None:
    pages = PageSequence()
    pages.add(500, None, "first")
    for number in range(20):
        pages.add(500, 0, f"t{number}")
    assert pages.items == 10_500


def test_a_token_that_comes_again_is_rejected() -> None:
    pages = PageSequence()
    pages.add(5, None, "a")
    pages.add(5, None, "b")
    with pytest.raises(ProtocolError, match=r"although its token was that of an earlier page$"):
        pages.add(5, None, "a")


def test_the_last_page_is_accepted_in_any_case() -> None:
    pages = PageSequence()
    pages.add(1, 0, "a")
    pages.add(100_000, None, "")
    assert repr(pages) == "<PageSequence pages=2 items=100001>"

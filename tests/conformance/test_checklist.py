"""Each item of client-go's behaviour has a test or a reason, and the guide page says which."""

from __future__ import annotations

from tests.conformance.checklist import CHECKLIST
from tests.conformance.differences import DIFFERENCES, MAX_DIFFERENCES
from tests.conformance.page import PAGE, marked_tests, render


def test_each_item_has_a_test_or_is_a_deliberate_difference() -> None:
    differing = {number for each in DIFFERENCES for number in each.items}

    missing = CHECKLIST.keys() - marked_tests().keys() - differing

    assert not missing, f"no test has the marker client_go({min(missing)})"


def test_tests_and_differences_name_items_that_exist() -> None:
    named = {number for each in DIFFERENCES for number in each.items} | marked_tests().keys()

    assert named <= CHECKLIST.keys()


def test_the_differences_are_few_and_contain_each_item_at_most_once() -> None:
    numbers = [number for each in DIFFERENCES for number in each.items]

    assert len(DIFFERENCES) <= MAX_DIFFERENCES
    assert len(numbers) == len(set(numbers))


def test_the_guide_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render(), "write the page by: python -m tests.conformance"

"""The rules of a mailbox that holds more events than its limit."""

from __future__ import annotations

import pytest

from aioinformer._core.delivery.overflow import Overflow


@pytest.mark.parametrize(
    ("name", "effects"),
    [
        ("coalesce", (True, False, False)),
        ("block", (False, True, False)),
        ("error", (False, False, True)),
    ],
)
def test_each_rule_has_one_effect(name: str, effects: tuple[bool, bool, bool]) -> None:
    rule = Overflow(name)

    assert (rule.merges, rule.blocks, rule.ends) == effects
    assert rule == name


def test_another_text_is_an_error_that_names_the_rules() -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Overflow("drop")
    assert str(caught.value) == "overflow must be one of 'coalesce', 'block', 'error', not 'drop'"

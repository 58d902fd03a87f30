"""One key in a work queue, and its priority."""

from __future__ import annotations

from aioinformer._core.controllers.queue_items import Priority


def test_normal_priority_is_higher_than_low_priority() -> None:
    assert Priority.NORMAL > Priority.LOW

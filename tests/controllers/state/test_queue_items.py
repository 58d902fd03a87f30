"""One key in a work queue, and its priority."""

from __future__ import annotations

from aioinformer.controllers.state.queue_items import Priority, QueueItem


def test_normal_priority_is_higher_than_low_priority() -> None:
    assert Priority.NORMAL > Priority.LOW


def test_the_repr_shows_the_state_of_an_item() -> None:
    item = QueueItem("a", Priority.LOW, 1.0)
    assert repr(item) == "<QueueItem 'a' LOW waiting>"
    item.started_at = 2.0
    assert repr(item) == "<QueueItem 'a' LOW processing>"
    item.rerun = QueueItem("a", Priority.NORMAL, 3.0)
    assert repr(item) == "<QueueItem 'a' LOW processing, rerun requested>"

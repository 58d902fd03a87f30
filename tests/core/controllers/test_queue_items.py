"""One key in a work queue, and its priority."""

from __future__ import annotations

from aioinformer._core.controllers.queue_items import Priority, QueueItem


def test_normal_is_more_urgent_than_low() -> None:
    assert Priority.NORMAL > Priority.LOW


def test_its_repr_says_where_it_is() -> None:
    item = QueueItem("a", Priority.LOW, 1.0)
    assert repr(item) == "<QueueItem 'a' LOW waiting>"
    item.started_at = 2.0
    assert repr(item) == "<QueueItem 'a' LOW processing>"
    item.rerun = QueueItem("a", Priority.NORMAL, 3.0)
    assert repr(item) == "<QueueItem 'a' LOW processing, rerun requested>"

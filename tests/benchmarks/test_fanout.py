"""The benchmark of further listeners, at a small size."""

from __future__ import annotations

from benchmarks.fanout import measure


def test_an_event_that_comes_alone_costs_each_listener_more() -> None:
    """The benchmark itself raises an AssertionError if a listener doesn't receive every event."""
    costs = measure(640, turns=1)
    assert 0 < costs.together < costs.alone
    assert 0 < costs.together < costs.coroutine

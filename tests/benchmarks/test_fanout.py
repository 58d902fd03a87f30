"""What one more listener costs is measured where all hear of everything."""

from __future__ import annotations

from benchmarks.fanout import measure


def test_an_event_that_comes_alone_costs_each_listener_more() -> None:
    """Who doesn't hear of every event is an AssertionError of the benchmark's own."""
    costs = measure(640, turns=1)
    assert 0 < costs.together < costs.alone
    assert 0 < costs.together < costs.coroutine

"""The benchmark of event streams over HTTP, at a small size."""

from __future__ import annotations

import pytest

from benchmarks.features.pages import Arguments, measure


@pytest.mark.benchmarks
async def test_every_client_receives_every_write_while_one_is_stalled() -> None:
    served, received = await measure(Arguments(clients=4, rate=50, seconds=0.4, stalled=1))
    assert served.writes >= 15
    assert (received.complete, received.latest) == (4, 4)
    assert served.pending >= served.writes / 2, "events for the stalled client"
    assert received.events == 4 * served.writes
    assert 0 < received.p50 <= received.p99 <= received.worst

"""The benchmark of event streams over HTTP, at a small size."""

from __future__ import annotations

from benchmarks.pages import Arguments, measure


async def test_every_client_hears_of_every_write_though_one_has_stalled() -> None:
    served, heard = await measure(Arguments(clients=4, rate=50, seconds=0.4, stalled=1))
    assert served.writes >= 15
    assert (heard.complete, heard.latest) == (4, 4)
    assert served.pending >= served.writes / 2, "of the one who has stalled"
    assert heard.events == 4 * served.writes
    assert 0 < heard.p50 <= heard.p99 <= heard.worst

"""Counts, rates and recent events of the demo's listeners."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Added, Deleted, Event, Updated
from aioinformer._cli.demo.counters import EventCounter, EventRate, EventSummary, RecentEvents
from tests.cli.pods import pod


def running(*, restarts: int = 0, ready: bool = True, phase: str = "Running") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    containers = [{"restartCount": restarts}]
    status = {"phase": phase, "conditions": conditions, "containerStatuses": containers}
    return {"spec": {"nodeName": "node-1"}, "status": status}


def test_a_counter_counts_events_by_type_and_keeps_the_cached_versions() -> None:
    tally = EventCounter()
    first, second = pod("a", version="1", **running()), pod("a", version="2", **running(restarts=2))

    tally.on_add(first, initial=True)
    tally.on_add(pod("b", version="3", **running()), initial=False)
    tally.on_update(first, second, resync=False)
    tally.on_delete(pod("b", version="4", **running()), reason="vanished")

    assert (tally.added, tally.updated, tally.deleted, tally.total) == (2, 1, 1, 4)
    assert tally.restarts == 2
    assert tally.versions == {second.key: "2"}
    assert repr(tally) == "<EventCounter 2 added 1 updated 1 deleted>"


PENDING: dict[str, Any] = {"spec": {}, "status": {"phase": "Pending"}}
PLACED: dict[str, Any] = {"spec": {"nodeName": "node-1"}, "status": {"phase": "Pending"}}


@pytest.mark.parametrize(
    ("event", "type_", "detail"),
    [
        (Added(pod(**PENDING)), "ADDED", "Pending"),
        (Added(pod(**PENDING), initial=True), "ADDED", "was there"),
        (Updated(pod(**PENDING), pod(**PLACED)), "MODIFIED", "placed on node-1"),
        (Updated(pod(**PLACED), pod(**running())), "MODIFIED", "Running on node-1"),
        (
            Updated(pod(**running()), pod(**running(restarts=2))),
            "MODIFIED",
            "restarted, 2 times now",
        ),
        (Updated(pod(**running()), pod(**running(ready=False))), "MODIFIED", "not ready"),
        (Updated(pod(**running(ready=False)), pod(**running())), "MODIFIED", "ready"),
        (Deleted(pod(**running(phase="Failed"))), "DELETED", "Failed"),
        (Deleted(pod(**running()), reason="vanished"), "DELETED", "Running, vanished"),
    ],
)
def test_a_recent_event_has_its_time_type_key_and_detail(
    event: Event, type_: str, detail: str
) -> None:
    ticker = RecentEvents()
    ticker.add(event, 1.5)

    assert ticker.latest() == (EventSummary(1.5, type_, "shop/web-0", detail),)


def test_the_newest_event_is_first_and_the_oldest_are_discarded() -> None:
    ticker = RecentEvents(limit=2)
    for name in ("a", "b", "c"):
        ticker.add(Added(pod(name, **PENDING)), 0)

    assert [sighting.key for sighting in ticker.latest()] == ["shop/c", "shop/b"]


def test_a_rate_is_the_mean_of_two_seconds() -> None:
    rate = EventRate(10.0, total=1000)
    assert rate.per_second == 0

    for step in range(1, 9):
        rate.sample(10.0 + step * 0.5, total=1000 + step * step)

    assert rate.history == (1, 3, 5, 7, 9, 11, 13, 15)
    assert rate.per_second == (9 + 11 + 13 + 15) / 2


def test_a_late_sample_of_a_rate_fills_the_skipped_seconds_with_zero() -> None:
    rate = EventRate(0.0, total=0)
    rate.sample(0.4, total=5)
    rate.sample(1.7, total=6)
    rate.sample(2.0, total=8)

    assert rate.history == (6, 0, 0, 2)

"""Verdicts on the requirements, and the text of the table."""

from __future__ import annotations

import pytest

from benchmarks.load.meter import Sample
from benchmarks.load.pods import Dataset
from benchmarks.measures.caches import Cache
from benchmarks.measures.callbacks import Longest, LongestCallback
from benchmarks.measures.curves import Curves
from benchmarks.measures.fanout import Fanout
from benchmarks.measures.imports import ImportTimes
from benchmarks.measures.latency import Latency
from benchmarks.report.verdict import Verdict, verdicts
from benchmarks.run import QUICK, CacheSizes, Numbers, Results


def numbers(*, wall: float, cpu: float, pods: int = 1_000) -> Numbers:
    """Create the numbers of a contestant from its microseconds an event and a pod."""
    return Numbers(
        pods=pods,
        events=1_000,
        sync_wall=wall * 1e-3,
        sync_cpu=cpu * 1e-3,
        events_wall=wall * 1e-3,
        events_cpu=cpu * 1e-3,
        peak=0.8,
        settled=0.7,
    )


def results(by_name: dict[str, Numbers], absent: dict[str, str] | None = None) -> Results:
    """Create the results of a run with these contestants; all other values are typical."""
    quick = LongestCallback(cpu=0.004, wall=0.02, what="pump of pods")
    return Results(
        size=QUICK,
        load_rate=1e9,
        event_bytes=3_300,
        numbers=by_name,
        versions={"client-go": "0.37.2"},
        absent=absent or {},
        machine="2 cores, Linux, Python 3.11.7",
        day="2026-11-20",
        curves=Curves(memory={}, objects={}, listeners={}),
        longest=Longest(
            sync=quick, relist=LongestCallback(cpu=0.012), resync=quick, add_index=quick
        ),
        fanout=Fanout(alone=1.6, together=0.2, coroutine=4.0),
        caches={
            "ours": Cache(pods=1_000, bytes=2_500, beyond=450, get=0.3, by_index=2, scan=3_000),
            "models": Cache(pods=10, bytes=34_000, get=0.2, by_index=1, scan=100),
        },
        latency={
            "ours": Latency(rate=4_999, p50=0.0001, p99=0.002, worst=0.01),
            "floor": Latency(rate=4_999, p50=0.00008, p99=0.0005, worst=0.01),
        },
        cache_sizes=CacheSizes(numbers(wall=10, cpu=8), numbers(wall=11, cpu=10, pods=100_000)),
        imports=ImportTimes(aioinformer=0.05, aiohttp=0.1, network=False),
    )


OURS = {
    "ours": numbers(wall=10, cpu=10),
    "ours, 3 fields": numbers(wall=15, cpu=15),
    "ours, whole body": numbers(wall=20, cpu=20),
    "ours, 16 listeners": numbers(wall=16, cpu=16),
    "floor": numbers(wall=5, cpu=4),
}
GO = {
    "client-go JSON": numbers(wall=200, cpu=190),
    "client-go protobuf": numbers(wall=30, cpu=15),
}


def verdict_of(run: Results, name: str) -> Verdict:
    """Return the only verdict with ``name`` in its name."""
    (verdict,) = [each for each in verdicts(run) if name in each.name]
    return verdict


@pytest.mark.parametrize(
    ("values", "met"), [((2.0, 2.0), True), ((3.0, 1.9), False), ((1.9, 3.0), False)]
)
def test_both_of_two_values_must_reach_the_bound(values: tuple[float, float], met: bool) -> None:
    assert Verdict("", "x", values, must=2, aim=4).met is met


def test_the_higher_of_two_costs_must_meet_the_bound() -> None:
    assert not Verdict("", "ms", (1.0, 5.0), must=4, aim=2, at_most=True).met
    assert Verdict("", "ms", (1.0, 3.0), must=4, aim=3, at_most=True).aimed


def test_a_ratio_above_one_means_that_the_library_is_faster() -> None:
    run = results({**OURS, **GO})
    assert verdict_of(run, "events, client-go JSON").values == pytest.approx((19,))
    assert verdict_of(run, "events, client-go protobuf").values == pytest.approx((1.5,))
    assert verdict_of(run, "sync, client-go JSON").values == pytest.approx((19,))
    assert verdict_of(run, "of the floor").values == pytest.approx((40,))


def test_the_cost_of_a_further_listener_is_a_fifteenth_of_the_cost_of_fifteen() -> None:
    assert verdict_of(results(OURS), "further listener").values == pytest.approx((0.4,))


def test_numbers_are_medians_and_memory_is_counted_above_the_bare_process(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    dataset = Dataset(tmp_path_factory.getbasetemp(), 10, 100, 1_000, 0, "")
    samples = [
        Sample(
            sync_wall=wall, sync_cpu=1, events_wall=wall, events_cpu=1, delivered=100,
            bare=5_000, peak=7_000, settled=6_500,
        )
        for wall in (9.0, 2.0, 4.0)
    ]  # fmt: skip
    middle = Numbers.of(samples, dataset)
    assert (middle.sync_wall, middle.rate) == (4, 25)
    assert (middle.peak, middle.settled) == (2, 1.5)

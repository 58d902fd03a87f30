"""The soak test at a small size, and the judgement of its samples."""

from __future__ import annotations

import random
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.soak.__main__ import Arguments, run
from benchmarks.soak.report import find_failures, fit_all, make_table
from benchmarks.soak.samples import QUANTITIES, Ending, Sample, read_samples
from benchmarks.soak.trend import fit


def make_samples(growth: float) -> list[Sample]:
    """Return an hour of samples whose memory grows by so many bytes, with noise."""
    rng = random.Random(1)
    return [
        Sample(
            time=5.0 * number,
            memory=100e6 + growth * number / 720 + rng.gauss(0, 1e6),
            p50=0.001 + rng.random() * 0.001,
            p99=0.005 + rng.random() * 0.01,
            cpu=50e-6 + rng.random() * 10e-6,
            tasks=38 + (number % 12 == 0) * 20,
            sockets=8,
            objects=4000,
            events=number * 100,
        )
        for number in range(720)
    ]


CLEAN = Ending(tasks=0, sockets=0, verified=True, disturbances=9, restarts=99)


def test_the_slope_of_a_line_is_found() -> None:
    times = [float(second) for second in range(3600)]
    trend = fit(times, [2.0 + 5.0 * time / 3600 for time in times])
    assert trend.slope == pytest.approx(5.0)
    assert trend.margin == pytest.approx(0.0, abs=1e-6)
    assert not trend.is_zero


def test_the_fit_finds_no_slope_in_noise_but_a_slope_in_growth() -> None:
    steady, growing = (fit_all(make_samples(growth)) for growth in (0.0, 5e6))
    assert all(trend.is_zero for trend in steady.values())
    assert find_failures(CLEAN, steady) == []
    assert growing["memory"].slope == pytest.approx(5.0, abs=1.0)
    assert find_failures(CLEAN, growing)[0].startswith("Resident memory grows by ")
    assert "no: it grows" in make_table(make_samples(5e6), CLEAN, growing)


def test_a_quantity_that_stays_constant_after_its_first_rise_does_not_grow() -> None:
    rng = random.Random(1)
    times = [float(second) for second in range(3600)]
    trend = fit(times, [50 * min(1.0, time / 1440) + rng.gauss(0, 1) for time in times])
    assert trend.slope > 20
    assert trend.stands_late
    assert not trend.grows(0.5)


def test_the_fit_seldom_finds_a_slope_in_autocorrelated_noise() -> None:
    rng = random.Random(1)
    times = [5.0 * number for number in range(720)]
    growing = 0
    for _ in range(200):
        values, value = list[float](), 0.0
        for _ in times:
            value = 0.98 * value + rng.gauss(0, 1)
            values.append(value)
        growing += fit(times, values).grows(0.0)
    assert growing <= 4


def test_remaining_tasks_and_sockets_and_a_wrong_cache_are_failures() -> None:
    ending = Ending(tasks=1, sockets=2, verified=False, disturbances=0, restarts=0)
    assert find_failures(ending, fit_all(make_samples(0.0))) == [
        "a cache differed from the server at the end",
        "1 tasks and 2 sockets were left",
    ]


@pytest.mark.benchmarks
def test_a_short_soak_leaves_no_task_or_socket_and_draws_a_chart(tmp_path: Path) -> None:
    failures = run(Arguments(minutes=0.1, rate=50, objects=50, every=0.1, folder=tmp_path))
    samples, ending = read_samples(tmp_path / "samples.jsonl")
    assert len(samples) == 60
    assert (ending.tasks, ending.sockets, ending.verified) == (0, 0, True)
    assert samples[-1].events > 100
    assert max(sample.p50 for sample in samples) > 0
    assert max(sample.cpu for sample in samples) > 0
    assert not [each for each in failures if "grows" not in each]
    chart = ElementTree.fromstring((tmp_path / "soak.svg").read_text())  # noqa: S314 - our own
    lines = chart.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == len(QUANTITIES)

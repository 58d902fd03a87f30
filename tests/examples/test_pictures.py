"""The pictures of the README show what their programs draw."""

from __future__ import annotations

import re
from pathlib import Path

from examples.pictures.cpu_per_event import CPU_MICROSECONDS, PICTURE, draw

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RESULTS = (ROOT / "benchmarks" / "results.md").read_text()


def test_the_chart_is_the_one_that_its_program_draws() -> None:
    assert PICTURE.read_text() == draw()


def test_the_chart_names_each_library_and_its_number() -> None:
    chart = draw()
    for name, (low, high) in CPU_MICROSECONDS.items():
        assert f">{name}</text>" in chart
        assert f">{low if low == high else f'{low}-{high}'}</text>" in chart


def test_the_readme_shows_the_chart_with_the_same_numbers() -> None:
    assert f"](examples/pictures/{PICTURE.name})" in README
    for low, high in CPU_MICROSECONDS.values():
        assert f"{low} µs" in README or f"{high} µs" in README


def test_the_numbers_of_the_chart_and_of_the_readme_are_results() -> None:
    for low, high in CPU_MICROSECONDS.values():
        assert f"| {low if low == high else f'{low}-{high}'} |" in RESULTS
    claims = README.split("\n- **", 1)[1].split("- **[Twelve")[0]
    quoted = re.findall(r"\d+\.\d+", claims)
    assert len(quoted) >= 7
    assert [number for number in quoted if number not in RESULTS] == []

"""The guide to simulation: its controller fails as the page shows, and its correction passes."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from aioinformer.testing.simulation import SimulationFailed
from tests.markdown_pages import MarkdownPage

GUIDE = MarkdownPage(Path(__file__).parent.parent.parent / "examples/guides/simulation.md")
BUG = ("A controller with a bug", "The program to simulate")


def run_sections(folder: Path, *headings: str) -> Callable[[], None]:
    """Run the code under these headings as one script; return the test that the page defines."""
    script = folder / "test_teams.py"
    script.write_text("\n".join(map(GUIDE.block_under, headings)))
    test: Callable[[], None] = runpy.run_path(str(script))["test_the_controller_survives_faults"]
    return test


def test_the_planted_bug_is_found_and_shrunk(tmp_path: Path) -> None:
    test = run_sections(tmp_path, *BUG)
    with pytest.raises(SimulationFailed, match="without a ConfigMap") as caught:
        test()
    report = str(caught.value)
    assert report.startswith(GUIDE.block_under("The report", language="text"))
    assert report.splitlines()[-1].strip() == GUIDE.block_under("The report").strip()


def test_the_printed_line_repeats_it(tmp_path: Path) -> None:
    with pytest.raises(SimulationFailed, match="team-5"):
        run_sections(tmp_path, *BUG, "The report")


@pytest.mark.simulation
def test_the_corrected_controller_passes_the_simulation(tmp_path: Path) -> None:
    test = run_sections(tmp_path, *BUG, "The correction")
    test()

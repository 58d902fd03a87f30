"""The published results, the page and the plots that show them, and the README's numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.report.page import FOLDER, Published, markdown, readme, write
from benchmarks.report.plots import plots
from tests.benchmarks.report.test_verdict import GO, OURS, numbers, results

README = Path(__file__).parents[3] / "README.md"
PEERS = {
    **OURS,
    **GO,
    "client-go JSON, LIST": numbers(wall=200, cpu=195),
    "client-go protobuf, LIST": numbers(wall=200, cpu=16),
    "kube-rs typed": numbers(wall=60, cpu=61),
    "kube-rs typed, no managedFields": numbers(wall=60, cpu=55),
    "kube-rs typed, WatchList": numbers(wall=60, cpu=58),
    "kube-rs DynamicObject": numbers(wall=60, cpu=99),
    "lightkube": numbers(wall=66, cpu=66),
    "kubernetes_asyncio": numbers(wall=600, cpu=600),
}


@pytest.fixture(scope="module")
def published() -> Published:
    found = Published.load()
    assert found is not None
    return found


def test_the_page_and_the_plots_are_made_of_the_published_results(published: Published) -> None:
    assert (FOLDER / "RESULTS.md").read_text() == markdown(published)
    drawn = dict(plots(published.run))
    assert {path.name: path.read_text() for path in (FOLDER / "plots").iterdir()} == drawn


def test_the_readme_quotes_the_published_results(published: Published) -> None:
    text = README.read_text()
    assert readme(text, published.run) == text


def test_the_pictures_of_the_readme_and_of_the_page_exist() -> None:
    for page in (README, FOLDER / "RESULTS.md"):
        pictures = re.findall(r"\]\(((?:benchmarks/)?plots/[^)]+)\)", page.read_text())
        assert pictures
        for picture in pictures:
            assert (page.parent / picture).exists()


def test_the_readme_receives_the_numbers_of_a_run() -> None:
    text = readme(README.read_text(), results(PEERS))
    assert "**10 µs of CPU for each event.**" in text
    assert "15 µs on protobuf and 190 µs" in text
    assert "kube-rs 55-61 µs" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| µs of CPU per event |")]
    assert re.findall(r"\[([0-9.-]+)\]", row) == ["10", "15-190", "55-61", "600"]
    assert readme(text, results(PEERS)) == text


def test_the_readme_is_not_changed_by_a_run_without_a_peer() -> None:
    with pytest.raises(LookupError, match=r"no numbers of .*kube-rs typed"):
        readme(README.read_text(), results({**OURS, **GO}))


def test_a_readme_without_the_place_for_the_numbers_is_an_error() -> None:
    with pytest.raises(LookupError, match="0 places"):
        readme("# Another page", results(PEERS))


def test_written_results_can_be_loaded_and_old_plots_are_deleted(tmp_path: Path) -> None:
    absent = {"kr8s": "not installed (pip install kr8s)"}
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "of_an_earlier_version.svg").touch()
    write(Published(results(OURS, absent)), tmp_path)
    again = Published.load(tmp_path)
    assert again is not None
    assert (tmp_path / "RESULTS.md").read_text() == markdown(again)
    assert "| kr8s | not installed (pip install kr8s) |" in markdown(again)
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "cpu_per_event.svg",
        "events_per_second.svg",
    }


def test_results_in_another_format_are_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"run": {"size": 1}}')
    assert Published.load(tmp_path) is None

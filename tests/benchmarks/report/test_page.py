"""The published results, the page and the plots that show them, and the README's numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.report.page import FOLDER, Published, markdown, readme
from benchmarks.report.plots import plots

README = Path(__file__).parents[3] / "README.md"


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

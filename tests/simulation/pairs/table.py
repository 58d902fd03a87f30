"""The table of pairs in the guide to contributing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.simulation.pairs.features import (
    EXCLUDED,
    FEATURES,
    Pair,
    pairs_in,
    selections,
)

PAGE = Path(__file__).parents[3] / "examples" / "guides" / "contributing.md"
BEGIN = "<!-- pairs of features: python -m tests.simulation.pairs -->\n"
END = "<!-- end of the pairs of features -->\n"

HISTORIES = 2000
"""Histories of the mark ``simulation``; each pair is in 200 of them at least."""
FEW = 24
"""The first of them, which the default run has."""


def drawn(number: int) -> Counter[Pair]:
    """Count the pairs in the first histories."""
    return Counter(pair for features in selections(number) for pair in pairs_in(features))


def render() -> str:
    """Return the table, between its marks."""
    table = "\n".join(_lines())
    return f"{BEGIN}\n{table}\n\n{END}"


def _lines() -> Iterator[str]:
    yield "| | feature | a history with it has |"
    yield "|---|---|---|"
    for number, (name, feature) in enumerate(FEATURES.items(), 1):
        yield f"| {number} | {name} | {feature.what} |"
    yield ""
    yield f"| | {' | '.join(str(number) for number in range(1, len(FEATURES)))} |"
    yield f"|{'---|' * len(FEATURES)}"
    times = drawn(HISTORIES)
    for row, name in enumerate(FEATURES, 1):
        others = list(FEATURES)[: row - 1]
        if others:
            cells = [_cell(frozenset((name, other)), times) for other in others]
            yield f"| {row} {name} | {' | '.join(cells + [''] * (len(FEATURES) - row))} |"
    yield ""
    yield "`-` stands for a pair that makes no sense:"
    yield ""
    yield from _listed(EXCLUDED)


def _listed(table: Mapping[Pair, str]) -> Iterator[str]:
    order = list(FEATURES)
    for pair, reason in table.items():
        first, second = sorted(pair, key=order.index)
        yield f"- {first} and {second}: {reason}"


def _cell(pair: Pair, times: Counter[Pair]) -> str:
    if pair in EXCLUDED:
        return "-"
    return str(times[pair])


def replace_in(text: str) -> str:
    """Return the page with the present table.

    Raises:
        ValueError: the page lacks a mark.
    """
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + render() + after

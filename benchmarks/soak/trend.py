"""The slope of a sampled quantity, with a confidence interval that contains zero or doesn't.

Samples that follow each other are not independent: a relist raises some of them together. So the
time is divided into blocks that are longer than the period of the disturbances, and the medians of
the blocks are fitted by a straight line. Student's t-distribution gives the 99 % interval of the
slope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

__all__ = ["BLOCKS", "Trend", "fit"]

BLOCKS = 20
"""Medians that are fitted; three minutes each in an hour."""
WARM_UP = 0.15
"""The share of the samples at the start that is left out: caches of the interpreter fill then."""
T_99 = 2.878
"""The quantile 0.995 of Student's t-distribution with 18 degrees of freedom, two fewer than there
are blocks."""
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Trend:
    """A fitted line."""

    mean: float
    slope: float
    """Growth in an hour."""
    margin: float
    """Half the width of the 99 % confidence interval of the slope."""

    @property
    def is_zero(self) -> bool:
        """True if the confidence interval contains zero."""
        return abs(self.slope) <= self.margin

    def grows(self, resolution: float) -> bool:
        """Return True if the quantity grows, by more than ``resolution`` in an hour."""
        return self.slope > self.margin and self.slope > resolution


def fit(times: Sequence[float], values: Sequence[float]) -> Trend:
    """Fit a line to samples.

    Args:
        times: seconds, ascending.
        values: one value for each time.

    Raises:
        ValueError: there are fewer samples than blocks after the warm-up.
    """
    first = int(len(times) * WARM_UP)
    blocks = _divide(times[first:], values[first:])
    at = fmean(time for time, _ in blocks)
    mean = fmean(value for _, value in blocks)
    spread = sum((time - at) ** 2 for time, _ in blocks)
    slope = sum((time - at) * (value - mean) for time, value in blocks) / spread
    rest = sum((value - mean - slope * (time - at)) ** 2 for time, value in blocks)
    error = math.sqrt(rest / (BLOCKS - 2) / spread)
    return Trend(mean, slope * HOUR, T_99 * error * HOUR)


def _divide(times: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the mean time and the median value of each block."""
    if len(times) < BLOCKS:
        raise ValueError(f"a trend needs {BLOCKS} samples after the warm-up, not {len(times)}")
    edges = [len(times) * number // BLOCKS for number in range(BLOCKS + 1)]
    return [(fmean(times[start:end]), median(values[start:end])) for start, end in pairwise(edges)]

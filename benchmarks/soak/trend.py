"""The slope of a sampled quantity, with a confidence interval that contains zero or doesn't.

Samples that follow each other are not independent: a relist raises some of them together. So the
time is divided into blocks that are longer than the period of the disturbances, and the medians of
the blocks are fitted by a straight line. Student's t-distribution gives the 99 % interval of the
slope. A block may still depend on the block before, as where memory is returned to the system some
minutes after it was freed. So the interval is widened by the correlation r of successive residuals,
as for the mean of an autoregressive process: by the square root of (1 + r) / (1 - r).

A pool or a cache of the interpreter fills at first, and then stands; what leaks goes on growing. So
a quantity grows only if the intervals of the whole time and of its second half both lie above zero.
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
WARM_UP, MIN_WARM_UP, MAX_WARM_UP = 0.15, 180.0, 0.5
"""The share of the samples at the start that is left out: caches of the interpreter fill then, and
its allocator gets memory for the first lists. So a whole turn of the disturbances is left out, in
seconds, but no more than half of the samples."""
T_99 = {20: 2.878, 10: 3.355}
"""The quantile 0.995 of Student's t-distribution by the number of blocks, of which a line takes two
degrees of freedom."""
MAX_CORRELATION = 0.8
"""The highest correlation of residuals that is assumed: twenty residuals estimate it roughly."""
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Trend:
    """A fitted line."""

    hours: float
    """The time that is fitted."""
    mean: float
    slope: float
    """Growth in an hour."""
    margin: float
    """Half the width of the 99 % confidence interval of the slope."""
    later_slope: float
    """Growth in an hour of the second half alone."""
    later_margin: float
    """Half the width of the 99 % confidence interval of ``later_slope``."""

    @property
    def is_zero(self) -> bool:
        """True if the confidence interval contains zero."""
        return abs(self.slope) <= self.margin

    def grows(self, resolution: float) -> bool:
        """Return True if the quantity grows, by more than ``resolution`` in the time."""
        return self.slope > self.margin and self.growth > resolution and not self.stands_late

    @property
    def growth(self) -> float:
        """The growth in the time that is fitted."""
        return self.slope * self.hours

    @property
    def stands_late(self) -> bool:
        """True if the confidence interval of the second half doesn't lie above zero."""
        return self.later_slope <= self.later_margin


def fit(times: Sequence[float], values: Sequence[float]) -> Trend:
    """Fit a line to samples.

    Args:
        times: seconds, ascending.
        values: one value for each time.

    Raises:
        ValueError: there are fewer samples than blocks after the warm-up.
    """
    warm_up = max(WARM_UP * times[-1], min(MIN_WARM_UP, MAX_WARM_UP * times[-1]))
    first = sum(time <= warm_up for time in times)
    blocks = _divide(times[first:], values[first:])
    mean, slope, margin = _fit_line(blocks)
    _, later_slope, later_margin = _fit_line(blocks[BLOCKS // 2 :])
    hours = (times[-1] - warm_up) / HOUR
    return Trend(hours, mean, *(each * HOUR for each in (slope, margin, later_slope, later_margin)))


def _fit_line(blocks: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the mean, the slope and the margin of the slope, in units and seconds."""
    at = fmean(time for time, _ in blocks)
    mean = fmean(value for _, value in blocks)
    spread = sum((time - at) ** 2 for time, _ in blocks)
    slope = sum((time - at) * (value - mean) for time, value in blocks) / spread
    residuals = [value - mean - slope * (time - at) for time, value in blocks]
    rest = sum(each**2 for each in residuals)
    error = math.sqrt(rest / (len(blocks) - 2) / spread)
    products = sum(one * next_one for one, next_one in pairwise(residuals))
    correlation = min(max(0.0, products / rest), MAX_CORRELATION) if rest else 0.0
    error *= math.sqrt((1 + correlation) / (1 - correlation))
    return mean, slope, T_99[len(blocks)] * error


def _divide(times: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the mean time and the median value of each block."""
    if len(times) < BLOCKS:
        raise ValueError(f"a trend needs {BLOCKS} samples after the warm-up, not {len(times)}")
    edges = [len(times) * number // BLOCKS for number in range(BLOCKS + 1)]
    return [(fmean(times[start:end]), median(values[start:end])) for start, end in pairwise(edges)]

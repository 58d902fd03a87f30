"""The table of a soak test and its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.soak.samples import QUANTITIES, Ending, Quantity, Sample
from benchmarks.soak.trend import Trend, fit

__all__ = ["find_failures", "fit_all", "make_table"]


def fit_all(samples: Sequence[Sample]) -> dict[str, Trend]:
    """Return the trend of each quantity, in the units of its ``Quantity``."""
    times = [sample.time for sample in samples]
    return {
        quantity.field: fit(
            times, [getattr(sample, quantity.field) * quantity.scale for sample in samples]
        )
        for quantity in QUANTITIES
    }


def make_table(samples: Sequence[Sample], ending: Ending, trends: Mapping[str, Trend]) -> str:
    """Return the result as Markdown."""
    last = samples[-1]
    rows = [_make_row(quantity, trends[quantity.field]) for quantity in QUANTITIES]
    return "\n".join(
        [
            "| quantity | mean | growth in an hour, 99 % interval | zero within noise |",
            "|---|---|---|---|",
            *rows,
            "",
            f"{last.time / 60:.0f} minutes, {last.events:,} events, {last.objects:,} cached objects"
            f" at the end, {ending.disturbances:,} failed requests and watches,"
            f" {ending.restarts:,} streams and factories entered and left;"
            f" afterwards {ending.tasks} tasks and {ending.sockets} sockets were left.",
        ]
    )


def find_failures(ending: Ending, trends: Mapping[str, Trend]) -> list[str]:
    """Return what is wrong, in sentences; an empty list if nothing is."""
    failures = [
        f"{quantity.title} grows by {trends[quantity.field].slope:.3g} {quantity.unit} an hour"
        for quantity in QUANTITIES
        if trends[quantity.field].grows(quantity.resolution)
    ]
    if not ending.verified:
        failures.append("a cache differed from the server at the end")
    if ending.tasks or ending.sockets:
        failures.append(f"{ending.tasks} tasks and {ending.sockets} sockets were left")
    return failures


def _make_row(quantity: Quantity, trend: Trend) -> str:
    if trend.is_zero:
        verdict = "yes"
    elif trend.grows(quantity.resolution):
        verdict = "no: it grows"
    elif trend.growth > quantity.resolution:
        verdict = "yes: it stands in the second half"
    elif trend.slope > 0:
        verdict = f"grows by less than {quantity.resolution:g} {quantity.unit}"
    else:
        verdict = "falls"
    return (
        f"| {quantity.title} | {trend.mean:.3g} {quantity.unit}"
        f" | {trend.slope:+.3g} ± {trend.margin:.2g} {quantity.unit} | {verdict} |"
    )

"""The quantities of a soak test over time, as SVG: one panel each, with the fitted line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.soak.samples import QUANTITIES, Quantity, Sample
from benchmarks.soak.trend import Trend

__all__ = ["draw"]

WIDTH, HEIGHT = 720, 130
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 26, 22
POINTS = 360
"""Points of a line. More than that are thinned: each point is the greatest value of its group."""
STYLE = """\
<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.frame { fill: none; stroke: #9aa4af } .line { fill: none; stroke: #0a7f5a }
.fit { stroke: #b35900; stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .frame { stroke: #6e7781 } .line { stroke: #2fbf8f }
  .fit { stroke: #f0883e }
}
</style>"""


def draw(samples: Sequence[Sample], trends: Mapping[str, Trend]) -> str:
    """Return the chart: one panel for each quantity. Trends are those of ``Quantity.field``."""
    height = HEIGHT * len(QUANTITIES)
    panels = [
        line
        for number, quantity in enumerate(QUANTITIES)
        for line in _draw_panel(number * HEIGHT, quantity, samples, trends[quantity.field])
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    title = "<title>Memory, latency, tasks and sockets of a soak test over time</title>"
    return "\n".join([head, title, STYLE, *panels, "</svg>\n"])


def _draw_panel(top: int, quantity: Quantity, samples: Sequence[Sample], trend: Trend) -> list[str]:
    """Return the elements of one panel. The axis begins at zero, so that no drift is magnified."""
    values = [getattr(sample, quantity.field) * quantity.scale for sample in samples]
    highest, end = max(*values, 1e-9) * 1.1, samples[-1].time
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(time: float, value: float) -> tuple[float, float]:
        return LEFT + width * time / end, top + TOP + height * (1 - value / highest)

    step = max(1, len(values) // POINTS)
    points = " ".join(
        "{:.1f},{:.1f}".format(*place(samples[at].time, max(values[at : at + step])))
        for at in range(0, len(values), step)
    )
    middle = end / 2 / 3600
    ends = [place(time, trend.mean + trend.slope * (time / 3600 - middle)) for time in (0.0, end)]
    (x1, y1), (x2, y2) = ends
    base = top + HEIGHT - BOTTOM
    slope = f"{trend.slope:+.3g} ± {trend.margin:.2g} {quantity.unit} an hour"
    return [
        f'<text class="title" x="{LEFT}" y="{top + 17}">{quantity.title} ({quantity.unit})</text>',
        f'<text x="{WIDTH - RIGHT}" y="{top + 17}" text-anchor="end">{slope}</text>',
        f'<rect class="frame" x="{LEFT}" y="{top + TOP}" width="{width}" height="{height}"/>',
        f'<polyline class="line" points="{points}"/>',
        f'<line class="fit" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>',
        f'<text x="{LEFT - 6}" y="{top + TOP + 10}" text-anchor="end">{_format(highest)}</text>',
        f'<text x="{LEFT - 6}" y="{base}" text-anchor="end">0</text>',
        f'<text x="{LEFT}" y="{base + 15}">0</text>',
        f'<text x="{WIDTH - RIGHT}" y="{base + 15}" text-anchor="end">{end / 60:.0f} min</text>',
    ]


def _format(value: float) -> str:
    """Return three digits, or all digits before the point if there are more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

"""Draw bar charts and line charts as SVG that follows the reader's light or dark theme.

Chart libraries write fixed colours and thousands of path segments. These charts are small texts,
which a repository can keep and a review can read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Bar", "LineChart", "bar_chart", "line_chart"]

LABEL_WIDTH, BAR_WIDTH, VALUE_WIDTH, ROW = 240, 400, 80, 26
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, LEGEND = 720, 360, 60, 34, 46, 200
"""The size of a line chart, and its margins; the legend is on the right."""
COLOURS = ("#0a7f5a", "#c4572a", "#3566c9", "#8a5bb5", "#b08900", "#5c6b73", "#b5365e", "#2a93a8")
"""The first colour is that of the library; all are readable on white and on black."""
STYLE = """\
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.bar { fill: #9aa4af } .ours { fill: #0a7f5a } .axis { stroke: #d0d7de } .small { font-size: 11px }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .bar { fill: #6e7781 } .ours { fill: #2fbf8f } .axis { stroke: #444c56 }
}
</style>"""


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a bar chart."""

    label: str
    value: float
    text: str
    """The value as the reader sees it."""
    ours: bool = False


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Return horizontal bars that begin at 0."""
    highest = max(each.value for each in bars)
    rows = [
        line
        for place, each in enumerate(bars)
        for line in _bar(30 + ROW * place, each, BAR_WIDTH / highest)
    ]
    return _document(LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH, ROW * len(bars) + 34, title, rows)


def _bar(top: int, bar: Bar, scale: float) -> Iterator[str]:
    width, kind = bar.value * scale, "ours" if bar.ours else "bar"
    label = escape(bar.label)
    yield f'<text x="{LABEL_WIDTH - 8}" y="{top + 13}" text-anchor="end">{label}</text>'
    yield (
        f'<rect class="{kind}" x="{LABEL_WIDTH}" y="{top}" height="{ROW - 8}" width="{width:.1f}"/>'
    )
    yield f'<text x="{LABEL_WIDTH + width + 6:.1f}" y="{top + 13}">{escape(bar.text)}</text>'


@dataclass(frozen=True, slots=True)
class LineChart:
    """A chart of curves over one axis."""

    title: str
    x_label: str
    curves: Mapping[str, Sequence[tuple[float, float]]]
    log_x: bool = False
    log_y: bool = False
    marks: bool = True
    """True to mark each point."""


def line_chart(chart: LineChart) -> str:
    """Return the chart as SVG."""
    points = [point for curve in chart.curves.values() for point in curve]
    across = _Axis.over([x for x, _ in points], log=chart.log_x)
    up = _Axis.over([y for _, y in points], log=chart.log_y)
    right, bottom = WIDTH - LEGEND, HEIGHT - BOTTOM

    def place_x(value: float) -> float:
        return LEFT + across.share(value) * (right - LEFT)

    def place_y(value: float) -> float:
        return bottom - up.share(value) * (bottom - TOP)

    lines = [*_grid(across, up, place_x, place_y)]
    lines.append(
        f'<text class="small" x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 8}" '
        f'text-anchor="middle">{escape(chart.x_label)}</text>'
    )
    for number, (name, curve) in enumerate(chart.curves.items()):
        placed = [(place_x(x), place_y(y)) for x, y in curve]
        lines += _curve(number, name, placed, marks=chart.marks)
    return _document(WIDTH, HEIGHT, chart.title, lines)


def _curve(
    number: int, name: str, points: Sequence[tuple[float, float]], *, marks: bool
) -> Iterator[str]:
    colour = COLOURS[number % len(COLOURS)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    if marks:
        for x, y in points:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    left, top = WIDTH - LEGEND + 14, TOP + 10 + 20 * number
    yield f'<rect x="{left}" y="{top - 7}" width="12" height="4" fill="{colour}"/>'
    yield f'<text class="small" x="{left + 18}" y="{top}">{escape(name)}</text>'


def _grid(
    across: _Axis, up: _Axis, place_x: Callable[[float], float], place_y: Callable[[float], float]
) -> Iterator[str]:
    for value in up.ticks():
        y = f"{place_y(value):.1f}"
        yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - LEGEND}" y1="{y}" y2="{y}"/>'
        yield (
            f'<text class="small" x="{LEFT - 6}" y="{y}" dy="4" text-anchor="end">{value:,g}</text>'
        )
    for value in across.ticks():
        yield (
            f'<text class="small" x="{place_x(value):.1f}" y="{HEIGHT - BOTTOM + 16}" '
            f'text-anchor="middle">{value:,g}</text>'
        )


@dataclass(frozen=True, slots=True)
class _Axis:
    """The values from ``low`` to ``high``, at equal distances or at equal ratios."""

    low: float
    high: float
    log: bool

    @classmethod
    def over(cls, values: Sequence[float], *, log: bool) -> _Axis:
        if not log:
            return cls(0.0, max(values) * 1.05, log)
        return cls(min(values) / 1.15, max(values) * 1.15, log)

    def share(self, value: float) -> float:
        """Return the place of a value, from 0 to 1."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Return round values within the axis."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first < 4 else (1,)
            all_ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
            return [each for each in all_ticks if self.low <= each <= self.high]
        step = 10 ** math.floor(math.log10(self.high / 4))
        step = next(step * each for each in (1, 2, 5, 10) if self.high / (step * each) <= 6)
        return [number * step for number in range(int(self.high / step) + 1)]


def _document(width: int, height: int, title: str, lines: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            STYLE,
            f'<text x="0" y="15">{escape(title)}</text>',
            *lines,
            "</svg>\n",
        ]
    )

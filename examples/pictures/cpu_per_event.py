"""Draw the bar chart of the README: CPU time per watch event of several Kubernetes libraries.

``python -m examples.pictures.cpu_per_event`` writes ``cpu_per_event.svg`` beside this file. The
numbers are medians of five alternating runs on two shared cores, with pods of 3.3 kB and a handler
that reads metadata. ``python -m benchmarks`` repeats those of aioinformer, client-go and
kubernetes_asyncio; kube-rs was measured by a separate program.
"""

from __future__ import annotations

from pathlib import Path

PICTURE = Path(__file__).with_suffix(".svg")
CPU_MICROSECONDS = {
    "aioinformer": (13, 13),
    "client-go, protobuf": (36, 36),
    "kube-rs, typed": (55, 66),
    "client-go, JSON": (200, 200),
    "kubernetes_asyncio": (540, 760),
}
"""The lowest and the highest of the medians, by library."""

LABEL_WIDTH, BAR_WIDTH, VALUE_WIDTH, ROW = 150, 420, 90, 26
HIGHEST = max(high for _, high in CPU_MICROSECONDS.values())
STYLE = """\
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.bar { fill: #9aa4af } .ours { fill: #0a7f5a } .range { fill: #c9d1d9 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .bar { fill: #6e7781 } .ours { fill: #2fbf8f } .range { fill: #444c56 }
}
</style>"""


def draw() -> str:
    """Return the chart as SVG."""
    height = ROW * len(CPU_MICROSECONDS) + 34
    width = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH
    rows = [
        line
        for place, (name, values) in enumerate(CPU_MICROSECONDS.items())
        for line in draw_row(30 + ROW * place, name, *values)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            "<title>CPU time per watch event, in microseconds; less is better</title>",
            STYLE,
            '<text x="0" y="15">CPU time per watch event in µs (less is better)</text>',
            *rows,
            "</svg>\n",
        ]
    )


def draw_row(top: int, name: str, low: int, high: int) -> list[str]:
    """Return the bar of one library; a range is drawn paler than its lowest value."""
    scale = BAR_WIDTH / HIGHEST
    value = str(low) if low == high else f"{low}-{high}"
    kind = "ours" if name == "aioinformer" else "bar"
    bar = f'y="{top}" height="{ROW - 8}"'
    return [
        f'<text x="{LABEL_WIDTH - 8}" y="{top + 13}" text-anchor="end">{name}</text>',
        f'<rect class="range" x="{LABEL_WIDTH}" {bar} width="{high * scale:.1f}"/>',
        f'<rect class="{kind}" x="{LABEL_WIDTH}" {bar} width="{low * scale:.1f}"/>',
        f'<text x="{LABEL_WIDTH + high * scale + 6:.1f}" y="{top + 13}">{value}</text>',
    ]


if __name__ == "__main__":
    PICTURE.write_text(draw())

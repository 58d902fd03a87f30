"""Draw the plots of ``RESULTS.md`` and of the README from the results of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.report.svg import Bar, LineChart, bar_chart, line_chart
from benchmarks.run import Results

__all__ = ["LABELS", "label", "plots"]

LABELS: Mapping[str, str] = {
    "ours": "aioinformer",
    "floor": "aiohttp, lines counted",
    "json.loads": "aiohttp and json.loads",
}
"""The names of contestants for readers who don't know the benchmarks."""
PEERS = (
    "ours",
    "client-go protobuf",
    "client-go JSON",
    "kube-rs typed, no managedFields",
    "kube-rs typed",
    "kube-rs DynamicObject",
    "lightkube",
    "kubernetes.informer",
    "kubernetes_asyncio",
    "kr8s",
)
"""The contestants in the bar charts."""
IN_MEMORY = ("ours", "client-go protobuf", "client-go JSON", "kube-rs typed", "lightkube")


def label(name: str) -> str:
    """Return the name of a contestant for readers."""
    return LABELS.get(name, name.replace("ours, ", "aioinformer, "))


def plots(results: Results) -> Iterator[tuple[str, str]]:
    """Yield the file name and the SVG of each plot that the results allow."""
    numbers = {name: results.numbers[name] for name in PEERS if name in results.numbers}
    costs = {name: each.cpu_per_event * 1e6 for name, each in numbers.items()}
    yield (
        "cpu_per_event.svg",
        bar_chart(
            "CPU time per watch event in µs (less is better)",
            [
                Bar(label(name), value, f"{value:,.0f}", name == "ours")
                for name, value in sorted(costs.items(), key=lambda each: each[1])
            ],
        ),
    )
    rates = {name: each.rate for name, each in numbers.items()}
    yield (
        "events_per_second.svg",
        bar_chart(
            "Watch events per second (more is better)",
            [
                Bar(label(name), value, f"{value:,.0f}", name == "ours")
                for name, value in sorted(rates.items(), key=lambda each: -each[1])
            ],
        ),
    )
    yield from _lines(results)


def _lines(results: Results) -> Iterator[tuple[str, str]]:
    curves = results.curves
    if memory := {name: curves.memory[name] for name in IN_MEMORY if name in curves.memory}:
        title = f"Memory of the process in MB while {results.size.pods:,} pods are listed"
        scaled = _scaled(memory, 1e-6)
        chart = LineChart(title, "seconds since the start", scaled, marks=False)
        yield "memory_during_sync.svg", line_chart(chart)
    if curves.objects:
        title = "CPU time per watch event in µs, by cached objects"
        chart = LineChart(title, "objects", _scaled(curves.objects, 1e6), log_x=True, log_y=True)
        yield "cpu_by_objects.svg", line_chart(chart)
    if curves.listeners:
        title = "CPU time per watch event in µs, by listeners"
        chart = LineChart(title, "listeners", _scaled(curves.listeners, 1e6), log_x=True)
        yield "cpu_by_listeners.svg", line_chart(chart)


def _scaled(
    curves: Mapping[str, Sequence[tuple[float, float]]], factor: float
) -> dict[str, list[tuple[float, float]]]:
    return {
        label(name): [(x, y * factor) for x, y in curve] for name, curve in curves.items() if curve
    }

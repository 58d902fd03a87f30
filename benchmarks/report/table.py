"""Format the results of a run as the text of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.measures.caches import Cache
from benchmarks.report.verdict import Verdict, verdicts
from benchmarks.run import Numbers, Results

__all__ = ["table"]

COLUMNS = ("ours", "floor", "client-go JSON", "client-go protobuf", "kube-rs typed", "lightkube")
YARDSTICK = "client-go JSON"
WIDTH = 20


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    value: Callable[[Numbers], float]
    form: str
    ratio: Callable[[float, float], float] | None = None
    """Returns the ratio of the yardstick's value and the contestant's; greater is better."""


def _times_less(yardstick: float, own: float) -> float:
    return yardstick / own


def _times_more(yardstick: float, own: float) -> float:
    return own / yardstick


ROWS = (
    _Row("sync, wall, us a pod", lambda n: n.sync_wall / n.pods * 1e6, "{:,.1f}", _times_less),
    _Row("sync, CPU, us a pod", lambda n: n.sync_cpu / n.pods * 1e6, "{:,.1f}", _times_less),
    _Row("watch events/s", lambda n: n.rate, "{:,.0f}", _times_more),
    _Row("CPU an event, us", lambda n: n.cpu_per_event * 1e6, "{:,.1f}", _times_less),
    _Row("RSS peak / JSON listed", lambda n: n.peak, "{:.2f}"),
    _Row("RSS settled / JSON listed", lambda n: n.settled, "{:.2f}"),
)


CACHE_ROWS: Sequence[tuple[str, Callable[[Cache], float]]] = (
    ("pods", lambda cache: cache.pods),
    ("bytes an object, all in", lambda cache: cache.bytes),
    ("  beyond its own JSON", lambda cache: cache.beyond),
    ("  each opened once", lambda cache: cache.opened),
    ("get, us", lambda cache: cache.get),
    ("by index, us", lambda cache: cache.by_index),
    ("by label, indexed, us", lambda cache: cache.by_label),
    ("by label, not indexed, us", lambda cache: cache.scan),
)


def table(results: Results) -> str:
    """Return the whole table."""
    parts = (_head, _peers, _variants, _caches, _bounds)
    return "\n".join(line for part in parts for line in part(results))


def _head(results: Results) -> Iterator[str]:
    size = results.size
    yield (
        f"{size.pods:,} pods, {size.events:,} events of {results.event_bytes:,.0f} bytes; medians "
        f"of {size.repetitions} alternating runs; every event delivered, checked by pod"
    )
    yield f"the load server sends {results.load_rate / 1e6:,.0f} MB/s to a bare socket"
    yield f"the slow peers have {size.slow:,} pods and as many events"
    yield "versions: " + ", ".join(f"{name} {each}" for name, each in results.versions.items())
    for name, reason in results.absent.items():
        yield f"no {name}: {reason}"


def _peers(results: Results) -> Iterator[str]:
    present = [name for name in COLUMNS if name in results.numbers]
    yield ""
    yield f"{'(x: client-go JSON = 1)':<28}" + "".join(f"{name:>{WIDTH}}" for name in present)
    for row in ROWS:
        cells = [_cell(row, results, name) for name in present]
        yield f"{row.label:<28}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def _cell(row: _Row, results: Results, name: str) -> str:
    value = row.value(results.numbers[name])
    if row.ratio is None:
        return row.form.format(value) if value else "-"
    yardstick = results.numbers.get(YARDSTICK)
    times = f" {row.ratio(row.value(yardstick), value):5.2f}x" if yardstick else ""
    return row.form.format(value) + times


def _variants(results: Results) -> Iterator[str]:
    yield ""
    yield f"{'all contestants':<32}" + "".join(
        f"{head:>16}" for head in ("sync wall us", "sync CPU us", "events/s", "CPU us an event")
    )
    for name, n in results.numbers.items():
        yield (
            f"{name:<32}{n.sync_wall / n.pods * 1e6:>16,.1f}{n.sync_cpu / n.pods * 1e6:>16,.1f}"
            f"{n.rate:>16,.0f}{n.cpu_per_event * 1e6:>16,.2f}"
        )
    longest, imports = results.longest, results.imports
    yield ""
    yield f"longest callback with {results.size.large:,} pods"
    for name in ("sync", "relist", "resync", "add_index"):
        held = getattr(longest, name)
        yield (
            f"  {name:<26}{held.cpu * 1e3:>8.1f} ms CPU{held.wall * 1e3:>8.1f} ms wall"
            f"   {held.what}"
        )
    yield f"one more async listener, events come alone: {results.fanout.coroutine:.1f} us"
    loaded = "an HTTP library with it!" if imports.network else "no HTTP library with it"
    yield (
        f"import aioinformer {imports.aioinformer * 1e3:.0f} ms, {loaded}; "
        f"import aiohttp {imports.aiohttp * 1e3:.0f} ms"
    )


def _caches(results: Results) -> Iterator[str]:
    """Yield the costs of the caches, and the latencies."""
    caches = results.caches
    yield ""
    yield f"{'a cache, one index':<28}" + "".join(f"{name:>{WIDTH}}" for name in caches)
    for label, value in CACHE_ROWS:
        cells = [value(cache) for cache in caches.values()]
        shown = "".join(f"{cell:>{WIDTH},.2f}" if cell else f"{'-':>{WIDTH}}" for cell in cells)
        yield f"{label:<28}{shown}"
    yield ""
    sizes = results.cache_sizes
    yield (
        f"an event among {sizes.many.pods:,} objects {sizes.many.cpu_per_event * 1e6:.1f} us CPU, "
        f"among {sizes.few.pods:,} {sizes.few.cpu_per_event * 1e6:.1f} us"
    )
    for name, latency in results.latency.items():
        yield (
            f"bytes to handler, {name:<8}{latency.rate:,.0f} events/s: p50 {latency.p50 * 1e3:.2f}"
            f" ms, p99 {latency.p99 * 1e3:.2f} ms, worst {latency.worst * 1e3:.1f} ms"
        )


def _bounds(results: Results) -> Iterator[str]:
    yield ""
    yield f"{'':<49}{'measured':>9}     {'must':>8}{'aim':>8}"
    for verdict in verdicts(results):
        yield _bound(verdict)


def _bound(verdict: Verdict) -> str:
    values = [f"{value:.2f}" for value in verdict.values]
    values = ["", *values] if len(values) == 1 else values
    sign = "<=" if verdict.at_most else ">="
    result = ("met, aim too" if verdict.aimed else "met") if verdict.met else "NOT MET"
    return (
        f"{verdict.name:<40}{values[0]:>9}{values[1]:>9} {verdict.unit:<2} {sign}"
        f"{verdict.must:>7g}{verdict.aim:>8g}  {result}"
    )

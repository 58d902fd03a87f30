"""Results as the text of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.run import Numbers, Results
from benchmarks.verdict import Verdict, verdicts

__all__ = ["table"]

COLUMNS = ("ours", "floor", "client-go JSON", "client-go protobuf", "kubernetes_asyncio")
YARDSTICK = "client-go JSON"
WIDTH = 20


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    value: Callable[[Numbers], float]
    form: str
    ratio: Callable[[float, float], float] | None = None
    """From the yardstick's value and one's own; bigger is better."""


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


def table(results: Results) -> str:
    """The whole of it."""
    return "\n".join([*_head(results), *_peers(results), *_variants(results), *_bounds(results)])


def _head(results: Results) -> Iterator[str]:
    size = results.size
    yield (
        f"{size.pods:,} pods, {size.events:,} events of {results.event_bytes:,.0f} bytes; medians "
        f"of {size.repetitions} alternating runs; every event delivered, checked by pod"
    )
    yield f"the load server sends {results.load_rate / 1e6:,.0f} MB/s to a bare socket"
    yield f"kubernetes_asyncio has {size.slow:,} pods and as many events"
    if results.missing:
        yield f"no client-go: {results.missing}"


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
    yield f"{'everybody':<28}" + "".join(
        f"{head:>16}" for head in ("sync wall us", "sync CPU us", "events/s", "CPU us an event")
    )
    for name, n in results.numbers.items():
        yield (
            f"{name:<28}{n.sync_wall / n.pods * 1e6:>16,.1f}{n.sync_cpu / n.pods * 1e6:>16,.1f}"
            f"{n.rate:>16,.0f}{n.cpu_per_event * 1e6:>16,.2f}"
        )
    longest, imports = results.longest, results.imports
    yield ""
    yield f"longest callback with {results.size.large:,} pods"
    for name in ("sync", "relist", "resync"):
        stretch = getattr(longest, name)
        yield (
            f"  {name:<26}{stretch.cpu * 1e3:>8.1f} ms CPU{stretch.wall * 1e3:>8.1f} ms wall"
            f"   {stretch.what}"
        )
    loaded = "an HTTP library with it!" if imports.network else "no HTTP library with it"
    yield (
        f"import aioinformer {imports.aioinformer * 1e3:.0f} ms, {loaded}; "
        f"import aiohttp {imports.aiohttp * 1e3:.0f} ms"
    )


def _bounds(results: Results) -> Iterator[str]:
    yield ""
    yield f"{'':<40}{'wall':>9}{'CPU':>9}     {'must':>8}{'aim':>8}"
    for verdict in verdicts(results):
        yield _bound(verdict)
    yield (
        "not measured yet: bytes to handler at 5,000 events/s, a listener at one event a wake-up, "
        "100,000 objects against 1,000, add_index"
    )


def _bound(verdict: Verdict) -> str:
    values = [f"{value:.2f}" for value in verdict.values]
    values = ["", *values] if len(values) == 1 else values
    sign = "<=" if verdict.at_most else ">="
    said = ("met, aim too" if verdict.aimed else "met") if verdict.met else "NOT MET"
    return (
        f"{verdict.what:<40}{values[0]:>9}{values[1]:>9} {verdict.unit:<2} {sign}"
        f"{verdict.must:>7g}{verdict.aim:>8g}  {said}"
    )

"""Write the results of a run as ``RESULTS.md`` with plots, and its numbers into the README.

``results.json`` keeps all numbers of the published run; the other files are made of it alone, so a
test can compare them. The README's numbers stand between two comments and in two rows of its
comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.measures.caches import Cache
from benchmarks.measures.scale import Scale, scale_rows
from benchmarks.report.plots import label, plots
from benchmarks.report.verdict import Verdict, verdicts
from benchmarks.run import Numbers, Results

__all__ = ["FOLDER", "Published", "markdown", "readme", "write"]

FOLDER = Path(__file__).parents[1]
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
KUBE_RS = ("kube-rs typed", "kube-rs typed, no managedFields", "kube-rs typed, WatchList")
KUBE_RS_ALL = (*KUBE_RS, "kube-rs DynamicObject")
CLIENT_GO = (
    "client-go JSON", "client-go protobuf", "client-go JSON, LIST", "client-go protobuf, LIST"
)  # fmt: skip
WITHOUT_CACHE = {"floor", "json.loads"}


class Published(Struct):
    """The content of ``results.json``."""

    run: Results
    scale: Scale | None = None
    """The results of ``--scale``."""

    @classmethod
    def load(cls, folder: Path = FOLDER) -> Published | None:
        """Return the published results; None if there are none that this version understands."""
        path = folder / "results.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None


def write(published: Published, folder: Path = FOLDER) -> None:
    """Write ``results.json``, ``RESULTS.md`` and the plots."""
    (folder / "results.json").write_bytes(msgspec.json.encode(published) + b"\n")
    (folder / "RESULTS.md").write_text(markdown(published))
    pictures = folder / "plots"
    pictures.mkdir(exist_ok=True)
    drawn = dict(plots(published.run))
    for stale in {path.name for path in pictures.glob("*.svg")} - drawn.keys():
        (pictures / stale).unlink()
    for name, picture in drawn.items():
        (pictures / name).write_text(picture)


# -- RESULTS.md --------------------------------------------------------------------------------


def markdown(published: Published) -> str:
    """Return the text of ``RESULTS.md``."""
    run = published.run
    parts: list[Iterator[str]] = [_head(run), _cpu(run), _memory(run), _variants(run), _loop(run)]
    parts += [_caches(run), _growth(run)]
    if published.scale is not None:
        parts.append(scale_rows(published.scale))
    parts += [_targets(run), _commands()]
    return "\n".join(line for part in parts for line in part)


def _head(run: Results) -> Iterator[str]:
    size = run.size
    yield "# Results"
    yield ""
    yield (
        f"Measured on {run.day}: {run.machine}. {size.pods:,} pods of {run.event_bytes / 1e3:.1f} "
        f"kB, {size.events:,} events; medians of {size.repetitions} alternating runs (2 of "
        "variants and of slow peers). All programs received the same bytes from one load server, "
        "and each event of each pod was delivered, or the run failed. CPU time is that of all "
        f"threads of the process. kubernetes.informer, kubernetes_asyncio and kr8s take "
        f"{size.slow:,} pods and events, since they are slow."
    )
    yield ""
    yield "Absolute times depend on the machine; compare the ratios."
    yield ""
    yield from _table(
        ("project", "version"),
        [
            *([name, version] for name, version in run.versions.items()),
            *([name, reason.partition("\n")[0]] for name, reason in run.absent.items()),
        ],
    )


def _cpu(run: Results) -> Iterator[str]:
    yield "## CPU time per watch event"
    yield ""
    yield "![CPU time per watch event](plots/cpu_per_event.svg)"
    yield ""
    yield "![Watch events per second](plots/events_per_second.svg)"
    yield ""
    yield (
        "One listener that reads metadata. The floor is aiohttp that counts lines. The rate is by "
        "wall time, where client-go and kube-rs use both cores."
    )
    yield ""
    head = ("program", "µs of CPU an event", "events/s", "sync, µs of CPU an object")
    own = sorted(run.numbers.items(), key=lambda each: each[1].cpu_per_event)
    yield from _table(
        head,
        [
            [label(name), _short(n.cpu_per_event * 1e6), f"{n.rate:,.0f}", _short(_sync(n))]
            for name, n in own
            if not name.startswith("ours,")
        ],
    )


def _memory(run: Results) -> Iterator[str]:
    per_object = run.event_bytes
    yield "## Memory"
    yield ""
    if run.curves.memory:
        yield "![Memory during the initial list](plots/memory_during_sync.svg)"
        yield ""
    yield (
        "Resident bytes above the bare process, at the peak of the sync and a moment after it. "
        "Clients without a cache keep the decoded objects in a dict."
    )
    yield ""
    head = ("program", "bytes an object, settled", "settled / JSON", "peak / JSON")
    rows = sorted(run.numbers.items(), key=lambda each: each[1].settled)
    yield from _table(
        head,
        [
            [label(name), f"{n.settled * per_object:,.0f}", f"{n.settled:.2f}", f"{n.peak:.2f}"]
            for name, n in rows
            if name not in WITHOUT_CACHE and not name.startswith("ours,") and n.peak
        ],
    )


def _variants(run: Results) -> Iterator[str]:
    yield "## Forms of one program"
    yield ""
    rows = [
        [label(name), f"{n.cpu_per_event * 1e6:,.1f}", f"{n.rate:,.0f}"]
        for name, n in run.numbers.items()
        if name.startswith("ours")
    ]
    further = run.fanout
    yield from _table(("handler", "µs of CPU an event", "events/s"), rows)
    yield from _table(
        ("a further listener", "µs of CPU an event"),
        [
            ["plain function, 64 events a wake-up", f"{further.together:.2f}"],
            ["plain function, one event a wake-up", f"{further.alone:.2f}"],
            ["async function, one event a wake-up", f"{further.coroutine:.2f}"],
        ],
    )


def _loop(run: Results) -> Iterator[str]:
    yield "## Latency and the event loop"
    yield ""
    rows = [
        [f"socket to handler, {label(name)}, {each.rate:,.0f} events/s, {text}", _ms(value)]
        for name, each in run.latency.items()
        for text, value in (("median", each.p50), ("99 %", each.p99))
    ]
    for name in ("sync", "relist", "resync", "add_index"):
        step = getattr(run.longest, name)
        rows.append([f"longest callback, {name}, {run.size.large:,} pods, CPU", _ms(step.cpu)])
    yield from _table(("measured", "ms"), rows)
    imports = run.imports
    yield (
        f"`from aioinformer import SharedInformerFactory` takes "
        f"{imports.aioinformer * 1e3:.0f} ms, `import aiohttp` {imports.aiohttp * 1e3:.0f} ms."
    )
    yield ""


CACHE_ROWS: tuple[tuple[str, Callable[[Cache], float]], ...] = (
    ("bytes an object, all in", lambda cache: cache.bytes),
    ("beyond its own JSON", lambda cache: cache.beyond),
    ("beyond, each opened once", lambda cache: cache.opened),
    ("get, µs", lambda cache: cache.get),
    ("by index, µs", lambda cache: cache.by_index),
    ("by label, indexed, µs", lambda cache: cache.by_label),
    ("by label, not indexed, µs", lambda cache: cache.scan),
)


def _caches(run: Results) -> Iterator[str]:
    yield "## Caches with one index"
    yield ""
    yield "`dicts` are those of `json.loads`, `models` those of kubernetes_asyncio."
    yield ""
    yield from _table(
        ("", *(label(name) for name in run.caches)),
        [
            [text, *(f"{value(each):,.1f}" if value(each) else "-" for each in run.caches.values())]
            for text, value in CACHE_ROWS
        ],
    )


def _growth(run: Results) -> Iterator[str]:
    sizes = run.cache_sizes
    yield "## Growth"
    yield ""
    if run.curves.objects:
        yield "![CPU time per event by cached objects](plots/cpu_by_objects.svg)"
        yield ""
    if run.curves.listeners:
        yield "![CPU time per event by listeners](plots/cpu_by_listeners.svg)"
        yield ""
    yield (
        f"An event of aioinformer costs {sizes.few.cpu_per_event * 1e6:.1f} µs among "
        f"{sizes.few.pods:,} objects and {sizes.many.cpu_per_event * 1e6:.1f} µs among "
        f"{sizes.many.pods:,}."
    )
    yield ""


def _targets(run: Results) -> Iterator[str]:
    yield "## Targets"
    yield ""
    rows = [
        [
            each.name.strip(),
            " / ".join(_short(value) for value in each.values) + f" {each.unit}",
            f"{'at most' if each.at_most else 'at least'} {each.must:g}",
            f"{each.aim:g}",
            _judgement(each),
        ]
        for each in verdicts(run)
    ]
    yield from _table(("", "measured", "must", "aim", ""), rows)


def _judgement(verdict: Verdict) -> str:
    if not verdict.met:
        return "not met"
    return "met, aim too" if verdict.aimed else "met"


def _commands() -> Iterator[str]:
    yield "## Repeat it"
    yield ""
    yield "```sh"
    yield "python -m pip install --group peers   # peers in Python; Go and Rust build the others"
    yield "python -m benchmarks                  # about a quarter of an hour on two free cores"
    yield "python -m benchmarks --scale          # the section on scale"
    yield "python -m benchmarks --readme         # the README's numbers"
    yield "```"
    yield ""
    yield "The first command needs pip 25.1 or newer. Missing peers are named as not installed."
    yield ""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    cells = [each.replace("|", "\\|") for each in head]
    yield f"| {' | '.join(cells)} |"
    yield "|---" * len(cells) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


# -- the README --------------------------------------------------------------------------------


def readme(text: str, run: Results) -> str:
    """Return the text of the README with the numbers of a run.

    Raises:
        LookupError: the run lacks a peer that the README names.
    """
    missing = [name for name in (*CLIENT_GO, *KUBE_RS_ALL) if name not in run.numbers]
    missing += [name for name in ("kubernetes_asyncio", "lightkube") if name not in run.numbers]
    if missing:
        raise LookupError(f"the run has no numbers of {', '.join(missing)}")
    # The indentation keeps the comment in the list, which goes on behind it.
    block = f"{BEGIN}\n{_claims(run)}\n  {END}"
    pattern = f"{re.escape(BEGIN)}.*?{re.escape(END)}"
    text = _replaced(text, re.compile(pattern, re.DOTALL), block)
    for row in _comparison(run):
        first = row.split("|")[1]
        text = _replaced(text, re.compile(rf"^\|{re.escape(first)}\|.*$", re.MULTILINE), row)
    return text


def _replaced(text: str, pattern: re.Pattern[str], new: str) -> str:
    changed, count = pattern.subn(lambda _: new, text)
    if count != 1:
        raise LookupError(f"the README has {count} places that match {pattern.pattern!r}")
    return changed


def _claims(run: Results) -> str:
    ours, latency = run.numbers["ours"], run.latency["ours"]
    return f"""\
- **{_events(run, "ours")} µs of CPU for each event.** client-go needs \
{_events(run, "client-go protobuf")} µs on protobuf and {_events(run, "client-go JSON")} µs on
  JSON, kube-rs {_events(run, *KUBE_RS)} µs, lightkube {_events(run, "lightkube")} µs, \
`kubernetes_asyncio` {_events(run, "kubernetes_asyncio")} µs.
- **{ours.settled:.2g} bytes of memory for each byte of JSON.** client-go needs \
{_bytes(run, *CLIENT_GO)} bytes, kube-rs {_bytes(run, *KUBE_RS_ALL)}.
- **{_ms(latency.p50)} ms from the socket to your handler** at 5,000 events a second (median; 99 % \
within {_ms(latency.p99)} ms).
  Long work is split into steps, so that your event loop stays free: the initial sync of \
{run.size.large:,}
  objects held the loop for {_ms(run.longest.sync.cpu)} ms at most."""


def _comparison(run: Results) -> Iterator[str]:
    results, memory = "benchmarks/RESULTS.md", "benchmarks/RESULTS.md#memory"
    yield (
        f"| µs of CPU per event | [{_events(run, 'ours')}]({results}) | "
        f"[{_events(run, 'client-go protobuf', 'client-go JSON')}]({results}) | "
        f"[{_events(run, *KUBE_RS)}]({results}) | not measured | "
        f"[{_events(run, 'kubernetes_asyncio')}]({results}) |"
    )
    yield (
        f"| bytes per byte of JSON | [{run.numbers['ours'].settled:.2g}]({memory}) | "
        f"[{_bytes(run, *CLIENT_GO)}]({memory}) | [{_bytes(run, *KUBE_RS_ALL)}]({memory}) | "
        "no cache | no cache |"
    )


def _events(run: Results, *names: str) -> str:
    return _span([f"{run.numbers[name].cpu_per_event * 1e6:.0f}" for name in names])


def _bytes(run: Results, *names: str) -> str:
    return _span([f"{run.numbers[name].settled:.1f}" for name in names])


def _span(values: list[str]) -> str:
    low, high = min(values, key=float), max(values, key=float)
    return low if low == high else f"{low}-{high}"


def _sync(numbers: Numbers) -> float:
    return numbers.sync_cpu / numbers.pods * 1e6


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}" if seconds < 0.001 else f"{seconds * 1e3:.1f}"

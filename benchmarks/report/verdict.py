"""The requirements and aims of the library, compared with the results of a run.

Ratios are those of CPU time: a busy machine falsifies wall time, and peers that use several cores
hide their cost in it. The results show both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.run import Numbers, Results

__all__ = ["Verdict", "verdicts"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One requirement, with the values of this run."""

    name: str
    unit: str
    values: tuple[float, ...]
    """The value, or two of which both must reach the bound."""
    must: float
    """The required bound."""
    aim: float
    """The bound that the library aims at."""
    at_most: bool = False
    """True if the bounds are upper limits, False for lower limits."""

    @property
    def met(self) -> bool:
        """True if every value reaches ``must``."""
        return self._reaches(self.must)

    @property
    def aimed(self) -> bool:
        """True if every value reaches ``aim``."""
        return self._reaches(self.aim)

    def _reaches(self, bound: float) -> bool:
        if self.at_most:
            return max(self.values) <= bound
        return min(self.values) >= bound


def verdicts(results: Results) -> list[Verdict]:
    """Return the verdicts that the results of this run allow."""
    return [*_by_go(results), *_by_rust(results), *_alone(results)]


def _by_go(results: Results) -> Iterator[Verdict]:
    numbers = results.numbers
    ours, json = numbers["ours"], numbers.get("client-go JSON")
    protobuf = numbers.get("client-go protobuf")
    if json is None or protobuf is None:
        return
    fields, body = numbers["ours, 3 fields"], numbers["ours, whole body"]
    fields = numbers.get("ours, fields(...) of 3", fields)
    yield Verdict("events, client-go JSON = 1", "x", _events(json, ours), 14, 18)
    yield Verdict("events, client-go protobuf = 1", "x", _events(protobuf, ours), 2.4, 3)
    yield Verdict("  handler reads 3 fields, JSON = 1", "x", _events(json, fields), 11, 14)
    yield Verdict("  whole body as a dict, JSON = 1", "x", _events(json, body), 10, 12)
    yield Verdict("sync, client-go JSON = 1", "x", _sync(json, ours), 14, 18)
    if by_list := numbers.get("client-go JSON, LIST"):
        yield Verdict("sync, client-go JSON by LIST = 1", "x", _sync(by_list, ours), 6.5, 8)


def _by_rust(results: Results) -> Iterator[Verdict]:
    numbers = results.numbers
    if typed := numbers.get("kube-rs typed"):
        yield Verdict("events, kube-rs typed = 1", "x", _events(typed, numbers["ours"]), 4, 5)


def _alone(results: Results) -> Iterator[Verdict]:
    numbers = results.numbers
    ours, many = numbers["ours"], numbers["ours, 16 listeners"]
    floor = tuple(100 / ratio for ratio in _events(ours, numbers["floor"]))
    yield Verdict("events, of the floor's rate", "%", floor, 26, 33)
    further = (many.cpu_per_event - ours.cpu_per_event) / 15 * 1e6
    yield Verdict("each further listener, an event", "us", (further,), 0.35, 0.25, at_most=True)
    alone, together = (results.fanout.alone,), (results.fanout.together,)
    yield Verdict("one more listener, events come alone", "us", alone, 2, 1.5, at_most=True)
    yield Verdict("one more listener, 64 events at once", "us", together, 0.35, 0.25, at_most=True)
    memory = (ours.peak, ours.settled)
    yield Verdict("memory / JSON listed: peak, settled", "x", memory, 0.9, 0.85, at_most=True)
    beyond = (results.caches["ours"].beyond,)
    yield Verdict("an object beyond its bytes", "B", beyond, 400, 300, at_most=True)
    callbacks = results.longest
    for name in ("sync", "relist", "resync", "add_index"):
        longest = getattr(callbacks, name).cpu * 1e3
        yield Verdict(f"longest callback, {name}, CPU", "ms", (longest,), 8, 5, at_most=True)
    p50, p99 = (results.latency["ours"].p50 * 1e3,), (results.latency["ours"].p99 * 1e3,)
    yield Verdict("bytes to handler, 5,000 events/s, p50", "ms", p50, 0.2, 0.2, at_most=True)
    yield Verdict("  p99", "ms", p99, 1, 0.5, at_most=True)
    sizes = _events(results.cache_sizes.many, results.cache_sizes.few)
    yield Verdict("an event among many, among few = 1", "x", sizes, 1.3, 1.2, at_most=True)
    imports = results.imports.aioinformer / results.imports.aiohttp
    yield Verdict("import, aiohttp = 1", "x", (imports,), 0.6, 0.5, at_most=True)


def _events(slower: Numbers, faster: Numbers) -> tuple[float, ...]:
    """Return the CPU time an event of ``slower`` as a multiple of ``faster``."""
    return (slower.cpu_per_event / faster.cpu_per_event,)


def _sync(slower: Numbers, faster: Numbers) -> tuple[float, ...]:
    return (slower.sync_cpu / faster.sync_cpu,)

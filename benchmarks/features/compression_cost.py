"""Measure the CPU time of an event with ``compress=`` beside that without.

    python -m benchmarks.features.compression_cost [--changes random|rollouts] [--pods N] [--rate N]
                                                   [--pairs N] [--rounds N]

One process has both informers, each with a server and a connection of its own, and the servers take
turns: changes arrive for one informer and then for the other, at the same rate, in windows of whole
passes of the compression. Each window begins once the passes of the window before have ended, and
the passes of its own changes have begun. Informers in processes of their own would say less: of two
that were the same, one took 7 or 10 % more CPU time until it ended, once the first and once the
second. The order of a pair alternates, and each round has another process.

The changes are of random pods, of which each is compressed again, or those of pods that replace
others, which change several times before they rest (``benchmarks.load.changes``).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Literal

import msgspec
from msgspec import Struct

from aioinformer import Client, KubeObject, SharedInformer, SharedInformerFactory, field
from aioinformer._runtime.informer.options import COMPRESS_AFTER
from benchmarks.contestants.ours import Count
from benchmarks.load.changes import random_changes, rollouts
from benchmarks.load.meter import Stopwatch
from benchmarks.load.pod_server import PodServer, post
from benchmarks.load.processes import output
from benchmarks.load.workloads import make_pods

__all__ = ["Pair", "Plan", "added_cost", "measure_pairs"]

WARM_RESTS = 2
"""The times of rest until an object that has changed is compressed, at most."""
WINDOW_RESTS = 2
"""The times of rest of a window, each of which has one pass."""
SECONDS_BESIDE = 300
"""Seconds for the lists, and for compressing them, in the limit of a process."""
REPLACED_PER_EVENT = 1.0
"""Pods that are replaced at the same time, for each event a second: a second between two changes of
a pod, and nine seconds until its replacement is complete."""


class Plan(Struct, kw_only=True):
    """The sizes of the measurement."""

    pods: int = 50_000
    changes: Literal["random", "rollouts"] = "random"
    """The pattern of the events."""
    rate: float = 100.0
    """Events a second."""
    rest: float = COMPRESS_AFTER
    """Seconds of rest before a pod is compressed: those of ``compress=True``."""
    pairs: int = 6
    """Pairs of windows in each round."""
    rounds: int = 2


class Pair(Struct, kw_only=True):
    """CPU microseconds an event in two neighbouring windows."""

    plain: float
    compressed: float


# -- in the measured process ---------------------------------------------------------------------


class _Watched:
    """An informer, and the server that it watches."""

    def __init__(self, server: str, informer: SharedInformer[KubeObject]) -> None:
        """Add a handler to the informer of the server with this URL."""
        self._server = server
        self.informer = informer
        self._handler = Count()
        informer.add_handler(self._handler, overflow="block")

    async def event_cpu(self, plan: Plan) -> float:
        """Return the CPU microseconds of the process for each event in one window."""
        await asyncio.to_thread(post, self._server, "go")
        await asyncio.sleep(WARM_RESTS * plan.rest)
        events, watch = self._handler.events, Stopwatch()
        await asyncio.sleep(WINDOW_RESTS * plan.rest)
        _, cpu = watch.stop()
        await asyncio.to_thread(post, self._server, "pause")
        return cpu / (self._handler.events - events) * 1e6


async def measure(servers: Sequence[str], plan: Plan) -> list[Pair]:
    """Measure an informer without compression and one with, against servers with these URLs."""
    async with AsyncExitStack() as stack:
        plain, compressed = [
            await _watch(stack, url, plan.rest if number else False)
            for number, url in enumerate(servers)
        ]
        await _compressed(compressed.informer, plan.rest)
        return [
            await _measure_pair(plain, compressed, plan, compressed_first=number % 2 == 1)
            for number in range(plan.pairs)
        ]


async def _watch(stack: AsyncExitStack, server: str, compress: float | bool) -> _Watched:
    client = await stack.enter_async_context(Client(server))
    factory = SharedInformerFactory(client, watch_list=False)
    await stack.enter_async_context(factory)
    index = {"node": field("spec.nodeName")}
    watched = _Watched(server, factory.informer("pods", indexers=index, compress=compress))
    await factory.wait_synced(timeout=SECONDS_BESIDE)
    return watched


async def _compressed(informer: SharedInformer[KubeObject], rest: float) -> None:
    """Wait until the whole list is compressed: nothing more is saved for two passes."""
    saved = -1
    while saved != (now := informer.memory().saved_bytes) or not now:
        saved = now
        await asyncio.sleep(2 * rest + 1)


async def _measure_pair(
    plain: _Watched, compressed: _Watched, plan: Plan, *, compressed_first: bool
) -> Pair:
    if compressed_first:
        with_it = await compressed.event_cpu(plan)
        return Pair(plain=await plain.event_cpu(plan), compressed=with_it)
    without = await plain.event_cpu(plan)
    return Pair(plain=without, compressed=await compressed.event_cpu(plan))


# -- in this process -----------------------------------------------------------------------------


def measure_pairs(pods: Sequence[bytes], plan: Plan) -> list[Pair]:
    """Measure both informers in one new process, against two servers in this process."""
    servers = [_serve(pods, plan).url for _ in range(2)]
    job = msgspec.json.encode((servers, plan)).decode()
    command = [sys.executable, "-m", "benchmarks.features.compression_cost", f"--job={job}"]
    limit = SECONDS_BESIDE + 2 * plan.pairs * (WARM_RESTS + WINDOW_RESTS) * (plan.rest + 1)
    return msgspec.json.decode(output(command, "the process", limit=limit), type=list[Pair])


def _serve(pods: Sequence[bytes], plan: Plan) -> PodServer:
    if plan.changes == "random":
        changes = random_changes(pods)
    else:
        changes = rollouts(pods, max(int(plan.rate * REPLACED_PER_EVENT), 1))
    return PodServer(pods, changes, plan.rate)


def _run_job(job: str) -> None:
    """Measure both informers in this process, as ``measure_pairs`` has asked for."""
    servers, plan = msgspec.json.decode(job, type=tuple[list[str], Plan])
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(measure(servers, plan))))


def added_cost(rounds: Sequence[Sequence[Pair]]) -> str:
    """Return the CPU time that compression adds to an event, with the spread of the pairs.

    The result compares the median windows of each round. A single window may take twice the CPU
    time of its neighbours, also on an idle machine, for a reason that is not known.
    """
    medians = [_median_windows(each) for each in rounds]
    total = Pair(
        plain=statistics.fmean(each.plain for each in medians),
        compressed=statistics.fmean(each.compressed for each in medians),
    )
    added = [_added(pair) for pairs in rounds for pair in pairs]
    by_round = ", ".join(f"{_added(each):+.1%}" for each in medians)
    return (
        f"CPU time of an event: {total.plain:,.0f} µs, "
        f"with compression {total.compressed:,.0f} µs, {_added(total):+.1%} "
        f"({min(added):+.1%} to {max(added):+.1%} in {len(added)} pairs; rounds: {by_round})"
    )


def _median_windows(pairs: Sequence[Pair]) -> Pair:
    return Pair(
        plain=statistics.median(each.plain for each in pairs),
        compressed=statistics.median(each.compressed for each in pairs),
    )


def _added(pair: Pair) -> float:
    """Return the part by which an event takes more CPU time with compression."""
    return pair.compressed / pair.plain - 1


def main() -> None:
    """Measure and print the result."""
    usual = Plan()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--changes", choices=["random", "rollouts"], default=usual.changes)
    for name in ("pods", "pairs", "rounds"):
        parser.add_argument(f"--{name}", type=int, default=getattr(usual, name))
    for name in ("rate", "rest"):
        parser.add_argument(f"--{name}", type=float, default=getattr(usual, name))
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = vars(parser.parse_args())
    if job := options.pop("job"):
        _run_job(job)
        return
    plan = Plan(**options)
    pods = list(make_pods(plan.pods))
    print(added_cost([measure_pairs(pods, plan) for _ in range(plan.rounds)]))


if __name__ == "__main__":
    main()

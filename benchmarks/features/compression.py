"""Measure an informer with ``compress=`` beside one without, and beside client-go.

    python -m benchmarks.features.compression [--changes random|rollouts] [--pods N] [--rate N]
                                              [--rounds N] [--windows N]

The pods are those of 400 workloads. In each round both informers run at the same time, in processes
of their own, so that a load of the machine meets both. A server in this process sends each of them
the same list, and then ``--rate`` events a second: changes of random pods, of which each is
compressed again, or pods that replace others, which change several times before they rest
(``benchmarks.load.changes``). Memory is what a process holds above a client without informers, once
everything is compressed. CPU time is that of the process while the changes arrive, over windows of
whole passes of the compression, from the time on at which changed pods are compressed as fast as
pods change. Of two plain informers, one took 7 or 10 % more in a whole round, once the first and
once the second. So each round starts the processes in the other order, and a result needs several
rounds. The longest turn of the event loop is measured in CPU time, too, while the cache is
compressed. Last, client-go's informer lists the same pods, if Go can build that program.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Literal

import msgspec
from msgspec import Struct

from aioinformer import Client, KubeObject, SharedInformerFactory, field
from aioinformer._core.compression.compressor import Compressor
from aioinformer._core.compression.zstd import find_zstd
from aioinformer._runtime.informer.options import COMPRESS_AFTER
from benchmarks.contestants.clientgo import CLIENT_GO, version
from benchmarks.contestants.compiled import PeerMissing
from benchmarks.contestants.ours import Count
from benchmarks.load.changes import random_changes, rollouts
from benchmarks.load.meter import Sample, Stopwatch, resident
from benchmarks.load.processes import MeasurementFailed, output
from benchmarks.load.workloads import make_pods

__all__ = [
    "Measurement",
    "Plan",
    "PodServer",
    "added_cost",
    "compared_with_client_go",
    "measure",
    "measure_client_go",
    "measure_pair",
]

WARM_RESTS = 3
"""The times of rest until changed pods are compressed as fast as pods change: at most two."""
WINDOW_RESTS = 2
"""The times of rest of a window, each of which has one pass."""
READS = 5000
"""Objects that are read, and compressed once more, for the times of one."""
SEED = 7

MODES = ("plain", "compressed")
SETTLED = b"settled"
"""The line that a process prints when it waits for the changes."""
LIMIT = 300
"""Seconds for client-go."""
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
    windows: int = 4
    """Windows in which CPU time is measured, in each round."""
    rounds: int = 2


class Measurement(Struct, kw_only=True):
    """The cost of one informer."""

    memory: float
    """Bytes an object above the bare process."""
    estimate: float
    """The same by ``informer.memory()``."""
    json: float
    """Bytes of JSON an object."""
    stored: float
    """Bytes an object that its JSON takes as stored."""
    event_cpu: list[float]
    """CPU microseconds an event, of each window."""
    longest_turn: float
    """CPU milliseconds of the longest turn of the event loop between the list and the rest."""
    read: float
    """Microseconds of ``get`` and one field."""
    compress: float = 0.0
    """Microseconds of compressing one object."""
    dictionary: int = 0
    """Bytes of the dictionary."""


# -- the server ----------------------------------------------------------------------------------


NO_WATCH_LIST = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid",'
    b'"message":"sendInitialEvents is forbidden for watch","code":422}'
)
"""The answer of an API server without WatchLists."""


class PodServer:
    """Serves one list, and changes at a steady rate once they are asked for."""

    def __init__(self, pods: Sequence[bytes], changes: Iterable[bytes], rate: float) -> None:
        """Listen on a free port.

        Args:
            pods: the pods of the list.
            changes: the lines of the watch, once they are asked for.
            rate: lines a second.
        """
        self._pods = list(pods)
        self._changes = changes
        self._rate = rate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._go = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as requests:
            try:
                while line := requests.readline():
                    while requests.readline().strip():
                        pass
                    self._answer(connection, line.decode().split()[1])
            except OSError:
                pass  # the client has closed the connection

    def _answer(self, connection: socket.socket, target: str) -> None:
        if target == "/go":
            self._go.set()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return
        if "sendInitialEvents=" in target:  # client-go lists then
            connection.sendall(
                b"HTTP/1.1 422 Unprocessable Entity\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(NO_WATCH_LIST), NO_WATCH_LIST)
            )
            return
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

        def send(data: bytes) -> None:
            connection.sendall(b"%x\r\n%b\r\n" % (len(data), data))

        if "watch=" in target:
            self._send_changes(send)
        else:
            self._send_list(send)
            connection.sendall(b"0\r\n\r\n")

    def _send_list(self, send: Callable[[bytes], None]) -> None:
        send(
            b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"20000000"},"items":['
        )
        for number, pod in enumerate(self._pods):
            send(pod if number == 0 else b"," + pod)
        send(b"]}\n")

    def _send_changes(self, send: Callable[[bytes], None]) -> None:
        self._go.wait()
        self._go.clear()
        start = time.monotonic()
        for number, line in enumerate(self._changes):
            time.sleep(max(start + number / self._rate - time.monotonic(), 0))
            send(line)
        threading.Event().wait()  # the watch stays open without changes


# -- one informer --------------------------------------------------------------------------------


async def measure(
    server: str, plan: Plan, *, compressed: bool, when_settled: Callable[[], object]
) -> Measurement:
    """Measure one informer against the server.

    Args:
        server: the URL.
        plan: the sizes.
        compressed: True to compress the cache.
        when_settled: is called in a thread before the changes begin.
    """
    async with (
        Client(server) as client,
        SharedInformerFactory(client, watch_list=False) as found,
    ):
        gc.collect()
        bare = resident()
        informer = found.informer(
            "pods",
            indexers={"node": field("spec.nodeName")},
            compress=plan.rest if compressed else False,
        )
        handler = Count()
        informer.add_handler(handler, overflow="block")
        await found.wait_synced(timeout=600)
        rest = _Rest(compressed=compressed)
        longest = await _longest_turn(lambda: rest.reached(informer.memory().saved_bytes))
        gc.collect()
        memory, settled = informer.memory(), resident()
        await asyncio.to_thread(when_settled)
        await asyncio.to_thread(_post, server)
        await asyncio.sleep(WARM_RESTS * plan.rest)
        event_cpu = [await _event_cpu(handler, plan) for _ in range(plan.windows)]
        reads = random.Random(SEED).sample(list(informer.lister), min(READS, plan.pods))
        compress, dictionary = _time_compression(reads) if compressed else (0.0, 0)
        return Measurement(
            memory=(settled - bare) / plan.pods,
            estimate=memory.total / plan.pods,
            json=memory.json_bytes / plan.pods,
            stored=(memory.json_bytes - memory.saved_bytes) / plan.pods,
            event_cpu=event_cpu,
            longest_turn=longest * 1e3,
            read=_time_reads(informer.lister.get, reads),
            compress=compress,
            dictionary=dictionary,
        )


async def _event_cpu(handler: Count, plan: Plan) -> float:
    """Return the CPU microseconds of an event in one window."""
    events, watch = handler.events, Stopwatch()
    await asyncio.sleep(WINDOW_RESTS * plan.rest)
    _, cpu = watch.stop()
    return cpu / (handler.events - events) * 1e6


class _Rest:
    """Finds out when the cache is at rest: nothing was saved for a while."""

    def __init__(self, *, compressed: bool) -> None:
        """Begin to look at a cache that is compressed, or not."""
        self._compressed = compressed
        self._looks: list[int] = []

    def reached(self, saved: int) -> bool:
        """Return True if ``saved`` was the same for 300 looks, 3 seconds."""
        self._looks.append(saved)
        still = self._looks[-300:]
        return len(still) == 300 and len(set(still)) == 1 and (saved > 0 or not self._compressed)


async def _longest_turn(done: Callable[[], bool]) -> float:
    """Return the CPU seconds of the longest turn of the loop until ``done``."""
    longest, next_look, last = 0.0, 0.0, time.thread_time()
    while True:
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, last = max(longest, now - last), now
        if (clock := time.monotonic()) >= next_look:
            next_look = clock + 0.01
            if done():
                return longest
            last = time.thread_time()


def _post(server: str) -> None:
    host, _, port = server.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /go HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.recv(100)


def _time_reads(get: Callable[..., KubeObject | None], objects: list[KubeObject]) -> float:
    read = field("status.podIP")
    pairs = [(obj.name, obj.namespace) for obj in objects]
    start = time.thread_time()
    for name, namespace in pairs:
        obj = get(name, namespace=namespace)
        assert obj is not None
        read(obj)
    return (time.thread_time() - start) / len(pairs) * 1e6


def _time_compression(objects: list[KubeObject]) -> tuple[float, int]:
    """Return microseconds of compressing one object, and bytes of the dictionary."""
    compressor, size = Compressor(find_zstd()), sum(len(obj.raw) for obj in objects)
    compressor.install(compressor.train([obj.raw for obj in objects[::2]], 10 * size), size)
    plain = [
        KubeObject(obj.key, obj.uid, obj.resource_version, obj.raw, obj.resource)
        for obj in objects[1::2]
    ]
    start = time.thread_time()
    for obj in plain:
        compressor.store(obj, compressor.compress(obj, {}))
    took = time.thread_time() - start
    return took / len(plain) * 1e6, compressor.dictionary_bytes


# -- both informers, and client-go ---------------------------------------------------------------


def measure_pair(
    pods: Sequence[bytes], plan: Plan, *, compressed_first: bool = False
) -> list[Measurement]:
    """Measure an informer without compression and one with it, at the same time.

    Args:
        pods: the pods of the list.
        plan: the sizes.
        compressed_first: True to start the informer with compression first.

    Returns:
        The measurement without compression, and that with it.
    """
    order = -1 if compressed_first else 1
    with ExitStack() as stack:
        processes = [
            stack.enter_context(_start(_serve(pods, plan).url, plan, mode))
            for mode in MODES[::order]
        ]
        for process in processes:
            stack.callback(process.kill)  # unless it has ended
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline().strip() != SETTLED:
                raise MeasurementFailed("a program ended before it was settled")
        for process in processes:  # both are settled: the changes begin for both
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        return [_read_measurement(process) for process in processes][::order]


def _serve(pods: Sequence[bytes], plan: Plan) -> PodServer:
    if plan.changes == "random":
        changes = random_changes(pods)
    else:
        changes = rollouts(pods, max(int(plan.rate * REPLACED_PER_EVENT), 1))
    return PodServer(pods, changes, plan.rate)


def _read_measurement(process: subprocess.Popen[bytes]) -> Measurement:
    printed, _ = process.communicate()
    if process.returncode:
        raise MeasurementFailed(f"a program ended with {process.returncode}")
    return msgspec.json.decode(printed, type=Measurement)


def _start(server: str, plan: Plan, mode: str) -> subprocess.Popen[bytes]:
    job = msgspec.json.encode((server, plan, mode)).decode()
    command = [sys.executable, "-m", "benchmarks.features.compression", f"--job={job}"]
    return subprocess.Popen(  # noqa: S603 - ours
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _run_job(job: str) -> None:
    """Measure one informer in this process, as ``measure_pair`` has asked for."""
    server, plan, mode = msgspec.json.decode(job, type=tuple[str, Plan, str])

    def when_settled() -> None:
        sys.stdout.buffer.write(SETTLED + b"\n")
        sys.stdout.buffer.flush()
        sys.stdin.buffer.readline()

    measurement = measure(server, plan, compressed=mode == "compressed", when_settled=when_settled)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(measurement)) + b"\n")


def measure_client_go(pods: Sequence[bytes]) -> float:
    """Return the bytes a pod that client-go's informer takes above its bare process.

    Raises:
        PeerMissing: client-go can't be built here.
    """
    binary, server = CLIENT_GO.build(), PodServer(pods, islice(random_changes(pods), 1), 100.0)
    command = [str(binary), f"-server={server.url}", f"-pods={len(pods)}", "-events=1"]
    sample = msgspec.json.decode(output(command, "client-go", limit=LIMIT), type=Sample)
    return (sample.settled - sample.bare) / len(pods)


# -- all -----------------------------------------------------------------------------------------


def _print(plain: Sequence[Measurement], compressed: Sequence[Measurement]) -> None:
    rows = {
        "memory": "bytes an object, measured",
        "estimate": "bytes an object, by memory()",
        "json": "bytes of JSON",
        "stored": "bytes of JSON as stored",
        "longest_turn": "longest turn, CPU ms",
        "read": "get and a field, µs",
        "compress": "compress, µs",
        "dictionary": "bytes of the dictionary",
    }
    print(f"{'median':<32}{'plain':>12}{'compressed':>12}")
    for name, text in rows.items():
        cells = [
            statistics.median(getattr(each, name) for each in found)
            for found in (plain, compressed)
        ]
        print(f"{text:<32}" + "".join(f"{cell:>12,.1f}" for cell in cells))
    cells = [
        statistics.median(cpu for each in found for cpu in each.event_cpu)
        for found in (plain, compressed)
    ]
    print(f"{'CPU µs an event':<32}" + "".join(f"{cell:>12,.1f}" for cell in cells))
    print(added_cost(plain, compressed))


def added_cost(plain: Sequence[Measurement], compressed: Sequence[Measurement]) -> str:
    """Return the CPU time that compression adds to an event, with the spread of the windows.

    Both informers of a round have their windows at the same time. The result is the mean of the
    rounds' medians, since the windows of one round are alike, and rounds differ.
    """
    rounds = [
        [
            with_it / without - 1
            for without, with_it in zip(one.event_cpu, other.event_cpu, strict=True)
        ]
        for one, other in zip(plain, compressed, strict=True)
    ]
    added = [each for found in rounds for each in found]
    mean = statistics.fmean(statistics.median(found) for found in rounds)
    return (
        f"CPU time of an event with compression: {mean:+.1%} "
        f"({min(added):+.1%} to {max(added):+.1%} in {len(added)} pairs)"
    )


def compared_with_client_go(peer: float, compressed: Sequence[Measurement]) -> str:
    """Return the memory of client-go, and the share of it that the compressed cache takes."""
    part = peer / statistics.median(each.memory for each in compressed)
    return f"client-go {version()} takes {peer:,.0f} bytes an object, {part:.1f} times as much"


def main() -> None:
    """Measure and print the results."""
    usual = Plan()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--changes", choices=["random", "rollouts"], default=usual.changes)
    parser.add_argument("--pods", type=int, default=usual.pods)
    parser.add_argument("--rate", type=float, default=usual.rate)
    parser.add_argument("--rest", type=float, default=usual.rest)
    parser.add_argument("--windows", type=int, default=usual.windows)
    parser.add_argument("--rounds", type=int, default=usual.rounds)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = vars(parser.parse_args())
    if job := options.pop("job"):
        _run_job(job)
        return
    plan = Plan(**options)
    pods = list(make_pods(plan.pods))
    pairs = [
        measure_pair(pods, plan, compressed_first=number % 2 == 1) for number in range(plan.rounds)
    ]
    plain, compressed = [list(each) for each in zip(*pairs, strict=True)]
    _print(plain, compressed)
    try:
        print(compared_with_client_go(measure_client_go(pods), compressed))
    except PeerMissing as missing:
        print(f"client-go is missing: {missing}", file=sys.stderr)


if __name__ == "__main__":
    main()

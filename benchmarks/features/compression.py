"""Measure an informer with ``compress=`` beside one without, on pods of 400 workloads.

    python -m benchmarks.features.compression [--pods N] [--rate N] [--seconds N] [--rounds N]

Both informers run in processes of their own, in turns, against a server in this process that sends
the same list, and then ``--rate`` changes a second of random pods. Memory is what a process holds
above a client without informers, once everything is compressed. CPU time is that of the process
while the changes arrive. The longest turn of the event loop is measured in CPU time, too, while the
cache is compressed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from aioinformer import Client, KubeObject, SharedInformerFactory, field
from aioinformer._core.compression.compressor import Compressor
from aioinformer._core.compression.zstd import find_zstd
from benchmarks.contestants.ours import Count
from benchmarks.load.meter import Stopwatch, resident
from benchmarks.load.workloads import changed_pod, make_pods

__all__ = ["Measurement", "added_cost", "measure"]

REST = 2.0
"""The value of ``compress``: short, so that changed pods are compressed while CPU time is measured,
too."""
READS = 5000
"""Objects that are read, and compressed once more, for the times of one."""
SEED = 7


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
    event_cpu: float
    """CPU microseconds an event."""
    longest_turn: float
    """CPU milliseconds of the longest turn of the event loop between the list and the rest."""
    read: float
    """Microseconds of ``get`` and one field."""
    compress: float = 0.0
    """Microseconds of compressing one object."""
    dictionary: int = 0
    """Bytes of the dictionary."""


# -- the server ----------------------------------------------------------------------------------


class PodServer:
    """Serves one list, and changes at a steady rate once they are asked for."""

    def __init__(self, pods: Sequence[bytes], rate: float) -> None:
        """Listen on a free port."""
        self._pods = list(pods)
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
        chance, pods = random.Random(SEED), list(self._pods)
        start = time.monotonic()
        for number in range(10**9):
            which = chance.randrange(len(pods))
            pods[which] = changed_pod(pods[which], 20_000_001 + number, chance)
            head = b'{"kind":"Pod","apiVersion":"v1",'
            body = head + pods[which][1:]
            time.sleep(max(start + number / self._rate - time.monotonic(), 0))
            send(b'{"type":"MODIFIED","object":%b}\n' % body)


# -- one informer --------------------------------------------------------------------------------


async def measure(server: str, pods: int, seconds: float, *, compressed: bool) -> Measurement:
    """Measure one informer against the server."""
    async with Client(server) as client, SharedInformerFactory(client, watch_list=False) as found:
        gc.collect()
        bare = resident()
        informer = found.informer(
            "pods",
            indexers={"node": field("spec.nodeName")},
            compress=REST if compressed else False,
        )
        handler = Count()
        informer.add_handler(handler, overflow="block")
        await found.wait_synced(timeout=600)
        rest = _Rest(compressed=compressed)
        longest = await _longest_turn(lambda: rest.reached(informer.memory().saved_bytes))
        gc.collect()
        memory, settled = informer.memory(), resident()
        events = handler.events
        await asyncio.to_thread(_post, server)
        await asyncio.sleep(3 * REST)  # until changed pods are compressed at the rate of changes
        events, watch = handler.events, Stopwatch()
        await asyncio.sleep(seconds)
        _, cpu = watch.stop()
        objects = list(informer.lister)
        reads = random.Random(SEED).sample(objects, min(READS, pods))
        compress, dictionary = _time_compression(reads) if compressed else (0.0, 0)
        return Measurement(
            memory=(settled - bare) / pods,
            estimate=memory.total / pods,
            json=memory.json_bytes / pods,
            stored=(memory.json_bytes - memory.saved_bytes) / pods,
            event_cpu=cpu / (handler.events - events) * 1e6,
            longest_turn=longest * 1e3,
            read=_time_reads(informer.lister.get, reads),
            compress=compress,
            dictionary=dictionary,
        )


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


# -- all -----------------------------------------------------------------------------------------


def _run_rounds(arguments: argparse.Namespace) -> dict[str, list[Measurement]]:
    pods = list(make_pods(arguments.pods))
    results: dict[str, list[Measurement]] = {"plain": [], "compressed": []}
    for _ in range(arguments.rounds):
        for name, found in results.items():
            server = PodServer(pods, arguments.rate)
            command = [sys.executable, "-m", "benchmarks.features.compression", f"--one={name}"]
            command += [f"--server={server.url}", f"--pods={arguments.pods}"]
            command += [f"--seconds={arguments.seconds}"]
            done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - ours
            found.append(msgspec.json.decode(done.stdout, type=Measurement))
            print(name, json.dumps(msgspec.to_builtins(found[-1])), file=sys.stderr)
    return results


def _print(results: dict[str, list[Measurement]]) -> None:
    rows = {
        "memory": "bytes an object, measured",
        "estimate": "bytes an object, by memory()",
        "json": "bytes of JSON",
        "stored": "bytes of JSON as stored",
        "event_cpu": "CPU µs an event",
        "longest_turn": "longest turn, CPU ms",
        "read": "get and a field, µs",
        "compress": "compress, µs",
        "dictionary": "bytes of the dictionary",
    }
    print(f"{'median':<32}{'plain':>12}{'compressed':>12}")
    for name, text in rows.items():
        cells = [
            statistics.median(getattr(each, name) for each in found) for found in results.values()
        ]
        print(f"{text:<32}" + "".join(f"{cell:>12,.1f}" for cell in cells))
    print(added_cost(results["plain"], results["compressed"]))


def added_cost(plain: Sequence[Measurement], compressed: Sequence[Measurement]) -> str:
    """Return the CPU time that compression adds to an event, with the spread of the rounds.

    The two runs of a round follow each other, so that a load of the machine meets both.
    """
    added = [
        with_it.event_cpu / without.event_cpu - 1
        for without, with_it in zip(plain, compressed, strict=True)
    ]
    return (
        f"CPU time of an event with compression: {statistics.median(added):+.1%} "
        f"({min(added):+.1%} to {max(added):+.1%} in {len(added)} alternating rounds)"
    )


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", choices=("plain", "compressed"))
    parser.add_argument("--server", default="")
    arguments = parser.parse_args()
    if arguments.one is None:
        _print(_run_rounds(arguments))
        return
    found = asyncio.run(
        measure(
            arguments.server,
            arguments.pods,
            arguments.seconds,
            compressed=arguments.one == "compressed",
        )
    )
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()

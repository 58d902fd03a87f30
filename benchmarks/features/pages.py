"""Measure many clients of one event stream over HTTP (``aioinformer.adapters.asgi``).

    python -m benchmarks.features.pages [--clients 200] [--rate 200] [--seconds 10] [--interval 0.1]

One process writes to an embedded API server, watches the server over HTTP and serves the feed with
uvicorn; another process runs all clients. Every write contains its time, on the clock that both
processes share. So the latency is the time from the write to the arrival of the bytes in the
client, and includes writing, watching, encoding and sending. Stalled clients send a request and
read nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import socket
import sys
import time
from statistics import median, quantiles

import msgspec
import uvicorn
from msgspec import Struct
from prometheus_client import CollectorRegistry

from aioinformer import Client, SharedInformer, SharedInformerFactory
from aioinformer.adapters.asgi import EventFeed
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.testing import ApiServer, Cluster
from benchmarks.load.meter import Stopwatch, resident

__all__ = ["Arguments", "Received", "measure"]

PODS = 500
LABELS = {f"label-{number}": "x" * 50 for number in range(5)}
"""With these labels, a message has half a kilobyte."""
STAMP = re.compile(rb'"at":"(\d+)"')
STRAGGLERS = 5.0
"""Seconds in which the last events must arrive."""


class Arguments(Struct, frozen=True, kw_only=True):
    """The sizes and rates of one measurement."""

    clients: int = 200
    rate: float = 200.0
    """Writes a second."""
    seconds: float = 10.0
    interval: float = 0.1
    """Seconds between two sends to one client at least."""
    stalled: int = 1


class Received(Struct, kw_only=True):
    """The events that the clients received."""

    events: int
    """Events of all clients together."""
    complete: int
    """Clients that received every write."""
    latest: int
    """Clients that received the last write."""
    p50: float
    """Milliseconds from the write."""
    p99: float
    worst: float


class Served(Struct, kw_only=True):
    """The cost of serving the clients."""

    writes: int
    bare: int
    """Bytes resident before the first client."""
    connected: int
    """Bytes resident with all clients connected, before the first write."""
    after: int
    """Bytes resident after the last write."""
    pending: int
    """Events pending for stalled clients, merged by object beyond the mailbox's limit."""
    wall: float
    cpu: float


# -- the clients -------------------------------------------------------------------------------


class Listener:
    """One client."""

    def __init__(self) -> None:
        """Create a client without a connection."""
        self.received: list[tuple[int, int]] = []
        """The times at which each event was written and received, in nanoseconds."""
        self.synced = asyncio.Event()

    async def listen(self, host: str, port: int) -> None:
        """Read until cancelled."""
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            rest = b""
            while chunk := await reader.read(1 << 16):
                now = time.monotonic_ns()
                text = rest + chunk
                end = 0
                for found in STAMP.finditer(text):
                    self.received.append((int(found[1]), now))
                    end = found.end()
                if b"event: synced" in text:
                    self.synced.set()
                rest = text[max(end, len(text) - 64) :]
        finally:
            writer.close()


async def listen(arguments: Arguments, host: str, port: int) -> None:
    """Run all clients, and report over the pipes to the parent process.

    Prints ``ready`` when all clients are synced, reads the number of writes and the stamp of the
    last from stdin, and prints a ``Received`` as JSON.
    """
    silent = [stalled(host, port) for _ in range(arguments.stalled)]
    listeners = [Listener() for _ in range(arguments.clients)]
    tasks = [asyncio.create_task(each.listen(host, port)) for each in listeners]
    for each in listeners:
        await each.synced.wait()
    for each in listeners:
        each.received.clear()
    print("ready", flush=True)
    line = await asyncio.to_thread(sys.stdin.readline)
    writes, last = (int(number) for number in line.split())
    deadline = time.monotonic() + STRAGGLERS
    for each in listeners:
        while _last(each) != last and time.monotonic() < deadline:  # noqa: ASYNC110 - from a socket
            await asyncio.sleep(0.05)
    print(msgspec.json.encode(_received(listeners, writes, last)).decode(), flush=True)
    await asyncio.to_thread(sys.stdin.readline)  # the parent counts pending events meanwhile
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for connection in silent:
        connection.close()


def stalled(host: str, port: int) -> socket.socket:
    """Connect a client that sends a request and reads nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((host, port))
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return connection


def _last(listener: Listener) -> int:
    return listener.received[-1][0] if listener.received else 0


def _received(listeners: list[Listener], writes: int, last: int) -> Received:
    latencies = [(then - at) / 1e6 for each in listeners for at, then in each.received]
    return Received(
        events=len(latencies),
        complete=sum(len({at for at, _ in each.received}) == writes for each in listeners),
        latest=sum(_last(each) == last for each in listeners),
        p50=median(latencies),
        p99=quantiles(latencies, n=100, method="inclusive")[98],
        worst=max(latencies),
    )


# -- the service -------------------------------------------------------------------------------


async def measure(arguments: Arguments) -> tuple[Served, Received]:
    """Serve clients, and return the cost of the service and the report of the clients."""
    cluster, registry = Cluster(), CollectorRegistry()
    for number in range(PODS):
        body = {"metadata": {"name": f"pod-{number:04}", "labels": LABELS}}
        cluster.create("pods", body, namespace="web")
    async with (
        ApiServer(cluster) as server,
        Client(server.url) as client,
        SharedInformerFactory(client, metrics=PrometheusMetrics(registry)) as informers,
    ):
        pods = informers.informer("pods")
        await informers.wait_synced(30)
        return await _serve(arguments, cluster, pods, registry)


async def _serve(
    arguments: Arguments, cluster: Cluster, pods: SharedInformer, registry: CollectorRegistry
) -> tuple[Served, Received]:
    feed = EventFeed(lambda: [pods], interval=arguments.interval)
    config = uvicorn.Config(feed, port=0, lifespan="off", log_level="error", access_log=False)
    config.timeout_graceful_shutdown = 1
    http = uvicorn.Server(config)
    serving = asyncio.create_task(http.serve([listener()]))
    while not http.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    bare = resident()
    host, port = http.servers[0].sockets[0].getsockname()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.features.pages", "--listen", f"{host}:{port}"),
        *(f"--{name}={value}" for name, value in msgspec.structs.asdict(arguments).items()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the clients have no pipes")
    await child.stdout.readline()
    connected, watch = resident(), Stopwatch()
    writes, last = await _write(arguments, cluster)
    wall, cpu = watch.stop()
    after = resident()
    child.stdin.write(b"%d %d\n" % (writes, last))
    received = msgspec.json.decode(await child.stdout.readline(), type=Received)
    pending = registry.get_sample_value("aioinformer_events_pending", {"informer": "pods"})
    child.stdin.close()
    await child.wait()
    feed.close()
    http.should_exit = True
    await serving
    served = Served(
        writes=writes,
        bare=bare,
        connected=connected,
        after=after,
        pending=round(pending or 0),
        wall=wall,
        cpu=cpu,
    )
    return served, received


def listener() -> socket.socket:
    """Return a bound socket whose connections have small send buffers.

    With the default size, the kernel would buffer megabytes for a stalled client, and the service
    would never notice the stall.
    """
    port = socket.socket()
    port.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)
    port.bind(("127.0.0.1", 0))
    return port


async def _write(arguments: Arguments, cluster: Cluster) -> tuple[int, int]:
    """Write steadily, and return the number of writes and the stamp of the last."""
    start = time.monotonic()
    done = stamp = 0
    while (elapsed := time.monotonic() - start) < arguments.seconds:
        while done < elapsed * arguments.rate:
            stamp = time.monotonic_ns()
            patch = {"metadata": {"labels": {"at": str(stamp)}}}
            cluster.merge_patch("pods", f"pod-{done % PODS:04}", patch, namespace="web")
            done += 1
        await asyncio.sleep(0.002)
    return done, stamp


def main() -> None:
    """Measure; with ``--listen``, run the clients."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.pages")
    default = Arguments()
    parser.add_argument("--clients", type=int, default=default.clients)
    parser.add_argument("--rate", type=float, default=default.rate)
    parser.add_argument("--seconds", type=float, default=default.seconds)
    parser.add_argument("--interval", type=float, default=default.interval)
    parser.add_argument("--stalled", type=int, default=default.stalled)
    parser.add_argument("--listen", help=argparse.SUPPRESS)
    options = vars(parser.parse_args())
    address = options.pop("listen")
    arguments = Arguments(**options)
    if address:
        host, port = address.split(":")
        asyncio.run(listen(arguments, host, int(port)))
        return
    served, received = asyncio.run(measure(arguments))
    per_client = (served.connected - served.bare) / (arguments.clients + arguments.stalled)
    print(f"{arguments.clients} clients and {arguments.stalled} stalled, {served.writes} writes")
    print(f"sent        {received.events / served.wall:10,.0f} events/s to all clients together")
    print(
        f"complete    {received.complete:10} clients received every write, "
        f"{received.latest} the last"
    )
    print(
        f"latency     {received.p50:10.1f} ms p50, {received.p99:.1f} ms p99, "
        f"{received.worst:.1f} ms worst"
    )
    print(f"CPU         {served.cpu / served.wall:10.0%} of a core, server and writer included")
    print(f"memory      {per_client / 1024:10.0f} KiB a client connected")
    print(f"pending     {served.pending:10,} events pending for stalled clients")
    print(f"growth      {(served.after - served.connected) / 1e6:10.1f} MB while writing")


if __name__ == "__main__":
    main()

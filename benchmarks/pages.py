"""The cost of many listeners of one event stream over HTTP (``aioinformer.adapters.asgi``).

    python -m benchmarks.pages [--clients 200] [--rate 200] [--seconds 10] [--interval 0.1]

One process writes to an embedded API server, watches it over HTTP and serves the feed with uvicorn.
Another process runs all clients. Every write contains its time on the clock that both processes
share, so the latency is measured from the write to the bytes in the client, including writing,
watching, encoding and sending. Stalled clients send a request and read nothing.
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
from benchmarks.meter import Stopwatch, resident

__all__ = ["Arguments", "Heard", "measure"]

PODS = 500
LABELS = {f"label-{number}": "x" * 50 for number in range(5)}
"""With its name and versions, a message has half a kilobyte."""
STAMP = re.compile(rb'"at":"(\d+)"')
STRAGGLERS = 5.0
"""Maximum seconds for the arrival of the last events."""


class Arguments(Struct, frozen=True, kw_only=True):
    """The parameters of a measurement."""

    clients: int = 200
    rate: float = 200.0
    """Writes per second."""
    seconds: float = 10.0
    interval: float = 0.1
    """Minimum seconds between two sends to one client."""
    stalled: int = 1


class Heard(Struct, kw_only=True):
    """The events that the clients have received."""

    events: int
    """Number of events of all clients."""
    complete: int
    """Number of clients that have received every write."""
    latest: int
    """Number of clients that have received the last write."""
    p50: float
    """Milliseconds from the write."""
    p99: float
    worst: float


class Served(Struct, kw_only=True):
    """The cost of serving the clients."""

    writes: int
    bare: int
    """Resident bytes before the first client."""
    connected: int
    """Resident bytes with all clients, before the first write."""
    after: int
    """Resident bytes after the last write."""
    pending: int
    """Number of pending events of stalled clients, merged by object beyond the limit."""
    wall: float
    cpu: float


# -- the clients -------------------------------------------------------------------------------


class Listener:
    """One client."""

    def __init__(self) -> None:
        """Create a client that is not connected."""
        self.heard: list[tuple[int, int]] = []
        """Times of writing and receiving each event, in nanoseconds."""
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
                    self.heard.append((int(found[1]), now))
                    end = found.end()
                if b"event: synced" in text:
                    self.synced.set()
                rest = text[max(end, len(text) - 64) :]
        finally:
            writer.close()


async def listen(arguments: Arguments, host: str, port: int) -> None:
    """Run all clients: print ``ready``, wait for the number of writes, then print the results."""
    silent = [stalled(host, port) for _ in range(arguments.stalled)]
    listeners = [Listener() for _ in range(arguments.clients)]
    tasks = [asyncio.create_task(each.listen(host, port)) for each in listeners]
    for each in listeners:
        await each.synced.wait()
    for each in listeners:
        each.heard.clear()
    print("ready", flush=True)
    line = await asyncio.to_thread(sys.stdin.readline)
    writes, last = (int(number) for number in line.split())
    patience = time.monotonic() + STRAGGLERS
    for each in listeners:
        while _last(each) != last and time.monotonic() < patience:  # noqa: ASYNC110 - from a socket
            await asyncio.sleep(0.05)
    print(msgspec.json.encode(_heard(listeners, writes, last)).decode(), flush=True)
    await asyncio.to_thread(sys.stdin.readline)  # they stay until they were counted
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
    return listener.heard[-1][0] if listener.heard else 0


def _heard(listeners: list[Listener], writes: int, last: int) -> Heard:
    late = [(then - at) / 1e6 for each in listeners for at, then in each.heard]
    return Heard(
        events=len(late),
        complete=sum(len({at for at, _ in each.heard}) == writes for each in listeners),
        latest=sum(_last(each) == last for each in listeners),
        p50=median(late),
        p99=quantiles(late, n=100, method="inclusive")[98],
        worst=max(late),
    )


# -- the service -------------------------------------------------------------------------------


async def measure(arguments: Arguments) -> tuple[Served, Heard]:
    """Serve the clients and measure."""
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
) -> tuple[Served, Heard]:
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
        *(sys.executable, "-m", "benchmarks.pages", "--listen", f"{host}:{port}"),
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
    heard = msgspec.json.decode(await child.stdout.readline(), type=Heard)
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
    return served, heard


def listener() -> socket.socket:
    """Return a socket whose connections have small buffers.

    With the default buffers the kernel would accept megabytes for a stalled client, which would
    never appear stalled.
    """
    port = socket.socket()
    port.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)
    port.bind(("127.0.0.1", 0))
    return port


async def _write(arguments: Arguments, cluster: Cluster) -> tuple[int, int]:
    """Write at a steady rate; return the number of writes and the time of the last."""
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
    """Measure, or run the clients."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages")
    default = Arguments()
    parser.add_argument("--clients", type=int, default=default.clients)
    parser.add_argument("--rate", type=float, default=default.rate)
    parser.add_argument("--seconds", type=float, default=default.seconds)
    parser.add_argument("--interval", type=float, default=default.interval)
    parser.add_argument("--stalled", type=int, default=default.stalled)
    parser.add_argument("--listen", help=argparse.SUPPRESS)
    given = vars(parser.parse_args())
    address = given.pop("listen")
    arguments = Arguments(**given)
    if address:
        host, port = address.split(":")
        asyncio.run(listen(arguments, host, int(port)))
        return
    served, heard = asyncio.run(measure(arguments))
    per_client = (served.connected - served.bare) / (arguments.clients + arguments.stalled)
    print(f"{arguments.clients} clients and {arguments.stalled} stalled, {served.writes} writes")
    print(f"sent        {heard.events / served.wall:10,.0f} events/s to all clients together")
    print(
        f"complete    {heard.complete:10} clients heard of every write, {heard.latest} of the last"
    )
    print(
        f"latency     {heard.p50:10.1f} ms p50, {heard.p99:.1f} ms p99, {heard.worst:.1f} ms worst"
    )
    print(f"CPU         {served.cpu / served.wall:10.0%} of a core, server and writer included")
    print(f"memory      {per_client / 1024:10.0f} KiB a client connected")
    print(f"pending     {served.pending:10,} events wait for who has stalled")
    print(f"growth      {(served.after - served.connected) / 1e6:10.1f} MB while writing")


if __name__ == "__main__":
    main()

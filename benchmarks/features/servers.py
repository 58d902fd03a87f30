"""The embedded API server beside a real one: start, load, and writes with watchers.

    python -m benchmarks.features.servers [--objects 50000] [--writes 2000] [--watchers 20]

Both servers run in a process of their own and serve the same custom resource. Clients send merge
patches over eight connections, and watchers read every event. The CPU time of the server's process
counts, since the clients of this program use the other cores. The embedded server is measured a
second time without HTTP for the writes: a test writes to its ``Cluster``, and only the watchers are
outside. The real server (etcd, apiextensions-apiserver) needs Go.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from aioinformer import Resource
from aioinformer.testing import ApiServer, Cluster
from aioinformer.testing.manifests import load_manifests
from benchmarks.load.processes import ROOT, MeasurementFailed

__all__ = ["Arguments", "ServerFigures", "measure_embedded", "measure_writes"]

GADGETS = Resource("example.com", "v1", "gadgets", "Gadget")
COLLECTION = "/apis/example.com/v1/namespaces/default/gadgets"
CONNECTIONS = 8
PATCH = {"Content-Type": "application/merge-patch+json"}
TICKS = os.sysconf("SC_CLK_TCK")

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The size of the measurement."""

    objects: int = 50_000
    """Objects of a manifest that the embedded server loads."""
    writes: int = 2_000
    watchers: int = 20


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """The figures of writes to one server."""

    writes_per_second: float
    cpu_per_write: float
    """Microseconds of the server's process."""
    events: int
    """Events that the watchers received."""


def gadget(name: str) -> dict[str, Any]:
    """Return a gadget of about one kilobyte."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": name, "labels": {"app": "shop"}},
        "spec": {"size": 1, "payload": "x" * 700},
    }


# -- over HTTP -----------------------------------------------------------------------------------


async def measure_writes(
    url: str, arguments: Arguments, *, process: int, tls: ssl.SSLContext | bool = True
) -> ServerFigures:
    """Patch objects of a server while watchers read, and return the figures.

    Raises:
        MeasurementFailed: a request failed, or a watcher did not receive every event.
    """
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    async with (
        aiohttp.ClientSession(url, connector=connector) as http,
        AsyncExitStack() as stack,
    ):
        for number in range(CONNECTIONS):
            await _send(http, "POST", COLLECTION, gadget(f"g-{number}"))
        version = (await _send(http, "GET", COLLECTION))["metadata"]["resourceVersion"]
        watches = [
            await stack.enter_async_context(
                http.get(COLLECTION, params={"watch": "true", "resourceVersion": version})
            )
            for _ in range(arguments.watchers)
        ]
        each = arguments.writes // CONNECTIONS
        wanted = each * CONNECTIONS
        readers = [asyncio.create_task(_count_events(watch, wanted)) for watch in watches]
        before, start = cpu_seconds(process), time.perf_counter()
        await asyncio.gather(*[_patch(http, f"g-{n}", each) for n in range(CONNECTIONS)])
        seconds = time.perf_counter() - start
        async with asyncio.timeout(60):
            counts = await asyncio.gather(*readers)
        used = cpu_seconds(process) - before
    return ServerFigures(wanted / seconds, used / wanted * 1e6, sum(counts))


async def _send(http: aiohttp.ClientSession, method: str, path: str, body: object = None) -> Any:
    async with http.request(method, path, json=body) as response:
        answer = await response.read()
        if response.status >= 300:
            raise MeasurementFailed(f"{method} {path}: {response.status} {answer.decode()}")
        return msgspec.json.decode(answer)


async def _patch(http: aiohttp.ClientSession, name: str, times: int) -> None:
    for number in range(times):
        body = b'{"spec":{"size":%d}}' % (number + 2)
        async with http.patch(f"{COLLECTION}/{name}", data=body, headers=PATCH) as response:
            await response.read()
            if response.status != 200:
                raise MeasurementFailed(f"PATCH {name}: {response.status}")


async def _count_events(watch: aiohttp.ClientResponse, wanted: int) -> int:
    seen = 0
    async for chunk in watch.content.iter_any():
        seen += chunk.count(b'{"type":"MODIFIED"')
        if seen >= wanted:
            break
    return seen


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process has used, on all cores."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


# -- the embedded server -------------------------------------------------------------------------


async def measure_embedded(arguments: Arguments) -> dict[str, float]:
    """Return the figures of the embedded server within this process, without HTTP for writes."""
    start = time.perf_counter()
    async with ApiServer() as server, aiohttp.ClientSession() as http:
        async with http.get(f"{server.url}/version") as response:
            await response.read()
        ready = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "gadgets.json"
        items = [gadget(f"g-{number}") for number in range(arguments.objects)]
        manifest.write_text(json.dumps({"kind": "List", "items": items}))
        cluster = Cluster()
        cluster.add_resource(GADGETS)
        start = time.process_time()
        load_manifests(cluster, manifest)
        loaded = time.process_time() - start
    figures = await _write_in_process(cluster, arguments)
    return {
        "start ms": ready * 1e3,
        "load, CPU s": loaded,
        "writes/s in process": figures.writes_per_second,
        "CPU µs of a write in process": figures.cpu_per_write,
        "events in process": figures.events,
    }


async def _write_in_process(cluster: Cluster, arguments: Arguments) -> ServerFigures:
    """Write to a cluster whose watchers are another process; return the figures."""
    async with ApiServer(cluster) as server:
        version = str(cluster.resource_version)
        options = (server.url, version, str(arguments.writes), str(arguments.watchers))
        readers = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.features.servers", "--read", *options),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        assert readers.stdout is not None
        await readers.stdout.readline()
        start, before = time.perf_counter(), time.process_time()
        for number in range(arguments.writes):
            patch = {"spec": {"size": number + 2}}
            cluster.merge_patch(GADGETS, f"g-{number % arguments.objects}", patch)
            if number % 32 == 31:
                await asyncio.sleep(0)
        events = int(await readers.stdout.readline())
        seconds, used = time.perf_counter() - start, time.process_time() - before
        await readers.wait()
    return ServerFigures(arguments.writes / seconds, used / arguments.writes * 1e6, events)


async def _read(url: str, version: str, writes: int, watchers: int) -> None:
    """Be the watchers: print a line when they watch, and the number of events at the end."""
    async with (
        aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=0)) as http,
        AsyncExitStack() as stack,
    ):
        watches = [
            await stack.enter_async_context(
                http.get(COLLECTION, params={"watch": "true", "resourceVersion": version})
            )
            for _ in range(watchers)
        ]
        print("watching", flush=True)
        print(sum(await asyncio.gather(*[_count_events(each, writes) for each in watches])))


@asynccontextmanager
async def _embedded_process(folder: Path) -> AsyncGenerator[tuple[str, int]]:
    definition = folder / "crd.json"
    definition.write_text(json.dumps(CRD))
    options = ("--port", "0", "--load", str(definition))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "aioinformer", "serve", *options),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        yield line.split()[2], process.pid
    finally:
        process.terminate()
        await process.communicate()


@asynccontextmanager
async def _real_process(folder: Path) -> AsyncGenerator[tuple[str, int, ssl.SSLContext]]:
    from tests.apiserver.server.admin import install_crd
    from tests.apiserver.server.build import build
    from tests.apiserver.server.server_process import ApiServerProcess

    server = ApiServerProcess(build(), folder)
    start = time.perf_counter()
    await server.start()
    print(f"real server: ready after {time.perf_counter() - start:.1f} s")
    try:
        await install_crd(server, CRD)
        yield server.url, server.pid, ssl.create_default_context(cafile=server.ca_file)
    finally:
        await server.kill()


async def main(arguments: Arguments) -> None:
    """Measure both servers, and print the figures."""
    for name, value in (await measure_embedded(arguments)).items():
        print(f"embedded server: {name}: {value:,.1f}")
    with tempfile.TemporaryDirectory() as folder:
        async with _embedded_process(Path(folder)) as (url, process):
            print("embedded server:", await measure_writes(url, arguments, process=process))
        async with _real_process(Path(folder) / "real") as (url, process, tls):
            print("real server:", await measure_writes(url, arguments, process=process, tls=tls))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        url, version, *counts = sys.argv[2:]
        asyncio.run(_read(url, version, int(counts[0]), int(counts[1])))
        sys.exit()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.features.servers")
    for field, default in (("objects", 50_000), ("writes", 2_000), ("watchers", 20)):
        parser.add_argument(f"--{field}", type=int, default=default)
    asyncio.run(main(Arguments(**vars(parser.parse_args()))))

"""The memory of a cached object and the time of lookups, compared with caches written by hand.

    python -m benchmarks.caches --cache ours|dicts|models --server URL --pods N

``ours`` is an informer with one index and a handler that counts. ``dicts`` is the result of
``json.loads`` on a list, and ``models`` that of kubernetes_asyncio. Both are stored in a dict by
namespace and name, with a dict of such dicts by node. Each cache gets the same lookups.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import aiohttp
import msgspec
from kubernetes_asyncio import client as kubernetes_client
from msgspec import Struct

from aioinformer import Client, SharedInformerFactory, field, label_index
from benchmarks.meter import resident
from benchmarks.ours import Count
from benchmarks.pods import SEED

__all__ = ["CACHES", "Cache", "CacheName", "measure"]

CacheName: TypeAlias = Literal["ours", "dicts", "models"]
CACHES: Sequence[CacheName] = ("ours", "dicts", "models")

NODE, LABEL, TIER = "node-7", "tier", "t3"
"""The first selects a hundredth of all pods, the second an eighth."""
SETTLE = 0.5
"""Idle seconds before the memory of the process is read."""
GETS, FINDS, SCANS = 20_000, 50, 1
"""Number of averaged calls, for calls that take less than a microsecond up to a second."""
ROUNDS = 3

Named: TypeAlias = dict[tuple[str, str], Any]


class Cache(Struct, kw_only=True):
    """The costs of one cache. Times are microseconds per call."""

    pods: int
    bytes: float
    """Bytes per object above the bare process."""
    beyond: float = 0.0
    """Bytes per object in addition to the object's own JSON; 0 if the JSON isn't stored."""
    opened: float = 0.0
    """The value of ``beyond`` after every object was opened once."""
    get: float = 0.0
    """A lookup of one object by namespace and name."""
    by_index: float = 0.0
    """A lookup of the objects of a node, by an index."""
    by_label: float = 0.0
    """A lookup of the objects with a label, by an index; 0 if there is no index."""
    scan: float = 0.0
    """A lookup of the objects with a label, without an index."""


async def measure(cache: CacheName, server: str, pods: int) -> Cache:
    """Fill the cache from the server, and measure its memory and its lookups."""
    match cache:
        case "ours":
            return await _ours(server, pods)
        case "dicts":
            return await _by_hand(server, pods, _listed, _dict_reads)
        case "models":
            return await _by_hand(server, pods, _modelled, _model_reads)


# -- ours --------------------------------------------------------------------------------------


async def _ours(server: str, pods: int) -> Cache:
    async with Client(server) as client, SharedInformerFactory(client) as informers:
        gc.collect()
        bare = resident()
        informer = informers.informer("pods", indexers={"node": field("spec.nodeName")})
        heard = Count()
        informer.add_handler(heard, overflow="block")
        while heard.events < pods:  # noqa: ASYNC110 - an event would be one more thing to weigh
            await asyncio.sleep(0.01)
        await asyncio.sleep(SETTLE)
        lister = informer.lister
        held = sum(len(obj.raw) for obj in lister)
        found = Cache(pods=pods, bytes=_weight(bare, pods), beyond=_weight(bare + held, pods))
        assert all(obj["spec"] for obj in lister)
        found.opened = _weight(bare + held, pods)
        keys = _sample(lister.keys())
        found.get = _timed(lambda: [lister.get(key) for key in keys], 1) / len(keys)
        found.by_index = _timed(lambda: lister.by_index("node", NODE), FINDS)
        labels = f"{LABEL}={TIER}"
        found.scan = _timed(lambda: lister.list(labels=labels), SCANS)
        await informer.add_index("labels", label_index(LABEL))
        found.by_label = _timed(lambda: lister.list(labels=labels), FINDS)
        assert len(lister.list(labels=labels)) == _expected(pods)
        return found


# -- by hand -----------------------------------------------------------------------------------


async def _by_hand(
    server: str,
    pods: int,
    fill: Callable[[str], Any],
    reads: Callable[[Any], tuple[tuple[str, str], str, str]],
) -> Cache:
    """Measure a cache of objects whose name, node and label ``reads`` returns."""
    gc.collect()
    bare = resident()
    items = await fill(server)
    cache: Named = {}
    nodes: dict[str, Named] = {}
    for item in items:
        key, node, _ = reads(item)
        cache[key] = item
        nodes.setdefault(node, {})[key] = item
    del items
    await asyncio.sleep(SETTLE)
    found = Cache(pods=pods, bytes=_weight(bare, pods))
    keys = _sample(cache)
    found.get = _timed(lambda: [cache.get(key) for key in keys], 1) / len(keys)
    found.by_index = _timed(lambda: list(nodes[NODE].values()), FINDS)

    def scan() -> list[Any]:
        return [item for item in cache.values() if reads(item)[2] == TIER]

    found.scan = _timed(scan, SCANS)
    assert len(scan()) == _expected(pods)
    return found


async def _listed(server: str) -> Iterable[Any]:
    async with aiohttp.ClientSession(server) as session, session.get("/api/v1/pods") as answer:
        return list(json.loads(await answer.read())["items"])


def _dict_reads(pod: Any) -> tuple[tuple[str, str], str, str]:
    metadata = pod["metadata"]
    key = metadata["namespace"], metadata["name"]
    return key, pod["spec"]["nodeName"], metadata["labels"][LABEL]


async def _modelled(server: str) -> Iterable[Any]:
    api: Any = kubernetes_client.ApiClient(kubernetes_client.Configuration(host=server))
    async with api:  # it has no types
        core: Any = kubernetes_client.CoreV1Api(api)
        return list((await core.list_pod_for_all_namespaces()).items)


def _model_reads(pod: Any) -> tuple[tuple[str, str], str, str]:
    metadata = pod.metadata
    return (metadata.namespace, metadata.name), pod.spec.node_name, metadata.labels[LABEL]


# -- measuring ---------------------------------------------------------------------------------


def _weight(bare: int, pods: int) -> float:
    gc.collect()
    return (resident() - bare) / pods


def _sample(keys: Iterable[Any]) -> list[Any]:
    """Return random keys, because objects that were cached in sequence are found faster."""
    return random.Random(SEED).choices(list(keys), k=GETS)


def _timed(call: Callable[[], object], times: int) -> float:
    """Return the microseconds per call of the fastest round, because noise only adds time."""
    rounds: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            call()
        rounds.append((time.perf_counter() - start) / times)
    return min(rounds) * 1e6


def _expected(pods: int) -> int:
    """Return the number of pods with the label: every eighth, from the third on."""
    return len(range(int(TIER[1:]), pods, 8))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cache", choices=CACHES, required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--pods", type=int, required=True)
    given = parser.parse_args()
    found = asyncio.run(measure(given.cache, given.server, given.pods))
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()

"""Measure memory per cached object and the time of lookups, beside caches written by hand.

    python -m benchmarks.measures.caches --cache ours|dicts|models --server URL --pods N

``ours`` is an informer with one index and a handler that counts. ``dicts`` holds the items of a
list as ``json.loads`` decodes them, and ``models`` as kubernetes_asyncio does. These two use a dict
by namespace and name, and a dict of such dicts by node. All caches answer the same queries.
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
from benchmarks.contestants.ours import Count
from benchmarks.load.meter import resident
from benchmarks.load.pods import SEED

__all__ = ["CACHES", "Cache", "CacheName", "measure"]

CacheName: TypeAlias = Literal["ours", "dicts", "models"]
CACHES: Sequence[CacheName] = ("ours", "dicts", "models")

NODE, LABEL, TIER = "node-7", "tier", "t3"
"""The values of the queries: a hundredth of all pods is on the node, an eighth has the label."""
SETTLE = 0.5
"""Seconds to wait before the memory is read, so that temporary objects are freed."""
GETS, FINDS, SCANS = 20_000, 50, 1
"""Calls that are averaged: a get takes under a microsecond, a find some, a scan up to a second."""
ROUNDS = 3

Named: TypeAlias = dict[tuple[str, str], Any]


class Cache(Struct, kw_only=True):
    """The cost of one cache. Times are microseconds a call."""

    pods: int
    bytes: float
    """Bytes above the bare process for each object, everything included."""
    beyond: float = 0.0
    """``bytes`` without the object's own JSON; 0 if the JSON isn't kept."""
    opened: float = 0.0
    """``beyond`` after the body of every object was decoded once."""
    get: float = 0.0
    """One object by namespace and name."""
    by_index: float = 0.0
    """The objects of a node, by an index."""
    by_label: float = 0.0
    """The objects with a label, by an index; 0 for a cache without such an index."""
    scan: float = 0.0
    """The objects with a label, without an index."""


async def measure(cache: CacheName, server: str, pods: int) -> Cache:
    """Fill the cache from the server, measure its memory, and time the queries."""
    match cache:
        case "ours":
            return await _ours(server, pods)
        case "dicts":
            return await _by_hand(server, pods, _list_dicts, _read_dict)
        case "models":
            return await _by_hand(server, pods, _list_models, _read_model)


# -- ours --------------------------------------------------------------------------------------


async def _ours(server: str, pods: int) -> Cache:
    async with Client(server) as client, SharedInformerFactory(client) as informers:
        gc.collect()
        bare = resident()
        informer = informers.informer("pods", indexers={"node": field("spec.nodeName")})
        handler = Count()
        informer.add_handler(handler, overflow="block")
        while handler.events < pods:  # noqa: ASYNC110 - an event would add to the measured memory
            await asyncio.sleep(0.01)
        await asyncio.sleep(SETTLE)
        lister = informer.lister
        json_bytes = sum(len(obj.raw) for obj in lister)
        found = Cache(pods=pods, bytes=_weight(bare, pods), beyond=_weight(bare + json_bytes, pods))
        assert all(obj["spec"] for obj in lister)
        found.opened = _weight(bare + json_bytes, pods)
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
    read: Callable[[Any], tuple[tuple[str, str], str, str]],
) -> Cache:
    """Measure a cache of dicts.

    Args:
        server: the URL of the load server.
        pods: the number of pods that the server lists.
        fill: lists the pods.
        read: returns the key, the node and the label of a pod.
    """
    gc.collect()
    bare = resident()
    items = await fill(server)
    cache: Named = {}
    nodes: dict[str, Named] = {}
    for item in items:
        key, node, _ = read(item)
        cache[key] = item
        nodes.setdefault(node, {})[key] = item
    del items
    await asyncio.sleep(SETTLE)
    found = Cache(pods=pods, bytes=_weight(bare, pods))
    keys = _sample(cache)
    found.get = _timed(lambda: [cache.get(key) for key in keys], 1) / len(keys)
    found.by_index = _timed(lambda: list(nodes[NODE].values()), FINDS)

    def scan() -> list[Any]:
        return [item for item in cache.values() if read(item)[2] == TIER]

    found.scan = _timed(scan, SCANS)
    assert len(scan()) == _expected(pods)
    return found


async def _list_dicts(server: str) -> Iterable[Any]:
    async with aiohttp.ClientSession(server) as session, session.get("/api/v1/pods") as answer:
        return list(json.loads(await answer.read())["items"])


def _read_dict(pod: Any) -> tuple[tuple[str, str], str, str]:
    metadata = pod["metadata"]
    key = metadata["namespace"], metadata["name"]
    return key, pod["spec"]["nodeName"], metadata["labels"][LABEL]


async def _list_models(server: str) -> Iterable[Any]:
    api: Any = kubernetes_client.ApiClient(kubernetes_client.Configuration(host=server))
    async with api:  # kubernetes_asyncio has no types
        core: Any = kubernetes_client.CoreV1Api(api)
        return list((await core.list_pod_for_all_namespaces()).items)


def _read_model(pod: Any) -> tuple[tuple[str, str], str, str]:
    metadata = pod.metadata
    return (metadata.namespace, metadata.name), pod.spec.node_name, metadata.labels[LABEL]


# -- measuring ---------------------------------------------------------------------------------


def _weight(bare: int, pods: int) -> float:
    gc.collect()
    return (resident() - bare) / pods


def _sample(keys: Iterable[Any]) -> list[Any]:
    """Choose keys at random, since keys in the order of caching are found faster than others."""
    return random.Random(SEED).choices(list(keys), k=GETS)


def _timed(call: Callable[[], object], times: int) -> float:
    """Return the microseconds a call in the quickest of some rounds, since noise only adds."""
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
    """Measure and print the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cache", choices=CACHES, required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--pods", type=int, required=True)
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments.cache, arguments.server, arguments.pods))
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")


if __name__ == "__main__":
    main()

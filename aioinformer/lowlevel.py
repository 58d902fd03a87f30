"""The parts of an informer, for programs that combine them in another way.

::

    ListerWatcher ──▶ Reflector ──▶ DeltaQueue ──▶ Indexer

A ``Reflector`` lists and watches a ``ListerWatcher`` and puts what it decodes into a
``DeltaQueue``, the asyncio wrapper of a ``DeltaFIFO``. An ``Indexer`` applies the entries of the
queue: ``Delta``, ``Bookmark``, ``Replaced``, ``Resync``. ``SharedInformer``, which is in
``aioinformer``, connects these parts and adds listeners. A ``Source``, such as a ``Client``, makes
a ``ListerWatcher`` for each informer of a factory.

Example::

    from aioinformer.lowlevel import (
        BUILT_IN, Bookmark, Delta, DeltaFIFO, DeltaQueue, IndexFunction, Indexer, ListerWatcher,
        ListRequest, Reflector, ReflectorOptions, Replaced, Resync, Source, Start, WatchRequest,
    )

    (resource,) = [each for each in BUILT_IN if str(each) == "pods"]
    source: Source = client
    server: ListerWatcher = source.lister_watcher(resource, namespace="web", labels="", fields="")
    async with server.list(ListRequest(limit=10)) as chunks:
        body = b"".join([bytes(chunk) async for chunk in chunks])
    assert body.count(b'"name":"web-') == 2
    async with server.watch(WatchRequest(resource_version="0", timeout=60)):
        pass  # the changes would follow

    by_node: IndexFunction = field("spec.nodeName")
    indexer = Indexer({"node": by_node})
    queue = DeltaQueue()
    fifo: DeltaFIFO = queue.fifo
    reflector = Reflector(server, queue, options=ReflectorOptions(watch_list=False))
    running = asyncio.create_task(reflector.run(Start(newest=True)))
    await queue.ready()
    entry = queue.pop()
    match entry:
        case Replaced():
            staged = indexer.replace(entry)
            while not staged.step(64):
                await asyncio.sleep(0)
            staged.commit()
        case Delta():
            indexer.apply(entry, [])
        case Bookmark():
            indexer.bookmark(entry)
        case Resync():
            pass  # deliver the cached state again
    assert len(indexer.state.objects) == 2
    running.cancel()

Example::

    from aioinformer.lowlevel import (
        CacheMemory, InformerOptions, ScopeHealth, Shape, Transform,
    )

    def without_status(obj: dict) -> dict:
        return {name: value for name, value in obj.items() if name != "status"}

    transform: Transform = without_status
    source = client.lister_watcher(pods.resource, namespace="web", labels="", fields="")
    options = InformerOptions(resync=60)
    slim = SharedInformer(source, shape=Shape.of(transform=transform), options=options)
    running = asyncio.create_task(slim.run())
    await slim.wait_synced(timeout=30)
    assert "status" not in slim.lister.get("web/web-0")
    running.cancel()

    memory: CacheMemory = pods.memory()
    assert memory.json_bytes == sum(len(pod.raw) for pod in pods.lister)

    two = informers.informer("configmaps", namespaces=["web", "test"])
    await two.wait_synced(timeout=30)
    scopes: tuple[ScopeHealth, ...] = two.health.scopes
    assert [each.namespace for each in scopes] == ["test", "web"]
"""

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.memory import CacheMemory
from aioinformer._core.cache.store import IndexFunction
from aioinformer._core.codec.shape import Shape, Transform
from aioinformer._core.listwatch.reflector_requests import ListRequest, Start, WatchRequest
from aioinformer._core.objects.deltas import Bookmark, Delta, Replaced, Resync
from aioinformer._core.objects.resources import BUILT_IN
from aioinformer._runtime.informer.options import InformerOptions
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, Source
from aioinformer._runtime.reflector.options import ReflectorOptions
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import ScopeHealth

__all__ = [
    "BUILT_IN",
    "Bookmark",
    "CacheMemory",
    "Delta",
    "DeltaFIFO",
    "DeltaQueue",
    "IndexFunction",
    "Indexer",
    "InformerOptions",
    "ListRequest",
    "ListerWatcher",
    "Reflector",
    "ReflectorOptions",
    "Replaced",
    "Resync",
    "ScopeHealth",
    "Shape",
    "Source",
    "Start",
    "Transform",
    "WatchRequest",
]

"""The parts of an informer, for programs that combine them in another way.

::

    ListerWatcher ──▶ Reflector ──▶ DeltaQueue ──▶ Indexer

A ``Reflector`` lists and watches a ``ListerWatcher`` and puts what it decodes into a
``DeltaQueue``, the asyncio wrapper of a ``DeltaFIFO``. An ``Indexer`` applies the entries of the
queue. ``SharedInformer``, which is in ``aioinformer``, connects these parts and adds listeners.

- Requests: ``ListRequest`` and ``WatchRequest``, which a ``ListerWatcher`` sends. A ``Source``,
  such as a ``Client``, makes a ``ListerWatcher`` for each informer of a factory.
- Options: ``ReflectorOptions`` of a reflector, ``InformerOptions`` of an informer.
- Entries of the queue: ``Delta``, ``Bookmark``, ``Replaced``, ``Resync``.
- Objects: ``Shape`` and ``Transform`` decide the stored form, an ``IndexFunction`` the values of an
  index. ``BUILT_IN`` is the table of built-in resources.
- ``ScopeHealth``: the state of one namespace of an informer that reads several (``Health.scopes``).
- ``Verification``: the result of ``SharedInformer.verify``.
"""

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.store import IndexFunction
from aioinformer._core.cache.verification import Verification
from aioinformer._core.codec.shape import Shape, Transform
from aioinformer._core.listwatch.requests import ListRequest, WatchRequest
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
    "Transform",
    "Verification",
    "WatchRequest",
]

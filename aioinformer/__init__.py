"""aioinformer: Kubernetes informers for asyncio.

List once, watch for ever, keep an indexed cache, tell async handlers and streams what changed.

How the parts lie on top of each other, and how data flows up and back down:

    aioinformer        this page: everything public
    __main__, _cli     the command line
    adapters           ready-made clients of other libraries, Prometheus; loaded by who asks
    testing            an API server to test against, in memory or over HTTP
    _client            the network: credentials, discovery, requests
    _runtime           asyncio: reflector -> queue -> pump -> handlers and streams; the factory
    _core              no I/O: bytes -> objects, the list/watch table, queue, cache, mailboxes
    errors             every exception

``Client`` is loaded when it is first used, so that importing this package loads no HTTP library.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from aioinformer import errors as errors

# the parts, usable alone
from aioinformer._core.backoff import BackoffPolicy as BackoffPolicy
from aioinformer._core.delta_fifo import DeltaFIFO as DeltaFIFO
from aioinformer._core.deltas import Bookmark as Bookmark
from aioinformer._core.deltas import Delta as Delta
from aioinformer._core.deltas import Replaced as Replaced
from aioinformer._core.deltas import Resync as Resync
from aioinformer._core.filtering import Filter as Filter
from aioinformer._core.indexer import Indexer as Indexer
from aioinformer._core.label_index import LabelIndex as LabelIndex
from aioinformer._core.label_index import label_index as label_index
from aioinformer._core.lister import Lister as Lister
from aioinformer._core.liveness import LivenessPolicy as LivenessPolicy
from aioinformer._core.metrics import Levels as Levels
from aioinformer._core.metrics import Metrics as Metrics
from aioinformer._core.metrics import NoMetrics as NoMetrics

# cached objects, and what is told of them
from aioinformer._core.objects import Added as Added
from aioinformer._core.objects import Deleted as Deleted
from aioinformer._core.objects import DeleteReason as DeleteReason
from aioinformer._core.objects import Event as Event
from aioinformer._core.objects import KubeObject as KubeObject
from aioinformer._core.objects import ObjectKey as ObjectKey
from aioinformer._core.objects import Updated as Updated
from aioinformer._core.predicates import ChangePredicate as ChangePredicate
from aioinformer._core.predicates import CombinedPredicate as CombinedPredicate
from aioinformer._core.predicates import ObjectPredicate as ObjectPredicate
from aioinformer._core.predicates import Predicate as Predicate
from aioinformer._core.predicates import annotations_changed as annotations_changed
from aioinformer._core.predicates import changed as changed
from aioinformer._core.predicates import generation_changed as generation_changed
from aioinformer._core.predicates import labelled as labelled
from aioinformer._core.predicates import labels_changed as labels_changed
from aioinformer._core.predicates import where as where
from aioinformer._core.projections import Field as Field
from aioinformer._core.projections import Fields as Fields
from aioinformer._core.projections import field as field
from aioinformer._core.projections import fields as fields
from aioinformer._core.rates import Limits as Limits
from aioinformer._core.requests import ListRequest as ListRequest
from aioinformer._core.requests import WatchRequest as WatchRequest
from aioinformer._core.resources import BUILT_IN as BUILT_IN
from aioinformer._core.resources import Resource as Resource
from aioinformer._core.selectors import FieldSelector as FieldSelector
from aioinformer._core.selectors import LabelSelector as LabelSelector
from aioinformer._core.store import IndexFunction as IndexFunction
from aioinformer._core.verification import Verification as Verification
from aioinformer._runtime.delta_queue import DeltaQueue as DeltaQueue

# informers
from aioinformer._runtime.factory import ALL_NAMESPACES as ALL_NAMESPACES
from aioinformer._runtime.factory import SharedInformerFactory as SharedInformerFactory
from aioinformer._runtime.factory import Source as Source
from aioinformer._runtime.handlers import Handler as Handler
from aioinformer._runtime.health import Health as Health
from aioinformer._runtime.informer import SharedInformer as SharedInformer
from aioinformer._runtime.listeners import Statistics as Statistics
from aioinformer._runtime.live_lister import LiveLister as LiveLister
from aioinformer._runtime.merging import MergedStream as MergedStream
from aioinformer._runtime.merging import Sourced as Sourced
from aioinformer._runtime.merging import merge as merge
from aioinformer._runtime.reflector import Reflector as Reflector
from aioinformer._runtime.registration import Registration as Registration
from aioinformer._runtime.reports import Problem as Problem
from aioinformer._runtime.sources import ListerWatcher as ListerWatcher
from aioinformer._runtime.streams import EventSource as EventSource
from aioinformer._runtime.streams import EventStream as EventStream

if TYPE_CHECKING:
    from aioinformer._client.client import Client as Client
    from aioinformer._client.transport import Timeouts as Timeouts

__all__ = [
    "ALL_NAMESPACES",
    "BUILT_IN",
    "Added",
    "BackoffPolicy",
    "Bookmark",
    "ChangePredicate",
    "Client",
    "CombinedPredicate",
    "DeleteReason",
    "Deleted",
    "Delta",
    "DeltaFIFO",
    "DeltaQueue",
    "Event",
    "EventSource",
    "EventStream",
    "Field",
    "FieldSelector",
    "Fields",
    "Filter",
    "Handler",
    "Health",
    "IndexFunction",
    "Indexer",
    "KubeObject",
    "LabelIndex",
    "LabelSelector",
    "Levels",
    "Limits",
    "ListRequest",
    "Lister",
    "ListerWatcher",
    "LiveLister",
    "LivenessPolicy",
    "MergedStream",
    "Metrics",
    "NoMetrics",
    "ObjectKey",
    "ObjectPredicate",
    "Predicate",
    "Problem",
    "Reflector",
    "Registration",
    "Replaced",
    "Resource",
    "Resync",
    "SharedInformer",
    "SharedInformerFactory",
    "Source",
    "Sourced",
    "Statistics",
    "Timeouts",
    "Updated",
    "Verification",
    "WatchRequest",
    "annotations_changed",
    "changed",
    "errors",
    "field",
    "fields",
    "generation_changed",
    "label_index",
    "labelled",
    "labels_changed",
    "merge",
    "where",
]


_NETWORK = {
    "Client": "aioinformer._client.client",
    "Timeouts": "aioinformer._client.transport",
}


def __getattr__(name: str) -> object:
    """Load what brings the network with it."""
    if name in _NETWORK:
        return getattr(import_module(_NETWORK[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""aioinformer: Kubernetes informers for asyncio.

List once, watch for ever, keep an indexed cache, tell async handlers and streams what changed.

How the parts lie on top of each other, and how data flows up and back down:

    aioinformer        this page: everything public
    __main__, _cli     the command line
    adapters           other libraries' clients and models, Prometheus, OpenTelemetry; for who asks
    testing            an API server to test against, in memory or over HTTP
    _client            the network: credentials, discovery, requests
    _runtime           asyncio: reflector -> queue -> pump -> handlers and streams; the factory
    _core              no I/O: bytes -> objects, the list/watch table, queue, cache, mailboxes
    errors             every exception

``Client``, ``Controller``, ``LeaderElector`` and ``EventRecorder`` are loaded when they are first
used, so that importing this package loads neither an HTTP library nor anyio, and little that few
programs use.
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
from aioinformer._core.requests import ListRequest as ListRequest
from aioinformer._core.requests import WatchRequest as WatchRequest
from aioinformer._core.resources import BUILT_IN as BUILT_IN
from aioinformer._core.resources import Resource as Resource
from aioinformer._core.selectors import FieldSelector as FieldSelector
from aioinformer._core.selectors import LabelSelector as LabelSelector
from aioinformer._core.shapes import Shape as Shape
from aioinformer._core.store import IndexFunction as IndexFunction
from aioinformer._core.tracing import InformerTrace as InformerTrace
from aioinformer._core.tracing import Span as Span
from aioinformer._core.tracing import Tracing as Tracing
from aioinformer._core.transforming import Transform as Transform
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
from aioinformer._runtime.reflector import Reflector as Reflector
from aioinformer._runtime.registration import Registration as Registration
from aioinformer._runtime.reports import Problem as Problem
from aioinformer._runtime.sources import ListerWatcher as ListerWatcher
from aioinformer._runtime.streams import EventSource as EventSource
from aioinformer._runtime.streams import EventStream as EventStream

if TYPE_CHECKING:
    from aioinformer._client.client import Client as Client
    from aioinformer._client.transport import Timeouts as Timeouts
    from aioinformer._core.elections.leases import Fencing as Fencing
    from aioinformer._core.rates import Limits as Limits
    from aioinformer._core.work.failing import FailingKey as FailingKey
    from aioinformer._core.work.items import Priority as Priority
    from aioinformer._core.work.owners import controller_reference as controller_reference
    from aioinformer._core.work.owners import is_controlled_by as is_controlled_by
    from aioinformer._core.work.rate_limiters import FastSlow as FastSlow
    from aioinformer._core.work.rate_limiters import ItemExponential as ItemExponential
    from aioinformer._core.work.rate_limiters import MaxOf as MaxOf
    from aioinformer._core.work.rate_limiters import RateLimiter as RateLimiter
    from aioinformer._core.work.rate_limiters import TokenBucket as TokenBucket
    from aioinformer._core.work.rate_limiters import default_limiter as default_limiter
    from aioinformer._core.work.reconciling import Reason as Reason
    from aioinformer._core.work.reconciling import ReconcileContext as ReconcileContext
    from aioinformer._core.work.reconciling import Result as Result
    from aioinformer._core.work.statistics import QueueStatistics as QueueStatistics
    from aioinformer._runtime.controllers.controller import Controller as Controller
    from aioinformer._runtime.controllers.health import ControllerHealth as ControllerHealth
    from aioinformer._runtime.controllers.queue import WorkQueue as WorkQueue
    from aioinformer._runtime.controllers.reconciles import Reconcile as Reconcile
    from aioinformer._runtime.elections.elector import LeaderElector as LeaderElector
    from aioinformer._runtime.elections.standing import ElectionHealth as ElectionHealth
    from aioinformer._runtime.merging import MergedStream as MergedStream
    from aioinformer._runtime.merging import Sourced as Sourced
    from aioinformer._runtime.merging import merge as merge
    from aioinformer._runtime.recording import EventRecorder as EventRecorder
    from aioinformer._runtime.recording import EventStatistics as EventStatistics
    from aioinformer._runtime.retrying import retry_on_conflict as retry_on_conflict
    from aioinformer._runtime.writing import Patch as Patch
    from aioinformer._runtime.writing import Propagation as Propagation
    from aioinformer._runtime.writing import ResourceWriter as ResourceWriter

__all__ = [
    "ALL_NAMESPACES",
    "BUILT_IN",
    "Added",
    "BackoffPolicy",
    "Bookmark",
    "ChangePredicate",
    "Client",
    "CombinedPredicate",
    "Controller",
    "ControllerHealth",
    "DeleteReason",
    "Deleted",
    "Delta",
    "DeltaFIFO",
    "DeltaQueue",
    "ElectionHealth",
    "Event",
    "EventRecorder",
    "EventSource",
    "EventStatistics",
    "EventStream",
    "FailingKey",
    "FastSlow",
    "Fencing",
    "Field",
    "FieldSelector",
    "Fields",
    "Filter",
    "Handler",
    "Health",
    "IndexFunction",
    "Indexer",
    "InformerTrace",
    "ItemExponential",
    "KubeObject",
    "LabelIndex",
    "LabelSelector",
    "LeaderElector",
    "Levels",
    "Limits",
    "ListRequest",
    "Lister",
    "ListerWatcher",
    "LiveLister",
    "LivenessPolicy",
    "MaxOf",
    "MergedStream",
    "Metrics",
    "NoMetrics",
    "ObjectKey",
    "ObjectPredicate",
    "Patch",
    "Predicate",
    "Priority",
    "Problem",
    "Propagation",
    "QueueStatistics",
    "RateLimiter",
    "Reason",
    "Reconcile",
    "ReconcileContext",
    "Reflector",
    "Registration",
    "Replaced",
    "Resource",
    "ResourceWriter",
    "Result",
    "Resync",
    "Shape",
    "SharedInformer",
    "SharedInformerFactory",
    "Source",
    "Sourced",
    "Span",
    "Statistics",
    "Timeouts",
    "TokenBucket",
    "Tracing",
    "Transform",
    "Updated",
    "Verification",
    "WatchRequest",
    "WorkQueue",
    "annotations_changed",
    "changed",
    "controller_reference",
    "default_limiter",
    "errors",
    "field",
    "fields",
    "generation_changed",
    "is_controlled_by",
    "label_index",
    "labelled",
    "labels_changed",
    "merge",
    "retry_on_conflict",
    "where",
]


_LATE = {
    "is_controlled_by": "aioinformer._core.work.owners",
    "controller_reference": "aioinformer._core.work.owners",
    "Client": "aioinformer._client.client",
    "Controller": "aioinformer._runtime.controllers.controller",
    "ControllerHealth": "aioinformer._runtime.controllers.health",
    "ElectionHealth": "aioinformer._runtime.elections.standing",
    "EventRecorder": "aioinformer._runtime.recording",
    "EventStatistics": "aioinformer._runtime.recording",
    "FailingKey": "aioinformer._core.work.failing",
    "FastSlow": "aioinformer._core.work.rate_limiters",
    "Fencing": "aioinformer._core.elections.leases",
    "ItemExponential": "aioinformer._core.work.rate_limiters",
    "LeaderElector": "aioinformer._runtime.elections.elector",
    "Limits": "aioinformer._core.rates",
    "MaxOf": "aioinformer._core.work.rate_limiters",
    "MergedStream": "aioinformer._runtime.merging",
    "Patch": "aioinformer._runtime.writing",
    "Priority": "aioinformer._core.work.items",
    "Propagation": "aioinformer._runtime.writing",
    "QueueStatistics": "aioinformer._core.work.statistics",
    "RateLimiter": "aioinformer._core.work.rate_limiters",
    "Reason": "aioinformer._core.work.reconciling",
    "Reconcile": "aioinformer._runtime.controllers.reconciles",
    "ReconcileContext": "aioinformer._core.work.reconciling",
    "ResourceWriter": "aioinformer._runtime.writing",
    "Result": "aioinformer._core.work.reconciling",
    "Sourced": "aioinformer._runtime.merging",
    "Timeouts": "aioinformer._client.transport",
    "TokenBucket": "aioinformer._core.work.rate_limiters",
    "WorkQueue": "aioinformer._runtime.controllers.queue",
    "default_limiter": "aioinformer._core.work.rate_limiters",
    "merge": "aioinformer._runtime.merging",
    "retry_on_conflict": "aioinformer._runtime.retrying",
}


def __getattr__(name: str) -> object:
    """Load what brings the network, or anyio, with it, and what few programs use."""
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

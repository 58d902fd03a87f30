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
from aioinformer._core.cache.delta_fifo import DeltaFIFO as DeltaFIFO
from aioinformer._core.cache.indexer import Indexer as Indexer
from aioinformer._core.cache.indexes import LabelIndex as LabelIndex
from aioinformer._core.cache.indexes import label_index as label_index
from aioinformer._core.cache.lister import Lister as Lister
from aioinformer._core.cache.store import IndexFunction as IndexFunction
from aioinformer._core.cache.verification import Verification as Verification
from aioinformer._core.codec.shape import Shape as Shape
from aioinformer._core.codec.shape import Transform as Transform
from aioinformer._core.instrumentation import InformerTrace as InformerTrace
from aioinformer._core.instrumentation import Levels as Levels
from aioinformer._core.instrumentation import Metrics as Metrics
from aioinformer._core.instrumentation import NoMetrics as NoMetrics
from aioinformer._core.instrumentation import Span as Span
from aioinformer._core.instrumentation import Tracing as Tracing

# the parts, usable alone
from aioinformer._core.listwatch.backoff import BackoffPolicy as BackoffPolicy
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy as LivenessPolicy
from aioinformer._core.listwatch.requests import ListRequest as ListRequest
from aioinformer._core.listwatch.requests import WatchRequest as WatchRequest
from aioinformer._core.objects.deltas import Bookmark as Bookmark
from aioinformer._core.objects.deltas import Delta as Delta
from aioinformer._core.objects.deltas import Replaced as Replaced
from aioinformer._core.objects.deltas import Resync as Resync

# cached objects, and what is told of them
from aioinformer._core.objects.kube_object import Added as Added
from aioinformer._core.objects.kube_object import Deleted as Deleted
from aioinformer._core.objects.kube_object import DeleteReason as DeleteReason
from aioinformer._core.objects.kube_object import Event as Event
from aioinformer._core.objects.kube_object import KubeObject as KubeObject
from aioinformer._core.objects.kube_object import ObjectKey as ObjectKey
from aioinformer._core.objects.kube_object import Updated as Updated
from aioinformer._core.objects.resources import BUILT_IN as BUILT_IN
from aioinformer._core.objects.resources import Resource as Resource
from aioinformer._core.selectors.event_filter import Filter as Filter
from aioinformer._core.selectors.predicates import ChangePredicate as ChangePredicate
from aioinformer._core.selectors.predicates import CombinedPredicate as CombinedPredicate
from aioinformer._core.selectors.predicates import ObjectPredicate as ObjectPredicate
from aioinformer._core.selectors.predicates import Predicate as Predicate
from aioinformer._core.selectors.predicates import annotations_changed as annotations_changed
from aioinformer._core.selectors.predicates import changed as changed
from aioinformer._core.selectors.predicates import generation_changed as generation_changed
from aioinformer._core.selectors.predicates import labelled as labelled
from aioinformer._core.selectors.predicates import labels_changed as labels_changed
from aioinformer._core.selectors.predicates import where as where
from aioinformer._core.selectors.projections import Field as Field
from aioinformer._core.selectors.projections import Fields as Fields
from aioinformer._core.selectors.projections import field as field
from aioinformer._core.selectors.projections import fields as fields
from aioinformer._core.selectors.selectors import FieldSelector as FieldSelector
from aioinformer._core.selectors.selectors import LabelSelector as LabelSelector
from aioinformer._runtime.delivery.handlers import Handler as Handler
from aioinformer._runtime.delivery.listener import Statistics as Statistics
from aioinformer._runtime.delivery.registration import Registration as Registration
from aioinformer._runtime.delivery.streams import EventSource as EventSource
from aioinformer._runtime.delivery.streams import EventStream as EventStream

# informers
from aioinformer._runtime.informer.factory import ALL_NAMESPACES as ALL_NAMESPACES
from aioinformer._runtime.informer.factory import SharedInformerFactory as SharedInformerFactory
from aioinformer._runtime.informer.factory import Source as Source
from aioinformer._runtime.informer.informer import SharedInformer as SharedInformer
from aioinformer._runtime.informer.live_lister import LiveLister as LiveLister
from aioinformer._runtime.reflector.delta_queue import DeltaQueue as DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher as ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector as Reflector
from aioinformer._runtime.reporting.health import Health as Health
from aioinformer._runtime.reporting.reporter import Problem as Problem

if TYPE_CHECKING:
    from aioinformer._client.client import Client as Client
    from aioinformer._client.http.transport import Timeouts as Timeouts
    from aioinformer._core.controllers.owner_references import (
        controller_reference as controller_reference,
    )
    from aioinformer._core.controllers.owner_references import is_controlled_by as is_controlled_by
    from aioinformer._core.controllers.owner_references import owner_reference as owner_reference
    from aioinformer._core.controllers.queue_items import Priority as Priority
    from aioinformer._core.controllers.queue_items import QueueStatistics as QueueStatistics
    from aioinformer._core.controllers.rate_limiters import FastSlow as FastSlow
    from aioinformer._core.controllers.rate_limiters import ItemExponential as ItemExponential
    from aioinformer._core.controllers.rate_limiters import MaxOf as MaxOf
    from aioinformer._core.controllers.rate_limiters import RateLimiter as RateLimiter
    from aioinformer._core.controllers.rate_limiters import TokenBucket as TokenBucket
    from aioinformer._core.controllers.rate_limiters import default_limiter as default_limiter
    from aioinformer._core.controllers.reconcile import FailingKey as FailingKey
    from aioinformer._core.controllers.reconcile import Reason as Reason
    from aioinformer._core.controllers.reconcile import ReconcileContext as ReconcileContext
    from aioinformer._core.controllers.reconcile import Result as Result
    from aioinformer._core.leaderelection.lease import Fencing as Fencing
    from aioinformer._core.listwatch.rate_limit import Limits as Limits
    from aioinformer._runtime.controllers.controller import Controller as Controller
    from aioinformer._runtime.controllers.health import ControllerHealth as ControllerHealth
    from aioinformer._runtime.controllers.reconcile_runs import Reconcile as Reconcile
    from aioinformer._runtime.controllers.work_queue import WorkQueue as WorkQueue
    from aioinformer._runtime.delivery.streams import MergedStream as MergedStream
    from aioinformer._runtime.delivery.streams import Sourced as Sourced
    from aioinformer._runtime.delivery.streams import merge as merge
    from aioinformer._runtime.leaderelection.elector import LeaderElector as LeaderElector
    from aioinformer._runtime.leaderelection.health import ElectionHealth as ElectionHealth
    from aioinformer._runtime.writing.event_recorder import EventRecorder as EventRecorder
    from aioinformer._runtime.writing.event_recorder import EventStatistics as EventStatistics
    from aioinformer._runtime.writing.resource_writer import Patch as Patch
    from aioinformer._runtime.writing.resource_writer import Propagation as Propagation
    from aioinformer._runtime.writing.resource_writer import ResourceWriter as ResourceWriter
    from aioinformer._runtime.writing.retry import retry_on_conflict as retry_on_conflict

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
    "owner_reference",
    "retry_on_conflict",
    "where",
]


_LATE = {
    "is_controlled_by": "aioinformer._core.controllers.owner_references",
    "controller_reference": "aioinformer._core.controllers.owner_references",
    "owner_reference": "aioinformer._core.controllers.owner_references",
    "Client": "aioinformer._client.client",
    "Controller": "aioinformer._runtime.controllers.controller",
    "ControllerHealth": "aioinformer._runtime.controllers.health",
    "ElectionHealth": "aioinformer._runtime.leaderelection.health",
    "EventRecorder": "aioinformer._runtime.writing.event_recorder",
    "EventStatistics": "aioinformer._runtime.writing.event_recorder",
    "FailingKey": "aioinformer._core.controllers.reconcile",
    "FastSlow": "aioinformer._core.controllers.rate_limiters",
    "Fencing": "aioinformer._core.leaderelection.lease",
    "ItemExponential": "aioinformer._core.controllers.rate_limiters",
    "LeaderElector": "aioinformer._runtime.leaderelection.elector",
    "Limits": "aioinformer._core.listwatch.rate_limit",
    "MaxOf": "aioinformer._core.controllers.rate_limiters",
    "MergedStream": "aioinformer._runtime.delivery.streams",
    "Patch": "aioinformer._runtime.writing.resource_writer",
    "Priority": "aioinformer._core.controllers.queue_items",
    "Propagation": "aioinformer._runtime.writing.resource_writer",
    "QueueStatistics": "aioinformer._core.controllers.queue_items",
    "RateLimiter": "aioinformer._core.controllers.rate_limiters",
    "Reason": "aioinformer._core.controllers.reconcile",
    "Reconcile": "aioinformer._runtime.controllers.reconcile_runs",
    "ReconcileContext": "aioinformer._core.controllers.reconcile",
    "ResourceWriter": "aioinformer._runtime.writing.resource_writer",
    "Result": "aioinformer._core.controllers.reconcile",
    "Sourced": "aioinformer._runtime.delivery.streams",
    "Timeouts": "aioinformer._client.http.transport",
    "TokenBucket": "aioinformer._core.controllers.rate_limiters",
    "WorkQueue": "aioinformer._runtime.controllers.work_queue",
    "default_limiter": "aioinformer._core.controllers.rate_limiters",
    "merge": "aioinformer._runtime.delivery.streams",
    "retry_on_conflict": "aioinformer._runtime.writing.retry",
}


def __getattr__(name: str) -> object:
    """Load what brings the network, or anyio, with it, and what few programs use."""
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

# The package as type checkers see it. tests/test_public_names.py compares this with __init__.py.

from aioinformer import errors
from aioinformer._client.client import Client
from aioinformer._client.http.request import Timeouts
from aioinformer._core.cache.indexes import label_index
from aioinformer._core.cache.lister import Lister
from aioinformer._core.listwatch.backoff import BackoffPolicy
from aioinformer._core.listwatch.liveness import LivenessPolicy
from aioinformer._core.listwatch.rate_limit import Limits
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    DeleteReason,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
)
from aioinformer._core.objects.resources import Resource
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._core.selectors.parsed_selectors import FieldSelector, LabelSelector
from aioinformer._core.selectors.predicates import (
    annotations_changed,
    changed,
    generation_changed,
    labelled,
    labels_changed,
    where,
)
from aioinformer._core.selectors.projections import field, fields
from aioinformer._informers.factory import ALL_NAMESPACES, SharedInformerFactory
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.delivery.handlers import Handler
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.delivery.statistics import Statistics
from aioinformer._runtime.delivery.streams import EventStream, merge
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.reporting.problem import Problem
from aioinformer._runtime.writing.resource_writer import ResourceWriter
from aioinformer._runtime.writing.retry import retry_on_conflict
from aioinformer.api import *
from aioinformer.cachefile.cache_file import CacheFile
from aioinformer.conditions import *
from aioinformer.controllers import *
from aioinformer.controllers.controller import Controller
from aioinformer.controllers.reconcile_context import ReconcileContext
from aioinformer.controllers.state.owner_references import (
    is_controlled_by,
    owner_reference,
    set_owner,
)
from aioinformer.controllers.state.reconcile import Result
from aioinformer.controllers.work_queue import WorkQueue
from aioinformer.eventrecorder import *
from aioinformer.eventrecorder.event_recorder import EventRecorder
from aioinformer.leaderelection import *
from aioinformer.leaderelection.elector import LeaderElector
from aioinformer.lowlevel import *
from aioinformer.metrics import *
from aioinformer.namespaces.state.scopes import Scope
from aioinformer.operator import *
from aioinformer.operator.operator import Operator
from aioinformer.selectors import *
from aioinformer.shardgroup import *
from aioinformer.shardgroup.group import ShardGroup
from aioinformer.sharding import *
from aioinformer.sharding.state.shard import Shard
from aioinformer.tracing import *
from aioinformer.verification import *

__all__ = [
    "ALL_NAMESPACES",
    "Added",
    "BackoffPolicy",
    "CacheFile",
    "Client",
    "Controller",
    "DeleteReason",
    "Deleted",
    "Event",
    "EventRecorder",
    "EventStream",
    "FieldSelector",
    "Filter",
    "Handler",
    "Health",
    "KubeObject",
    "LabelSelector",
    "LeaderElector",
    "Limits",
    "Lister",
    "LivenessPolicy",
    "ObjectKey",
    "Operator",
    "Problem",
    "ReconcileContext",
    "Registration",
    "Resource",
    "ResourceWriter",
    "Result",
    "Scope",
    "Shard",
    "ShardGroup",
    "SharedInformer",
    "SharedInformerFactory",
    "Statistics",
    "Timeouts",
    "Updated",
    "WorkQueue",
    "annotations_changed",
    "changed",
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
    "set_owner",
    "where",
]

"""Kubernetes informers for asyncio.

An informer lists a resource once, watches it for ever, keeps an indexed cache of it, and delivers
every change to async handlers and event streams::

    kube-apiserver ──HTTP chunks──▶ Client ──▶ Reflector ──▶ DeltaFIFO ──pump──▶ Indexer ◀── Lister
                                                                           ├──▶ Mailbox ▶ handler
                                                                           └──▶ Mailbox ▶ stream

The packages, from the top down; an import points downward only:

    __main__, _cli     the command line
    testing            an embedded Kubernetes API server, fault injection, simulation
    adapters           other libraries' clients and models, ASGI, Prometheus, OpenTelemetry
    api ... tracing    public names that few programs need, one page for each topic
    operator           controllers as a whole program: signals, probes, exit codes
    controllers        work queue, workers, finalizers, own writes
    shardgroup         groups of replicas that share the shards of a resource
    leaderelection, eventrecorder
    _informers         informers and their factory, as programs hold them
    cachefile, namespaces, sharding, verification
    _client            HTTP: credentials, discovery, requests
    _runtime           asyncio: reflector, pump, handlers, streams
    _core              pure state: decoding, list/watch state machine, cache, mailboxes
    errors             every exception

``_core`` and ``_runtime`` are the heart. ``cachefile``, ``namespaces``, ``sharding`` and
``verification`` are features that attach to an informer. The packages above ``_informers`` use
informers.

The examples of this reference are tested. In an example, ``client`` is an open ``Client``,
``informers`` a running ``SharedInformerFactory`` in the namespace ``web``, ``pods`` and
``deployments`` two synced informers, ``ctx`` the context of a reconcile, and all names of this page
are imported. Where an example awaits outside of a function, read it as a part of an async function.

This package loads a name when a program first uses the name. So ``import aioinformer`` takes a
millisecond, and a program pays for the parts that it uses.
"""

from importlib import import_module

_MODULES = {
    # the connection
    "_client.client": "Client",
    "_client.http.request": "Timeouts",
    "_core.listwatch.rate_limit": "Limits",
    "_core.objects.resources": "Resource",
    # informers
    "_informers.factory": "ALL_NAMESPACES SharedInformerFactory",
    "_informers.informer": "SharedInformer",
    "cachefile.cache_file": "CacheFile",
    "_runtime.delivery.registration": "Registration",
    "_runtime.delivery.streams": "EventStream merge",
    "_runtime.delivery.handlers": "Handler",
    "_runtime.delivery.statistics": "Statistics",
    "_runtime.reporting.health": "Health",
    "_runtime.reporting.problem": "Problem",
    "_core.cache.lister": "Lister",
    "_core.listwatch.backoff": "BackoffPolicy",
    "_core.listwatch.liveness": "LivenessPolicy",
    # objects and events
    "_core.objects.kube_object": "Added DeleteReason Deleted Event KubeObject ObjectKey Updated",
    # indexes, filters and selectors
    "_core.cache.indexes": "label_index",
    "_core.selectors.event_filter": "Filter",
    "_core.selectors.predicates": (
        "annotations_changed changed generation_changed labelled labels_changed where"
    ),
    "_core.selectors.projections": "field fields",
    "namespaces.state.scopes": "Scope",
    "_core.selectors.parsed_selectors": "FieldSelector LabelSelector",
    "sharding.state.shard": "Shard",
    # controllers
    "operator.operator": "Operator",
    "controllers.controller": "Controller",
    "controllers.work_queue": "WorkQueue",
    "controllers.reconcile_context": "ReconcileContext",
    "controllers.state.reconcile": "Result",
    "controllers.state.owner_references": "is_controlled_by owner_reference set_owner",
    "leaderelection.elector": "LeaderElector",
    "shardgroup.group": "ShardGroup",
    "eventrecorder.event_recorder": "EventRecorder",
    "_runtime.writing.resource_writer": "ResourceWriter",
    "_runtime.writing.retry": "retry_on_conflict",
}
"""The names that this package documents, by module; ``__init__.pyi`` repeats them."""

_PAGES = {
    "api": (
        "ListKeywords LogKeywords ObjectList ObjectWatch ResourceApi Scale ServedResource"
        " ResourceList WatchEvent WatchKeywords"
    ),
    "conditions": (
        "Condition ConditionLike ConditionStatus PresentCondition all_of any_of condition_true"
        " crd_established deleted exists job_complete negate rollout_complete set_condition"
    ),
    "controllers": (
        "ControllerHealth ControllerOptions FailingKey FastSlow ItemExponential MaxOf Patch"
        " Priority Propagation QueueStatistics RateLimiter Reason Reconcile TokenBucket"
        " WriterSource default_limiter"
    ),
    "eventrecorder": "EventStatistics",
    "leaderelection": "ElectionHealth Fencing",
    "lowlevel": (
        "BUILT_IN Bookmark CacheMemory Delta DeltaFIFO DeltaQueue Feature IndexFunction Indexer"
        " InformerOptions InformerParts ListRequest ListerWatcher Reflector ReflectorOptions"
        " Replaced Resync ScopeHealth Shape Source Start Transform WatchRequest"
    ),
    "metrics": "Levels Metrics",
    "operator": "ControllerBuilder OperatorHealth OperatorOptions",
    "selectors": (
        "ChangePredicate CombinedPredicate EventSource Field Fields LabelIndex MergedStream"
        " ObjectPredicate Predicate Sourced"
    ),
    "shardgroup": "GroupClient GroupHealth GroupSubscription",
    "sharding": "ShardAssignment ShardSubscription",
    "tracing": "InformerTrace Span Tracing",
    "verification": "Verification",
}
"""The names that a page documents, by page. This package exports the names as well."""

_MODULE_OF = {
    name: f"{__name__}.{module}"
    for module, names in (_MODULES | _PAGES).items()
    for name in names.split()
}

# A computed ``__all__`` would be an error for type checkers, which read the list of the stub.
globals()["__all__"] = sorted(["errors", *" ".join(_MODULES.values()).split()])


def __getattr__(name: str) -> object:
    if name == "errors":
        return import_module(f"{__name__}.errors")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value  # the next use does not call this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, "errors"})

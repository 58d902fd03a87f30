"""All exceptions that aioinformer raises on purpose.

Foreign exceptions (of aiohttp, ssl, msgspec, yaml) are mapped to one of these where they enter the
library, and are kept as ``__cause__``. So a program needs to know only the exceptions of this page.
A wrong argument that the signature already forbids stays a ``TypeError`` or ``ValueError``. No
message contains a credential: messages are built from hosts, paths, names and the server's
``Status``.

    InformerError
    ├── UsageError                 the program requested something impossible
    │   ├── ConfigurationError     no usable kubeconfig, context or in-cluster files
    │   ├── InvalidSelector        a label or field selector that doesn't parse
    │   ├── InvalidPath            a path into an object that doesn't parse
    │   ├── PathMismatch           a strict path doesn't fit the object
    │   ├── UnknownResource        no resource of that name
    │   │   └── AmbiguousResource  several groups have one; ``candidates`` lists full names
    │   ├── UnwatchableResource    the resource can't be listed and watched
    │   ├── NotSynced              the cache was read before its initial list was complete
    │   ├── IndexFailed            the function of an index raised at an object
    │   ├── NotComparable          a resourceVersion that can't be compared with others
    │   └── NotRunning             the informer, stream or factory has ended, or was not started
    ├── FetchError                 a request failed; ``phase`` is its purpose
    │   ├── ServerError            the API server answered with an error; see ``status``
    │   │   ├── BadRequest, Unauthorized, Forbidden, NotFound, Conflict, Invalid
    │   │   │   └── AlreadyExists  a 409 for which reading again does not help
    │   │   ├── Expired            the resourceVersion or continue token is too old (410)
    │   │   ├── TooManyRequests    429
    │   │   └── ServerFailure      5xx
    │   ├── TransportError         the network did not carry the request or the response
    │   │   ├── ConnectionFailed   no connection: refused, unknown host, TLS
    │   │   ├── ConnectionLost     the connection broke during the response
    │   │   └── RequestTimedOut    no response within the time allowed
    │   ├── ResourceMoved          the resource is served in another version now
    │   ├── ServerRewound          the server was restored from a backup
    │   └── ProtocolError          the response is not that of a Kubernetes API server
    │       ├── LineTooLong        a watch event is longer than the limit
    │       └── UnexpectedObject   an object of another kind or namespace
    ├── HandlerTimeout             a call of a handler took longer than its ``timeout=``
    ├── HandlerCancelled           a handler raised a CancelledError without being cancelled
    ├── ObjectDecodeError          the body of a cached object is not valid JSON
    ├── ModelMismatch              an object doesn't fit ``model=``, or ``convert=`` raised
    ├── TransformFailed            ``transform=`` raised at an object
    ├── NotCached                  ``lister[...]`` of an object that the cache doesn't hold
    ├── AlreadyOwned               an object has another controller already
    ├── SyncTimeout                ``wait_synced`` timed out; names the informers and reasons
    ├── CacheWaitTimeout           the cache did not reach an awaited state in time
    ├── ListenerOverflow           a listener with ``overflow="error"`` was too slow
    ├── QueueShutDown              a work queue was shut down, and is empty
    ├── ReconcileTimeout           a controller's reconciler took longer than its ``timeout=``
    ├── CleanupFailed              a controller's cleanup raised a PermanentError; it is retried
    ├── PermanentError             raised by a reconciler: no retry before the object changes
    ├── TemporaryError             raised by a reconciler: retried after a time of its own
    ├── LeadershipLost             the lease was lost, and the body under it was cancelled
    ├── ShardLost                  a write to an object whose shard another replica may hold
    └── ShutdownIncomplete         a task did not end in the time allowed for leaving

Example::

    from aioinformer.errors import (
        AlreadyExists, BadRequest, Conflict, ConnectionFailed, ConnectionLost, Expired, FetchError,
        Forbidden, Invalid, LineTooLong, NotFound, Phase, ProtocolError, RequestTimedOut,
        ResourceMoved, ServerError, ServerFailure, ServerRewound, Status, TooManyRequests,
        TransportError, Unauthorized, UnexpectedObject, server_error,
    )

    def advise(error: FetchError) -> str:
        match error:
            case Unauthorized() | Forbidden():
                return "check the credentials and the roles"
            case AlreadyExists() | Conflict():
                return "read the object again"
            case NotFound() | BadRequest() | Invalid():
                return "correct the request"
            case Expired() | TooManyRequests() | ServerFailure():
                return "try again later"
            case ConnectionFailed() | ConnectionLost() | RequestTimedOut() | TransportError():
                return "check the network"
            case ResourceMoved() | ServerRewound():
                return "nothing: the informer reads the whole state again"
            case LineTooLong() | UnexpectedObject() | ProtocolError():
                return "check what answers at this address"
            case _:
                return str(error)

    try:
        await client.api("pods", namespace="web").get("web-9")
    except ServerError as error:
        status: Status = error.status
        assert (status.code, advise(error)) == (404, "correct the request")

    reading: Phase = "list"
    assert isinstance(server_error(Status(410), phase=reading), Expired)

Example::

    from aioinformer.errors import (
        HandlerCancelled, HandlerTimeout, InformerError, ListenerOverflow, ModelMismatch,
        ObjectDecodeError, TransformFailed,
    )

    def on_error(problem: Problem) -> None:
        match problem.error:
            case HandlerTimeout() | HandlerCancelled() | ListenerOverflow():
                print("a handler is too slow:", problem)
            case ModelMismatch() | TransformFailed() | IndexFailed() | ObjectDecodeError():
                print("an object is rejected:", problem)
            case InformerError():
                print(problem)

    nodes = informers.informer("nodes", on_error=on_error)

Example::

    from aioinformer.errors import (
        AlreadyOwned, CleanupFailed, IndexFailed, NotCached, PathMismatch, PermanentError,
        QueueShutDown, ReconcileTimeout, Stale, TemporaryError,
    )

    try:
        pods.lister["web-9"]
    except NotCached as error:
        print(error)

    try:  # a strict path doesn't pass over a value of another type
        field("metadata.name.first", strict=True)(pods.lister["web-0"])
    except PathMismatch as error:
        print(error)

    try:
        await pods.add_index("broken", lambda pod: pod["spec"]["absent"])
    except IndexFailed as error:
        print(error)

    queue = WorkQueue[str]()
    queue.shut_down()
    try:
        await queue.get()
    except QueueShutDown:
        print("the worker ends")

    try:
        await pods.wait_until("web-0", where("status.phase", "Failed"), timeout=0.01)
    except Stale as error:
        print(error)

    async def reconcile(key: ObjectKey, run: ReconcileContext) -> None:
        if not key.name.startswith("shop"):
            raise PermanentError("only shops are reconciled")  # not retried before a change
        if deployments.lister.get(key.name + "-db") is None:
            raise TemporaryError("the database is missing", requeue_after=30)

    def report(problem: Problem) -> None:
        match problem.error:
            case ReconcileTimeout() | CleanupFailed():
                print("is retried:", problem)

    async with Controller(deployments, reconcile, timeout=10, on_error=report) as controller:
        await controller.wait_synced(timeout=30)
        assert controller.failing("shop") is None

    try:
        set_owner({"metadata": {"ownerReferences": [
            owner_reference(pods.lister["web-0"])
        ]}}, deployments.lister["shop"])
    except AlreadyOwned as error:
        print(error)

Example::

    from aioinformer.errors import (
        AmbiguousResource, NotComparable, NotRunning, ShutdownIncomplete, UnwatchableResource,
        UsageError,
    )

    try:
        unstarted = SharedInformerFactory(client)
        await unstarted.wait_synced()
    except UsageError as error:
        print(error)  # says to enter the factory

    try:
        async with SharedInformerFactory(client, shutdown_timeout=5) as short:
            services = short.informer("services")
    except ShutdownIncomplete as error:
        print("still running:", error)
    try:
        services.add_handler(print)
    except NotRunning as error:
        print(error)

    try:
        await client.resource("tokenreviews")
    except AmbiguousResource as error:
        print("choose one of", error.candidates)
    except UnwatchableResource as error:
        print("it lacks the verbs", error.lacks)

    try:
        odd = {"metadata": {"name": "web-0", "namespace": "web", "uid": "1"}}
        odd["metadata"]["resourceVersion"] = "one"
        await pods.wait_for(odd, timeout=1)
    except NotComparable as error:
        print(error)
"""

from aioinformer.errors.requests import AlreadyExists as AlreadyExists
from aioinformer.errors.requests import BadRequest as BadRequest
from aioinformer.errors.requests import Conflict as Conflict
from aioinformer.errors.requests import ConnectionFailed as ConnectionFailed
from aioinformer.errors.requests import ConnectionLost as ConnectionLost
from aioinformer.errors.requests import Expired as Expired
from aioinformer.errors.requests import FetchError as FetchError
from aioinformer.errors.requests import Forbidden as Forbidden
from aioinformer.errors.requests import Invalid as Invalid
from aioinformer.errors.requests import LineTooLong as LineTooLong
from aioinformer.errors.requests import NotFound as NotFound
from aioinformer.errors.requests import Phase as Phase
from aioinformer.errors.requests import ProtocolError as ProtocolError
from aioinformer.errors.requests import RequestTimedOut as RequestTimedOut
from aioinformer.errors.requests import ResourceMoved as ResourceMoved
from aioinformer.errors.requests import ServerError as ServerError
from aioinformer.errors.requests import ServerFailure as ServerFailure
from aioinformer.errors.requests import ServerRewound as ServerRewound
from aioinformer.errors.requests import Status as Status
from aioinformer.errors.requests import TooManyRequests as TooManyRequests
from aioinformer.errors.requests import TransportError as TransportError
from aioinformer.errors.requests import Unauthorized as Unauthorized
from aioinformer.errors.requests import UnexpectedObject as UnexpectedObject
from aioinformer.errors.requests import server_error as server_error
from aioinformer.errors.runtime import AlreadyOwned as AlreadyOwned
from aioinformer.errors.runtime import CacheWaitTimeout as CacheWaitTimeout
from aioinformer.errors.runtime import CleanupFailed as CleanupFailed
from aioinformer.errors.runtime import HandlerCancelled as HandlerCancelled
from aioinformer.errors.runtime import HandlerTimeout as HandlerTimeout
from aioinformer.errors.runtime import LeadershipLost as LeadershipLost
from aioinformer.errors.runtime import ListenerOverflow as ListenerOverflow
from aioinformer.errors.runtime import ModelMismatch as ModelMismatch
from aioinformer.errors.runtime import NotCached as NotCached
from aioinformer.errors.runtime import ObjectDecodeError as ObjectDecodeError
from aioinformer.errors.runtime import PermanentError as PermanentError
from aioinformer.errors.runtime import QueueShutDown as QueueShutDown
from aioinformer.errors.runtime import ReconcileTimeout as ReconcileTimeout
from aioinformer.errors.runtime import ShardLost as ShardLost
from aioinformer.errors.runtime import ShutdownIncomplete as ShutdownIncomplete
from aioinformer.errors.runtime import Stale as Stale
from aioinformer.errors.runtime import SyncTimeout as SyncTimeout
from aioinformer.errors.runtime import TemporaryError as TemporaryError
from aioinformer.errors.runtime import TransformFailed as TransformFailed
from aioinformer.errors.usage import AmbiguousResource as AmbiguousResource
from aioinformer.errors.usage import ConfigurationError as ConfigurationError
from aioinformer.errors.usage import IndexFailed as IndexFailed
from aioinformer.errors.usage import InformerError as InformerError
from aioinformer.errors.usage import InvalidPath as InvalidPath
from aioinformer.errors.usage import InvalidSelector as InvalidSelector
from aioinformer.errors.usage import NotComparable as NotComparable
from aioinformer.errors.usage import NotRunning as NotRunning
from aioinformer.errors.usage import NotSynced as NotSynced
from aioinformer.errors.usage import PathMismatch as PathMismatch
from aioinformer.errors.usage import UnknownResource as UnknownResource
from aioinformer.errors.usage import UnwatchableResource as UnwatchableResource
from aioinformer.errors.usage import UsageError as UsageError

__all__ = [
    "AlreadyExists",
    "AlreadyOwned",
    "AmbiguousResource",
    "BadRequest",
    "CacheWaitTimeout",
    "CleanupFailed",
    "ConfigurationError",
    "Conflict",
    "ConnectionFailed",
    "ConnectionLost",
    "Expired",
    "FetchError",
    "Forbidden",
    "HandlerCancelled",
    "HandlerTimeout",
    "IndexFailed",
    "InformerError",
    "Invalid",
    "InvalidPath",
    "InvalidSelector",
    "LeadershipLost",
    "LineTooLong",
    "ListenerOverflow",
    "ModelMismatch",
    "NotCached",
    "NotComparable",
    "NotFound",
    "NotRunning",
    "NotSynced",
    "ObjectDecodeError",
    "PathMismatch",
    "PermanentError",
    "Phase",
    "ProtocolError",
    "QueueShutDown",
    "ReconcileTimeout",
    "RequestTimedOut",
    "ResourceMoved",
    "ServerError",
    "ServerFailure",
    "ServerRewound",
    "ShardLost",
    "ShutdownIncomplete",
    "Stale",
    "Status",
    "SyncTimeout",
    "TemporaryError",
    "TooManyRequests",
    "TransformFailed",
    "TransportError",
    "Unauthorized",
    "UnexpectedObject",
    "UnknownResource",
    "UnwatchableResource",
    "UsageError",
    "server_error",
]


for _name in __all__:
    _error = globals()[_name]
    if isinstance(_error, type):
        _error.__module__ = __name__  # tracebacks and logs show the module that programs import

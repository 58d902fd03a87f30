"""All exceptions that aioinformer raises on purpose.

Foreign exceptions (of aiohttp, ssl, msgspec, yaml) are mapped to one of these where they enter the
library, and are kept as ``__cause__``. A wrong argument that the signature already forbids stays a
``TypeError`` or ``ValueError``. No message contains a credential: messages are built from hosts,
paths, names and the server's ``Status``.

    InformerError
    ├── UsageError                 the program requested something impossible
    │   ├── ConfigurationError, InvalidSelector, InvalidPath, PathMismatch, UnwatchableResource,
    │   │   NotSynced, IndexFailed, NotComparable, NotRunning
    │   └── UnknownResource
    │       └── AmbiguousResource
    ├── FetchError                 a request failed; ``phase`` is its purpose
    │   ├── ServerError            the API server answered with an error; see ``status``
    │   │   ├── BadRequest, Unauthorized, Forbidden, NotFound, Conflict, Invalid
    │   │   │   └── AlreadyExists  a Conflict for which reading again does not help
    │   │   └── Expired (410), TooManyRequests (429), ServerFailure (5xx)
    │   ├── TransportError         the network did not carry the request or the response
    │   │   └── ConnectionFailed, ConnectionLost, RequestTimedOut
    │   ├── ResourceMoved, ServerRewound
    │   └── ProtocolError          the response is not that of a Kubernetes API server
    │       └── LineTooLong, UnexpectedObject
    ├── HandlerTimeout, HandlerCancelled, ListenerOverflow                 handlers and streams
    ├── ObjectDecodeError, ModelMismatch, TransformFailed, NotCached       objects
    ├── SyncTimeout, CacheWaitTimeout                                      the cache
    ├── QueueShutDown, ReconcileTimeout, CleanupFailed, AlreadyOwned       controllers
    ├── PermanentError, TemporaryError                                     raised by a reconciler
    └── LeadershipLost, ShardLost, ShutdownIncomplete                      the process

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
        AlreadyOwned, CacheWaitTimeout, CleanupFailed, IndexFailed, NotCached, PathMismatch,
        PermanentError, QueueShutDown, ReconcileTimeout, TemporaryError,
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
    except CacheWaitTimeout as error:
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

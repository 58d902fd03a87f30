"""Every exception that aioinformer raises on purpose, by who is at fault.

Foreign exceptions (aiohttp, ssl, msgspec, yaml) become one of these at one border each and are
kept as ``__cause__``, so that a program needs to know this page alone. A wrong argument that the
signature already forbids stays the ``TypeError`` or ``ValueError`` that Python users expect.
No message here ever carries a credential: they are built from hosts, paths, names and the
server's own ``Status``.

    InformerError
    ├── UsageError                 the calling program asked for something that can't be
    │   ├── ConfigurationError     no usable kubeconfig, context or in-cluster files
    │   ├── InvalidSelector        a label or field selector that doesn't parse
    │   ├── InvalidPath            a path into an object that doesn't parse
    │   ├── PathMismatch           a strict path doesn't fit the object that it was asked of
    │   ├── UnknownResource        no resource of that name
    │   │   └── AmbiguousResource  several groups have one; ``candidates`` tells them apart
    │   ├── UnwatchableResource    it is there, and can't be listed and watched
    │   ├── NotSynced              the cache was read before its first full state
    │   ├── IndexFailed            a new index's function raised; says at which object
    │   ├── NotComparable          a resourceVersion that can't be compared with others
    │   └── NotRunning             the informer or factory has ended, or never started
    ├── FetchError                 a request failed; ``phase`` says during what
    │   ├── ServerError            the API server answered, with an error; ``status`` has it
    │   │   ├── BadRequest, Unauthorized, Forbidden, NotFound, Conflict, Invalid
    │   │   │   └── AlreadyExists  the other 409, which reading again does not help
    │   │   ├── Expired            the resourceVersion or continue token is gone (410)
    │   │   ├── TooManyRequests    429
    │   │   └── ServerFailure      5xx
    │   ├── TransportError         the network did not carry the request or the answer
    │   │   ├── ConnectionFailed   never reached: refused, unknown host, TLS
    │   │   ├── ConnectionLost     broken off in the middle
    │   │   └── RequestTimedOut    nothing came within the time allowed
    │   ├── ResourceMoved          the resource is served in another version now
    │   ├── ServerRewound          the server was restored from a backup
    │   └── ProtocolError          the answer is not what a Kubernetes API server sends
    │       └── LineTooLong        one watch event is longer than the cap
    ├── HandlerTimeout             a call of a handler took longer than its ``timeout=``
    ├── HandlerCancelled           a handler raised a CancelledError that nobody asked for
    ├── ObjectDecodeError          a cached body turned out not to be JSON when it was opened
    ├── ModelMismatch              an object doesn't fit ``model=``, or ``convert=`` raised at it
    ├── TransformFailed            ``transform=`` raised at an object
    ├── NotCached                  ``lister[...]`` of an object that the cache doesn't hold
    ├── SyncTimeout                ``wait_synced`` ran out of time; says which informers, and why
    ├── CacheWaitTimeout           the cache did not reach an awaited state in time; says why
    ├── CacheDiffers               a cache was compared with the server, and isn't the same
    ├── ListenerOverflow           a listener with ``overflow="error"`` was too slow
    ├── QueueShutDown              a work queue was shut down, and is empty
    ├── ReconcileTimeout           a controller's reconciler took longer than its ``timeout=``
    ├── LeadershipLost             the lease was lost; what ran under it was cancelled
    └── ShutdownIncomplete         something did not end in the time that leaving allows
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
from aioinformer.errors.requests import server_error as server_error
from aioinformer.errors.runtime import CacheDiffers as CacheDiffers
from aioinformer.errors.runtime import CacheWaitTimeout as CacheWaitTimeout
from aioinformer.errors.runtime import HandlerCancelled as HandlerCancelled
from aioinformer.errors.runtime import HandlerTimeout as HandlerTimeout
from aioinformer.errors.runtime import LeadershipLost as LeadershipLost
from aioinformer.errors.runtime import ListenerOverflow as ListenerOverflow
from aioinformer.errors.runtime import ModelMismatch as ModelMismatch
from aioinformer.errors.runtime import NotCached as NotCached
from aioinformer.errors.runtime import ObjectDecodeError as ObjectDecodeError
from aioinformer.errors.runtime import QueueShutDown as QueueShutDown
from aioinformer.errors.runtime import ReconcileTimeout as ReconcileTimeout
from aioinformer.errors.runtime import ShutdownIncomplete as ShutdownIncomplete
from aioinformer.errors.runtime import Stale as Stale
from aioinformer.errors.runtime import SyncTimeout as SyncTimeout
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
    "AmbiguousResource",
    "BadRequest",
    "CacheDiffers",
    "CacheWaitTimeout",
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
    "Phase",
    "ProtocolError",
    "QueueShutDown",
    "ReconcileTimeout",
    "RequestTimedOut",
    "ResourceMoved",
    "ServerError",
    "ServerFailure",
    "ServerRewound",
    "ShutdownIncomplete",
    "Stale",
    "Status",
    "SyncTimeout",
    "TooManyRequests",
    "TransformFailed",
    "TransportError",
    "Unauthorized",
    "UnknownResource",
    "UnwatchableResource",
    "UsageError",
    "server_error",
]


for _name in __all__:
    _error = globals()[_name]
    if isinstance(_error, type):
        _error.__module__ = __name__  # tracebacks and logs name the page that programs import

"""What goes wrong while informers run: in handlers, in objects, in waits and at the end.

None of these is a request's failure; those are in ``requests``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from aioinformer.errors.usage import InformerError

__all__ = [
    "CacheDiffers",
    "CacheWaitTimeout",
    "HandlerCancelled",
    "HandlerTimeout",
    "LeadershipLost",
    "ListenerOverflow",
    "ModelMismatch",
    "NotCached",
    "ObjectDecodeError",
    "QueueShutDown",
    "ReconcileTimeout",
    "ShutdownIncomplete",
    "Stale",
    "SyncTimeout",
    "TransformFailed",
]


class HandlerTimeout(InformerError, TimeoutError):
    """A call of a handler took longer than its ``timeout=``."""


class HandlerCancelled(InformerError):
    """A handler raised a CancelledError that nobody asked for, or something else that is no
    ``Exception``, or cancelled its own task. What it raised is the ``__cause__``.

    It stands for it wherever an ``Exception`` is expected: a bare one would end a task silently.
    """


class ObjectDecodeError(InformerError):
    """A cached body turned out not to be valid JSON when it was opened, or its metadata to be of
    other types than every object's are.

    What the cache needs was readable, so the object is cached under its key; its body is not, or
    not at ``path``, if that isn't empty. The handler that opened it is not to blame.
    """

    def __init__(self, message: str, *, key: str, resource_version: str, path: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.path = path
        self.resource_version = resource_version


class _ConversionFailure(InformerError):
    """What a program asked to be made of an object could not be made of it."""

    def __init__(self, message: str, *, key: str, resource_version: str) -> None:
        super().__init__(message)
        self.key = key
        self.resource_version = resource_version


class ModelMismatch(_ConversionFailure):
    """An object doesn't fit the ``model=`` of its informer, or ``convert=`` raised at it, which is
    the ``__cause__``.

    With ``model=`` it is found as the object is read: what was cached of it stays, and it is in
    ``health.rejected``. With ``convert=`` it is found by who looks at the object, and raised there.
    """


class TransformFailed(_ConversionFailure):
    """The ``transform=`` of an informer raised at an object, or returned what it may not.

    What was cached of the object stays, and it is in ``health.rejected``.
    """


class NotCached(InformerError, KeyError):
    """``lister[key]`` of an object that the cache doesn't hold. ``lister.get(key)`` is ``None``.

    It is a ``KeyError``, as of any mapping, and not ``NotFound``, which is an API server's answer:
    the server may have the object, in a later state or outside of what is cached.
    """

    def __init__(self, resource: object, key: object) -> None:
        super().__init__(f"{key} is not among the cached {resource}")
        self.resource = str(resource)
        self.key = str(key)

    def __str__(self) -> str:  # that of KeyError puts quotes around it
        return str(self.args[0])


MAX_LISTED = 5
"""Informers that the message of a ``SyncTimeout`` names; a program may have hundreds."""


class SyncTimeout(InformerError, TimeoutError):
    """``wait_synced`` ran out of time.

    ``unsynced`` maps the name of each informer that is not synced to what its health says; the
    message has five of them, and how many more there are.
    """

    def __init__(self, timeout: float, unsynced: Mapping[str, str]) -> None:
        told = [f"{name}: {why}" for name, why in islice(unsynced.items(), MAX_LISTED)]
        if len(unsynced) > MAX_LISTED:
            told.append(f"and {len(unsynced) - MAX_LISTED} more")
        super().__init__(f"not synced after {timeout:g} s: {'; '.join(told)}")
        self.unsynced = dict(unsynced)


class CacheWaitTimeout(InformerError, TimeoutError):
    """The cache did not reach an awaited state within the ``timeout=`` of the call.

    ``wait_for``, ``wait_until`` and ``verify`` raise this error. The message contains the
    informer's health. ``resource_version`` is the version up to which the cache has applied all
    changes.
    """

    def __init__(self, message: str, *, resource_version: str) -> None:
        super().__init__(message)
        self.resource_version = resource_version


Stale = CacheWaitTimeout
"""Alias of ``CacheWaitTimeout``."""


class CacheDiffers(InformerError):
    """With ``verify_every=``: the cache was compared with the server's state of the same version,
    and isn't the same. ``differences`` has the keys, and how each differs (``Difference``).

    That is a fault of this library, or of the server. Nothing is done about it but to say so.
    """

    def __init__(self, message: str, *, differences: Mapping[str, str]) -> None:
        super().__init__(message)
        self.differences = dict(differences)


class ListenerOverflow(InformerError):
    """More events were pending than a listener with ``overflow="error"`` allows, or the changes of
    two lists. It was ended and hears no more; ``limit`` is what it allowed.
    """

    def __init__(self, name: str, *, limit: int) -> None:
        super().__init__(
            f"{name} was ended: it was too slow for a limit of {limit} events; raise the limit, "
            'or have them merged by key (overflow="coalesce")'
        )
        self.limit = limit


class ShutdownIncomplete(InformerError):
    """Something did not end in the time that leaving allows. ``left`` names it."""

    def __init__(self, left: tuple[str, ...], *, waited: float) -> None:
        super().__init__(f"still running {waited:g} s after being asked to end: {', '.join(left)}")
        self.left = left


class QueueShutDown(InformerError):
    """A work queue was shut down, and holds nothing more to be worked on."""


class ReconcileTimeout(InformerError, TimeoutError):
    """One run of a controller's reconciler took longer than its ``timeout=``. It is tried again."""


class LeadershipLost(InformerError):
    """The lease could not be renewed in time, or somebody else holds it. The body that ran under it
    was cancelled before this was raised; ``__cause__`` is what failed last, if anything did.
    """

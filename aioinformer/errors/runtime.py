"""Errors of running informers: of handlers, objects, waits and shutdown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import islice

from aioinformer.errors.usage import InformerError


class HandlerTimeout(InformerError, TimeoutError):
    """A call of a handler took longer than its ``timeout=``."""


class HandlerCancelled(InformerError):
    """A handler raised a CancelledError without being cancelled, or cancelled its own task.

    ``__cause__`` is the raised exception, or another one that is not an ``Exception``. A bare
    CancelledError would end a task silently.
    """


class ObjectDecodeError(InformerError):
    """The body of a cached object is not valid JSON, or its metadata have wrong types.

    The metadata that the cache needs were readable, so the object is cached under its key. The
    error is raised when the body is decoded; ``path`` is the invalid part, or empty for all.
    """

    def __init__(
        self, message: str, *, key: str, resource_version: str, path: str = "", uid: str = ""
    ) -> None:
        super().__init__(message)
        self.key = key
        self.path = path
        self.resource_version = resource_version
        self.uid = uid


class _ConversionFailure(InformerError):
    def __init__(self, message: str, *, key: str, resource_version: str, uid: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.resource_version = resource_version
        self.uid = uid


class ModelMismatch(_ConversionFailure):
    """An object doesn't fit the ``model=`` of its informer, or ``convert=`` raised at the object.

    ``__cause__`` is the exception of the model or of ``convert=``. With ``model=`` the object is
    rejected when it is received: the cached version stays, and the object is listed in
    ``health.rejected``. With ``convert=`` the program's access to the object raises the error.
    """


class TransformFailed(_ConversionFailure):
    """The ``transform=`` of an informer raised at an object, or returned an invalid result.

    The cached version of the object stays, and the object is listed in ``health.rejected``.
    """


class AlreadyOwned(InformerError):
    """An object can't be owned, since another object is its controller already."""


class NotCached(InformerError, KeyError):
    """``lister[key]`` of an object that the cache lacks. ``lister.get(key)`` returns ``None``.

    It is a ``KeyError``, as for any mapping, and not a ``NotFound``, which is the answer of an API
    server: the server may have the object, in a later state or outside of the cached scope.
    """

    def __init__(self, resource: object, key: object) -> None:
        super().__init__(f"{key} is not among the cached {resource}")
        self.resource = str(resource)
        self.key = str(key)

    def __str__(self) -> str:  # KeyError would add quotes
        return str(self.args[0])


MAX_LISTED = 5
"""Number of informers in the message of a ``SyncTimeout``; a program may have hundreds."""


class SyncTimeout(InformerError, TimeoutError):
    """``wait_synced`` timed out, or ``Cluster.settled``.

    ``unsynced`` maps the name of each informer that is not synced to its health, or each part of a
    program that is not settled to what is left to be done. The message shows five of them.
    """

    def __init__(
        self, timeout: float, unsynced: Mapping[str, str], *, awaited: str = "synced"
    ) -> None:
        listed = [f"{name}: {health}" for name, health in islice(unsynced.items(), MAX_LISTED)]
        if len(unsynced) > MAX_LISTED:
            listed.append(f"and {len(unsynced) - MAX_LISTED} more")
        super().__init__(f"not {awaited} after {timeout:g} s: {'; '.join(listed)}")
        self.unsynced = dict(unsynced)


class CacheWaitTimeout(InformerError, TimeoutError):
    """``wait_for``, ``wait_until`` or ``verify`` did not see the awaited state within ``timeout=``.

    The message contains the informer's health. ``resource_version`` is the version up to which the
    cache has applied all changes. ``reason`` is the object's own state, such as ``2 of 3 pods
    updated, 1 available`` or ``the object was deleted meanwhile``; empty if unknown.
    """

    def __init__(self, message: str, *, resource_version: str, reason: str = "") -> None:
        super().__init__(message)
        self.resource_version = resource_version
        self.reason = reason


class ListenerOverflow(InformerError):
    """A listener with ``overflow="error"`` had more pending events than its ``limit``.

    The changes of two pending lists are an overflow as well. The listener was ended.
    """

    def __init__(self, name: str, *, limit: int) -> None:
        super().__init__(
            f"{name} was ended: it was too slow for a limit of {limit} events; raise the limit, "
            'or merge events by key (overflow="coalesce")'
        )
        self.limit = limit


class ShutdownIncomplete(InformerError):
    """Tasks did not end in the time allowed for leaving. ``left`` names them."""

    def __init__(self, left: tuple[str, ...], *, waited: float) -> None:
        super().__init__(f"still running {waited:g} s after being asked to end: {', '.join(left)}")
        self.left = left


class QueueShutDown(InformerError):
    """A work queue was shut down, and is empty."""


class ReconcileTimeout(InformerError, TimeoutError):
    """A run of a controller's reconciler exceeded its ``timeout=``. The key is reconciled again."""


class PermanentError(InformerError):
    """Raised by a program's reconciler: the object can't be reconciled before it changes.

        raise PermanentError(f"spec.schedule {text!r} is not a schedule")

    The controller doesn't retry the key: it runs again at the next event other than a resync, such
    as a change of the object or of an object that it owns, or at ``trigger``. Meanwhile the key is
    listed in ``health.failing`` with ``permanent=True``, and a Warning Event with the reason
    ``PermanentError`` is recorded on the object, if the controller has an ``EventRecorder``. It is
    controller-runtime's ``TerminalError``. A cleanup that raises it is retried nevertheless, since
    nothing else would start the cleanup again.
    """


class TemporaryError(InformerError):
    """Raised by a program's reconciler: this run can't succeed yet, and a later one may.

        raise TemporaryError("the bucket is being created", requeue_after=30)
        raise TemporaryError("the quota is used up", requeue_after=timedelta(minutes=5))

    It is ``Result(requeue_after=...)`` for code that is deep below the reconciler, and kopf's
    ``TemporaryError(delay=...)``. Other than after a ``Result``, the run counts as failed: the key
    is listed in ``health.failing``, and ``failure_condition=`` shows the message. The log has a
    warning without a traceback. An event of the object starts a run earlier. A cleanup may raise it
    too.

    Args:
        message: the reason, for the log and for users.
        requeue_after: seconds, or a ``timedelta``, from 0 on, until the next run. The backoff of
            the key neither grows nor begins again. ``None``, the default, waits for the backoff.

    Raises:
        TypeError: ``requeue_after`` has another type, such as the text ``"30s"``.
        ValueError: ``requeue_after`` is negative or not finite.
    """

    def __init__(
        self, message: str = "", *, requeue_after: float | timedelta | None = None
    ) -> None:
        from aioinformer.errors.delays import delay_seconds  # for reconcilers alone

        super().__init__(message)
        self.requeue_after = None if requeue_after is None else delay_seconds(requeue_after)
        """Seconds until the next run; ``None`` for the backoff."""


class CleanupFailed(InformerError):
    """The ``cleanup=`` of a controller raised a ``PermanentError``, which is the ``__cause__``.

    The cleanup is retried with backoff, and the finalizer stays until the cleanup succeeds.
    """


class ShardLost(InformerError):
    """A write was not sent: this member of a group doesn't hold the ``shard`` of the object.

    The shard was given to another member, or the Lease of this member wasn't renewed in time.

    Example::

        from aioinformer.errors import ShardLost

        lost = ShardLost("this member doesn't hold shard 7 of web/shop", shard=7)
        assert lost.shard == 7
    """

    def __init__(self, message: str, *, shard: int) -> None:
        super().__init__(message)
        self.shard = shard


class LeadershipLost(InformerError):
    """The lease could not be renewed in time, or another candidate holds it.

    The body under the lease was cancelled before this error was raised. ``__cause__`` is the last
    error of the renewal, if there was one.
    """

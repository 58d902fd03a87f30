"""The finalizer of a controller: added before the first reconcile, removed after the cleanup.

The steps are taken inside of a run, before the program's function, and so have the run's rules: one
run of a key at a time, its timeout, and retries with backoff. The rules are those of kube-rs'
``finalizer``:

    not deleted, without our entry    add the entry, wait for the cache, reconcile
    not deleted, with our entry       reconcile
    being deleted, with our entry     clean up, then remove the entry
    being deleted, without our entry  nothing
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, TypeAlias
from weakref import WeakSet

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.writing.resource_writer import CheckedWriter, ResourceWriter, origin_of
from aioinformer.controllers.health import WarningEvents
from aioinformer.controllers.key_gate import KeyGate
from aioinformer.controllers.options import ControllerOptions
from aioinformer.controllers.reconcile_context import ReconcileContext, writes_of
from aioinformer.controllers.reconcile_runs import ReconcileFunction
from aioinformer.controllers.state.finalizer_steps import (
    JsonPatchOperations,
    adding_patch,
    finalizers_of,
    next_step,
    removing_patch,
)
from aioinformer.controllers.state.reconcile import Result
from aioinformer.errors import (
    CleanupFailed,
    Conflict,
    Invalid,
    NotFound,
    ObjectDecodeError,
    PermanentError,
    UsageError,
)

log = logging.getLogger("aioinformer.controller")

ATTEMPTS = 5
"""Requests for one patch, as in client-go's ``retry.DefaultRetry``, each for the newest object."""

MAX_NAMED = 100
"""The most objects that one controller names since ``transform=`` drops them."""

CACHE_TIMEOUT = 10.0
"""Seconds until the cache shows the added entry, after which the run fails and is retried."""

_MakePatch: TypeAlias = Callable[[KubeObject, str], JsonPatchOperations | None]


class FinalizedReconcile:
    """A reconciler with a finalizer: ``await finalized(key, ctx)``."""

    def __init__(
        self,
        finalizer: str,
        reconcile: ReconcileFunction,
        cleanup: ReconcileFunction,
        *,
        informer: SharedInformer[Any],
        writer: ResourceWriter,
        warnings: WarningEvents,
        gate: KeyGate | None = None,
    ) -> None:
        self._finalizer = finalizer
        self._reconcile = reconcile
        self._cleanup = cleanup
        self._informer = informer
        self._writer = writer
        self._warnings = warnings
        self._gate = gate
        self._cleaned: dict[ObjectKey, str] = {}
        """The uids whose entry was removed, until the object leaves the cache."""
        if gate is not None:  # the object may leave the cache with its shard, without a run
            gate.on_unadmitted(self._forget)

    async def __call__(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        """Take the next step for the object of ``key``.

        Raises:
            FetchError: the finalizer couldn't be written.
            ShardLost: this member of a group may not write for the object any more.
            CacheWaitTimeout: the cache didn't show the added finalizer in time.
            CleanupFailed: the cleanup raised a ``PermanentError``.
            Exception: an exception of the program's function.
        """
        if self._informer.rejection(key) is not None:
            return await self._finish_rejected(key, ctx)
        obj = self._informer.stored(key)
        if obj is not None and next_step(obj, self._finalizer) == "add":
            obj = await self._add(obj)
        if obj is None:
            self._forget(key)
            return await self._reconcile(key, ctx)
        step = next_step(obj, self._finalizer)
        if step == "ignore" and not self._informer.keeps_bodies:
            # The cached object may lack the entry: a cleanup is never skipped.
            obj = await self._newest(obj) or obj
            step = next_step(obj, self._finalizer)
        match step:
            case "reconcile":
                return await self._reconcile(key, ctx)
            case "cleanup":
                return await self._clean_up(obj, key, ctx)
            case "add":  # the object was created again, or another program removes the entry
                return Result(requeue=True)
            case "ignore":
                return None

    async def _finish_rejected(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        """Clean up an object whose newest version isn't cached, if it is being deleted. Otherwise
        the reconciler raises the error of the rejection.
        """
        obj = await writes_of(ctx).newest()
        if obj is None:  # the cache doesn't show the deletion yet
            return Result(requeue=True)
        match next_step(obj, self._finalizer):
            case "cleanup":
                return await self._clean_up(obj, key, ctx)
            case "ignore":
                return None
            case _:
                return await self._reconcile(key, ctx)

    async def _add(self, obj: KubeObject) -> KubeObject | None:
        """Add the entry, and return the object as the cache shows it afterwards.

        Raises:
            UsageError: the cache shows the object without the entry that the server has.
        """
        written = await self._change(obj, adding_patch)
        if written is None:
            return self._informer.stored(obj.key)
        await self._informer.reader.wait_for(written, CACHE_TIMEOUT)
        cached = self._informer.stored(obj.key)
        if cached is not None:
            self._check_kept(cached, written)
        return cached

    def _check_kept(self, cached: KubeObject, served: KubeObject) -> None:
        """Raise ``UsageError`` if the cache shows this version without all of its finalizers."""
        if (cached.uid, cached.resource_version) == (
            served.uid,
            served.resource_version,
        ) and finalizers_of(cached) != finalizers_of(served):
            raise UsageError(
                f"the informer of {self._informer.name} shows {served.key} without a finalizer "
                "that it has: transform= must keep metadata.finalizers"
            )

    async def _clean_up(
        self, obj: KubeObject, key: ObjectKey, ctx: ReconcileContext
    ) -> Result | None:
        """Call the cleanup. Remove the entry, unless the cleanup wants another run."""
        if self._cleaned.get(key) == obj.uid:
            return None  # the cache doesn't show the removal yet
        try:
            result = await self._cleanup(key, ctx)
        except Exception as error:
            self._warnings.record(key, "CleanupFailed", error, action="Cleanup")
            if isinstance(error, PermanentError):
                raise CleanupFailed(
                    f"the cleanup of {key} raised a PermanentError, and is retried nevertheless, "
                    f"since nothing else would start the cleanup again: {error}"
                ) from error
            raise
        if result is not None:
            return result
        await self._change(obj, removing_patch)
        self._cleaned[key] = obj.uid
        return None

    def _forget(self, key: ObjectKey) -> None:
        self._cleaned.pop(key, None)

    async def _change(self, obj: KubeObject, make_patch: _MakePatch) -> KubeObject | None:
        """Send a patch for the newest object, if it needs one. Return the patched object, or
        ``None`` if it no longer exists. Raises ``FetchError``.
        """
        writer = self._writer
        if self._gate is not None:
            writer = CheckedWriter(writer, partial(self._gate.check, obj.key))
        for attempt in range(1, ATTEMPTS + 1):
            patch = make_patch(obj, self._finalizer)
            if patch is None:
                return obj
            try:
                return await writer.patch(obj.key, patch)
            except NotFound as error:
                _check_missing(obj, error)
                return None
            except (Conflict, Invalid) as error:  # Invalid: a test of the patch failed
                newest = await self._newest(obj)
                if newest is None:
                    return None
                self._check_kept(obj, newest)
                if attempt == ATTEMPTS or newest.resource_version == obj.resource_version:
                    raise
                log.debug("%s: the finalizer is written again: %s", obj.key, error)
                obj = newest
        raise AssertionError("the last attempt returns or raises")

    async def _newest(self, obj: KubeObject) -> KubeObject | None:
        """Return the object as the server has it now; ``None`` if it was deleted."""
        try:
            newest = await self._writer.get(obj.key)
        except NotFound as error:
            _check_missing(obj, error)
            return None
        return newest if newest.uid == obj.uid else None

    def __repr__(self) -> str:
        return (
            f"<FinalizedReconcile {self._finalizer} of {self._informer.name} "
            f"cleaned={len(self._cleaned)}>"
        )


def _check_missing(obj: KubeObject, error: NotFound) -> None:
    """Raise ``error`` unless it names the object: a proxy without a route answers 404 as well."""
    if error.status.details.get("name") != obj.name:
        raise error


@dataclass(frozen=True, slots=True)
class _FinalizerGuard:
    """Keeps the objects of a controller with a finalizer in the cache, or names them."""

    controller: str
    finalizer: str
    named: set[str] = field(default_factory=set[str], compare=False, repr=False)
    """The uids of dropped objects in the log."""

    def check(self, departure: str) -> None:
        """Raise ``UsageError`` if an object may leave the cache."""
        if departure:
            raise UsageError(
                f"the controller {self.controller} has finalizer=, and its informer forgets an "
                f"object that leaves {departure}: the object would never be cleaned up, and stay "
                "when it is deleted. Read the objects without that, and pass filter= to the "
                "controller, which doesn't exclude deletions"
            )

    def dropped(self, obj: KubeObject) -> None:
        """Log that an object with the finalizer isn't cached, once."""
        if obj.uid in self.named or len(self.named) >= MAX_NAMED:
            return
        try:
            # Few of the objects contain the name: the others are not decoded.
            waits = self.finalizer.encode() in obj.raw and self.finalizer in finalizers_of(obj)
        except (ObjectDecodeError, KeyError, TypeError):
            return  # the server's object has no readable finalizers
        if waits:
            self.named.add(obj.uid)
            log.warning(
                "controller %s: transform= drops %s, which has the finalizer %s. While it is not "
                "cached, it is not cleaned up, and so can't be deleted: let transform= keep "
                "objects with this finalizer, and pass filter= to the controller",
                *(self.controller, obj.key, self.finalizer),
            )


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class FinalizerUse:
    """A controller's finalizer and objects, which no other controller may combine."""

    controller: str
    finalizer: str
    informer: SharedInformer[Any]

    def check(self, others: Iterable[FinalizerUse]) -> None:
        """Raise ``UsageError`` if another controller has the finalizer for the same objects."""
        for other in others:
            if other.finalizer == self.finalizer and _may_share(self.informer, other.informer):
                raise UsageError(
                    f"the controllers {other.controller} and {self.controller} have the same "
                    f"finalizer={self.finalizer!r} for {self.informer.resource}: the cleanup that "
                    "returns first would remove it while the other still runs. Pass another "
                    "finalizer= to one of them"
                )

    def begin(self) -> Callable[[], None]:
        """Check the controllers that run in this program, and count among them from now on. Return
        the function that ends this.
        """
        with _running_lock:
            self.check(_running)
            _running.add(self)
        return self._end

    def _end(self) -> None:
        with _running_lock:
            _running.discard(self)


_running: WeakSet[FinalizerUse] = WeakSet()
_running_lock = Lock()


def _may_share(one: SharedInformer[Any], other: SharedInformer[Any]) -> bool:
    """Return True if an object may be in both caches."""
    if one is other:
        return True
    mine, its, cluster = one.resource, other.resource, origin_of(one.client)
    if cluster is None or cluster != origin_of(other.client):
        return False
    if (mine.group, mine.plural) != (its.group, its.plural):
        return False
    (namespaces, *chosen), (its_namespaces, *its_chosen) = one.selection, other.selection
    if namespaces is not None and its_namespaces is not None and not namespaces & its_namespaces:
        return False
    # Two different field selectors or shards count as disjoint.
    return all(not a or not b or a == b for a, b in zip(chosen, its_chosen, strict=True))


def finalized(
    reconcile: ReconcileFunction,
    cleanup: ReconcileFunction | None,
    informer: SharedInformer[Any],
    warnings: WarningEvents,
    options: ControllerOptions,
    gate: KeyGate | None,
) -> ReconcileFunction | FinalizedReconcile:
    """Return the reconciler with the finalizer of a controller's options, if there is one.

    Raises:
        UsageError: the controller has no client; or its informer keeps no metadata, or forgets
            objects that aren't deleted.
    """
    if cleanup is None:
        return reconcile
    client = options.client or informer.client
    if client is None or options.finalizer is None:
        raise UsageError(
            f"the controller {options.name} has finalizer=, and so writes objects, but the source "
            "of its informers only lists and watches: pass client=client, or "
            "client=elector.guarded_client(client) under a LeaderElector"
        )
    informer.check_bytes("finalizer= reads metadata.finalizers in")
    informer.add_guard(_FinalizerGuard(options.name, options.finalizer))
    return FinalizedReconcile(
        options.finalizer,
        reconcile,
        cleanup,
        informer=informer,
        writer=client.api(informer.resource),
        warnings=warnings,
        gate=gate,
    )

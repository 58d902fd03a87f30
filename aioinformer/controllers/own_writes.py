"""The writes of each key that a cache may not show yet.

A run that starts before the cache shows the writes of the previous run of its key would decide by
an old state: it would create a second object, or write an old status back. So the next run of the
key waits until the caches show them. After ``CATCH_UP_TIMEOUT`` seconds it counts as failed
instead, so that its worker is free, health names the reason, and the key is retried with backoff.
Only a write that a healthy watch doesn't show for ``GIVE_UP_TIMEOUT`` seconds is forgotten, with a
warning: the server doesn't select the object, and sends no bookmarks.

An informer that certainly never shows the written object is not waited for: it reads another
cluster, or other namespaces, or its selectors or its shard exclude the object. If its cache holds
an earlier state of the object, the run waits until the object has left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.object_key import is_older
from aioinformer._core.objects.resources import Resource
from aioinformer._core.quantities import quantity
from aioinformer._core.selectors.object_conditions import Condition
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.writing.resource_writer import WriterSource, origin_of
from aioinformer.controllers.state.applied_children import AppliedChildren
from aioinformer.errors import CacheWaitTimeout, NotComparable, UsageError

log = logging.getLogger("aioinformer.controller")

CATCH_UP_TIMEOUT = 10.0
"""Seconds that a run waits for the caches: a watch that broke is replaced after one or two."""

GIVE_UP_TIMEOUT = 120.0
"""Seconds after which a write is forgotten that a healthy watch doesn't show. A silent connection
is replaced within 80 s, and bookmarks arrive once a minute."""

KEYS_PER_STEP = 512
"""Keys that are forgotten at once: a namespace with all of its objects may have been deleted."""


@dataclass(frozen=True, slots=True)
class _OwnWrite:
    """One write that a cache must show before the next run."""

    informer: SharedInformer[Any]
    key: ObjectKey
    uid: str
    resource_version: str
    """The version of the written object; empty for a deletion."""
    written_at: float
    excluded_by: str = ""
    """What keeps the written object out of the cache; empty for nothing."""

    @property
    def ends_object(self) -> bool:
        """True if the cache is to lose the object: it was deleted, or left the selection."""
        return not self.resource_version or bool(self.excluded_by)

    async def wait(self) -> None:
        """Wait until the cache shows this write or a later state, whether it fits ``convert=`` or
        not.

        Raises:
            NotComparable: the versions of the server are no numbers.
            UsageError: the informer can't show it: it reads another namespace, or it has ended.
        """
        if self.ends_object:
            shown = Condition(self._has_ended, f"end of {self.uid}", reads_content=False)
            with self.informer.reader.hurried(self.key.namespace):
                await self.informer.reader.wait_until(self.key, shown)
            return
        metadata = {
            "name": self.key.name,
            "namespace": self.key.namespace,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        await self.informer.reader.wait_for({"metadata": metadata})

    def _has_ended(self, cached: KubeObject | None) -> bool:
        """Return True for a state after the deletion, or after the write that has excluded the
        object. A deleted object with finalizers remains, with a time of deletion. A model has no
        such field, so its removal is not waited for.
        """
        if cached is None or cached.uid != self.uid:
            return True
        if self.resource_version:
            return not is_older(cached.resource_version, self.resource_version)
        return not cached.raw or cached.deletion_timestamp is not None

    def is_lost(self, now: float) -> bool:
        """Return True if a healthy watch had enough time to show this write."""
        return self.is_old(now) and _is_healthy(self.informer)

    def is_old(self, now: float) -> bool:
        """Return True if a watch that was healthy all the time had enough time."""
        return now - self.written_at >= GIVE_UP_TIMEOUT

    def __str__(self) -> str:
        state = (
            f"at resourceVersion {self.resource_version}" if self.resource_version else "deleted"
        )
        excluded = f", which {self.excluded_by} excludes" if self.excluded_by else ""
        return f"{self.informer.resource} {self.key} {state}{excluded}"


def _is_healthy(informer: SharedInformer[Any]) -> bool:
    return informer.health.state == "watching"


class OwnWrites:
    """The own writes of one controller, by the key whose run made them."""

    def __init__(self, name: str, client: WriterSource | None = None) -> None:
        """Record the writes through ``client``; ``None`` for the client of the first informer."""
        self._name = name
        self._client = client
        self._informers: list[SharedInformer[Any]] = []
        self._children: list[SharedInformer[Any]] = []
        """The informers that show each change of the children that they select."""
        self._owned: dict[SharedInformer[Any], bool] = {}
        """The informers of children, with True once a child was named that one excludes."""
        self.applied = AppliedChildren()
        """The last apply of each child."""
        self._writes: dict[
            ObjectKey, dict[tuple[SharedInformer[Any], ObjectKey, bool], _OwnWrite]
        ] = {}
        self._retired: dict[ObjectKey, float] = {}
        """The times at which keys with writes were retired, the earliest first."""
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: set[asyncio.Timeout] = set()
        self._halted = False

    # -- recording -----------------------------------------------------------------------------

    def add_informer(self, informer: SharedInformer[Any]) -> None:
        """Wait for this informer's cache too."""
        self._informers.append(informer)

    def add_children(self, informer: SharedInformer[Any], *, filtered: bool) -> None:
        """Rely on this informer: each change of a child is an event that leads to a run, unless the
        events are ``filtered``.
        """
        self._owned.setdefault(informer, False)
        if informer.keeps_bodies and not filtered:
            self._children.append(informer)

    def children_of(self, resource: Resource) -> SharedInformer[Any] | None:
        """Return the informer that shows all changes of the children of a resource, if there is
        one.
        """
        return next(
            (each for each in self._children if each.resource == resource and self._is_near(each)),
            None,
        )

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources of the controller's informers."""
        return tuple(each.resource for each in self._informers)

    def has_one_trigger(self, informer: SharedInformer[Any]) -> bool:
        """Return True if the informer's events trigger the runs of their own objects alone."""
        return self._informers.count(informer) == 1

    def record_write(self, key: ObjectKey, resource: Resource, obj: KubeObject) -> None:
        """Note that the run of ``key`` wrote ``obj``."""
        # The answer to a write of the subresource ``scale`` has no labels of the object.
        whole = obj.kind == resource.kind
        exclusions = {
            each: each.exclusion(obj) if whole else "" for each in self._informers_of(resource)
        }
        for informer, excluded_by in exclusions.items():
            self._record(key, informer, obj.key, obj.uid, obj.resource_version, excluded_by)
        owned = {each: text for each, text in exclusions.items() if each in self._owned}
        if all(owned.values()) and any(
            each.get("controller") for each in obj["metadata"].get("ownerReferences") or ()
        ):
            self._name_excluded(obj, owned)

    def _name_excluded(
        self, obj: KubeObject, exclusions: Mapping[SharedInformer[Any], str]
    ) -> None:
        """Warn, once for each informer of children, that it excludes a child."""
        for informer, text in exclusions.items():
            if not self._owned[informer]:
                self._owned[informer] = True
                log.warning(
                    "controller %s: a run wrote the child %s, and the informer of %s never shows "
                    "it: %s excludes it, so that its changes lead to no run",
                    *(self._name, obj.key, informer.name, text),
                )

    def record_deletion(
        self, key: ObjectKey, resource: Resource, deleted: ObjectKey, uid: str
    ) -> None:
        """Note that the run of ``key`` deleted an object. Without a uid, the cached object's."""
        for informer in self._informers_of(resource):
            cached = informer.stored(deleted)
            if known := uid or ("" if cached is None else cached.uid):
                self._record(key, informer, deleted, known, "")

    def _record(
        self,
        key: ObjectKey,
        informer: SharedInformer[Any],
        target: ObjectKey,
        uid: str,
        version: str,
        excluded_by: str = "",
    ) -> None:
        now = asyncio.get_running_loop().time()
        write = _OwnWrite(informer, target, uid, version, now, excluded_by)
        # The newest write of an object is the last one to wait for. The state before its end is
        # waited for too: the cache may not show the object yet.
        self._writes.setdefault(key, {})[informer, target, write.ends_object] = write

    def _informers_of(self, resource: Resource) -> Iterator[SharedInformer[Any]]:
        """Yield the informers of a resource, in whatever version, that read the cluster to which
        the controller writes.
        """
        identity = resource.group, resource.plural
        for each in dict.fromkeys(self._informers):
            if (each.resource.group, each.resource.plural) == identity and self._is_near(each):
                yield each

    def _is_near(self, informer: SharedInformer[Any]) -> bool:
        """Return False for an informer of another cluster than that of the controller's client and
        of its first informer. Two servers of which nothing is known count as one cluster.
        """
        origin = origin_of(informer.client)
        near = {origin_of(self._informers[0].client), origin_of(self._client)} - {None}
        return origin is None or not near or origin in near

    # -- waiting -------------------------------------------------------------------------------

    async def wait(self, key: ObjectKey) -> None:
        """Wait until the caches show the writes of the last run of ``key``.

        Raises:
            CacheWaitTimeout: not within ``CATCH_UP_TIMEOUT``, or the controller is halted.
        """
        self._retired.pop(key, None)
        # A task that a run left behind may record further writes meanwhile.
        while writes := self._writes.get(key):
            target, write = next(iter(writes.items()))
            await self._wait_for(write)
            if writes.get(target) is write:
                del writes[target]
        self._writes.pop(key, None)

    async def _wait_for(self, write: _OwnWrite) -> None:
        """Wait for one write; return also if it is certain that the cache never shows it."""
        limit = asyncio.timeout(0 if self._halted else CATCH_UP_TIMEOUT)
        self._waiting.add(limit)
        try:
            async with limit:
                await write.wait()
        except TimeoutError:
            if not write.is_lost(asyncio.get_running_loop().time()):
                raise self._timeout_error(write) from None
            log.warning(
                "controller %s: the informer of %s doesn't show %s after %.0f s, and the watch is "
                "healthy; the next run no longer waits for that. Do its selectors exclude the "
                "object?",
                *(self._name, write.informer.name, write, GIVE_UP_TIMEOUT),
            )
        except NotComparable as error:
            log.warning("controller %s: can't wait for %s: %s", self._name, write, error)
        except UsageError:
            return  # the informer reads another namespace, or has ended and ends the controller
        finally:
            self._waiting.discard(limit)

    def _timeout_error(self, write: _OwnWrite) -> CacheWaitTimeout:
        informer = write.informer
        return CacheWaitTimeout(
            f"the run was not started, since the cache of {informer.name} doesn't show the last "
            f"write of this key yet ({write}): {informer.health}",
            resource_version=informer.lister.resource_version,
        )

    # -- forgetting ----------------------------------------------------------------------------

    def retire(self, key: ObjectKey) -> None:
        """Forget a key without an object and without a requested run, when each healthy watch had
        enough time to show its writes: the object may be created again, and the next run must not
        decide by an older cache.
        """
        self.applied.forget(key)
        if key in self._writes and not self._halted:
            self._retired.setdefault(key, asyncio.get_running_loop().time())
            self._arrange_timer()

    def _arrange_timer(self) -> None:
        """Start one timer for all retired keys, for the earliest one."""
        if self._timer is None and self._retired:
            due = next(iter(self._retired.values())) + GIVE_UP_TIMEOUT
            self._timer = asyncio.get_running_loop().call_at(due, self._forget_retired)

    def _forget_retired(self) -> None:
        self._timer, now = None, asyncio.get_running_loop().time()
        # Read once: a snapshot of the health takes as long as all else for a hundred keys.
        healthy = set(filter(_is_healthy, set(self._informers)))
        for key, since in list(islice(self._retired.items(), KEYS_PER_STEP)):
            if since + GIVE_UP_TIMEOUT > now:
                break
            del self._retired[key]
            writes = self._writes.get(key, {}).values()
            if all(write.is_old(now) and write.informer in healthy for write in writes):
                self._writes.pop(key, None)
            else:  # a watch is being replaced, or a task that a run left behind has written
                self._retired[key] = now
        self._arrange_timer()

    def halt(self) -> None:
        """End all waits, since no more runs start."""
        self._halted = True
        self._retired.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for limit in self._waiting:
            if not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time())

    def __len__(self) -> int:
        """Return the number of keys with writes that were not waited for yet."""
        return len(self._writes)

    def __repr__(self) -> str:
        return f"<OwnWrites of {self._name}: {quantity(len(self), 'key')}>"

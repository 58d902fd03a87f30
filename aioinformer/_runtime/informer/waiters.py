"""Waiters for a state of the cache, woken by the pump instead of polling.

The pump wakes a waiter in the step that applies a change of its object, or reaches its version. The
waiter checks its condition again before it returns, with no ``await`` in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from msgspec import Struct

from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.objects.object_key import has_reached, is_numeric, is_older
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice
from aioinformer.errors import NotComparable, NotRunning, UsageError

if TYPE_CHECKING:  # for types alone
    from aioinformer._core.cache.protocols import ObjectCache, ReadableState


class ObjectVersion(Struct, frozen=True):
    """One version of one object, as returned by a write or a read."""

    key: ObjectKey
    uid: str
    resource_version: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Self:
        """Return the version of ``obj``; raise ``UsageError`` if it has no name, uid or version."""
        if isinstance(obj, KubeObject):
            return cls(obj.key, obj.uid, obj.resource_version)
        # A caller may have passed a key by mistake.
        metadata = obj.get("metadata") if hasattr(obj, "get") else None
        found: Mapping[str, Any] = {}
        if isinstance(metadata, Mapping):
            found = cast("Mapping[str, Any]", metadata)
        texts = [found.get(name) for name in ("name", "uid", "resourceVersion")]
        if not all(isinstance(text, str) and text for text in texts):
            raise UsageError(
                "wait_for needs an object with metadata.name, uid and resourceVersion: pass the "
                "server's answer to a write; to wait for a key, use wait_until"
            )
        name, uid, version = map(str, texts)
        return cls(ObjectKey(found.get("namespace") or "", name), uid, version)

    def __str__(self) -> str:
        return f"{self.key} at resourceVersion {self.resource_version}"


class _Waiter(Struct, frozen=True, eq=False):
    key: ObjectKey | None
    version: str | None
    future: asyncio.Future[None]

    def notify(self, changed_keys: set[ObjectKey], state: ReadableState) -> None:
        if self.key is None or self.key in changed_keys:
            self.notify_all()
        elif self.version is not None:
            part = state.part_of(self.key)
            if part is None or not is_older(part.resource_version, self.version):
                self.notify_all()

    def notify_all(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class _ChangedKeys:
    """The keys that have changed since one waiting task looked last."""

    __slots__ = ("_all", "_future", "_keys")

    def __init__(self) -> None:
        self._all = True
        self._keys: set[ObjectKey] = set()
        self._future: asyncio.Future[None] | None = None

    def notify(self, changed_keys: set[ObjectKey], state: ReadableState) -> None:
        self._keys |= changed_keys
        self._wake()

    def notify_all(self) -> None:
        self._all = True
        self._wake()

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    @property
    def pending(self) -> bool:
        return self._all or bool(self._keys)

    def take(self) -> set[ObjectKey] | None:
        """Return the changed keys; ``None`` if every object may have changed."""
        keys = None if self._all else self._keys
        self._all, self._keys = False, set()
        return keys

    async def wait(self) -> None:
        self._future = asyncio.get_running_loop().create_future()
        try:
            await self._future
        finally:
            self._future = None


class _Tally(Struct, eq=False):
    """The keys of the selected objects, and of those of them that don't pass yet."""

    selected: set[ObjectKey]
    failing: set[ObjectKey]

    def update(self, key: ObjectKey, *, selected: bool, passes: bool) -> None:
        (self.selected.add if selected else self.selected.discard)(key)
        (self.failing.add if selected and not passes else self.failing.discard)(key)


class CacheWaiters:
    def __init__(self, indexer: ObjectCache, name: str) -> None:
        self._indexer = indexer
        self._name = name
        self.waiting: dict[_Waiter | _ChangedKeys, None] = {}
        """The waits that have not ended. The pump looks at them after every batch."""
        self._ended = False

    # -- called by the pump ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.waiting)

    def notify(self, events: Iterable[Event]) -> None:
        """Wake the waiters that these events, or the applied version, may fulfil."""
        state = self._indexer.state
        changed_keys = {event.obj.key for event in events}
        for waiter in self.waiting:
            waiter.notify(changed_keys, state)

    def notify_all(self) -> None:
        """Wake all waiters, since everything may have changed."""
        for waiter in self.waiting:
            waiter.notify_all()

    def end(self) -> None:
        """Wake all waiters, since nothing will change any more; they raise ``NotRunning``."""
        self._ended = True
        self.notify_all()

    # -- called by waiting tasks -----------------------------------------------------------------

    async def wait_until(
        self, ready: Callable[[], bool], *, key: ObjectKey | None = None, version: str | None = None
    ) -> None:
        """Wait until ``ready()``, which is called at once and always in this task, is true.

        Changes of ``key``, or of any object, and the application of ``version`` cause another call.
        Raises ``NotRunning`` if the informer ended before.
        """
        while not ready():
            if self._ended:
                raise NotRunning(f"the informer of {self._name} has ended")
            waiter = _Waiter(key, version, asyncio.get_running_loop().create_future())
            self.waiting[waiter] = None
            try:
                await waiter.future
            finally:
                del self.waiting[waiter]

    async def wait_for_version(self, target: ObjectVersion) -> KubeObject | None:
        """Wait until the cache shows this version or a later one, and return the cached object.

        Raises:
            NotComparable: a version is no number, and the cache doesn't hold that very version.
            NotRunning: the informer ended before.
        """
        if not self._has_reached(target):
            version = target.resource_version
            if not is_numeric(version):
                raise NotComparable(version)
            await self.wait_until(
                lambda: self._has_reached(target), key=target.key, version=version
            )
        cached = self._indexer.state.objects.get(target.key)
        return cached if cached is not None and cached.uid == target.uid else None

    def _has_reached(self, target: ObjectVersion) -> bool:
        state, version = self._indexer.state.part_of(target.key), target.resource_version
        if state is None:  # the namespace was removed from the informer
            return True
        if not state.synced:
            return False
        cached = state.objects.get(target.key)
        if (
            cached is not None
            and cached.uid == target.uid
            and has_reached(cached.resource_version, version)
        ):
            return True
        # The object was deleted or rejected, or isn't selected, once this version was applied.
        return has_reached(state.resource_version, version)

    async def wait_for_predicate(
        self, key: ObjectKey, predicate: Callable[[KubeObject | None], object], uids: set[str]
    ) -> KubeObject | None:
        """Wait until the object of that key, or ``None``, passes ``predicate``, and return it.
        ``uids`` receives those of the objects that did not pass, for an error. Raises exceptions of
        the predicate, and ``NotRunning`` if the informer ended before.
        """

        def passes() -> bool:
            state = self._indexer.state
            obj = state.objects.get(key)
            if obj is not None:
                uids.add(obj.uid)
            return state.synced and bool(predicate(obj))

        await self.wait_until(passes, key=key)
        return self._indexer.state.objects.get(key)

    async def wait_for_all(
        self,
        selects: Callable[[KubeObject], bool],
        passes: Callable[[KubeObject], bool],
        failing: set[ObjectKey],
        *,
        at_least: int,
    ) -> int:
        """Wait until every object that ``selects`` passes, and return the number of these objects.

        Every object is tested once, in steps, and again after it has changed. The result is true of
        one state of the cache. ``failing`` receives the keys that don't pass, for an error. Raises
        ``NotRunning`` if the informer ended before.
        """
        changes, selected = _ChangedKeys(), set[ObjectKey]()
        tally = _Tally(selected, failing)
        self.waiting[changes] = None
        try:
            while True:
                await self._test_changed(changes, tally, selects, passes)
                # No ``await`` since the last test: the tally is that of the cache now.
                if self._indexer.state.synced and not failing and len(selected) >= at_least:
                    return len(selected)
                if self._ended:
                    raise NotRunning(f"the informer of {self._name} has ended")
                await changes.wait()
        finally:
            del self.waiting[changes]

    async def _test_changed(
        self,
        changes: _ChangedKeys,
        tally: _Tally,
        selects: Callable[[KubeObject], bool],
        passes: Callable[[KubeObject], bool],
    ) -> None:
        """Test objects in steps, until none has changed since its test."""
        time_slice = TimeSlice()
        while changes.pending:
            keys = changes.take()
            # A replaced state may lack keys that the tally has, so those are tested too.
            if keys is None:
                keys = {*self._indexer.state.objects, *tally.selected}
            for number, key in enumerate(keys, 1):
                obj = self._indexer.state.objects.get(key)
                selected = obj is not None and selects(obj)
                tally.update(
                    key, selected=selected, passes=obj is not None and selected and passes(obj)
                )
                if not number % ITEMS_PER_STEP:
                    await time_slice.maybe_yield()

    def __repr__(self) -> str:
        return f"<CacheWaiters {self._name} waiting={len(self)}>"

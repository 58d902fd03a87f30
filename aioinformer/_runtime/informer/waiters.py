"""Waiters for a state of the cache, woken by the pump instead of polling.

The pump wakes a waiter in the step that applies a change of the waiter's object, or reaches the
waiter's version. The waiter checks its condition again before it returns, with no ``await`` in
between. Without waiters this costs the pump nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, cast

from msgspec import Struct

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.objects.identity import has_reached, is_numeric, is_older
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer.errors import NotComparable, NotRunning, UsageError

__all__ = ["CacheWaiters", "ObjectVersion"]


class ObjectVersion(Struct, frozen=True):
    """One version of one object, as returned by a write or a read."""

    key: ObjectKey
    uid: str
    resource_version: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Self:
        """Return the version of ``obj``.

        Raises:
            UsageError: ``obj`` has no name, uid or resourceVersion.
        """
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
    """One waiting task, and the changes that may fulfil its condition."""

    key: ObjectKey | None
    version: str | None
    future: asyncio.Future[None]

    def is_affected(self, changed_keys: Iterable[ObjectKey], applied_version: str) -> bool:
        if self.key is None:
            return True
        return self.key in changed_keys or (
            self.version is not None and not is_older(applied_version, self.version)
        )


class CacheWaiters:
    """The waiters of one cache."""

    def __init__(self, indexer: Indexer, name: str) -> None:
        """Start without waiters.

        Args:
            indexer: holds the cached objects.
            name: the informer's name.
        """
        self._indexer = indexer
        self._name = name
        self.waiting: dict[_Waiter, None] = {}
        """The waits that have not ended. The pump looks at them after every batch."""
        self._ended = False

    # -- called by the pump ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.waiting)

    def notify(self, events: Iterable[Event]) -> None:
        """Wake the waiters that these events, or the applied version, may fulfil."""
        applied = self._indexer.state.resource_version
        changed_keys = {event.obj.key for event in events}
        for waiter in self.waiting:
            if waiter.is_affected(changed_keys, applied):
                _wake(waiter)

    def notify_all(self) -> None:
        """Wake all waiters, since everything may have changed."""
        for waiter in self.waiting:
            _wake(waiter)

    def end(self) -> None:
        """Wake all waiters, since nothing will change any more; they raise ``NotRunning``."""
        self._ended = True
        self.notify_all()

    # -- called by waiting tasks -----------------------------------------------------------------

    async def wait_until(
        self, ready: Callable[[], bool], *, key: ObjectKey | None = None, version: str | None = None
    ) -> None:
        """Wait until ``ready()`` is true. It is called at once, and always in this task.

        Args:
            ready: reads the cache.
            key: the object whose changes can make ``ready`` true; ``None`` for any change.
            version: the version whose application can make ``ready`` true.

        Raises:
            NotRunning: the informer ended before.
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
        state, version = self._indexer.state, target.resource_version
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
        self, key: ObjectKey, predicate: Callable[[KubeObject | None], object]
    ) -> KubeObject | None:
        """Wait until the object of that key passes ``predicate``, and return the object.

        The predicate gets ``None`` if the object isn't cached. What it raises is raised.

        Raises:
            NotRunning: the informer ended before.
        """

        def passes() -> bool:
            state = self._indexer.state
            return state.synced and bool(predicate(state.objects.get(key)))

        await self.wait_until(passes, key=key)
        return self._indexer.state.objects.get(key)

    def __repr__(self) -> str:
        return f"<CacheWaiters {self._name} waiting={len(self)}>"


def _wake(waiter: _Waiter) -> None:
    if not waiter.future.done():
        waiter.future.set_result(None)

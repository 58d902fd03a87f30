"""Waiting for the cache to show something, without looking at it over and over.

Who waits is woken by the pump, in the step in which what it may be waiting for was applied: a
change of its object, or a version that was reached. It looks again before it goes on, with no
await in between. Without anybody waiting, the pump does nothing for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, cast

from msgspec import Struct

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.objects.identity import as_int, has_reached, is_numeric
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer.errors import NotRunning, UsageError

__all__ = ["CacheWaiters", "ObjectVersion"]


class ObjectVersion(Struct, frozen=True):
    """One version of one object, as a write or a read has returned it."""

    key: ObjectKey
    uid: str
    resource_version: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Self:
        """What identifies ``obj``.

        Raises:
            UsageError: it has no name, uid or resourceVersion.
        """
        if isinstance(obj, KubeObject):
            return cls(obj.key, obj.uid, obj.resource_version)
        metadata = obj.get("metadata") if hasattr(obj, "get") else None  # a key, by mistake
        found: Mapping[str, Any] = {}
        if isinstance(metadata, Mapping):
            found = cast("Mapping[str, Any]", metadata)
        texts = [found.get(name) for name in ("name", "uid", "resourceVersion")]
        if not all(isinstance(text, str) and text for text in texts):
            raise UsageError(
                "an object to wait for needs metadata with name, uid and resourceVersion: pass "
                "what the server has answered to a write (wait_until waits for a key)"
            )
        name, uid, version = map(str, texts)
        return cls(ObjectKey(found.get("namespace") or "", name), uid, version)

    def __str__(self) -> str:
        return f"{self.key} at resourceVersion {self.resource_version}"


class _Waiter(Struct, frozen=True, eq=False):
    """Somebody who waits."""

    key: ObjectKey | None
    version: int | None
    future: asyncio.Future[None]

    def is_affected(self, changed_keys: Iterable[ObjectKey], applied_version: int) -> bool:
        if self.key is None:
            return True
        return self.key in changed_keys or (
            self.version is not None and applied_version >= self.version
        )


class CacheWaiters:
    """All who wait for something in one cache."""

    def __init__(self, indexer: Indexer, name: str) -> None:
        """Nobody waits; ``indexer`` has the cache, and ``name`` is the informer's."""
        self._indexer = indexer
        self._name = name
        self.waiting: dict[_Waiter, None] = {}
        """The waits that have not ended. The pump looks at them after every batch."""
        self._ended = False

    # -- the pump's half -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.waiting)

    def notify(self, events: Iterable[Event]) -> None:
        """These changes were applied, or others that are no event, such as a bookmark."""
        version = self._indexer.state.resource_version
        applied = int(version) if is_numeric(version) else 0
        touched = {event.obj.key for event in events}
        for wait in self.waiting:
            if wait.is_affected(touched, applied):
                _wake(wait)

    def notify_all(self) -> None:
        """Everything may have changed."""
        for wait in self.waiting:
            _wake(wait)

    def end(self) -> None:
        """Nothing will change any more."""
        self._ended = True
        self.notify_all()

    # -- the half of those who wait --------------------------------------------------------------

    async def wait_until(
        self, ready: Callable[[], bool], *, key: ObjectKey | None = None, version: int | None = None
    ) -> None:
        """Wait until ``ready()``, which is asked at once, and in this task.

        Args:
            ready: reads the cache.
            key: which object must have changed before it is asked again; ``None`` for any change.
            version: or which version must have been applied.

        Raises:
            NotRunning: the informer ended before.
        """
        while not ready():
            if self._ended:
                raise NotRunning(f"the informer of {self._name} has ended")
            wait = _Waiter(key, version, asyncio.get_running_loop().create_future())
            self.waiting[wait] = None
            try:
                await wait.future
            finally:
                del self.waiting[wait]

    async def wait_for_version(self, target: ObjectVersion) -> KubeObject | None:
        """Wait until the cache shows this version or a later one; what it shows then.

        Raises:
            NotComparable: a version is no number, and not the very one.
            NotRunning: the informer ended before.
        """
        if not self._has_reached(target):
            version = as_int(target.resource_version)
            await self.wait_until(
                lambda: self._has_reached(target), key=target.key, version=version
            )
        held = self._indexer.state.objects.get(target.key)
        return held if held is not None and held.uid == target.uid else None

    def _has_reached(self, target: ObjectVersion) -> bool:
        state, version = self._indexer.state, target.resource_version
        if not state.synced:
            return False
        held = state.objects.get(target.key)
        if (
            held is not None
            and held.uid == target.uid
            and has_reached(held.resource_version, version)
        ):
            return True
        # It is gone, or was rejected, or it isn't selected.
        return has_reached(state.resource_version, version)

    async def wait_for_predicate(
        self, key: ObjectKey, predicate: Callable[[KubeObject | None], object]
    ) -> KubeObject | None:
        """Wait until the object of that key passes ``predicate``; which gets ``None`` if it is not
        there. What it raises is raised.

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

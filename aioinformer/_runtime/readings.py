"""What programs read of an informer: its lister, its indexes, and how to wait for what they need.

A cache shows the past. Who has just written something, and goes on by what is cached, waits for
it first; who wants to know whether the cache is right has it compared with the server. Who listens
is ``subscriptions``' business, how somebody is woken ``awaiting``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from typing_extensions import TypeVar

from aioinformer._core.indexer import Indexer
from aioinformer._core.items import ReadsBytes
from aioinformer._core.objects import KubeObject, ObjectKey
from aioinformer._core.resources import Resource
from aioinformer._core.shapes import Keep
from aioinformer._core.store import Indexers, IndexFunction
from aioinformer._core.verification import Verification
from aioinformer._runtime.affinity import check_loop
from aioinformer._runtime.awaiting import Written
from aioinformer._runtime.live_lister import LiveLister
from aioinformer._runtime.pace import STEP, Pace
from aioinformer._runtime.pump import Pump
from aioinformer._runtime.sources import ListerWatcher
from aioinformer._runtime.subscriptions import Subscriptions
from aioinformer._runtime.verifying import verify
from aioinformer.errors import Stale, UsageError

__all__ = ["Readings"]

T = TypeVar("T", default=KubeObject)
R = TypeVar("R")


class Readings(Subscriptions[T]):
    """Gives out what one informer has cached."""

    def __init__(
        self,
        name: str,
        pump: Pump,
        indexer: Indexer,
        resource: Resource,
        source: Callable[[], ListerWatcher],
        *,
        namespace: str | None = None,
        managed_fields: bool = False,
        keep: Keep | None = None,
        resync: float = 0.0,
    ) -> None:
        """Read from ``indexer``; ``source`` gives what is listed and watched now."""
        super().__init__(name, pump, indexer, resync=resync)
        self.resource = resource
        self.lister: LiveLister[T] = LiveLister(indexer, self.resource, namespace=namespace)
        """Reads the cache; all but its ``scan`` is safe from any thread."""
        self._source = source
        self._namespace = namespace
        self._managed_fields = managed_fields
        self._keep = keep

    # -- indexes ---------------------------------------------------------------------------------

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Add indexes, before anything is cached. The same ones again are no error.

        Raises:
            UsageError: a name is taken by another function, or objects are cached already;
                ``add_index`` can do it then; or a function reads JSON that isn't kept.
        """
        self._indexer.add_indexers(indexers)

    async def add_index(self, name: str, function: IndexFunction[T] | ReadsBytes) -> None:
        """Add an index at any time. It is complete when it can be read for the first time.

        It is built a few objects at a time, so that the event loop isn't held, from the cache as
        it goes on changing. The same one again is no error. Cancelled, it leaves no trace.

        Args:
            name: the index's.
            function: gives the values of an object; see ``IndexFunction``.

        Raises:
            IndexFailed: the function raised. There is no such index, and nothing else has changed.
            UsageError: the name is taken by another function, or it reads JSON that isn't kept.
        """
        check_loop(self._loop, f"the informer of {self.name}")
        building = self._indexer.build_index(name, function)
        if building is None:
            return
        pace = Pace()
        try:
            while not building.step(STEP):
                await pace.breathe()
            building.commit()
        finally:
            building.abandon()

    # -- waiting ---------------------------------------------------------------------------------

    async def wait_for(self, obj: Mapping[str, Any], *, timeout: float | None = None) -> T | None:
        """Wait until the cache shows what was written: ``await pods.wait_for(answer, timeout=5)``.

        That is so when it holds the object, by uid, in that version or a later one; or when it
        has applied everything up to that version and doesn't hold it: it is gone, or was never
        selected. The server tells of the latter with the next bookmark, up to a minute later.
        If what was written was rejected (``health.rejected``) the cache will never hold it: the
        version before is returned once that is known, or ``None``.

        Args:
            obj: what the server has answered to a write, as a dict or any mapping; or a
                ``KubeObject``.
            timeout: seconds; ``None`` for no limit.

        Returns:
            The object as it is cached now; ``None`` if it isn't.

        Raises:
            Stale: not within that time; it says what the informer's health says.
            NotComparable: its resourceVersion is no number, and the cache doesn't hold that one.
            ModelMismatch: ``convert=`` raised at what is cached.
            NotRunning: the informer ended before.
            UsageError: ``obj`` has no name, uid or resourceVersion, or isn't of this informer's
                resource and namespace; or this is called by a handler of this informer that has
                ``overflow="block"``.
        """
        written = Written.of(obj)
        self._check_ours(obj, written)
        waits = self._pump.waits
        found = await self._in_time(timeout, str(written), lambda: waits.shown(written))
        return self._seen(found)

    def _seen(self, obj: KubeObject | None) -> T | None:
        found: Any = obj
        seen: T | None = found
        return seen if obj is None or self._view is None else self._view.of(obj)

    async def wait_until(
        self,
        key: ObjectKey | str,
        predicate: Callable[[T | None], object],
        *,
        timeout: float | None = None,
    ) -> T | None:
        """Wait until the cached object of that key passes ``predicate``.

        It is asked at once, and again after changes of the object, in this task: a state that
        lasts for less than a turn of the event loop may be missed.

        Args:
            key: as for ``lister.get``.
            predicate: gets the object, or ``None`` if none is cached. What it raises is raised.
            timeout: seconds; ``None`` for no limit.

        Returns:
            What passed.

        Raises:
            Stale: not within that time; it says what the informer's health says.
            ModelMismatch: ``convert=`` raised at a state that was to be asked about.
            NotRunning: the informer ended before.
            UsageError: as for ``lister.get``, and as for ``wait_for`` in a handler.
        """
        meant = self.lister.key(key)
        awaited, waits = f"what was waited for of {meant}", self._pump.waits
        passes = self._predicate(predicate)
        found = await self._in_time(timeout, awaited, lambda: waits.passing(meant, passes))
        return self._seen(found)

    def _predicate(
        self, predicate: Callable[[T | None], object]
    ) -> Callable[[KubeObject | None], object]:
        return lambda obj: predicate(self._seen(obj))

    async def verify(self, *, contents: bool = False, timeout: float | None = None) -> Verification:
        """Compare the cache with the server, to know whether it is right.

        The server is asked for the state of exactly the version that the cache shows now. Both go
        on meanwhile. It costs the server a full list, page by page.

        Args:
            contents: whether to compare what is in the objects as well, and not only which are
                there in which versions.
            timeout: seconds; ``None`` for no limit.

        Returns:
            What differs. It is true if nothing does.

        Raises:
            NotSynced: the cache doesn't hold its first full state yet.
            Stale: not within that time.
            FetchError: the server could not be asked; ``Expired`` if it had forgotten each version
                that the cache came to show.
            NotRunning: the informer ended while this waited for a version that isn't forgotten.
            UsageError: as for ``wait_for`` in a handler.
        """
        awaited = "a state that the server has confirmed"
        return await self._in_time(timeout, awaited, lambda: self._verified(contents))

    async def _verified(self, contents: bool) -> Verification:
        found = await verify(
            self._source(),
            self._indexer,
            self._pump.waits,
            contents=contents,
            managed_fields=self._managed_fields,
            keep=self._keep,
        )
        self._compared(len(found.differences))
        return found

    def _compared(self, differences: int) -> None:
        """The cache was compared with the server, and differed in so many objects."""

    async def _in_time(
        self, timeout: float | None, awaited: str, work: Callable[[], Awaitable[R]]
    ) -> R:
        """Have ``work`` done in that time, in the informer's own loop."""
        check_loop(self._loop, f"the informer of {self.name}")
        self._check_outside(synced=False)
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await work()
        except TimeoutError as error:
            if timeout is None or not limit.expired():
                raise  # somebody else's
            raise self._stale(timeout, awaited) from error

    def _stale(self, timeout: float, awaited: str) -> Stale:
        version = self._indexer.state.resource_version
        at = f"it is at resourceVersion {version}" if version else "it holds no state"
        return Stale(
            f"the cache of {self.name} doesn't show {awaited} after {timeout:g} s: {at}; "
            f"{self._why()}",
            resource_version=version,
        )

    def _check_ours(self, obj: Mapping[str, Any], written: Written) -> None:
        kind = obj.get("kind") or self.resource.kind
        if kind != self.resource.kind:
            raise UsageError(f"{written} is a {kind}; this is the informer of {self.name}")
        if self._namespace and written.key.namespace != self._namespace:
            raise UsageError(f"{written} is in another namespace; this is of {self.name}")

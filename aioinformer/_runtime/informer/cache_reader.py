"""Waits for the cache of one informer: with a timeout, from its loop, as programs see it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from typing_extensions import TypeVar

from aioinformer._core.cache.store import IndexFunction
from aioinformer._core.callables import check_not_async
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._core.objects.view import ObjectSnapshot, ObjectView, name_of
from aioinformer._core.quantities import quantity
from aioinformer._runtime.informer.listener_registry import ListenerRegistry
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.informer.waiters import ObjectVersion
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice
from aioinformer._runtime.tasks.sync_timeout import sync_timeout
from aioinformer.errors import CacheWaitTimeout, NotRunning, UsageError

if TYPE_CHECKING:  # for waits with a selection, and for types
    from aioinformer._core.cache.protocols import ObjectCache
    from aioinformer._core.cache.query import Query, Search
    from aioinformer._runtime.reflector.reflector import Reflector

T = TypeVar("T", default=KubeObject)
R = TypeVar("R")
S = TypeVar("S")

ObjectTest: TypeAlias = Callable[[T | None], object] | NeedsJson
"""A function of an object as programs see it, or ``None``; or one that reads the stored object."""

MAX_NAMED = 5
"""Objects that an error names. More would hide the reason that stands behind them."""


class CacheReader(Generic[T]):
    """Waits for one informer's cache. ``SharedInformer`` documents each method, and converts the
    objects that these return as they are stored.
    """

    def __init__(
        self,
        name: str,
        resource: Resource,
        indexer: ObjectCache,
        pump: Pump,
        listeners: ListenerRegistry[T],
        *,
        namespace: str | None,
        describe: Callable[[], str],
        find_reflector: Callable[[str], Reflector | None],
    ) -> None:
        """Make a reader. ``describe`` returns what the informer does now, for errors;
        ``find_reflector`` the reflector of a namespace.
        """
        self._name = name
        self._resource = resource
        self._indexer = indexer
        self._pump = pump
        self._listeners = listeners
        self._namespace = namespace
        self._describe = describe
        self._find_reflector = find_reflector
        self._view: ObjectView[T] | None = indexer.view

    def snapshot(self) -> Mapping[ObjectKey, T]:
        """Return the objects that are cached now, as programs see them."""
        objects: Any = MappingProxyType(self._indexer.state.copy_objects())
        return objects if self._view is None else ObjectSnapshot(objects, self._view)

    async def wait_synced(self, timeout: float | None) -> None:
        if not self._indexer.state.synced:
            self._listeners.check_can_wait()
        timed = sync_timeout(timeout, lambda: {self._name: self._describe()})
        async with timed, self._listeners.start_limit(timeout) or nullcontext():
            await self._pump.synced.wait()
        if not self._indexer.state.synced:
            raise NotRunning(f"the informer of {self._name} ended before it was synced")

    async def add_index(self, name: str, function: IndexFunction[T] | NeedsJson) -> None:
        """Build an index in steps beside the changing cache, then install it in one step."""
        self._listeners.check_loop()
        build = self._indexer.build_index(name, function)
        if build is None:
            return  # the informer has this index already
        time_slice = TimeSlice()
        try:
            while not build.step(ITEMS_PER_STEP):
                await time_slice.maybe_yield()
            build.commit()
        finally:
            build.abandon()

    async def wait_for(
        self, obj: Mapping[str, Any], timeout: float | None = None
    ) -> KubeObject | None:
        written = ObjectVersion.of(obj)
        self._check_own_object(obj, written)
        with self.hurried(written.key.namespace):
            return await self.run_with_timeout(
                timeout, lambda: str(written), lambda: self._pump.waiters.wait_for_version(written)
            )

    def hurried(self, namespace: str) -> AbstractContextManager[None]:
        """Return a context in which a reflector that polls lists at the least interval."""
        reflector = self._find_reflector(namespace)
        return nullcontext() if reflector is None else reflector.poll_wait.hurried()

    async def wait_until(
        self, key: ObjectKey, predicate: ObjectTest[T], timeout: float | None = None
    ) -> KubeObject | None:
        test, uids = self._test_of(predicate, "wait_until"), set[str]()
        return await self.run_with_timeout(
            timeout,
            lambda: f"{key} in a state that passes {_text_of(predicate)}",
            lambda: self._pump.waiters.wait_for_predicate(key, test, uids),
            lambda: self._explain(key, predicate, uids),
        )

    def _explain(self, key: ObjectKey, predicate: object, uids: set[str]) -> str:
        """Return the state of an object that has not passed; empty if unknown."""
        if not self._indexer.state.synced:
            return ""
        found = self._indexer.state.objects.get(key)
        if found is None:
            return "the object was deleted meanwhile" if uids else "the object does not exist"
        again = "the object was deleted and created again meanwhile" if len(uids) > 1 else ""
        return "; ".join(filter(None, (again, self._explain_content(predicate, found))))

    def _explain_content(self, predicate: object, obj: KubeObject) -> str:
        from aioinformer._core.selectors.object_conditions import Condition  # for its users alone

        return predicate.explain(obj) if isinstance(predicate, Condition) else ""

    async def wait_until_all(
        self, predicate: ObjectTest[T], query: Query, at_least: int, timeout: float | None
    ) -> int:
        test = self._test_of(predicate, "wait_until_all")
        failing: set[ObjectKey] = set()

        def reason() -> str:
            if not failing:
                return f"fewer than {quantity(at_least, 'object')}"
            named = [
                self._name_failing(key, predicate) for key in itertools.islice(failing, MAX_NAMED)
            ]
            return f"not yet: {', '.join([*named, '...'][: len(failing)])}"

        return await self.run_with_timeout(
            timeout,
            lambda: f"all objects in states that pass {_text_of(predicate)}",
            lambda: self._pump.waiters.wait_for_all(
                query.matches(), lambda obj: bool(test(obj)), failing, at_least=at_least
            ),
            reason,
        )

    def _name_failing(self, key: ObjectKey, predicate: object) -> str:
        found = self._indexer.state.objects.get(key)
        text = "" if found is None else self._explain_content(predicate, found)
        return f"{key}: {text}" if text else str(key)

    def _test_of(
        self, predicate: ObjectTest[T], role: str
    ) -> Callable[[KubeObject | None], object]:
        """Return the test of a stored object or ``None``; raise ``TypeError``, ``UsageError``."""
        check_not_async(predicate, f"{role}: {_text_of(predicate)}")
        if isinstance(predicate, NeedsJson):
            if self._view is not None:
                self._view.adapter_for(predicate, f"{role}:")
            from aioinformer._core.selectors.object_conditions import (
                Condition,  # for its users alone
            )

            # Only a condition has a result for an object that doesn't exist.
            if isinstance(predicate, Condition):
                return predicate
            test: Callable[[KubeObject], object] = predicate
            return lambda obj: obj is not None and test(obj)
        if not callable(predicate):
            raise TypeError(f"{role} needs a function or a condition, not {predicate!r}")
        return lambda obj: predicate(self.convert(obj))

    async def run_with_timeout(
        self,
        timeout: float | None,
        description: Callable[[], str],
        work: Callable[[], Awaitable[R]],
        reason: Callable[[], str] = lambda: "",
    ) -> R:
        """Return the result of ``work``; raise ``CacheWaitTimeout`` when the time is over."""
        self._listeners.check_can_wait()
        limit = asyncio.timeout(timeout)
        try:
            async with limit, self._listeners.start_limit(timeout) or nullcontext():
                return await work()
        except TimeoutError:
            if timeout is None or not limit.expired():
                raise  # a TimeoutError of ``work``: of a predicate, for example
            raise self._stale_error(timeout, description(), reason()) from None
        finally:
            # The limit keeps the task, and a cancelled task its CancelledError, whose traceback
            # refers to this frame.
            del limit

    def convert(self, obj: KubeObject | None) -> T | None:
        """Return an object as programs see it; raise ``ModelMismatch`` if ``convert=`` does."""
        found: Any = obj
        converted: T | None = found
        return converted if obj is None or self._view is None else self._view.convert(obj)

    def _stale_error(self, timeout: float, description: str, reason: str) -> CacheWaitTimeout:
        version = self._indexer.state.resource_version
        at = f"it is at resourceVersion {version}" if version else "it holds no state"
        shown = f"{description} ({reason})" if reason else description
        return CacheWaitTimeout(
            f"the cache of {self._name} doesn't show {shown} after {timeout:g} s: {at}; "
            f"{self._describe()}",
            resource_version=version,
            reason=reason,
        )

    def _check_own_object(self, obj: Mapping[str, Any], target: ObjectVersion) -> None:
        kind = obj.get("kind") or self._resource.kind
        if kind != self._resource.kind:
            raise UsageError(f"{target} is a {kind}; this is the informer of {self._name}")
        other = self._namespace and target.key.namespace != self._namespace
        if other or self._indexer.state.part_of(target.key) is None:
            raise UsageError(f"{target} is in another namespace; this is of {self._name}")


def _text_of(predicate: object) -> str:
    return repr(predicate) if isinstance(predicate, NeedsJson) else name_of(predicate)


def start_scan(search: Search[S]) -> AsyncIterator[S]:
    """Start to iterate over the results of a search; see ``Lister.scan``."""
    from aioinformer._runtime.tasks.scan import Scan  # for programs that scan

    return Scan(search)

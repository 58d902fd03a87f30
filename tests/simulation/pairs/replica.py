"""One replica of the program of a history: an informer with its listeners, and what else is on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from aioinformer import (
    CacheFile,
    Controller,
    EventStream,
    ItemExponential,
    KubeObject,
    ObjectKey,
    Operator,
    Problem,
    ReconcileContext,
    Registration,
    ShardGroup,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.errors import (
    CacheWaitTimeout,
    FetchError,
    ModelMismatch,
    NotRunning,
    NotSynced,
    ProtocolError,
    ShutdownIncomplete,
)
from aioinformer.testing import ClusterSource
from tests.simulation.checks.violation import Violation
from tests.simulation.pairs.checks import Reconciles, State, Version, View, key_of, version_of
from tests.simulation.pairs.features import INDEX, NAMESPACES, THINGS, Setup, Thing, app_of, passes

FINALIZER = "example.com/cleanup"
_TIMES: dict[str, Any] = {"lease_duration": 120.0, "renew_deadline": 80.0, "retry_period": 20.0}
"""Those of groups and elections: slow, so that few requests are spent on Leases."""
_GROUP_SHARDS = 8
_BACKOFF = (0.1, 10.0)


@dataclass(slots=True)
class Shared:
    """What the replicas and lives of a history have in common."""

    setup: Setup
    source: ClusterSource
    folder: Path
    note: Callable[[str], None]
    reconciles: Reconciles = field(default_factory=Reconciles)
    durable: dict[int, View] = field(default_factory=dict[int, View])
    """The durable listener of each replica."""
    starts: int = 0


class Replica:
    """One start of one replica."""

    def __init__(self, shared: Shared, number: int) -> None:
        """Make what the replica has. ``start`` runs it."""
        self._shared, self._number = shared, number
        self._setup = setup = shared.setup
        shared.starts += 1
        self.name = f"replica-{number}, start {shared.starts}"
        self._chance = Random(f"{setup.chance.random()} {self.name}")
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._cache = self._make_cache()
        self._operator = self._make_operator() if "operator" in setup else None
        self._group = self._make_group() if "group" in setup else None
        self._factory = self._make_factory()
        self.informer: SharedInformer[Any] = self._make_informer()
        self.was_synced = False
        self.verify_now = asyncio.Event()
        self._second = self._make_second_informer()
        self.views: list[View] = []
        """The listeners."""
        self._registrations: list[Registration] = []
        self._add_handlers()
        self._controller = self._make_controller()

    # -- parts --------------------------------------------------------------------------------

    def _make_cache(self) -> CacheFile | None:
        if "cache file" not in self._setup:
            return None
        path = self._shared.folder / f"{self._number}.db"
        return CacheFile(path, interval=self._chance.choice((1.0, 10.0)))

    def _make_operator(self) -> Operator:
        return Operator(
            self._shared.source,
            name="things",
            leader_election="default/things",
            identity=self.name.replace(", start ", "-"),
            on_error=self._note_problem,
            **_TIMES,
        )

    def _note_problem(self, problem: Problem) -> None:
        self._shared.reconciles.problems.append(problem)

    def _make_group(self) -> ShardGroup:
        return ShardGroup(
            self._shared.source,
            "members",
            namespace="default",
            identity=f"replica-{self._number}",
            shards=_GROUP_SHARDS,
            by=self._setup.group_by,
            cache=None if self._operator is not None else self._cache,
            **_TIMES,
        )

    def _make_factory(self) -> SharedInformerFactory:
        if self._operator is not None:
            return self._operator.informers
        if self._group is not None:
            return self._group.informers
        return SharedInformerFactory(self._shared.source, cache=self._cache)

    def _make_informer(self) -> SharedInformer[Any]:
        options = dict(self._setup.informer)
        if self._setup.indexed:
            options["indexers"] = {INDEX: app_of}
        if self._operator is not None and self._cache is not None:
            options["cache"] = self._cache
        if self._operator is not None and self._group is not None:
            options["shard"] = self._group
        informer: SharedInformer[Any] = self._factory.informer(THINGS, **options)
        return informer

    def _make_second_informer(self) -> SharedInformer[Any] | None:
        if "namespaces" not in self._setup or self._cache is None or self._group is not None:
            return None
        options: dict[str, Any] = {
            **self._setup.informer,
            "namespaces": [NAMESPACES[0]],
            "cache": self._cache,
        }
        second: SharedInformer[Any] = self._factory.informer(THINGS, **options)
        return second

    # -- listeners ----------------------------------------------------------------------------

    def _add_handlers(self) -> None:
        filtered = "filter" in self._setup
        self._add_handler("all", {})
        if filtered:
            self._add_handler("filtered", {"filter": passes})
        if "durable" in self._setup:
            view = self._shared.durable.get(self._number)
            selects = filtered and self._number == 0
            options: dict[str, Any] = {"durable": "audit"} | ({"filter": passes} if selects else {})
            self._shared.durable[self._number] = self._add_handler("durable", options, view)

    def _make_view(self, name: str, options: dict[str, Any], view: View | None = None) -> View:
        gaps = "convert" in self._setup and "misfits" in self._setup
        if view is None:
            view = View(
                f"{name} of {self.name}",
                filtered="filter" in options,
                gaps=gaps,
                trace=self._shared.note,
            )
        view.cached = self._cached
        self.views.append(view)
        return view

    def _add_handler(self, name: str, options: dict[str, Any], view: View | None = None) -> View:
        view = self._make_view(name, options, view)
        if "threads" in self._setup:
            options = options | {"run_in_thread": True}
        self._registrations.append(self.informer.add_handler(view, **options))
        return view

    async def _read(self, stream: EventStream[Any], view: View) -> None:
        async with stream as events:
            while True:
                try:
                    view(await anext(events))
                except StopAsyncIteration:
                    return
                except ModelMismatch:
                    continue

    def _cached(self, key: ObjectKey) -> Version | None:
        try:
            found = self.informer.lister.unsynced.get(key)
        except ModelMismatch:
            return None
        return None if found is None else version_of(found)

    # -- controllers --------------------------------------------------------------------------

    def _make_controller(self) -> Controller | None:
        if not self._setup.features & {"finalizer", "operator"}:
            return None
        reconcile, cleanup = self._make_functions()
        options: dict[str, Any] = {"backoff": ItemExponential(*_BACKOFF), "concurrency": 3}
        if "finalizer" in self._setup:
            options |= {"finalizer": FINALIZER, "cleanup": cleanup}
        if "filter" in self._setup:
            options["filter"] = passes
        if "threads" in self._setup:
            options["run_in_thread"] = True
        if self._operator is None:
            options |= {"client": self._shared.source, "on_error": self._note_problem}
            return Controller(self.informer, reconcile, **options)
        self._operator.controller(self.informer, reconcile, **options)
        if self._group is not None:  # an election needs a controller to lead
            self._operator.controller("configmaps", _do_nothing)
        return None

    def _make_functions(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        run = self._shared.reconciles.run

        def blocking(cleanup: bool) -> Callable[..., None]:
            def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                with run(self.name, key, self._seen(key, ctx), cleanup=cleanup):
                    self._fail_at_times()

            return reconcile

        def waiting(cleanup: bool) -> Callable[..., Awaitable[None]]:
            async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
                with run(self.name, key, self._seen(key, ctx), cleanup=cleanup):
                    await asyncio.sleep(self._chance.choice((0.0, 0.01, 1.0, 5.0)))
                    self._fail_at_times()
                    if self._writes(ctx.obj) and not cleanup:
                        await ctx.set_condition("Seen", True, reason="Reconciled")

            return reconcile

        make = blocking if "threads" in self._setup else waiting
        return make(False), make(True)

    def _seen(self, key: ObjectKey, ctx: ReconcileContext) -> KubeObject | Thing | None:
        """Return the object of a run: ``ctx.obj`` has no labels where a model keeps no JSON."""
        if "model" not in self._setup:
            return ctx.obj
        found: Thing | None = self.informer.lister.get(key)
        return found

    def _writes(self, obj: KubeObject | Thing | None) -> bool:
        return obj is not None and "finalizer" in self._setup and "model" not in self._setup

    def _fail_at_times(self) -> None:
        if self._chance.random() < 0.1:
            raise ConnectionError("the reconciler fails at times")

    # -- running ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start everything."""
        loop, stack = asyncio.get_running_loop(), self._stack
        if self._operator is not None:
            # It enters its factory, and the group of its informer.
            self._tasks.append(loop.create_task(self._operator.run(), name=f"{self.name} operator"))
        else:
            await stack.enter_async_context(self._group or self._factory)
        if self._controller is not None:
            run = self._controller.run()
            self._tasks.append(loop.create_task(run, name=f"{self.name} controller"))
        if "stream" in self._setup:
            options: dict[str, Any] = {"filter": passes} if "filter" in self._setup else {}
            stream = self.informer.events(**options)
            reading = self._read(stream, self._make_view("stream", options))
            self._tasks.append(loop.create_task(reading, name=f"{self.name} stream"))
        if "verify" in self._setup:
            self._tasks.append(loop.create_task(self._verify(), name=f"{self.name} verify"))

    async def _verify(self) -> None:
        while True:
            await self.verify_now.wait()
            self.verify_now.clear()
            try:
                await self.informer.verify(repair=True, timeout=20)
            except ProtocolError:
                raise  # no fault of these histories damages an answer
            except NotRunning:
                return
            except (FetchError, NotSynced, CacheWaitTimeout):
                continue  # a fault

    async def stop(self) -> None:
        """End everything in order, and raise what has failed."""
        if self._operator is not None:
            self._operator.stop()
        if self._controller is not None:
            self._controller.stop()
        mains = [
            each for each in self._tasks if each.get_name().endswith(("operator", "controller"))
        ]
        try:
            with suppress(ShutdownIncomplete):  # names runs whose requests a fault stalls
                await asyncio.gather(*mains)
        finally:
            await self._stack.aclose()
        for each in self._tasks:
            # An operator that is stopped as it starts has started no informer.
            if each.get_name().endswith("verify") or self.informer.health.state == "new":
                each.cancel()
        others = [each for each in self._tasks if each not in mains]
        if others:
            _, running = await asyncio.wait(others, timeout=30)
            assert not running, f"{running} don't end with their informer"
        for each in others:
            if not each.cancelled():
                each.result()

    # -- looking ------------------------------------------------------------------------------

    def check_running(self) -> None:
        """Raise if a task has ended early."""
        for each in self._tasks:
            if each.done():
                each.result()
                raise Violation(9, f"{each.get_name()} has ended")

    def state(self) -> tuple[State, set[ObjectKey]]:
        """Return the cache that can be read, and the keys whose objects can't be converted."""
        readable: State = {}
        broken = set[ObjectKey]()
        keys = self.informer.lister.keys()
        for key in keys:
            version = self._cached(key)
            if version is None:
                broken.add(key)
            else:
                readable[key] = version
        return readable, broken

    def passing(self) -> list[ObjectKey]:
        """Return the keys whose cached objects can be read and pass the filter."""
        found: list[ObjectKey] = []
        keys = self.informer.lister.keys()
        for key in keys:
            try:
                obj = self.informer.lister.get(key)
            except ModelMismatch:
                continue
            if obj is not None and passes(obj):
                found.append(key)
        return found

    def indexed(self, value: str) -> set[ObjectKey]:
        """Return the keys under a value of the index."""
        found = self.informer.lister.by_index(INDEX, value)
        return {key_of(obj) for obj in found}

    def look(self) -> None:
        """Check that all tasks run, and that an informer that was synced is synced."""
        self.check_running()
        if self.was_synced and not self.informer.synced:
            raise Violation(6, f"{self.name} is no longer synced")
        self.was_synced = self.informer.synced

    def latches(self) -> list[bool]:
        """Return the latches of the informer and of its handlers."""
        return [self.informer.synced, *(each.synced for each in self._registrations)]

    def cache_problems(self) -> list[str]:
        """Return the reasons why informers go on without the cache file."""
        informers = [self.informer, *([] if self._second is None else [self._second])]
        return [each.health.cache_problem for each in informers if each.health.cache_problem]

    def __repr__(self) -> str:
        return f"<Replica {self.name}>"


async def _do_nothing(_: ObjectKey, __: ReconcileContext) -> None:
    """Reconcile nothing."""

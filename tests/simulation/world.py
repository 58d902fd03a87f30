"""The world of one history: the cluster, the network, and the informers and listeners of a plan.

``World.live`` carries out the steps of the plan. Informers, listeners and the network record what
they do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any

from aioinformer._core.objects.kube_object import Added, Deleted, Event, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._informers.factory import SharedInformerFactory
from aioinformer._runtime.delivery.streams import EventStream
from aioinformer.errors import NotRunning, ShutdownIncomplete
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.server_features import Features
from aioinformer.testing.cluster.storage import Snapshot
from tests.simulation.listeners import HandlerRaised, SimulatedListener, read, read_merged
from tests.simulation.network import Network, RecordingSource
from tests.simulation.plan import (
    FOLLOWED_TEAM,
    REDEFINED,
    AddScope,
    Fault,
    Join,
    Leave,
    ListenerSpec,
    Merge,
    NamespaceStep,
    Plan,
    Put,
    Remove,
    RemoveScope,
    ServerStep,
    Step,
    Visit,
)
from tests.simulation.probes import InformerProbe
from tests.simulation.records import (
    BackupMade,
    Ending,
    History,
    NamespaceWritten,
    Restored,
    State,
    Version,
    Visited,
    Write,
)

SHUTDOWN_TIMEOUT = 100.0
"""Virtual seconds that anything may take to end once it was asked to."""
_STEPS_PER_SAMPLE = 6
"""After one step in so many, every informer is sampled."""
LONGEST_WAIT = 300.0
"""Seconds that a visit waits for a change."""
_PAUSES = 0.6
"""Share of the steps after which the loop turns."""
_AFTER_FAILURE = 0.0005
"""Seconds after a request that failed until its informer is sampled."""


class World:
    """Everything that takes part in a history."""

    def __init__(self, plan: Plan, history: History) -> None:
        """Create the world of a plan. There must be a running loop."""
        self._plan = plan
        self._history = history
        self._random = Random(f"{plan.seed} steps")
        self._cluster = Cluster(
            window=plan.window,
            watch_buffer=plan.watch_buffer,
            seed=plan.seed,
            features=Features(watch_list=plan.watch_list),
        )
        self._cluster.add_resource(plan.resource)
        self._network = Network(
            self._cluster,
            history,
            Random(f"{plan.seed} network"),
            on_failure=self._sample_after_failure,
        )
        self._informers = {
            spec.name: InformerProbe(self._network, plan.resource, spec) for spec in plan.informers
        }
        self._listeners: dict[str, SimulatedListener] = {}
        self._running: list[asyncio.Task[None]] = []
        self._others: list[asyncio.Task[None]] = []
        self._versions: dict[ObjectKey, tuple[str, str]] = {}
        self._backup: tuple[Snapshot, dict[ObjectKey, tuple[str, str]]] | None = None
        self._complaints: list[str] = []
        self._served = True
        self._namespaces: dict[str, str] = {}
        """The uids of the namespaces that are objects of the server."""
        self._server_actions: dict[str, Callable[[], None]] = {
            "redefine": self._redefine,
            "withdraw": self._withdraw,
            "serve": self._serve,
            "back_up": self._back_up,
            "restore": self._restore,
        }

    # -- the course of a history --------------------------------------------------------------

    async def live(self) -> None:
        """Carry out the whole plan."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self._complain(context))
        before = [step for step in self._plan.steps if step.at < 0]
        for step in before:
            await self._take(step)
        for probe in self._informers.values():
            for informer in probe.informers:
                name = informer.name
                self._running.append(loop.create_task(informer.run(), name=f"informer {name}"))
                self.spawn(informer.wait_synced(), f"wait for {name}")
        for step in self._plan.steps[len(before) :]:
            if step.at > loop.time():
                await asyncio.sleep(step.at - loop.time())
            await self._take(step)
            if self._random.random() < _PAUSES:
                await asyncio.sleep(0)  # so that tasks get a turn within a burst
            if self._random.randrange(_STEPS_PER_SAMPLE) == 0:
                self._sample()
        await asyncio.sleep(max(0.0, self._plan.ends - loop.time()))
        self._sample()
        await self._end()

    def _sample(self) -> None:
        for informer in self._informers.values():
            informer.sample()

    def _sample_after_failure(self, name: str) -> None:
        if informer := self._informers.get(name.partition(" (")[0]):
            asyncio.get_running_loop().call_later(_AFTER_FAILURE, informer.sample)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task that must end when the informers have ended."""
        task = asyncio.get_running_loop().create_task(_until_not_running(work), name=name)
        task.add_done_callback(lambda _: work.close())  # for a task cancelled before its first step
        self._others.append(task)
        return task

    # -- steps --------------------------------------------------------------------------------

    async def _take(self, step: Step) -> None:
        match step:
            case Put():
                self._put(step)
            case Remove():
                self._remove(ObjectKey(step.namespace, step.name))
            case ServerStep():
                self._server_actions[step.action]()
            case Fault():
                self._network.begin(step)
            case Join():
                self.admit(step.listener)
            case Merge():
                self._merge(step)
            case Leave():
                if listener := self._listeners.get(step.listener):
                    await listener.leave()
            case AddScope():
                self._informers[step.informer].add_scope(step.scope)
            case RemoveScope():
                self._informers[step.informer].remove_scope(step.namespace)
            case NamespaceStep():
                self._write_namespace(step)
            case Visit():
                self.spawn(self._visit(step), step.name)

    def _withdraw(self) -> None:
        for key in list(self._versions):
            self._remove(key)
        if self._served:
            self._served = False
            self._cluster.remove_resource(self._plan.resource)

    def _serve(self) -> None:
        self._served = True
        self._cluster.add_resource(self._plan.resource)

    def _put(self, step: Put) -> None:
        if not self._served:
            return
        key = ObjectKey(step.namespace, step.name)
        metadata: dict[str, Any] = {"name": step.name, "labels": {"app": step.app}}
        body = {"metadata": metadata, "spec": {"nodeName": step.node, "value": step.value}}
        resource = self._plan.resource
        if known := self._versions.get(key):
            metadata["resourceVersion"] = known[1]
            stored = self._cluster.update(resource, body, namespace=step.namespace)
        else:
            stored = self._cluster.create(resource, body, namespace=step.namespace)
        uid, version = stored["metadata"]["uid"], stored["metadata"]["resourceVersion"]
        self._versions[key] = uid, version
        newest = self._cluster.resource_version
        self._history.add(Write, newest, key, uid, step.app, step.node, False, step.value)

    def _remove(self, key: ObjectKey) -> None:
        known = self._versions.pop(key, None)
        if known is not None:
            self._cluster.delete(self._plan.resource, key.name, namespace=key.namespace)
            newest = self._cluster.resource_version
            self._history.add(Write, newest, key, known[0], "", "", True)

    def _write_namespace(self, step: NamespaceStep) -> None:
        name, known = step.namespace, self._namespaces.pop(step.namespace, None)
        if step.team is None:
            for key in [key for key in self._versions if key.namespace == name]:
                self._remove(key)
            if known is not None:
                self._cluster.delete("namespaces", name)
                self._history.add(NamespaceWritten, name, known, False)
            return
        metadata = {"name": name, "labels": {"team": step.team}}
        if known is None:
            stored = self._cluster.create("namespaces", {"metadata": metadata})
        else:
            stored = self._cluster.merge_patch("namespaces", name, {"metadata": metadata})
        uid = self._namespaces[name] = stored["metadata"]["uid"]
        self._history.add(NamespaceWritten, name, uid, step.team == FOLLOWED_TEAM)

    def _redefine(self) -> None:
        """Change the values of all objects under their resourceVersions."""
        if not self._served:
            return

        def change(body: dict[str, Any]) -> dict[str, Any]:
            body["spec"]["value"] += REDEFINED
            return body

        resource = self._plan.resource
        self._cluster.convert_resource(resource, change)
        self._cluster.compact()  # the oracle knows the past states in their earlier form alone
        bodies = [
            self._cluster.get(resource, key.name, namespace=key.namespace) for key in self._versions
        ]
        newest = self._cluster.resource_version
        for body in bodies:
            metadata, spec = body["metadata"], body["spec"]
            self._history.add(
                Write,
                newest,
                ObjectKey(metadata["namespace"], metadata["name"]),
                metadata["uid"],
                metadata["labels"]["app"],
                spec["nodeName"],
                False,
                spec["value"],
                int(metadata["resourceVersion"]),
            )

    def _back_up(self) -> None:
        self._backup = self._cluster.snapshot(), dict(self._versions)
        self._history.add(BackupMade, self._cluster.resource_version)

    def _restore(self) -> None:
        if self._backup is None:
            return
        snapshot, versions = self._backup
        made = self._history.of(BackupMade)[-1]
        self._history.add(Restored, made, self._cluster.resource_version)
        self._versions = dict(versions)
        self._cluster.restore(snapshot)

    # -- listeners ----------------------------------------------------------------------------

    def admit(self, spec: ListenerSpec) -> SimulatedListener:
        """Create a listener and let it join."""
        listener = self._make_listener(spec)
        if spec.streams:
            listener.reading = self.spawn(read(listener), spec.name)
        else:
            listener.register()
            self.spawn(listener.wait_synced(), f"wait for {spec.name}")
        return listener

    def _merge(self, step: Merge) -> None:
        several = [self._make_listener(spec) for spec in step.listeners]
        reading = self.spawn(read_merged(several), step.listeners[0].name)
        for each in several:
            each.company, each.reading = several, reading

    def _make_listener(self, spec: ListenerSpec) -> SimulatedListener:
        random = Random(f"{self._plan.seed} {spec.name}")
        informer = self._informers[spec.informer]
        made = SimulatedListener(spec, informer, self._history, random, self)
        self._listeners[spec.name] = made
        return made

    async def _visit(self, step: Visit) -> None:
        """Enter and leave a factory, which must leave no request behind."""
        await visit(step, self._network, self._plan.resource)
        left = [each for each in self._network.open if each.informer == step.name]
        if left:
            self._complaints.append(f"{step.name} left requests open: {left}")

    # -- the end ------------------------------------------------------------------------------

    async def _end(self) -> None:
        """End the informers, and record what doesn't end with them."""
        self._history.over = True
        for task in self._running:
            task.cancel()
        _, running = await asyncio.wait(self._running, timeout=SHUTDOWN_TIMEOUT)
        _, waiting = await asyncio.wait(self._others, timeout=SHUTDOWN_TIMEOUT)
        for task in waiting:
            task.cancel()
        ours = {asyncio.current_task(), *waiting}
        left = [task for task in asyncio.all_tasks() if task not in ours]
        self._history.ending = Ending(
            *self._history.stamp(),
            tasks=tuple(sorted(task.get_name() for task in left)),
            requests=len(self._network.open),
            waits=tuple(sorted(task.get_name() for task in waiting | running)),
            complaints=tuple(self._complaints),
            failures=tuple(map(_failure, (*self._running, *self._others))),
        )

    def _complain(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._complaints.append(f"{context['message']}: {error!r}")

    def __repr__(self) -> str:
        return f"<World of {self._plan.seed}: {self._network!r}>"


async def _until_not_running(work: Coroutine[Any, Any, None]) -> None:
    """Wait for the work, which may end because its informer has ended."""
    try:
        await work
    except NotRunning:
        return


def _failure(task: asyncio.Task[None]) -> str:
    if not task.done() or task.cancelled() or task.exception() is None:
        return ""
    return f"{task.get_name()}: {task.exception()!r}"


# -- visits ------------------------------------------------------------------------------------


class _Visitor:
    """The handler of a visit: knows the objects from its events."""

    def __init__(self, step: Visit, history: History) -> None:
        self.__qualname__ = step.name
        self.held: dict[ObjectKey, Version] = {}
        self.late = 0
        self.over = False
        self.broke = ""
        self.broke_at = 0.0
        self._received = 0
        self._step = step
        self._history = history

    async def __call__(self, event: Event) -> None:
        self.late += self.over
        await asyncio.sleep(self._step.delay)
        self._received += 1
        if self._received == self._step.fails:
            self.broke, self.broke_at = f"at {event.obj.key}", self._history.clock()
            raise HandlerRaised(self.broke)
        if isinstance(event, Deleted):
            self.held.pop(event.obj.key, None)
        else:
            self.held[event.obj.key] = self._history.version_of(event.obj)


async def _wait_for_change(events: EventStream) -> None:
    """Return in the step of the loop in which the event of a change arrives, or after a while."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_WAIT):
            async for event in events:
                initial = isinstance(event, Added) and event.initial
                if not (initial or events.statistics().pending):
                    await anext(events)
                    return


async def visit(step: Visit, network: Network, resource: Resource) -> None:
    """Enter a factory, use one informer with one handler for a while, and leave; record the end."""
    history = network.history
    visitor, incomplete, raised = _Visitor(step, history), "", ""
    cached: State = {}
    left_at, order = 0.0, 0
    try:
        async with (
            SharedInformerFactory(RecordingSource(network, step.name), namespace="db") as informers,
            informers.use(resource) as informer,
            informer.events() as events,  # before the handler, so that it wakes up first
        ):
            registration = informer.add_handler(
                visitor, drain=step.drains, fail_fast=step.fails > 0, concurrency=step.concurrency
            )
            await asyncio.sleep(step.lasting)
            if step.leaves_with_event:
                await _wait_for_change(events)
            lister = informer.lister.unsynced
            cached = {obj.key: history.version_of(obj) for obj in lister}
            order, left_at = history.stamp()
            if step.leaves_with_event:
                await registration.aclose(drain=step.drains)
    except ShutdownIncomplete as error:
        incomplete = str(error)
    except HandlerRaised as error:
        raised = str(error)
    visitor.over = True
    held, lasted = dict(visitor.held), history.clock() - max(left_at, visitor.broke_at)
    _, now = history.stamp()
    await asyncio.sleep(1.0)
    history.of(Visited).append(
        # The number is that of the moment of leaving: what is written later is not in the cache.
        Visited(
            order,
            now,
            step.name,
            cached,
            held,
            visitor.late,
            lasted,
            incomplete,
            visitor.broke,
            raised,
        )
    )

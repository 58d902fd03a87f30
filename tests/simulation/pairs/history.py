"""One history: a program with some features in its lives, writes, faults, and the end.

The cluster, the faults, the order of callbacks and the report are those of
``aioinformer.testing.simulation.simulate``. Time is virtual; ``threads`` says how
threads are drawn.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from random import Random
from typing import Any

from aioinformer import ObjectKey
from aioinformer.errors import CacheWaitTimeout, ServerError
from aioinformer.sharding.state.ranges import shard_of
from aioinformer.testing.simulation import FAULT_KINDS, FaultKind, Program, Simulation, simulate
from tests.simulation.checks.violation import Violation
from tests.simulation.pairs.checks import State, Version
from tests.simulation.pairs.features import (
    DROPPED,
    NAMESPACES,
    PASSING,
    SHARDS,
    SHIFT,
    THINGS,
    Features,
    set_up,
)
from tests.simulation.pairs.replica import FINALIZER, Replica, Shared
from tests.simulation.pairs.threads import simulated_threads

KINDS: tuple[FaultKind, ...] = tuple(kind for kind in FAULT_KINDS if kind != "corrupt")
"""The faults. A damaged body can't be opened, which most of these programs do."""
DURATION = 150.0
SETTLE = 900.0
"""Seconds. A silent watch is noticed after 600 s at the latest, and then everything settles."""
FAULTS = 5
_STEPS = 25
"""Bursts of writes."""
_CALM = 240.0
"""Seconds for the last changes, without a fault. An informer that polls lists once a minute, and
needs a list to see a deletion and one to see the end of the cleanup."""
_NAMES = 5
"""Objects of a namespace."""
_APPS = (PASSING, PASSING, "blog", DROPPED)
_TEAMS = ("shop", "other")
_CONDITION = {"type": "Other", "status": "True", "reason": "Written", "message": ""}
"""A condition that another program keeps on each object."""


class History:
    """The program of one history."""

    def __init__(self, simulation: Simulation, features: Features, folder: Path) -> None:
        """Make the cluster and the features."""
        self._simulation, self._cluster = simulation, simulation.cluster
        self._chance = simulation.random
        self._setup = set_up(features, Random(f"{simulation.seed} features"))
        note: Callable[[str], None] = simulation.note
        self._shared = Shared(self._setup, simulation.source, folder, note)
        self._replicas: dict[int, Replica] = {}
        self._value = 0
        self._before: set[asyncio.Task[Any]] = set()
        self._cluster.add_resource(THINGS, status=True)
        for name in NAMESPACES:
            team = self._chance.choice(_TEAMS) if self._setup.follows else ""
            self._cluster.create(
                "namespaces", {"metadata": {"name": name, "labels": {"team": team}}}
            )
        if "list only" in self._setup:
            simulation.source.faults.forbid(verb="watch", resource=THINGS)
            simulation.source.faults.forbid(verb="watch_list", resource=THINGS)

    async def live(self) -> None:
        """Live through the whole history."""
        self._before = asyncio.all_tasks()
        self._write(10)
        for life in range(self._setup.lives):
            last = life == self._setup.lives - 1
            for number in range(self._setup.replicas):
                await self._start(number)
            for _ in range(_STEPS // self._setup.lives):
                await self._step()
            if not last:
                await self._stop_all()
                self._write(self._chance.randrange(8))
                await asyncio.sleep(self._chance.choice((0.0, 5.0, 20.0)))
        await self._end()

    async def _step(self) -> None:
        chance = self._chance
        await self._begin_verifications()
        self._write(chance.choice((0, 1, 1, 2, 6)))
        if "namespaces" in self._setup and chance.random() < 0.25:
            self._move_namespace(chance.choice(NAMESPACES))
        if self._setup.replicas > 1 and chance.random() < 0.08:
            await self._stop(1) if 1 in self._replicas else await self._start(1)
        await asyncio.sleep(chance.choice((0.0, 0.01, 1.0, 5.0, 15.0)))
        for replica in self._replicas.values():
            replica.look()

    async def _begin_verifications(self) -> None:
        """Let what this step does come in the middle of a comparison with the server."""
        for replica in self._replicas.values():
            replica.verify_now.set()
        for _ in range(self._chance.randrange(8) if "verify" in self._setup else 0):
            await asyncio.sleep(0)

    # -- replicas -----------------------------------------------------------------------------

    async def _start(self, number: int) -> None:
        if number not in self._replicas:
            self._note(f"replica {number} starts")
            self._replicas[number] = replica = Replica(self._shared, number)
            await replica.start()

    async def _stop(self, number: int) -> None:
        self._note(f"replica {number} stops")
        await self._replicas.pop(number).stop()

    async def _stop_all(self) -> None:
        for number in list(self._replicas):
            await self._stop(number)
        left = asyncio.all_tasks() - self._before
        if left:
            names = sorted(task.get_name() for task in left)
            raise Violation(9, f"tasks are left: {names}", time=self._now)

    # -- writes -------------------------------------------------------------------------------

    def _write(self, times: int) -> None:
        for _ in range(times):
            key = self._key()
            try:
                if self._chance.random() < 0.2:
                    self._delete(key)
                else:
                    self._put(key)
            except ServerError:
                continue  # it is there already, or it isn't, or it is being deleted

    def _key(self) -> ObjectKey:
        name = f"thing-{self._chance.randrange(_NAMES)}"
        return ObjectKey(self._chance.choice(NAMESPACES), name)

    def _put(self, key: ObjectKey) -> None:
        self._value += 1
        misfit = "misfits" in self._setup and self._chance.random() < 0.2
        labels = {"app": self._chance.choice(_APPS), "value": str(self._value)}
        body: dict[str, Any] = {
            "metadata": {"name": key.name, "labels": labels},
            "spec": {"size": "large" if misfit else self._value},
        }
        self._note(f"put {key} {labels}{' that does not fit' if misfit else ''}")
        if self._cluster.find_object(THINGS, key.name, namespace=key.namespace) is None:
            body["status"] = {"conditions": [_CONDITION]}
            self._cluster.create(THINGS, body, namespace=key.namespace)
        else:
            self._cluster.merge_patch(THINGS, key.name, body, namespace=key.namespace)

    def _delete(self, key: ObjectKey) -> None:
        found = self._cluster.find_object(THINGS, key.name, namespace=key.namespace)
        if found is not None and FINALIZER in found["metadata"].get("finalizers", ()):
            self._shared.reconciles.owed[found["metadata"]["uid"]] = key
        self._note(f"delete {key}")
        self._cluster.delete(THINGS, key.name, namespace=key.namespace)

    def _move_namespace(self, name: str) -> None:
        if self._setup.follows:
            self._label(name, self._chance.choice(_TEAMS))
            return
        for replica in self._replicas.values():
            reads = name in (replica.informer.namespaces or ())
            self._note(f"{replica.name} {'removes' if reads else 'adds'} {name}")
            (replica.informer.remove_namespace if reads else replica.informer.add_namespace)(name)

    def _label(self, name: str, team: str) -> None:
        self._note(f"namespace {name} is of team {team}")
        self._cluster.merge_patch("namespaces", name, {"metadata": {"labels": {"team": team}}})

    # -- the end ------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Let everything return and settle, compare, and end the program."""
        for number in range(self._setup.replicas):
            await self._start(number)
        if "namespaces" in self._setup:
            for name in NAMESPACES:
                self._return_namespace(name)
        await self._simulation.settled()
        for replica in self._replicas.values():
            replica.look()
        problems = len(self._shared.reconciles.problems)
        self._write(4)  # undisturbed
        await asyncio.sleep(_CALM)
        for problem in self._shared.reconciles.problems[problems:]:
            if isinstance(problem.error, CacheWaitTimeout):
                raise Violation(9, f"a run waits in vain: {problem.error}", time=self._now)
        self._judge()
        await self._stop_all()

    def _return_namespace(self, name: str) -> None:
        """Read a namespace, so that no finalizer of an object in it is left."""
        if self._setup.follows:
            self._label(name, "shop")
            return
        for replica in self._replicas.values():
            if name not in (replica.informer.namespaces or ()):
                replica.informer.add_namespace(name)

    def _judge_conditions(self) -> None:
        for key, body in self._by_key(self._cluster.objects(THINGS)).items():
            if _CONDITION not in body.get("status", {}).get("conditions", ()):
                what = f"the condition of another program is lost: {body.get('status')}"
                raise Violation(1, what, time=self._now, key=key)

    def _judge(self) -> None:
        self._judge_conditions()
        every = self._states(self._cluster.objects(THINGS))
        wanted = self._states(self._shown())
        shown: State = {}
        unreadable = set[ObjectKey]()
        for replica in self._replicas.values():
            unreadable |= self._judge_replica(replica, shown)
        rejected = self._rejected()
        for key in sorted(wanted.keys() | shown.keys()):
            if key not in unreadable | rejected and shown.get(key) != wanted.get(key):
                what = f"{shown.get(key)} is cached, and the server has {wanted.get(key)}"
                raise Violation(1, what, time=self._now, key=key)
        doubtful = unreadable | rejected
        if self._setup.features & {"finalizer", "operator"}:
            passing = {
                key: each
                for key, each in self._states(self._shown(), only_passing=True).items()
                if key not in doubtful
            }
            self._shared.reconciles.judge(passing, every)

    def _judge_replica(self, replica: Replica, shown: State) -> set[ObjectKey]:
        """Check a replica's latches and listeners, and add its cache to ``shown``."""
        if not all(replica.latches()):
            what = f"{replica.name} is not synced: {replica.informer.health}"
            raise Violation(9, what, time=self._now)
        if problems := replica.cache_problems():
            raise Violation(10, f"without its cache file: {problems[0]}", time=self._now)
        readable, unreadable = replica.state()
        both = shown.keys() & readable.keys()
        if both and "group" in self._setup:
            raise Violation(1, f"two members have {min(both)}", time=self._now)
        shown |= readable
        for view in replica.views:
            held = {key: each for key, each in view.held.items() if key not in unreadable}
            view.held = held
            passing = set(replica.passing()) if view.filtered else set(readable)
            view.judge({key: each for key, each in readable.items() if key in passing})
        if self._setup.indexed and not unreadable:
            indexed = replica.indexed(PASSING)
            if indexed != set(replica.passing()):
                raise Violation(1, f"the index has {sorted(indexed)}", time=self._now)
        return unreadable

    def _rejected(self) -> set[ObjectKey]:
        rejected = {
            ObjectKey(*each.split("/"))
            for replica in self._replicas.values()
            for each in replica.informer.health.rejected
        }
        misfits = {
            key
            for key, body in self._by_key(self._cluster.objects(THINGS)).items()
            if not isinstance(body["spec"]["size"], int)
        }
        if not rejected <= misfits:
            what = f"{sorted(rejected - misfits)} are rejected, and fit"
            raise Violation(1, what, time=self._now)
        return rejected

    def _shown(self) -> Iterable[Any]:
        """Yield the bodies that the replicas together must show."""
        shard = self._setup.informer.get("shard")
        for body in self._cluster.objects(THINGS):
            metadata = body["metadata"]
            if shard is not None and shard_of(metadata[shard.by], SHARDS) != shard.index:
                continue
            if self._setup.drops and metadata["labels"]["app"] == DROPPED:
                continue
            yield body

    def _states(self, bodies: Iterable[Any], *, only_passing: bool = False) -> State:
        filtered = only_passing and "filter" in self._setup
        shift = SHIFT if "transform" in self._setup else 0
        return {
            key: Version(
                body["metadata"]["uid"],
                int(body["metadata"]["resourceVersion"]),
                int(body["metadata"]["labels"]["value"]) + shift,
            )
            for key, body in self._by_key(bodies).items()
            if not filtered or body["metadata"]["labels"]["app"] == PASSING
        }

    def _by_key(self, bodies: Iterable[Any]) -> dict[ObjectKey, Any]:
        return {
            ObjectKey(body["metadata"]["namespace"], body["metadata"]["name"]): body
            for body in bodies
        }

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _note(self, text: str) -> None:
        self._simulation.note(text)

    def __repr__(self) -> str:
        return f"<History of {sorted(self._setup.features)}>"


def program_with(*names: str) -> Program:
    """Return the program of a history with these features."""
    return _program(frozenset(names))


def _program(features: Features) -> Program:
    shared_memory = Path("/dev/shm")  # noqa: S108 - no disk waits for these files
    where = shared_memory if shared_memory.is_dir() else None

    async def program(simulation: Simulation) -> None:
        with (
            tempfile.TemporaryDirectory(dir=where) as folder,
            simulated_threads(Random(f"{simulation.seed} threads")),
        ):
            await History(simulation, features, Path(folder)).live()

    # The report names the program by the call that makes it again.
    program.__qualname__ = f"program_with({', '.join(map(repr, sorted(features)))})"
    return program


def hold_with(features: Features, seeds: Iterable[int], *, attempts: int = 30) -> None:
    """Run histories with these features; fail with the report of the first that breaks a promise.

    Raises:
        SimulationFailed: a promise was broken.
    """
    __tracebackhide__ = True
    program: Callable[[Simulation], Coroutine[Any, Any, None]] = _program(features)
    simulate(
        program,
        seeds=seeds,
        duration=DURATION,
        settle=SETTLE,
        faults=FAULTS,
        kinds=KINDS,
        attempts=attempts,
    )

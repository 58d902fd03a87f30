"""Groups in simulated time: replicas with clocks of their own, late caches, and a bad network.

Each replica is a ``GroupMember`` and as much of a shell as it needs; the Leases are in a
``LeaseStore``. Everything that happens is drawn from a seed. Replicas join, leave, die, stop for
longer than a lease, and are cut off. Requests and answers are slow or lost, a write may arrive half
a minute late, caches are late, the server can't be reached for minutes. Clocks run at different
rates.

A replica works on a shard from the move "acquired" on until its work has ended, some time after the
move "stopping" or "lost". That time, short pauses, and the rates of the clocks stay below the
margin of the lease, but hardly so. After a pause that is longer only the fence counts: ``may_act``.
"""

from __future__ import annotations

import datetime as dt
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, TypeAlias

from aioinformer import ObjectKey
from aioinformer._core.leaderelection.election import (
    CreateLease,
    ElectionEnded,
    ElectionTimes,
    LeaseLost,
    ReadLease,
    SleepUntil,
    UpdateLease,
)
from aioinformer._core.shardgroup.member import GroupMember
from aioinformer._core.shardgroup.planner import StaleLease
from aioinformer._core.shardgroup.records import GroupLayout
from aioinformer._core.shardgroup.rendezvous import shard_owners
from tests.simulation.lease_store import LeaseStore, Refusal

KEY = ObjectKey("web", "group")
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
CALM_SECONDS = 70.0
"""Seconds at the end of a history in which nothing goes wrong any more."""
TAKEOVER_SECONDS = 5.0
"""Seconds beyond the lease duration after which the shards of a dead member have an owner."""
HANDOVER_SECONDS = 2.0
"""Seconds after which a shard that was given away in order has an owner."""
MAX_CLOCK_DRIFT = 0.05


class BrokenPromise(AssertionError):
    """A shard had two owners or none for too long, or shards moved too often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardWorldOptions:
    """The circumstances of one history."""

    replicas: int
    shards: int
    duration: float
    orderly: bool
    """True if replicas only join, leave and die: then shards move as little as possible."""
    failure_rate: float
    """The part of requests that fail, are lost, or arrive late."""
    outages: bool
    """True if the server can't be reached for minutes."""
    max_cache_lag: float
    """The most seconds by which a cache is late; beyond ``max_latency``, caches are silent for half
    a minute now and then, while requests are answered."""
    drift: float
    max_latency: float
    times: ElectionTimes = field(default_factory=ElectionTimes)

    @property
    def late_caches(self) -> bool:
        """True if caches are late."""
        return self.max_cache_lag > self.max_latency

    @property
    def prompt(self) -> bool:
        """True if requests and caches work, so that the promised times hold throughout."""
        return not (self.failure_rate or self.outages or self.late_caches)

    @classmethod
    def draw(cls, chance: Random, *, small: bool) -> ShardWorldOptions:
        """Draw circumstances; ``small`` ones for a short test."""
        sizes = [1, 2, 2, 3, 3, 4, 5, 6] if small else [2, 2, 3, 3, 3, 4, 4, 5, 6, 6, 8, 12, 20]
        replicas = chance.choice(sizes)
        if not small and chance.random() < 0.005:
            replicas = 100
        shards = chance.choice([4, 8, 16, 64] if small else [8, 16, 64, 64, 64, 256])
        orderly = chance.random() < 0.3
        troubled = not orderly and chance.random() < 0.6
        latency = chance.choice([0.02, 0.1, 0.2])
        late = not orderly and chance.random() < 0.4
        return cls(
            replicas=replicas,
            shards=1024 if replicas == 100 else shards,
            duration=110.0 if replicas == 100 else 130.0 if small else 200.0,
            orderly=orderly,
            failure_rate=chance.choice([0.0, 0.05, 0.2, 0.5]) if troubled else 0.0,
            outages=troubled and chance.random() < 0.5,
            max_cache_lag=chance.choice([1.0, 4.0, 8.0]) if late else latency,
            drift=chance.choice([0.0, MAX_CLOCK_DRIFT * chance.random(), MAX_CLOCK_DRIFT]),
            max_latency=latency,
        )


class ShardWorld:
    """One history."""

    def __init__(self, seed: int, *, small: bool = True) -> None:
        self.random = Random(seed)
        self.options = ShardWorldOptions.draw(self.random, small=small)
        self.now = 0.0
        self.store = LeaseStore()
        self.replicas: dict[str, Replica] = {}
        self.workers: list[list[Replica]] = [[] for _ in range(self.options.shards)]
        """The replicas that work on each shard."""
        self.last_owner: list[str] = [""] * self.options.shards
        self.moves = 0
        self.least_moves = 0
        self.takeovers = 0
        self.longest_gap = 0.0
        self.outage_until = -1.0
        self._unowned_since: list[float] = [0.0] * self.options.shards
        self._disturbed_at = 0.0
        self._members: tuple[str, ...] = ()
        self._order = count()
        self._scheduled: list[tuple[float, float, int, Callable[[], None]]] = []

    # -- time ----------------------------------------------------------------------------------

    def schedule(self, when: float, do: Callable[[], None]) -> None:
        """Do something then; what is due together comes in any order."""
        order = (max(when, self.now), self.random.random(), next(self._order), do)
        heapq.heappush(self._scheduled, order)

    def run(self) -> None:
        """All of it."""
        for number in range(self.options.replicas):
            replica = self.replicas[f"replica-{number}"] = Replica(self, f"replica-{number}")
            self.schedule(self.random.uniform(0, 10), replica.start)
        self.schedule(self.random.uniform(20, 50), self._disturb)
        if self.options.outages:
            self.schedule(self.random.uniform(20, 60), self._begin_outage)
        while self._scheduled and self._scheduled[0][0] <= self.options.duration:
            self.now, _, _, do = heapq.heappop(self._scheduled)
            do()
        self._check_end()

    @property
    def calm(self) -> bool:
        """True if there are no more faults."""
        return self.now > self.options.duration - CALM_SECONDS

    def draw_failure(self) -> bool:
        """Return True if a fault is on now."""
        return not self.calm and self.random.random() < self.options.failure_rate

    @property
    def reachable(self) -> bool:
        """True if the server can be reached."""
        return self.now >= self.outage_until

    def _begin_outage(self) -> None:
        if not self.calm:
            latest = self.options.duration - CALM_SECONDS
            self.outage_until = min(latest, self.now + self.random.choice([5.0, 30.0, 120.0]))
            self.schedule(self.outage_until + self.random.uniform(10, 60), self._begin_outage)

    def commit(self) -> None:
        """Let every cache see what the server has accepted, some time later."""
        for replica in self.replicas.values():
            replica.notice_commit()

    # -- disturbances --------------------------------------------------------------------------

    def _disturb(self) -> None:
        if self.calm:
            return
        replica = self.random.choice(list(self.replicas.values()))
        replica.disturb()
        # While caches are late, members that disagree about the assignment race for shards.
        often = [0.5, 2.0, 5.0, 20.0]
        seconds = often if self.options.late_caches else [1.0, 10.0, 30.0, 30.0]
        self.schedule(self.now + self.random.choice(seconds), self._disturb)

    def note_disturbance(self) -> None:
        """Record that a replica joins, leaves, dies, stops, or is cut off."""
        self._disturbed_at = self.now
        members = tuple(sorted(name for name, one in self.replicas.items() if one.alive))
        owners = shard_owners(members, self.options.shards)
        before = shard_owners(self._members, self.options.shards)
        self.least_moves += sum(one != other for one, other in zip(before, owners, strict=True))
        self._members = members
        self.schedule(self.now + self._takeover_seconds, self._check_owned)

    @property
    def _takeover_seconds(self) -> float:
        slowest = self.options.times.lease_duration / (1 - self.options.drift)
        return slowest + TAKEOVER_SECONDS + MAX_JOIN_SECONDS

    # -- promises ------------------------------------------------------------------------------

    def begin_work(self, replica: Replica, shard: int) -> None:
        """Record that a replica works on a shard."""
        self.workers[shard].append(replica)
        self.check_single(shard)
        if self.last_owner[shard] != replica.name:
            self.moves += 1
            self.takeovers += bool(self.last_owner[shard])
        self.last_owner[shard] = replica.name
        self.longest_gap = max(self.longest_gap, self.now - self._unowned_since[shard])

    def end_work(self, replica: Replica, shard: int, *, orderly: bool) -> None:
        """Record that a replica's work on a shard has ended."""
        self.workers[shard].remove(replica)
        self._unowned_since[shard] = self.now
        if orderly and self.options.prompt:
            began, assignment = self.now, replica.member.view.assignment
            members = assignment.members if assignment is not None else self._members
            receiver = shard_owners(members, self.options.shards)[shard]
            self.schedule(
                began + HANDOVER_SECONDS, lambda: self._check_handover(shard, began, receiver)
            )

    def check_single(self, shard: int) -> None:
        """Check that one replica at most can act on a shard."""
        if len(self.workers[shard]) < 2:
            return
        acting = [one for one in self.workers[shard] if not one.overslept or one.may_act(shard)]
        if len(acting) > 1:
            raise BrokenPromise(f"at {self.now:.3f} s: {acting} act on shard {shard}")

    def _check_handover(self, shard: int, began: float, receiver: str) -> None:
        quiet = self._disturbed_at < began - self._takeover_seconds or (
            # A shard that is given to a dead member has no owner before the death is noticed.
            self.options.orderly
            and self._disturbed_at < began - MAX_JOIN_SECONDS
            and (receiver in self.replicas and self.replicas[receiver].alive)
        )
        if quiet and not self.workers[shard] and self._unowned_since[shard] <= began:
            raise BrokenPromise(f"at {self.now:.3f} s: shard {shard} was given to no member")

    def _check_owned(self) -> None:
        quiet = self.now >= self._disturbed_at + self._takeover_seconds - 1e-6
        if quiet and self.options.prompt:
            self._check_all_owned()

    def _check_all_owned(self) -> None:
        if not any(one.healthy for one in self.replicas.values()):
            return
        unowned = [
            shard
            for shard, workers in enumerate(self.workers)
            if not any(one.may_act(shard) for one in workers)
            # A shard that is being handed over has no owner for a moment.
            and self.now - self._unowned_since[shard] > HANDOVER_SECONDS
        ]
        if unowned:
            raise BrokenPromise(f"at {self.now:.3f} s: shards {unowned} have no owner")

    def _check_end(self) -> None:
        self._check_all_owned()
        if self.options.orderly and self.moves > 1.2 * self.least_moves:
            raise BrokenPromise(f"{self.moves} moves, where {self.least_moves} are enough")


MAX_JOIN_SECONDS = 4.0
"""Seconds that a batch of joins, the work of the replicas that give shards away, and the
announcement of all that may take. A replica joins within a second, and its share follows."""

_Answer: TypeAlias = dict[str, Any] | Refusal | None
"""A Lease, or a refusal. ``None`` says nothing about what was done."""


class Replica:
    """One process, and its successors of the same name."""

    def __init__(self, world: ShardWorld, name: str) -> None:
        chance, options = world.random, world.options
        self.world = world
        self.name = name
        self.rate = 1 + chance.choice([-1, 1, 0]) * options.drift
        self.alive = False
        self.overslept = False
        """True if the process stopped for longer than the margin allows, so that only the fence
        counts."""
        lease, renew = options.times.lease_duration, options.times.renew_deadline
        spare = max(0.0, 0.99 * (lease / (1 + options.drift) - renew / (1 - options.drift)))
        share = chance.choice([0.0, 0.5, 1.0])
        self._max_pause, self._max_shutdown = spare * share, spare * (1 - share)
        if options.orderly:
            self._max_shutdown = min(self._max_shutdown, 1.0)
        self._offset = chance.uniform(0, 10_000)
        self._life = 0
        self._stopped_until = -1.0
        self._cut_until = -1.0
        self._seen = 0
        self._sync_scheduled = False
        self._request = 0
        self._busy = False
        self._wakeup = 0
        self._working: set[int] = set()
        self._ending: set[int] = set()
        self._renew_count = 0
        self.member = self._make_member()

    def _make_member(self) -> GroupMember:
        return GroupMember(
            KEY,
            identity=self.name,
            incarnation=f"life-{self._life}",
            layout=GroupLayout(self.world.options.shards),
            times=self.world.options.times,
        )

    # -- clocks --------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The time of the replica's clock."""
        return self._offset + self.world.now * self.rate

    def _at(self, clock: float, do: Callable[[], None]) -> None:
        """Do something when the replica's clock shows a time, if it still lives then."""
        life = self._life

        def run() -> None:
            if self._life != life or not self.alive:
                return
            if self.world.now < self._stopped_until:
                self.world.schedule(self._stopped_until, run)
            else:
                do()

        # Rounded up, so that the clock is never just before the time.
        self.world.schedule((clock - self._offset) / self.rate + 1e-9, run)

    def may_act(self, shard: int) -> bool:
        """Return True if the fence of this replica lets it act on a shard."""
        return shard in self._working and self.member.may_act(shard, self.now)

    # -- life ----------------------------------------------------------------------------------

    @property
    def healthy(self) -> bool:
        """True if the process runs, and can reach the server."""
        now = self.world.now
        return self.alive and now >= self._stopped_until and now >= self._cut_until

    def disturb(self) -> None:
        """Join, leave, die, stop, or be cut off."""
        world, chance = self.world, self.world.random
        if not self.alive:
            self.start()
            return
        if self.member.leaving:
            return
        if not self.healthy:
            self._die()
            return
        kinds: list[Callable[[], None]] = [self._die, self._leave]
        if not world.options.orderly:
            kinds += [self._stop_long, self._stop_short, self._cut_off]
        chance.choice(kinds)()

    def start(self) -> None:
        """Start a process."""
        if self.alive:
            return
        self._life += 1
        self.alive, self.overslept = True, False
        self._seen = self._renew_count = 0
        self._busy = self._sync_scheduled = False
        self._stopped_until = self._cut_until = -1.0
        self.member = self._make_member()
        self.world.note_disturbance()
        self.member.election.seek(self.now)
        self.notice_commit()
        self._proceed()

    def _die(self) -> None:
        self.alive = False
        for shard in sorted(self._working):
            self.world.end_work(self, shard, orderly=False)
        self._working.clear()
        self._ending.clear()
        self.world.note_disturbance()

    def _leave(self) -> None:
        # The process counts as a member no longer, although it works until its work has ended.
        self.member.leaving = True
        self.world.note_disturbance()
        self._react()

    def _stop_short(self) -> None:
        # At the most delicate moment, if there is one.
        seconds = self._max_pause * self.world.random.choice([0.5, 1.0])
        self._stop(seconds)

    def _stop_long(self) -> None:
        seconds = self.world.random.choice([9.0, 12.0, 16.0, 25.0, 60.0])
        if seconds > self._max_pause:
            self.overslept = True
        self._stop(seconds)

    def _stop(self, seconds: float) -> None:
        latest = self.world.options.duration - CALM_SECONDS
        if self.world.now < self._stopped_until:
            return
        self._stopped_until = min(self.world.now + seconds, latest)
        self.world.note_disturbance()
        self.world.schedule(self._stopped_until, self._wake)

    def _wake(self) -> None:
        if self.alive:
            self.world.note_disturbance()
            # The first thing that a task does after a pause may be a write, behind the fence.
            for shard in self._working:
                self.world.check_single(shard)

    def _cut_off(self) -> None:
        latest = self.world.options.duration - CALM_SECONDS
        seconds = self.world.random.choice([3.0, 9.0, 14.0, 30.0, 60.0])
        self._cut_until = min(self.world.now + seconds, latest)
        self.world.note_disturbance()
        self.world.schedule(self._cut_until, self._return)
        if self._max_pause and self.world.random.random() < 0.5:
            # Stop just when its lease runs out.
            until = (self.member.election.leads_until - self._offset) / self.rate
            self.world.schedule(until - 0.001, self._stop_short)

    def _return(self) -> None:
        if self.alive:
            self.world.note_disturbance()
            self.notice_commit()

    # -- the cache -----------------------------------------------------------------------------

    def notice_commit(self) -> None:
        """See all that the server has accepted, some time later."""
        if self.alive and not self._sync_scheduled:
            self._sync_scheduled = True
            chance = self.world.random
            options, calm = self.world.options, self.world.calm
            lag = chance.uniform(0.01, options.max_latency if calm else options.max_cache_lag)
            if not calm and options.late_caches and chance.random() < 0.05:
                lag += chance.choice([10.0, 17.0, 30.0])
            self._at(self.now + lag * self.rate, self._sync)

    def _sync(self) -> None:
        self._sync_scheduled = False
        if self.world.now < self._cut_until or not self.world.reachable:
            # The watch has ended; the cache is as it was until it is opened again.
            until = max(self._cut_until, self.world.outage_until)
            self._sync_scheduled = True
            self._at(self.now + (until - self.world.now + 0.1) * self.rate, self._sync)
            return
        log = self.world.store.log
        last = len(log)
        if last > self._seen and self.world.draw_failure():
            last = self.world.random.randint(self._seen, last)  # a part of it is still on its way
        for name, lease in dict(log[self._seen : last]).items():
            self.member.observe(name, lease, self.now)
        self._seen = last
        if last < len(log):
            self.notice_commit()
        self._react()

    # -- decisions -----------------------------------------------------------------------------

    def _react(self) -> None:
        for move in self.member.decide(self.now, self._working):
            if move.kind == "acquired":
                self._working.add(move.shard)
                self.world.begin_work(self, move.shard)
            elif move.kind in ("stopping", "lost"):
                self._end_later(move.shard, orderly=move.kind == "stopping")
        for shard in self._working:
            self.world.check_single(shard)
        if not self._working:
            self.overslept = False
        self._write_assignment()
        self._arrange_wakeup()
        self._proceed()

    def _end_later(self, shard: int, *, orderly: bool) -> None:
        if shard not in self._ending and shard in self._working:
            self._ending.add(shard)
            seconds = self._max_shutdown * self.world.random.choice([0.0, 0.5, 1.0])
            self._at(self.now + seconds * self.rate, lambda: self._end(shard, orderly=orderly))

    def _end(self, shard: int, *, orderly: bool) -> None:
        if shard in self._working:
            self._working.discard(shard)
            self._ending.discard(shard)
            self.world.end_work(self, shard, orderly=orderly)
            self._react()

    def _arrange_wakeup(self) -> None:
        self._wakeup += 1
        wakeup, at = self._wakeup, self.member.wake_at
        if at < float("inf"):
            self._at(max(at, self.now), lambda: self._on_wakeup(wakeup))

    def _on_wakeup(self, wakeup: int) -> None:
        if self._wakeup == wakeup:
            self._react()

    def _write_assignment(self) -> None:
        write = self.member.plan(self.now)
        if write is not None:
            self._send(lambda: self.world.store.put(write.body, creates=write.creates), _ignore)
        stale = self.member.find_stale(self.now)
        if stale is not None:
            self._send(lambda: self._clean_up(stale), _ignore)

    def _clean_up(self, stale: StaleLease) -> _Answer:
        store = self.world.store
        if stale.release is None:
            return store.delete(stale.name, stale.version)
        return store.put(stale.release, creates=False)

    # -- the member's own Lease ----------------------------------------------------------------

    def _proceed(self) -> None:
        """Take the next action of the election."""
        if self._busy or not self.alive:
            return
        member = self.member
        if member.leaving and not member.claims and member.election.phase == "leading":
            member.election.release(self.now)
        action = member.election.step(self.now, START + dt.timedelta(seconds=self.now))
        match action:
            case SleepUntil(until):
                self._at(until, self._proceed_once(until))
            case ElectionEnded():
                self._gone()
            case LeaseLost():
                if not member.claims:
                    self._return_after_loss()
            case ReadLease():
                self._request_lease(lambda: self.world.store.get(member.key.name), write=False)
            case CreateLease(body) | UpdateLease(body):
                stamped = member.stamp(body, self.now)
                creates = isinstance(action, CreateLease)
                self._request_lease(
                    lambda: self.world.store.put(stamped, creates=creates), write=True
                )

    def _proceed_once(self, until: float) -> Callable[[], None]:
        self._renew_count += 1
        number = self._renew_count
        return lambda: self._proceed() if self._renew_count == number else None

    def _return_after_loss(self) -> None:
        if self.member.leaving:
            self._gone()
        else:
            self.member.election.seek(self.now)
            self._proceed()

    def _gone(self) -> None:
        self.alive = False
        for shard in sorted(self._working):
            self.world.end_work(self, shard, orderly=True)
        self._working.clear()
        self._ending.clear()
        self.world.note_disturbance()

    def _request_lease(self, apply: Callable[[], _Answer], *, write: bool) -> None:
        self._busy, self._request = True, self._request + 1
        number = self._request
        timeout = self.member.election.request_timeout(self.now)
        self._at(self.now + timeout, lambda: self._receive(number, None, write=write))
        self._send(apply, lambda answer: self._receive(number, answer, write=write))

    def _receive(self, number: int, answer: _Answer, *, write: bool) -> None:
        if number != self._request or not self._busy:
            return  # the client has given up on it
        self._busy = False
        election, jitter = self.member.election, self.world.random.random()
        if isinstance(answer, dict):
            record = election.record_write if write else election.record_read
            record(answer, self.now, jitter)
        elif answer is Refusal.NOT_FOUND and not write:
            election.record_read(None, self.now, jitter)
        else:
            election.record_failure(self.now, jitter)
        self._react()

    def _send(self, apply: Callable[[], _Answer], receive: Callable[[_Answer], None]) -> None:
        """Send a request: it arrives, and its answer arrives, or not."""
        world, chance = self.world, self.world.random
        latest = world.options.duration - CALM_SECONDS
        delay = chance.uniform(0.005, world.options.max_latency)
        late = world.draw_failure() and chance.random() < 0.5
        if late:  # a write that arrives late, when its sender has long given up on it
            delay += chance.choice([0.5, 5.0, 12.0, 16.0, 30.0])
            delay = min(delay, max(0.2, latest - world.now))

        def arrive() -> None:
            # What is on its way when the replica is cut off still arrives now and then.
            if (world.now < self._cut_until and chance.random() < 0.8) or not world.reachable:
                return
            if world.draw_failure():
                self._answer(receive, Refusal.UNAVAILABLE)
                return
            before = len(world.store.log)
            answer = apply()
            if len(world.store.log) > before:
                world.commit()
            if not world.draw_failure() and world.now >= self._cut_until:
                self._answer(receive, answer)

        world.schedule(world.now + delay, arrive)

    def _answer(self, receive: Callable[[_Answer], None], answer: _Answer) -> None:
        delay = self.world.random.uniform(0.005, self.world.options.max_latency)
        self._at(self.now + delay * self.rate, lambda: receive(answer))

    def __repr__(self) -> str:
        return f"<{self.name} {self.member!r}>"


def _ignore(_: _Answer) -> None:
    """Ignore the answer to the write of an assignment."""

"""Groups in simulated time: replicas with clocks of their own, late caches, and a bad network.

Each member is a ``Replica``; the Leases are in a ``LeaseStore``. Everything that happens is drawn
from a seed. Replicas join, leave, die, stop for longer than a lease, and are cut off, and the
server can't be reached for minutes. Clocks run at different rates.

A replica works on a shard from the move "acquired" on until its work has ended, some time after the
move "stopping" or "lost". That time, short pauses, and the rates of the clocks stay below the
margin of the lease, but hardly so. After a pause that is longer only the fence counts: ``may_act``.
"""

from __future__ import annotations

from random import Random

from aioinformer.shardgroup.state.rendezvous import shard_owners
from tests.simulation.leases.lease_store import LeaseStore
from tests.simulation.leases.replica import Replica
from tests.simulation.leases.shard_options import ShardWorldOptions
from tests.simulation.leases.virtual_time import VirtualTime

CALM_SECONDS = 70.0
"""Seconds at the end of a history in which nothing goes wrong any more."""
TAKEOVER_SECONDS = 5.0
"""Seconds beyond the lease duration after which the shards of a dead member have an owner."""
HANDOVER_SECONDS = 2.0
"""Seconds after which a shard that was given away in order has an owner."""
MAX_JOIN_SECONDS = 4.0
"""Seconds that a batch of joins, the work of the replicas that give shards away, and the
announcement of all that may take. A replica joins within a second, and its share follows."""


class BrokenPromise(AssertionError):
    """A shard had two owners or none for too long, or shards moved too often."""


class ShardWorld:
    """One history."""

    def __init__(self, seed: int, *, small: bool = True) -> None:
        self.random = Random(seed)
        self.options = ShardWorldOptions.draw(self.random, small=small)
        options = self.options
        self.time = VirtualTime(
            self.random,
            duration=options.duration,
            calm_seconds=CALM_SECONDS,
            failure_rate=options.failure_rate,
        )
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

    def run(self) -> None:
        """Run the whole history."""
        for number in range(self.options.replicas):
            replica = self.replicas[f"replica-{number}"] = Replica(self, f"replica-{number}")
            self.time.schedule(self.random.uniform(0, 10), replica.start)
        self.time.schedule(self.random.uniform(20, 50), self._disturb)
        if self.options.outages:
            self.time.schedule(self.random.uniform(20, 60), self._begin_outage)
        self.time.run()
        self._check_end()

    @property
    def now(self) -> float:
        """The time of the history."""
        return self.time.now

    @property
    def reachable(self) -> bool:
        """True if the server can be reached."""
        return self.now >= self.outage_until

    def _begin_outage(self) -> None:
        if not self.time.calm:
            seconds = self.random.choice([5.0, 30.0, 120.0])
            self.outage_until = min(self.time.calm_at, self.now + seconds)
            self.time.schedule(self.outage_until + self.random.uniform(10, 60), self._begin_outage)

    def commit(self) -> None:
        """Let every cache see what the server has accepted, some time later."""
        for replica in self.replicas.values():
            replica.notice_commit()

    # -- disturbances --------------------------------------------------------------------------

    def _disturb(self) -> None:
        if self.time.calm:
            return
        replica = self.random.choice(list(self.replicas.values()))
        replica.disturb()
        # While caches are late, members that disagree about the assignment race for shards.
        often = [0.5, 2.0, 5.0, 20.0]
        seconds = often if self.options.late_caches else [1.0, 10.0, 30.0, 30.0]
        self.time.schedule(self.now + self.random.choice(seconds), self._disturb)

    def note_disturbance(self) -> None:
        """Record that a replica joins, leaves, dies, stops, or is cut off."""
        self._disturbed_at = self.now
        members = tuple(sorted(name for name, one in self.replicas.items() if one.process.alive))
        owners = shard_owners(members, self.options.shards)
        before = shard_owners(self._members, self.options.shards)
        self.least_moves += sum(one != other for one, other in zip(before, owners, strict=True))
        self._members = members
        self.time.schedule(self.now + self._takeover_seconds, self._check_owned)

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
            self.time.schedule(
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
            and (receiver in self.replicas and self.replicas[receiver].process.alive)
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

"""The members of a simulated shard group: processes that join, leave, die, stop, and are cut off.

A ``Replica`` is a ``GroupMember`` and as much of a shell as that needs. Requests and answers are
slow or lost, a write may arrive half a minute late, and the cache is late.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from aioinformer import ObjectKey
from aioinformer.leaderelection.state.election import (
    CreateLease,
    ElectionEnded,
    LeaseLost,
    ReadLease,
    SleepUntil,
    UpdateLease,
)
from aioinformer.shardgroup.state.member import GroupMember
from aioinformer.shardgroup.state.planner import StaleLease
from aioinformer.shardgroup.state.records import GroupLayout
from tests.simulation.leases.lease_store import (
    Answer,
    LeaseRequest,
    LeaseStore,
    Refusal,
    record_answer,
)
from tests.simulation.leases.shard_options import ShardWorldOptions
from tests.simulation.leases.virtual_time import Process, VirtualTime

KEY = ObjectKey("web", "group")
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Group(Protocol):
    """The surroundings of a replica: the world."""

    time: VirtualTime
    options: ShardWorldOptions
    store: LeaseStore
    outage_until: float

    @property
    def reachable(self) -> bool:
        """True if the server can be reached."""
        ...

    def commit(self) -> None:
        """Let every cache see what the server has accepted, some time later."""
        ...

    def note_disturbance(self) -> None:
        """Record that a replica joins, leaves, dies, stops, or is cut off."""
        ...

    def begin_work(self, replica: Replica, shard: int) -> None:
        """Record that a replica works on a shard."""
        ...

    def end_work(self, replica: Replica, shard: int, *, orderly: bool) -> None:
        """Record that a replica's work on a shard has ended."""
        ...

    def check_single(self, shard: int) -> None:
        """Check that one replica at most can act on a shard."""
        ...


class Replica:
    """One process, and its successors of the same name."""

    def __init__(self, group: Group, name: str) -> None:
        time, options = group.time, group.options
        chance = time.random
        self.group = group
        self.name = name
        rate = 1 + chance.choice([-1, 1, 0]) * options.drift
        self.overslept = False
        """True if the process stopped for longer than the margin allows, so that only the fence
        counts."""
        lease, renew = options.times.lease_duration, options.times.renew_deadline
        spare = max(0.0, 0.99 * (lease / (1 + options.drift) - renew / (1 - options.drift)))
        share = chance.choice([0.0, 0.5, 1.0])
        self._max_pause, self._max_shutdown = spare * share, spare * (1 - share)
        if options.orderly:
            self._max_shutdown = min(self._max_shutdown, 1.0)
        self.process = Process(time, rate=rate, offset=chance.uniform(0, 10_000))
        self._time = time
        self._chance = chance
        self._cut_until = -1.0
        self._seen = 0
        self._sync_scheduled = False
        self._requested: LeaseRequest | None = None
        self._wakeup = 0
        self._working: set[int] = set()
        self._ending: set[int] = set()
        self._renew_count = 0
        self.member = self._make_member()

    def _make_member(self) -> GroupMember:
        return GroupMember(
            KEY,
            identity=self.name,
            incarnation=f"life-{self.process.life}",
            layout=GroupLayout(self.group.options.shards),
            times=self.group.options.times,
        )

    @property
    def now(self) -> float:
        """The time of the replica's clock."""
        return self.process.now

    def may_act(self, shard: int) -> bool:
        """Return True if the fence of this replica lets it act on a shard."""
        return shard in self._working and self.member.may_act(shard, self.now)

    # -- life ----------------------------------------------------------------------------------

    @property
    def healthy(self) -> bool:
        """True if the process runs, and can reach the server."""
        now, process = self._time.now, self.process
        return process.alive and now >= process.paused_until and now >= self._cut_until

    def disturb(self) -> None:
        """Join, leave, die, stop, or be cut off."""
        if not self.process.alive:
            self.start()
            return
        if self.member.leaving:
            return
        if not self.healthy:
            self._end_process(orderly=False)
            return
        kinds: list[Callable[[], None]] = [partial(self._end_process, orderly=False), self._leave]
        if not self.group.options.orderly:
            kinds += [self._stop_long, self._stop_short, self._cut_off]
        self._chance.choice(kinds)()

    def start(self) -> None:
        """Start a process."""
        if self.process.alive:
            return
        self.process.start()
        self.overslept = False
        self._seen = self._renew_count = 0
        self._requested, self._sync_scheduled = None, False
        self._cut_until = -1.0
        self.member = self._make_member()
        self.group.note_disturbance()
        self.member.election.seek(self.now)
        self.notice_commit()
        self._proceed()

    def _leave(self) -> None:
        # The process counts as a member no longer, although it works until its work has ended.
        self.member.leaving = True
        self.group.note_disturbance()
        self._react()

    def _stop_short(self) -> None:
        # At the most delicate moment, if there is one.
        seconds = self._max_pause * self._chance.choice([0.5, 1.0])
        self._stop(seconds)

    def _stop_long(self) -> None:
        seconds = self._chance.choice([9.0, 12.0, 16.0, 25.0, 60.0])
        if seconds > self._max_pause:
            self.overslept = True
        self._stop(seconds)

    def _stop(self, seconds: float) -> None:
        time, process = self._time, self.process
        if time.now < process.paused_until:
            return
        process.paused_until = min(time.now + seconds, time.calm_at)
        self.group.note_disturbance()
        time.schedule(process.paused_until, self._wake)

    def _wake(self) -> None:
        if self.process.alive:
            self.group.note_disturbance()
            # The first thing that a task does after a pause may be a write, behind the fence.
            for shard in self._working:
                self.group.check_single(shard)

    def _cut_off(self) -> None:
        time, chance = self._time, self._chance
        seconds = chance.choice([3.0, 9.0, 14.0, 30.0, 60.0])
        self._cut_until = min(time.now + seconds, time.calm_at)
        self.group.note_disturbance()
        time.schedule(self._cut_until, self._return)
        if self._max_pause and chance.random() < 0.5:
            # Stop just when its lease runs out.
            until = self.process.history_time(self.member.election.leads_until)
            time.schedule(until - 0.001, self._stop_short)

    def _return(self) -> None:
        if self.process.alive:
            self.group.note_disturbance()
            self.notice_commit()

    # -- the cache -----------------------------------------------------------------------------

    def notice_commit(self) -> None:
        """See all that the server has accepted, some time later."""
        if self.process.alive and not self._sync_scheduled:
            self._sync_scheduled = True
            chance = self._chance
            options, calm = self.group.options, self._time.calm
            lag = chance.uniform(0.01, options.max_latency if calm else options.max_cache_lag)
            if not calm and options.late_caches and chance.random() < 0.05:
                lag += chance.choice([10.0, 17.0, 30.0])
            self.process.schedule_in(lag, self._sync)

    def _sync(self) -> None:
        self._sync_scheduled = False
        if self._time.now < self._cut_until or not self.group.reachable:
            # The watch has ended; the cache is as it was until it is opened again.
            until = max(self._cut_until, self.group.outage_until)
            self._sync_scheduled = True
            self.process.schedule_in(until - self._time.now + 0.1, self._sync)
            return
        log = self.group.store.log
        last = len(log)
        if last > self._seen and self._time.draw_failure():
            last = self._chance.randint(self._seen, last)  # a part of it is still on its way
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
                self.group.begin_work(self, move.shard)
            elif move.kind in ("stopping", "lost"):
                self._end_later(move.shard, orderly=move.kind == "stopping")
        for shard in self._working:
            self.group.check_single(shard)
        if not self._working:
            self.overslept = False
        self._write_assignment()
        self._arrange_wakeup()
        self._proceed()

    def _end_later(self, shard: int, *, orderly: bool) -> None:
        if shard not in self._ending and shard in self._working:
            self._ending.add(shard)
            seconds = self._max_shutdown * self._chance.choice([0.0, 0.5, 1.0])
            self.process.schedule_in(seconds, lambda: self._end(shard, orderly=orderly))

    def _end(self, shard: int, *, orderly: bool) -> None:
        if shard in self._working:
            self._working.discard(shard)
            self._ending.discard(shard)
            self.group.end_work(self, shard, orderly=orderly)
            self._react()

    def _arrange_wakeup(self) -> None:
        self._wakeup += 1
        wakeup, at = self._wakeup, self.member.wake_at
        if at < float("inf"):
            self.process.schedule(max(at, self.now), lambda: self._on_wakeup(wakeup))

    def _on_wakeup(self, wakeup: int) -> None:
        if self._wakeup == wakeup:
            self._react()

    def _write_assignment(self) -> None:
        write = self.member.plan(self.now)
        if write is not None:
            self._send(lambda: self.group.store.put(write.body, creates=write.creates), _ignore)
        stale = self.member.find_stale(self.now)
        if stale is not None:
            self._send(lambda: self._clean_up(stale), _ignore)

    def _clean_up(self, stale: StaleLease) -> Answer:
        store = self.group.store
        if stale.release is None:
            return store.delete(stale.name, stale.version)
        return store.put(stale.release, creates=False)

    # -- the member's own Lease ----------------------------------------------------------------

    def _proceed(self) -> None:
        """Take the next action of the election."""
        if self._requested is not None or not self.process.alive:
            return
        member = self.member
        if member.leaving and not member.claims and member.election.phase == "leading":
            member.election.release(self.now)
        action = member.election.step(self.now, START + dt.timedelta(seconds=self.now))
        match action:
            case SleepUntil(until):
                self.process.schedule(until, self._proceed_once())
            case ElectionEnded():
                self._end_process(orderly=True)
            case LeaseLost():
                if not member.claims:
                    self._return_after_loss()
            case CreateLease() | UpdateLease():
                self._request(replace(action, body=member.stamp(action.body, self.now)))
            case ReadLease():
                self._request(action)

    def _proceed_once(self) -> Callable[[], None]:
        self._renew_count += 1
        number = self._renew_count
        return lambda: self._proceed() if self._renew_count == number else None

    def _return_after_loss(self) -> None:
        if self.member.leaving:
            self._end_process(orderly=True)
        else:
            self.member.election.seek(self.now)
            self._proceed()

    def _end_process(self, *, orderly: bool) -> None:
        """End the process with its work: after it has left if ``orderly``, else by its death."""
        self.process.end()
        for shard in sorted(self._working):
            self.group.end_work(self, shard, orderly=orderly)
        self._working.clear()
        self._ending.clear()
        self.group.note_disturbance()

    def _request(self, request: LeaseRequest) -> None:
        # A request that is made again is another object, so that a late answer is known as late.
        self._requested = request
        timeout = self.member.election.request_timeout(self.now)
        self.process.schedule(self.now + timeout, lambda: self._receive(request, None))
        name = self.member.key.name
        self._send(
            lambda: self.group.store.carry_out(request, name),
            lambda answer: self._receive(request, answer),
        )

    def _receive(self, request: LeaseRequest, answer: Answer) -> None:
        if request is not self._requested:
            return  # the client has given up on it
        self._requested = None
        record_answer(self.member.election, request, answer, self.now, self._chance.random())
        self._react()

    def _send(self, apply: Callable[[], Answer], receive: Callable[[Answer], None]) -> None:
        """Send a request: it arrives, and its answer arrives, or not."""
        group, time, chance = self.group, self._time, self._chance
        delay = chance.uniform(0.005, group.options.max_latency)
        late = time.draw_failure() and chance.random() < 0.5
        if late:  # a write that arrives late, when its sender has long given up on it
            delay += chance.choice([0.5, 5.0, 12.0, 16.0, 30.0])
            delay = min(delay, max(0.2, time.calm_at - time.now))

        def arrive() -> None:
            # What is on its way when the replica is cut off still arrives now and then.
            if (time.now < self._cut_until and chance.random() < 0.8) or not group.reachable:
                return
            if time.draw_failure():
                self._answer(receive, Refusal.UNAVAILABLE)
                return
            before = len(group.store.log)
            answer = apply()
            if len(group.store.log) > before:
                group.commit()
            if not time.draw_failure() and time.now >= self._cut_until:
                self._answer(receive, answer)

        time.schedule(time.now + delay, arrive)

    def _answer(self, receive: Callable[[Answer], None], answer: Answer) -> None:
        delay = self._chance.uniform(0.005, self.group.options.max_latency)
        self.process.schedule_in(delay, lambda: receive(answer))

    def __repr__(self) -> str:
        return f"<{self.name} {self.member!r}>"


def _ignore(_: Answer) -> None:
    """Ignore the answer to the write of an assignment."""

"""``ShardGroup``: replicas of a program share the objects of a cluster by shards.

Each replica is a member with a Lease of its own, in which it states the shards on which it works.
One elected member writes into the group's Lease among which members the shards are divided. At most
one member acts on a shard at any moment, under the assumptions of ``LeaderElector``. After a longer
pause of the process ``check`` raises.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AsyncExitStack
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import anyio

from aioinformer._core.arguments import check_seconds, suggest_keywords
from aioinformer._core.instrumentation import Metrics
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._core.objects.resources import find_built_in
from aioinformer._informers.factory import SharedInformerFactory
from aioinformer._runtime.reflector.lister_watcher import Source
from aioinformer._runtime.reporting.problem import OnError
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer._runtime.writing.resource_writer import WriterSource
from aioinformer.errors import NotRunning, ShardLost, UsageError
from aioinformer.leaderelection.state.election import ElectionTimes
from aioinformer.leaderelection.state.lease import GROUP_LABEL
from aioinformer.leaderelection.suspend_clock import LoopTime, SuspendAwareClock
from aioinformer.leaderelection.uses import LeaseUse
from aioinformer.shardgroup.health import GroupHealth, GroupState
from aioinformer.shardgroup.membership import GroupMembership
from aioinformer.shardgroup.state.member import GroupMember
from aioinformer.shardgroup.state.records import GroupLayout
from aioinformer.shardgroup.subscriptions import GroupSubscription
from aioinformer.sharding.state.ranges import ShardKey
from aioinformer.sharding.state.shard import MAX_SHARDS

if TYPE_CHECKING:  # for programs with a cache file alone
    from aioinformer.cachefile.cache_file import CacheFile

LEASES = find_built_in("leases")


class GroupClient(Source, WriterSource, Protocol):
    """Lists, watches and writes Leases: a ``Client``, or a cluster in memory."""


class ShardGroup:
    """One member of a group of replicas that divide the objects of a cluster among themselves.

    The objects are divided into a fixed number of virtual shards by the hash of their uid, as
    ``Shard`` does, and the shards among the live members by rendezvous hashing. A member that joins
    receives its share, and no other shard moves. The shards of a member that dies are taken over
    ``lease_duration`` plus 5 s later at the latest, with the default times and a server that
    answers; those of a member that leaves, within 2 s after its work has ended.

    Example::

        async def work(client: Client) -> None:
            async with ShardGroup(client, "shop", namespace="web", identity="shop-0") as group:
                pods = group.informer("pods")
                await group.informers.wait_synced(timeout=60)
                print(f"{len(pods.lister.list())} pods are in this replica's shards")

    Not promised: that the shards of a member are adjacent, or of equal number; that a shard has an
    owner while the server can't be reached; and that a request that was sent in time takes effect
    before the shard has another owner.
    """

    @suggest_keywords
    def __init__(
        self,
        client: GroupClient,
        name: str,
        *,
        namespace: str,
        identity: str,
        shards: int = 64,
        by: ShardKey = "uid",
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        shutdown_timeout: float = 10.0,
        cache: CacheFile | None = None,
        metrics: Metrics | None = None,
        on_error: OnError | None = None,
    ) -> None:
        """Make a member. Nothing is sent before the group is entered.

        Args:
            client: lists, watches and writes Leases in the namespace, and reads and writes for the
                informers and controllers on the group.
            name: the group's name, without dots. The group's Lease has this name, and each member's
                Lease the name ``NAME.IDENTITY``.
            namespace: the namespace of the Leases. Informers read all namespaces unless they name
                others.
            identity: the member's name, which no other member has: a pod's name, for example. A
                program that was killed and returns under its old identity waits until its old Lease
                has expired.
            shards: the number of virtual shards, the same on all members: several times the number
                of replicas that the program may ever have. Members with another number wait until
                the others have left.
            by: the field whose hash divides the objects, as for ``Shard``; the same on all members.
            lease_duration: seconds without a renewal after which others take shards over.
            renew_deadline: seconds after the last renewal after which this member works on nothing.
            retry_period: seconds between two renewals.
            shutdown_timeout: seconds that leaving waits for work on shards to end. If work runs
                longer, the Lease isn't released, and expires.
            cache: a file of this member alone, in which its informers keep their shards: after a
                restart, shards that return are resumed without a list. The file must not be
                ``shared``.
            metrics: receives moves of shards, failed requests for Leases, and the numbers of the
                informers.
            on_error: called in the event loop with the ``Problem``s of the informers, of the
                informer of the group's Leases too, and of the phase ``lease`` when requests for
                Leases begin to fail, and every 20 s while they do. Must be quick.

        Raises:
            ValueError: a number is out of range, the times don't fit together, or a name can't be
                part of the name of a Lease.
            TypeError: ``on_error`` is not a plain function.
        """
        _check_layout(shards, by)
        if not namespace:
            raise ValueError("namespace is empty; the Leases of a group are in a namespace")
        times = ElectionTimes(
            lease_duration=lease_duration, renew_deadline=renew_deadline, retry_period=retry_period
        )
        check_seconds("shutdown_timeout", shutdown_timeout)
        self._layout = GroupLayout(shards, by)
        self._key = ObjectKey(namespace, name)
        self._loop_time = LoopTime()
        self._clock = SuspendAwareClock(self._loop_time)
        self._shutdown_timeout = shutdown_timeout
        member = GroupMember(
            self._key,
            identity=identity,
            incarnation=secrets.token_hex(8),
            layout=self._layout,
            times=times,
        )
        leases = client.api(LEASES)
        self._use = LeaseUse(leases, str(self._key), self._uses_lease)
        self._leases = SharedInformerFactory(client, namespace=namespace, on_error=on_error)
        self._membership = GroupMembership(
            member,
            leases,
            self._leases.informer(LEASES, labels=f"{GROUP_LABEL}={name}"),
            name=name,
            clock=self._clock,
            metrics=wrap_metrics(metrics),
            on_error=on_error,
        )
        self._member = member
        self._life: GroupState = "idle"
        self._exits = AsyncExitStack()
        self.informers = SharedInformerFactory(
            client, shard=self, cache=cache, metrics=metrics, on_error=on_error
        )
        """The factory of the informers that read this member's shards, while the group is entered.
        They end before the shards are given away."""
        self.informer = self.informers.informer
        """Returns an informer that reads this member's shards: ``group.informer("pods")``, as
        ``SharedInformerFactory.informer``."""

    # -- membership ----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Join the group. The first shards follow after a few requests: see ``wait_member``.

        If the Leases can't be read any more, because the client was closed for example, the block
        is cancelled, and the error is raised on leaving.

        Raises:
            UsageError: the group was entered before, or an election of this program uses one of its
                Leases.
        """
        if self._life != "idle":
            raise UsageError(f"this member of {self._key} was entered before; make another one")
        self._loop_time.start()
        async with AsyncExitStack() as stack:
            self._use.begin()
            stack.callback(self._use.end)
            await stack.enter_async_context(self._leases)
            stack.push_async_exit(self._leave)
            self._membership.start()
            self._life = "member"
            # Left first, since a shard is given away when its last reader has ended.
            await stack.enter_async_context(self.informers)
            self._exits = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the group: end the informers and the work, release the Lease. Takes
        ``shutdown_timeout`` at most, and ``renew_deadline`` if the server doesn't answer.

        Raises:
            Exception: an internal task failed, and the block raised nothing itself.
            ShutdownIncomplete: handlers of informers of the group have not ended.
        """
        self._life = "leaving"
        await self._exits.__aexit__(kind, error, trace)

    async def _leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the shards away and release the Lease, after the informers have ended."""
        try:
            # Shielded from anyio scopes: the shards are given away also after a cancellation.
            with anyio.CancelScope(shield=True):
                await self._membership.leave(self._shutdown_timeout)
        finally:
            self._life = "left"
            self._member.election.end()
            await self._membership.stop()
        if self._membership.failure is not None and error is None:
            raise self._membership.failure

    async def wait_member(self, timeout: float | None = None) -> frozenset[int]:
        """Wait until this member works on all shards that are assigned to it, and return them.

        Raises:
            TimeoutError: not within ``timeout`` seconds (``None``: no limit); ``health`` says why.
            NotRunning: the group isn't entered, was left, or has failed.
        """
        async with asyncio.timeout(timeout):
            while not self._holds_all_assigned:
                if (state := self.health.state) in ("idle", "left", "failed"):
                    hint = ": use the group inside of 'async with'" if state == "idle" else ""
                    raise NotRunning(f"this member of {self._key} is {state}{hint}")
                await self._membership.subscriptions.changed.wait()
            return self.held

    @property
    def _holds_all_assigned(self) -> bool:
        assignment = self._member.view.assignment
        return (
            assignment is not None
            and self.identity in assignment.members
            and self._member.is_member(self._clock.now)
            and self.held == self._member.targets
        )

    # -- shards --------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The group's name."""
        return self._key.name

    @property
    def identity(self) -> str:
        """The name of this member."""
        return self._member.identity

    @property
    def count(self) -> int:
        """The number of virtual shards."""
        return self._layout.count

    @property
    def by(self) -> ShardKey:
        """The field whose hash divides the objects."""
        return self._layout.by

    @property
    def held(self) -> frozenset[int]:
        """The shards on which this member may begin work at this moment, for any thread."""
        return self._member.held(self._clock.now)

    def subscribe(self, user: str) -> GroupSubscription:
        """Return the subscription of an informer or controller of that name to the shards."""
        return self._membership.subscriptions.subscribe(user)

    def check(self, shard: int) -> None:
        """Raise unless this member may act on a shard at this moment. Call it just before a write.

        The check reads the clock, so that the result is right after any pause. It doesn't raise for
        a shard that is to be given away while a user still works on it.

        Raises:
            ShardLost: this member doesn't hold the shard, or its Lease wasn't renewed in time.
        """
        now = self._clock.now
        if not self._member.may_act(shard, now):
            reason = (
                "this member doesn't hold it"
                if self._member.is_member(now)
                else f"the Lease of {self.identity} wasn't renewed in time"
            )
            raise ShardLost(f"shard {shard} of group {self.name}: {reason}", shard=shard)

    # -- how it stands -------------------------------------------------------------------------

    @property
    def health(self) -> GroupHealth:
        """A snapshot of the state, with the last error."""
        now, member, membership = self._clock.now, self._member, self._membership
        election, assignment = member.election, member.view.assignment
        renewed, held = election.renewed_at, member.held(now)
        leads = member.is_member(now)
        return GroupHealth(
            state=self._state(leads),
            held=held,
            stopping=member.stopping,
            assigned=member.targets,
            unclaimed=member.unclaimed,
            members=() if assignment is None else assignment.members,
            epoch=0 if assignment is None else assignment.epoch,
            leader="" if assignment is None else assignment.leader,
            users=MappingProxyType(
                {user.name: len(user.working) for user in membership.subscriptions.users}
            ),
            error=membership.error,
            renewed=None if renewed is None else now - renewed,
            expires_in=election.leads_until - now if leads else None,
        )

    def _state(self, leads: bool) -> GroupState:
        if self._membership.failure is not None:
            return "failed"
        if self._life != "member" or leads:
            return self._life
        return "lost" if self._member.claims else "joining"

    def _uses_lease(self, key: str) -> bool:
        """Return True if this key is that of the group's Lease, of the own one, or of a member
        whose identity has no dot: ``shop.example.com`` is a usual name of an election.
        """
        group, _, identity = key.partition(".")
        return group == str(self._key) and (identity == self.identity or "." not in identity)

    def __repr__(self) -> str:
        return f"<ShardGroup {self._key} {self.identity} {self.health.state}>"


def _check_layout(shards: int, by: str) -> None:
    if not 1 <= shards <= MAX_SHARDS:
        raise ValueError(f"shards must be 1 to {MAX_SHARDS}, not {shards}")
    if by not in ("uid", "namespace"):
        raise ValueError(f"by must be 'uid' or 'namespace', not {by!r}")

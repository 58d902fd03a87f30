"""The requests for a member's own Lease: each write states the claims of that moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.shardgroup.member import GroupMember
from aioinformer._runtime.leaderelection.clock import SuspendAwareClock
from aioinformer._runtime.writing.resource_writer import ResourceWriter


class MemberLeaseStorage:
    """A ``LeaseStorage`` that adds the claims of a member to what is written."""

    def __init__(
        self, member: GroupMember, leases: ResourceWriter, clock: SuspendAwareClock
    ) -> None:
        """Send nothing by itself."""
        self._member = member
        self._leases = leases
        self._clock = clock

    async def get(self, key: ObjectKey | str) -> KubeObject:
        """See ``LeaseStorage``."""
        return await self._leases.get(key)

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``LeaseStorage``."""
        return await self._leases.create(self._member.stamp(obj, self._clock.now))

    async def update(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``LeaseStorage``."""
        return await self._leases.update(self._member.stamp(obj, self._clock.now))

    def __repr__(self) -> str:
        return f"<MemberLeaseStorage of {self._member!r}>"

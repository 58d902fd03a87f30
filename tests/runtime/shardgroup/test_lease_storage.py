"""The requests for a member's own Lease."""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer._runtime.leaderelection.clock import SuspendAwareClock
from aioinformer._runtime.shardgroup.lease_storage import MemberLeaseStorage
from aioinformer.testing import Cluster, ClusterSource
from tests.core.shardgroup.group_leases import StoredMember, group_lease
from tests.runtime.leaderelection.electors import LEASES, run_simulated


def notes_of(lease: dict[str, Any]) -> dict[str, str]:
    return {
        name.removeprefix("aioinformer/"): str(value)
        for name, value in lease["metadata"]["annotations"].items()
    }


def test_each_write_states_the_claims_of_the_moment_at_which_it_is_sent() -> None:
    async def main() -> None:
        cluster, stored = Cluster(), StoredMember("a")
        member, writer = stored.member, ClusterSource(cluster).api(LEASES)
        clock = SuspendAwareClock(asyncio.get_running_loop().time)
        storage = MemberLeaseStorage(member, writer, clock)
        stored.join(clock.now)
        assert stored.lease is not None
        body = {**stored.lease, "metadata": {"name": "shop.a", "namespace": "web"}}

        created = (await storage.create(body)).to_dict()
        assert notes_of(created)["shards-held"] == ""

        member.observe("shop", group_lease("a"), clock.now)
        member.decide(clock.now, ())
        before = int(notes_of(created)["shard-write"].split("/")[1])
        updated = (await storage.update(created)).to_dict()

        assert notes_of(updated)["shards-held"] == "0-7"
        assert notes_of(updated)["shard-write"].endswith(f"/{before + 1}")
        assert (await storage.get("web/shop.a")).to_dict() == updated
        assert repr(storage) == f"<MemberLeaseStorage of {member!r}>"

    run_simulated(main)

"""The leadership of a process in a shared file: a follower takes over from an ended leader."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from aioinformer._core.cachefile.identity import ClusterIdentity
from aioinformer._runtime.cachefile.database import Database
from aioinformer._runtime.cachefile.leader_lock import LeaderLock
from aioinformer._runtime.cachefile.leadership import Leadership
from tests.promises.conftest import wait_until

CLUSTER = ClusterIdentity("uid", "endpoint")


def make_file(path: Path) -> None:
    Database(path, CLUSTER, term="leader").close()


@contextmanager
def leader_of(path: Path) -> Generator[LeaderLock]:
    """Hold the lock of a file that is ready, as another process would."""
    lock = LeaderLock(path)
    lock.open()
    assert lock.acquire()
    make_file(path)
    lock.publish()
    yield lock
    lock.close()


async def test_a_follower_leads_once_the_leader_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    follower = Leadership(path)
    with leader_of(path) as lock:
        assert not follower.campaign()
        follower.start()
        assert follower.leader == lock.me
    await wait_until(lambda: follower.leads)
    await asyncio.to_thread(follower.resign)


async def test_a_follower_that_can_t_open_the_file_leads_once_the_leader_has_ended(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cache.db"
    follower = Leadership(path)
    with leader_of(path):
        assert not follower.campaign()
        path.unlink()
        follower.start()
        await asyncio.sleep(0.05)  # some looks at the file
        assert not follower.leads
    await wait_until(lambda: follower.leads)
    await asyncio.to_thread(follower.resign)


async def test_a_follower_learns_of_changes_once_it_can_open_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    follower = Leadership(path)
    with leader_of(path):
        assert not follower.campaign()
        path.unlink()
        follower.start()
        await asyncio.sleep(0.05)
        changed = follower.changed
        make_file(path)
        await asyncio.wait_for(changed.wait(), 30)
        await asyncio.to_thread(follower.resign)

"""The thread of a cache file, and callers that are cancelled while it works."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from aioinformer._core.cachefile.identity import ClusterIdentity
from aioinformer._runtime.cachefile.database import Database
from aioinformer._runtime.cachefile.file_access import FileAccess

CLUSTER = ClusterIdentity("uid", "endpoint")


async def find_cluster() -> ClusterIdentity:
    return CLUSTER


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.001)


async def cancel_opening(access: FileAccess) -> None:
    """Cancel a caller once the thread has begun to open the file."""
    opening = asyncio.create_task(access.open(find_cluster))
    await asyncio.to_thread(wait_for, access.path)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening


async def test_a_file_whose_opening_is_cancelled_is_closed_again(tmp_path: Path) -> None:
    access = FileAccess(tmp_path / "cache.db")
    await cancel_opening(access)
    await access.close()

    Database(access.path, CLUSTER).close()  # the file has no other user


async def test_a_second_caller_has_the_file_that_a_cancelled_one_was_opening(
    tmp_path: Path,
) -> None:
    access = FileAccess(tmp_path / "cache.db")
    await cancel_opening(access)
    assert await access.open(find_cluster)
    assert await access.write([])
    await access.close()
    await access.close()

    Database(access.path, CLUSTER).close()
    assert not access.problem

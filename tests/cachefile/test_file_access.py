"""The thread of a cache file, and callers that are cancelled while it works."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
from aioinformer.cachefile import database
from aioinformer.cachefile.database import Database
from aioinformer.cachefile.file_access import FileAccess

CLUSTER = ClusterIdentity("uid", "endpoint")


async def find_cluster() -> ClusterIdentity:
    return CLUSTER


async def cancel_opening(access: FileAccess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancel a caller while the thread opens the file."""
    began, cancelled = threading.Event(), threading.Event()

    def open_slowly(path: Path, cluster: ClusterIdentity) -> Database:
        began.set()
        cancelled.wait(30)
        return Database(path, cluster)

    monkeypatch.setattr(database, "Database", open_slowly)
    opening = asyncio.create_task(access.open(find_cluster))
    await asyncio.to_thread(began.wait)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    cancelled.set()


async def test_a_file_is_closed_if_its_opening_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = FileAccess(tmp_path / "cache.db")
    await cancel_opening(access, monkeypatch)
    await access.close()

    Database(access.path, CLUSTER).close()  # the file has no other user


async def test_a_second_caller_receives_the_file_that_a_cancelled_caller_was_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = FileAccess(tmp_path / "cache.db")
    await cancel_opening(access, monkeypatch)
    assert await access.open(find_cluster)
    assert await access.write([])
    await access.close()
    await access.close()

    Database(access.path, CLUSTER).close()
    assert not access.problem

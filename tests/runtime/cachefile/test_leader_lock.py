"""The lock of a shared file: one holder, whose name is known, until the process ends."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aioinformer._runtime.cachefile.leader_lock import LeaderLock
from aioinformer._runtime.cachefile.stored_scope import CacheFileProblem

PROGRAM = """
import os, sys
from pathlib import Path
from aioinformer._runtime.cachefile.leader_lock import LeaderLock
lock = LeaderLock(Path(sys.argv[1]))
lock.open()
assert lock.acquire()
lock.publish()
if os.fork() == 0:
    sys.stdin.read()  # the child outlives the leader, until the test closes the pipe
    os._exit(0)
print(os.getpid(), flush=True)
os.kill(os.getpid(), 9)
"""


def open_lock(path: Path) -> LeaderLock:
    lock = LeaderLock(path)
    lock.open()
    return lock


def test_only_one_of_two_processes_holds_the_lock_until_it_closes_the_lock(tmp_path: Path) -> None:
    first, second = open_lock(tmp_path / "cache.db"), open_lock(tmp_path / "cache.db")
    assert second.read_leader() is None
    assert first.acquire()
    assert first.acquire(), "once more is no error"
    assert not second.acquire()
    first.publish()
    assert second.read_leader() == first.me
    assert str(first.me).startswith(f"pid {os.getpid()} on ")
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o600
    first.close()
    assert second.acquire()
    assert second.me.term != first.me.term
    second.close()
    assert not second.acquire(), "a closed lock is no lock"
    assert second.read_leader() is None


def test_a_process_that_a_leader_has_forked_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as leader:
        assert leader.stdout is not None
        pid = int(leader.stdout.readline())
        leader.wait()
        lock = open_lock(path)
        found = lock.read_leader()
        assert found is not None
        assert found.pid == pid
        # The leader may end before the child runs, which closes its copy a little later then.
        deadline = time.monotonic() + 10
        while not lock.acquire():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        lock.close()


def test_a_lock_that_can_t_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(CacheFileProblem, match=r"missing does not exist; create the folder"):
        open_lock(tmp_path / "missing" / "cache.db")
    link = tmp_path / "cache.db.lock"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CacheFileProblem, match=r"cache\.db\.lock can't be opened"):
        open_lock(tmp_path / "cache.db")
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_with_a_damaged_name_has_no_leader(tmp_path: Path) -> None:
    lock = open_lock(tmp_path / "cache.db")
    lock.path.write_bytes(b'{"term":')
    assert lock.read_leader() is None
    lock.close()

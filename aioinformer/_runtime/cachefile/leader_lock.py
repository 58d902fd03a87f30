"""The lock that makes one process the leader of a shared cache file.

The lock is ``flock`` on a file beside the cache file. The kernel releases the lock when the process
ends, also by ``kill -9``, and no process can lose the lock while it runs: so there is never a
second writer, and no lease has to expire before another process takes over. The file's content
names the leader.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4
from weakref import WeakSet

import msgspec
from msgspec import Struct

from aioinformer._runtime.cachefile.stored_scope import CacheFileProblem, explain_open

if sys.platform != "win32":
    import fcntl

__all__ = ["Leader", "LeaderLock"]

MAX_CONTENT = 1024
"""Bytes of the name of a leader that are read."""


class Leader(Struct, frozen=True):
    """A process that leads, or led."""

    term: str
    """The identity of this leadership: a process that leads a second time has another one."""
    pid: int
    host: str

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"


class LeaderLock:
    """The lock of one cache file, as this process sees it. Its calls don't block."""

    def __init__(self, path: Path) -> None:
        """Name the lock of the cache file ``path``; ``open`` opens the lock's file.

        Args:
            path: the path of the cache file.
        """
        self.path = path.with_name(f"{path.name}.lock")
        self.me = Leader("", 0, "")
        """The name under which this process leads. Made by ``open``, since a program may be forked
        between the making of its options and its start."""
        self.held = False
        """True while this process leads."""
        self._file = -1

    def open(self) -> None:
        """Open the lock's file, and create it for this user alone.

        Raises:
            CacheFileProblem: this system has no ``flock``, or the file is another user's.
            OSError: the file can't be opened.
        """
        if sys.platform == "win32":
            raise CacheFileProblem(f"{self.path} can't be locked: shared=True needs flock")
        if self._file >= 0:
            return
        self.me = Leader(uuid4().hex, os.getpid(), socket.gethostname())
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise CacheFileProblem(explain_open(self.path, error)) from error
        if (owner := os.fstat(file).st_uid) != os.geteuid():
            os.close(file)
            raise CacheFileProblem(f"{self.path} belongs to another user (uid {owner})")
        self._file = file
        _open_locks.add(self)

    def acquire(self) -> bool:
        """Lead if no other process does. Return True if this process leads."""
        if not self.held and self._file >= 0:
            with suppress(BlockingIOError):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.held = True
        return self.held

    def publish(self) -> None:
        """Name this process as the leader. The cache file must be ready for followers."""
        content = msgspec.json.encode(self.me)
        os.pwrite(self._file, content, 0)
        os.ftruncate(self._file, len(content))

    def read_leader(self) -> Leader | None:
        """Return the process that was published last; ``None`` if there is none."""
        if self._file < 0:
            return None
        content = os.pread(self._file, MAX_CONTENT, 0)
        try:
            return msgspec.json.decode(content, type=Leader)
        except msgspec.DecodeError:  # empty, or just being written
            return None

    def close(self) -> None:
        """Lead no more, and close the lock's file. The file stays, so that its lock is one."""
        file, self._file, self.held = self._file, -1, False
        if file >= 0:
            os.close(file)

    def __repr__(self) -> str:
        return f"<LeaderLock {self.path} held={self.held}>"


_open_locks: WeakSet[LeaderLock] = WeakSet()


def _close_in_child() -> None:
    """Close the locks in a forked process, which would else keep them after the leader's end.

    The leader's own lock stays: only the last descriptor of a file ends its ``flock``.
    """
    for lock in list(_open_locks):
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)

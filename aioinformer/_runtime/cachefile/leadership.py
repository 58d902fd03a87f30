"""The leadership of one process in a shared cache file: the election, and the signal of changes.

A process that doesn't lead has a thread that looks at the file 50 times a second: SQLite's
``data_version`` shows if another process has written, and the lock is free once the leader has
ended. Both checks cost a few microseconds, and the event loop is woken only if there is something
to do.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

from aioinformer._runtime.cachefile.leader_lock import Leader, LeaderLock
from aioinformer._runtime.cachefile.stored_scope import CacheFileProblem

__all__ = ["Leadership"]

log = logging.getLogger("aioinformer.cachefile")

POLL_SECONDS = 0.02
"""Seconds between two looks at the file."""

READY_SECONDS = 10.0
"""Seconds for which a process waits until the leader has prepared the file."""

READY_POLL_SECONDS = 0.01
"""Seconds between two looks at the leader's name meanwhile."""


class Leadership:
    """The leadership of this process in one shared file."""

    def __init__(self, path: Path) -> None:
        """Begin without a leader.

        Args:
            path: the path of the cache file.
        """
        self.leads = False
        """True once this process is the leader. Changes in the event loop only."""
        self.leader: Leader | None = None
        """The leader, as far as this process knows."""
        self.leader_since = 0.0
        """The time of the loop at which the leader became known."""
        self.changed = asyncio.Event()
        """Set when the file or the leader changes, and replaced by another event then. Take the
        event before reading, so that no change in between is missed."""
        self._path = path
        self._lock = LeaderLock(path)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def term(self) -> str:
        """The identity of the leadership of this process, now or later."""
        return self._lock.me.term

    # -- in the file's thread ------------------------------------------------------------------

    def campaign(self) -> bool:
        """Try to lead; else wait until the leader has prepared the file. This blocks.

        Returns:
            True if this process leads. The caller must then call ``publish`` once the file is
            ready.

        Raises:
            CacheFileProblem: the lock can't be used, or the leader doesn't prepare the file.
        """
        self._stopping.clear()
        self._lock.open()
        deadline = time.monotonic() + READY_SECONDS
        while not self._lock.acquire():
            if self._lock.read_leader() is not None and self._path.exists():
                return False
            if time.monotonic() > deadline:
                raise CacheFileProblem(
                    f"{self._path} is not used: the process that holds {self._lock.path} has not "
                    f"prepared the file within {READY_SECONDS:g} s"
                )
            time.sleep(READY_POLL_SECONDS)
        return True

    def publish(self) -> None:
        """Name this process as the leader, in its first campaign: the file is ready."""
        self._lock.publish()

    # -- in the event loop -----------------------------------------------------------------------

    def start(self) -> None:
        """Begin to look at the file, unless this process leads. The file is open."""
        if self._thread is not None or self.leader == self._lock.me:
            return  # an earlier caller has started this
        if self._lock.held:
            self._set_leader(self._lock.me, leads=True)
        else:
            self._set_leader(self._lock.read_leader(), leads=False)
            self._thread = threading.Thread(
                target=self._poll,
                args=(asyncio.get_running_loop(),),
                name="aioinformer-cachefile-poll",
                daemon=True,
            )
            self._thread.start()

    def _wake(self) -> None:
        """Wake all followers of this process."""
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def _set_leader(self, leader: Leader | None, *, leads: bool) -> None:
        if leads and not self.leads:
            log.info(
                "%s: this process (%s) watches for all that share the file", self._path, leader
            )
        self.leads, self.leader = leads, leader
        self.leader_since = asyncio.get_running_loop().time()
        self._wake()

    def resign(self) -> None:
        """Let another process lead; this one uses the file no more. Called in a thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()  # at most one look at the file
            self._thread = None
        self._lock.close()

    # -- in the polling thread -------------------------------------------------------------------

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at the file until this process leads, or resigns."""
        with (
            suppress(RuntimeError),  # the loop is closed: the program has ended without closing
            closing(_FileVersion(self._path)) as version,
        ):
            self._look(version, loop.call_soon_threadsafe)

    def _look(self, version: _FileVersion, call: Callable[..., object]) -> None:
        known, leader = -1, self.leader
        while not self._stopping.is_set():
            if self._lock.acquire():
                # At once, so that followers of scopes that this process doesn't read learn of it.
                self._lock.publish()
                call(self._elect)
                return
            if (found := self._lock.read_leader()) != leader and found is not None:
                leader = found
                call(self._note_leader, leader)
            if (number := version.read()) != known:
                known = number
                call(self._wake)
            self._stopping.wait(POLL_SECONDS)

    def _elect(self) -> None:
        if not self._stopping.is_set():
            self._set_leader(self._lock.me, leads=True)

    def _note_leader(self, leader: Leader) -> None:
        if not self.leads:
            self._set_leader(leader, leads=False)

    def __repr__(self) -> str:
        return f"<Leadership of {self._path} leads={self.leads} leader={self.leader}>"


class _FileVersion:
    """A number that changes when another process writes. Used in the polling thread."""

    def __init__(self, path: Path) -> None:
        self._uri = f"file:{quote(str(path.absolute()))}?mode=ro"
        self._connection: sqlite3.Connection | None = None

    def read(self) -> int:
        """Return the number; 0 if the file can't be opened or read now.

        The followers, which read the file then, find out what is wrong. The election goes on: the
        lock is another file.
        """
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._uri, uri=True, isolation_level=None)
            number: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            return 0
        return number

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()

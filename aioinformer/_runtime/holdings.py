"""What a factory holds: informers, who needs them, and the tasks that run them.

An informer that was asked for with ``informer()`` stays until the end; one that is only used goes
with its last user. Which informers are the same one is ``identity``'s to say, when all of them
start and end the factory's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from aioinformer._runtime.informer import SharedInformer
from aioinformer._runtime.registration import drained
from aioinformer._runtime.supervisor import Supervisor
from aioinformer.errors import NotRunning, SyncTimeout

__all__ = ["Holding", "all_synced"]


class Holding(Struct, eq=False):
    """An informer and who needs it."""

    informer: SharedInformer[Any]
    task: asyncio.Task[None] | None = None
    users: int = 0
    kept: bool = False
    """Whether it was asked for with ``informer()``, and so stays until the end."""

    @property
    def needed(self) -> bool:
        """Whether anybody needs it."""
        return self.kept or self.users > 0

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The names of its handlers that have not ended."""
        return tuple(each.left for each in self.informer.unfinished)

    def start(self, supervisor: Supervisor) -> None:
        """Run it, if there is somebody to run it."""
        if supervisor.running:
            self.task = supervisor.spawn(
                self.informer.run(failed=supervisor.fail),
                name=f"informer of {self.informer.name}",
            )

    async def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop it: first let handlers finish that are to drain, then cancel.

        Args:
            timeout: seconds for each of the two.

        Returns:
            The names of what was still running then.
        """
        if self.task is None:
            return ()
        left = await drained(self.informer.unfinished, timeout)
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=timeout)
        if self.task.done():
            return left
        names = self.unfinished or (self.task.get_name(),)
        self.give_up()
        return names

    def give_up(self) -> None:
        """Wait no more for threads that don't return."""
        for each in self.informer.unfinished:
            each.give_up()


async def all_synced(
    informers: Callable[[], Sequence[SharedInformer[Any]]], timeout: float | None
) -> None:
    """Wait until every informer's cache holds its first full state.

    Args:
        informers: those that there are; more may come and some may go meanwhile.
        timeout: seconds.

    Raises:
        SyncTimeout: not within that time; it says which informers, and why.
        NotRunning: an informer ended before, and is still held.
    """
    try:
        async with asyncio.timeout(timeout):
            while waiting := [informer for informer in informers() if not informer.synced]:
                try:
                    await waiting[0].wait_synced()
                except NotRunning:
                    if waiting[0] in informers():  # else its last user has left, and nobody waits
                        raise
    except TimeoutError:
        unsynced = {each.name: str(each.health) for each in informers() if not each.synced}
        raise SyncTimeout(timeout or 0.0, unsynced) from None

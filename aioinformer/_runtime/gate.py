"""Where the pump waits for listeners that would rather stop it than miss anything.

While the mailbox of a listener with ``overflow="block"`` is full, nothing is taken from the queue
in front of the cache, so that in the end the watch isn't read. All listeners of an informer have
one gate: whoever has taken enough opens it, and the pump looks for itself who is still full.
"""

from __future__ import annotations

import asyncio

__all__ = ["Gate"]


class Gate:
    """Closed while a full mailbox keeps the pump waiting."""

    def __init__(self) -> None:
        """An open gate."""
        self._open = asyncio.Event()
        self._open.set()
        self.closed = False
        """Whether the pump is waiting. Listeners look at it as they take events."""

    def open(self) -> None:
        """Some mailbox has room again, or is gone."""
        self.closed = False
        self._open.set()

    async def wait(self) -> None:
        """Close the gate and wait until somebody opens it."""
        self.closed = True
        self._open.clear()
        await self._open.wait()

    def __repr__(self) -> str:
        return f"<Gate {'closed' if self.closed else 'open'}>"

"""What the demo does to its server, so that the informer has something to recover from.

Three things in turn: the connections break; they break and the history is forgotten meanwhile, so
that the informer must list again; the server is gone for a while. Each counts as recovered when
the informer, having noticed, watches again.
"""

from __future__ import annotations

from aioinformer import Health
from aioinformer.testing import ApiServer

__all__ = ["Interruptions"]

EVERY = 8.0
"""Seconds between two: long enough to see the recovery."""
FIRST = 4.0
GONE = 1.5
"""Seconds for which the server is stopped: a few attempts of the informer."""
QUIET_END = 1.0
"""Nothing is done in so many seconds before the end."""


class Interruptions:
    """Interrupts a server once in a while, and notes how long the informer takes to recover."""

    def __init__(self, server: ApiServer, *, seconds: float) -> None:
        """Interrupt ``server``.

        Args:
            server: which runs.
            seconds: how long the demo lasts; 0 if nobody knows.
        """
        self.count = 0
        """Interruptions so far."""
        self.recovered = 0
        """Those that the informer has recovered from."""
        self._server = server
        self._until = seconds - QUIET_END if seconds else float("inf")
        self._next = min(FIRST, seconds * 0.4) if seconds else FIRST
        self._restart = float("inf")
        self._at = 0.0
        self._what = ""
        self._noticed = False
        self._took: float | None = None

    async def act(self, now: float, health: Health) -> None:
        """Do what is due at ``now`` seconds, and look at the informer's health."""
        self._observe(now, health)
        if now >= self._restart:
            await self.end()
        if self._next <= now < self._until:
            self._next += EVERY
            self._at, self._noticed, self._took = now, False, None
            self._what = await self._interrupt(now)
            self.count += 1

    @property
    def recovering(self) -> bool:
        """Whether the informer has yet to recover from the last one."""
        return bool(self.count) and self._took is None

    async def end(self) -> None:
        """Have the server run."""
        self._restart = float("inf")
        await self._server.start()

    async def _interrupt(self, now: float) -> str:
        match self.count % 3:
            case 0:
                self._server.drop_connections()
                return "connections dropped"
            case 1:
                self._server.cluster.compact()
                self._server.drop_connections()
                return "connections dropped, history forgotten"
            case _:
                self._restart = now + GONE
                await self._server.stop()
                return "stopped"

    def _observe(self, now: float, health: Health) -> None:
        if not self.recovering:
            return
        well = health.state == "watching" and health.error is None
        self._noticed = self._noticed or not well
        if self._noticed and well:
            self._took = now - self._at
            self.recovered += 1

    def describe(self, now: float) -> str:
        """The last interruption in a few words."""
        if not self.count:
            return ""
        after = "recovering" if self._took is None else f"recovered in {self._took:.1f} s"
        return f"{self._what} {now - self._at:.1f} s ago, {after}"

    def __repr__(self) -> str:
        return f"<Interruptions {self.count}, {self.recovered} recovered>"

"""Interruptions of the demo's server, from which the informer recovers.

The three kinds follow each other in turn. A fault counts as recovered when the informer has noticed
the fault and watches again.
"""

from __future__ import annotations

from aioinformer import Health, Problem
from aioinformer.testing import ApiServer

FAULT_INTERVAL = 8.0
"""Seconds between two faults: long enough to see the recovery."""
FIRST_FAULT = 4.0
STOP_SECONDS = 1.5
"""Seconds for which the server is stopped: a few attempts of the informer."""
END_MARGIN = 1.0
"""Seconds before the end of the demo in which no fault is injected."""


class DemoFaults:
    """A schedule of interruptions, for a demo of ``seconds``, or without an end if 0."""

    def __init__(self, server: ApiServer, *, seconds: float) -> None:
        self.count = 0
        self.recovered = 0
        self._server = server
        self._last_fault_before = seconds - END_MARGIN if seconds else float("inf")
        self._next_fault_at = min(FIRST_FAULT, seconds * 0.4) if seconds else FIRST_FAULT
        self._restart_at = float("inf")
        self._fault_at = 0.0
        self._fault = ""
        self._noticed = False
        self._recovery_seconds: float | None = None

    async def step(self, now: float, health: Health) -> None:
        """Inject the fault that is due at ``now`` seconds, and observe the informer's health."""
        self._observe_health(now, health)
        if now >= self._restart_at:
            await self.restore_server()
        if self._next_fault_at <= now < self._last_fault_before:
            self._next_fault_at += FAULT_INTERVAL
            self._fault_at, self._noticed, self._recovery_seconds = now, False, None
            self._fault = await self._inject_fault(now)
            self.count += 1

    def notice(self, _: Problem) -> None:
        """Note that the informer has reported a problem, after which it may watch again at once."""
        self._noticed = self.recovering

    @property
    def recovering(self) -> bool:
        return bool(self.count) and self._recovery_seconds is None

    async def restore_server(self) -> None:
        self._restart_at = float("inf")
        await self._server.start()

    async def _inject_fault(self, now: float) -> str:
        match self.count % 3:
            case 0:
                self._server.drop_connections()
                return "connections dropped"
            case 1:
                self._server.cluster.compact()
                self._server.drop_connections()
                return "connections dropped, history forgotten"
            case _:
                self._restart_at = now + STOP_SECONDS
                await self._server.stop()
                return "stopped"

    def _observe_health(self, now: float, health: Health) -> None:
        if not self.recovering:
            return
        watching = health.state == "watching" and health.error is None
        self._noticed = self._noticed or not watching
        if self._noticed and watching:
            self._recovery_seconds = now - self._fault_at
            self.recovered += 1

    def describe(self, now: float) -> str:
        if not self.count:
            return ""
        after = (
            "recovering"
            if self._recovery_seconds is None
            else f"recovered in {self._recovery_seconds:.1f} s"
        )
        return f"{self._fault} {now - self._fault_at:.1f} s ago, {after}"

    def __repr__(self) -> str:
        return f"<DemoFaults {self.count}, {self.recovered} recovered>"

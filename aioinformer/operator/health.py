"""The public state of an operator: a snapshot for probes, dashboards and people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from aioinformer._runtime.reporting.health import Health
from aioinformer.controllers.health import ControllerHealth
from aioinformer.leaderelection.health import ElectionHealth

if TYPE_CHECKING:  # for operators with groups alone
    from aioinformer.shardgroup.health import GroupHealth

OperatorState: TypeAlias = Literal[
    "new", "starting", "waiting", "running", "stopping", "stopped", "failed"
]
"""``starting``: resources are being discovered. ``waiting``: another replica leads. ``running``:
the controllers of this replica run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorHealth:
    """The state of an operator at one moment."""

    state: OperatorState
    error: BaseException | None
    """The error that ended the operator, if it failed."""
    leader: str
    """The identity of the replica that leads; empty if there is none or no election."""
    controllers: Mapping[str, ControllerHealth]
    """The health of each controller that runs on this replica: without the lease, those with
    ``shards=``."""
    informers: Mapping[str, Health]
    groups: Mapping[str, GroupHealth]
    election: ElectionHealth | None = None
    """The state of this replica's candidate, with the last error of its requests; ``None`` without
    an election, and before it began."""

    def __str__(self) -> str:
        parts: list[str] = [self.state]
        if self.error is not None:
            parts.append(f"{type(self.error).__name__}: {self.error}")
        if self.state == "waiting" and self.leader:
            parts.append(f"{self.leader} leads")
        if self.election is not None and self.election.error is not None:
            parts.append(f"election: {self.election}")
        parts.extend(f"group {name}: {each}" for name, each in self.groups.items())
        parts.extend(f"controller {name}: {each}" for name, each in self.controllers.items())
        return "; ".join(parts)

"""The circumstances of one history of a shard group, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from aioinformer.leaderelection.state.election import ElectionTimes
from tests.simulation.leases.virtual_time import MAX_CLOCK_DRIFT


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardWorldOptions:
    """The circumstances of one history."""

    replicas: int
    shards: int
    duration: float
    orderly: bool
    """True if replicas only join, leave and die: then shards move as little as possible."""
    failure_rate: float
    """The part of requests that fail, are lost, or arrive late."""
    outages: bool
    """True if the server can't be reached for minutes."""
    max_cache_lag: float
    """The most seconds by which a cache is late; beyond ``max_latency``, caches are silent for half
    a minute now and then, while requests are answered."""
    drift: float
    max_latency: float
    times: ElectionTimes = field(default_factory=ElectionTimes)

    @property
    def late_caches(self) -> bool:
        """True if caches are late."""
        return self.max_cache_lag > self.max_latency

    @property
    def prompt(self) -> bool:
        """True if requests and caches work, so that the promised times hold throughout."""
        return not (self.failure_rate or self.outages or self.late_caches)

    @classmethod
    def draw(cls, chance: Random, *, small: bool) -> ShardWorldOptions:
        """Draw circumstances; ``small`` ones for a short test."""
        sizes = [1, 2, 2, 3, 3, 4, 5, 6] if small else [2, 2, 3, 3, 3, 4, 4, 5, 6, 6, 8, 12, 20]
        replicas = chance.choice(sizes)
        if not small and chance.random() < 0.005:
            replicas = 100
        shards = chance.choice([4, 8, 16, 64] if small else [8, 16, 64, 64, 64, 256])
        orderly = chance.random() < 0.3
        troubled = not orderly and chance.random() < 0.6
        latency = chance.choice([0.02, 0.1, 0.2])
        late = not orderly and chance.random() < 0.4
        return cls(
            replicas=replicas,
            shards=1024 if replicas == 100 else shards,
            duration=110.0 if replicas == 100 else 130.0 if small else 200.0,
            orderly=orderly,
            failure_rate=chance.choice([0.0, 0.05, 0.2, 0.5]) if troubled else 0.0,
            outages=troubled and chance.random() < 0.5,
            max_cache_lag=chance.choice([1.0, 4.0, 8.0]) if late else latency,
            drift=chance.choice([0.0, MAX_CLOCK_DRIFT * chance.random(), MAX_CLOCK_DRIFT]),
            max_latency=latency,
        )

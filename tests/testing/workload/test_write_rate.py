"""As many writes as are due."""

from __future__ import annotations

from aioinformer.testing import Cluster
from aioinformer.testing.workload.workload import PodWorkload
from aioinformer.testing.workload.write_rate import WriteRate


def test_a_rate_is_kept_over_uneven_calls() -> None:
    cluster = Cluster()
    workload = PodWorkload(cluster, objects=20, seed=0)
    workload.populate(20)
    before = cluster.resource_version
    writes = WriteRate(workload, 50, now=8.0)

    made = [writes.make_due(8.0 + seconds) for seconds in (0.0, 0.0625, 0.125, 0.25, 0.3125)]

    assert made == [0, 3, 3, 5, 3]
    assert cluster.resource_version - before == 14


def test_after_a_pause_the_missed_writes_are_left_out() -> None:
    workload = PodWorkload(Cluster(), objects=20, seed=0)
    workload.populate(20)
    writes = WriteRate(workload, 100, now=0.0)

    assert writes.make_due(60.0) == 10
    assert writes.make_due(60.05) == 5

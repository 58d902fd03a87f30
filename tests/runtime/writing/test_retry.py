"""Repetition after a conflict."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from aioinformer import KubeObject, retry_on_conflict
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import AlreadyExists, Conflict, NotFound, Status, server_error
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation.loop import run

LEASES = find_built_in("leases")
FOREIGN = {"causes": [{"reason": "FieldManagerConflict", "field": ".spec.x"}]}


class Attempts:
    """Fails a given number of times, and records the times of its calls."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.times: list[float] = []

    async def __call__(self) -> str:
        self.times.append(asyncio.get_running_loop().time())
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def conflict(**details: Any) -> Exception:
    return server_error(Status(409, "Conflict", "modified", details))


def test_an_attempt_is_repeated_after_a_conflict() -> None:
    attempts = Attempts(conflict(), conflict())
    assert run(retry_on_conflict(attempts), seed=0) == "done"
    waits = [later - earlier for earlier, later in pairwise(attempts.times)]
    assert len(waits) == 2
    assert all(0.0099 < wait < 0.0112 for wait in waits), "10 ms, and up to a tenth more"


def test_the_last_conflict_is_raised() -> None:
    errors = [conflict() for _ in range(9)]
    attempts = Attempts(*errors)
    with pytest.raises(Conflict) as caught:
        run(retry_on_conflict(attempts), seed=0)
    assert caught.value is errors[4]
    assert len(attempts.times) == 5


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (server_error(Status(409, "AlreadyExists")), AlreadyExists),
        (conflict(**FOREIGN), Conflict),
        (server_error(Status(404, "NotFound")), NotFound),
    ],
)
def test_conflicts_that_a_repetition_can_not_resolve_are_raised_at_once(
    error: Exception, kind: type[Exception]
) -> None:
    attempts = Attempts(error)
    with pytest.raises(kind):
        run(retry_on_conflict(attempts), seed=0)
    assert len(attempts.times) == 1


def test_a_conflict_with_malformed_details_is_retried() -> None:
    attempts = Attempts(conflict(causes="x"), conflict(causes=["x", 1]))
    assert run(retry_on_conflict(attempts), seed=0) == "done"


def test_at_least_one_attempt_is_made() -> None:
    with pytest.raises(ValueError, match="at least once"):
        run(retry_on_conflict(Attempts(), attempts=0), seed=0)


def test_all_writes_of_many_writers_of_one_object_succeed() -> None:
    """Each adds one to what it read; nothing is lost."""
    cluster = Cluster()
    cluster.create("leases", {"metadata": {"name": "n", "namespace": "web"}, "spec": {"n": 0}})

    async def main() -> None:
        leases = ClusterSource(cluster).api(LEASES, namespace="web")

        async def add() -> KubeObject:
            lease = (await leases.get("n")).to_dict()
            await asyncio.sleep(0)
            lease["spec"]["n"] += 1
            return await leases.update(lease)

        async def adding() -> None:
            for _ in range(5):
                await retry_on_conflict(add, attempts=100)

        await asyncio.gather(*(adding() for _ in range(4)))

    run(main(), seed=1)
    assert cluster.get("leases", "n", namespace="web")["spec"]["n"] == 20

"""Operators that run while a block runs."""

from __future__ import annotations

import pytest

from aioinformer import Operator
from aioinformer.errors import NotRunning, UnknownResource
from aioinformer.testing import ClusterSource, running_operator
from tests.controllers.reconcilers import (
    FOOS,
    RecordingReconciler,
    make_cluster,
    run_simulated,
)


def test_an_operator_is_synced_in_the_block_and_stopped_after_it() -> None:
    cluster, runs = make_cluster("a"), RecordingReconciler()
    operator = Operator(ClusterSource(cluster), name="op")
    foos = operator.controller(FOOS, runs, name="foos")

    async def main() -> None:
        async with running_operator(operator) as same:
            assert same is operator
            assert foos.informer.synced
        assert operator.state == "stopped"

    run_simulated(main)


def test_an_operator_that_can_not_start_is_an_error() -> None:
    operator = Operator(ClusterSource(make_cluster()), name="op")
    operator.controller("nonsenses.example.com", RecordingReconciler(), name="x")

    async def main() -> None:
        with pytest.raises(NotRunning) as caught:
            async with running_operator(operator):
                pytest.fail("the block began")
        assert isinstance(caught.value.__cause__, UnknownResource)

    run_simulated(main)


def test_the_exception_of_the_block_is_raised_and_the_operator_has_ended() -> None:
    operator = Operator(ClusterSource(make_cluster()), name="op")
    operator.controller(FOOS, RecordingReconciler(), name="foos")

    async def main() -> None:
        with pytest.raises(KeyError, match="mine"):
            async with running_operator(operator):
                raise KeyError("mine")
        assert operator.state == "stopped"

    run_simulated(main)

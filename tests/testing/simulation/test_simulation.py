"""A program in histories of faults: what fails is found, made small, and repeated."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aioinformer import Added, Event, SharedInformerFactory
from aioinformer.errors import ServerError
from aioinformer.testing.simulation import Simulation, SimulationFailed, Stuck, simulate


async def fills_the_cache(simulation: Simulation) -> None:
    """Is correct: in the end the cache has all pods."""
    async with SharedInformerFactory(simulation.source) as informers:
        pods = informers.informer("pods")
        for number in range(10):
            await asyncio.sleep(simulation.random.uniform(0, 30))
            simulation.cluster.create("pods", {"metadata": {"name": f"web-{number}"}, "spec": {}})
        await simulation.settled()
        assert len(pods.lister) == 10


async def writes_once(simulation: Simulation) -> None:
    """Has a bug: a write that fails is not tried again."""
    configmaps = simulation.source.api("configmaps", namespace="default")
    missing: list[str] = []

    async def on_event(event: Event) -> None:
        try:
            if isinstance(event, Added):
                await configmaps.create({"metadata": {"name": event.obj.name}})
        except ServerError:
            missing.append(event.obj.name)

    async with SharedInformerFactory(simulation.source) as informers:
        informers.informer("pods").add_handler(on_event)
        for number in range(20):
            await asyncio.sleep(simulation.random.uniform(0, 15))
            simulation.cluster.create("pods", {"metadata": {"name": f"web-{number}"}, "spec": {}})
        await simulation.settled()
    if missing:
        raise LookupError(f"not written: {missing}")


def test_a_correct_program_passes() -> None:
    simulate(fills_the_cache, seeds=range(20))


def test_a_bug_is_found_shrunk_and_repeated_by_the_printed_line() -> None:
    with pytest.raises(SimulationFailed, match="not written") as caught:
        simulate(writes_once, seeds=range(100), duration=200.0)
    report = caught.value
    assert isinstance(report.__cause__, LookupError)
    assert 1 <= len(report.keep) <= 2
    line = str(report).splitlines()[-1].strip()
    kept = f"seeds=[{report.seed}], keep={report.keep}, duration=200.0"
    assert line == f"simulate(writes_once, {kept})"
    shown = caught.traceback.filter(caught)
    assert {Path(entry.path) for entry in shown} == {Path(__file__)}, "no frames of the runner"
    with pytest.raises(SimulationFailed) as repeated:
        simulate(writes_once, seeds=[report.seed], keep=report.keep, duration=200.0)
    assert str(repeated.value) == str(report)
    assert repeated.value.trace == report.trace


def test_the_report_shows_the_faults_and_the_end_of_the_trace() -> None:
    with pytest.raises(SimulationFailed) as caught:
        simulate(writes_once, seeds=range(100))
    report = caught.value
    text = str(report)
    assert text.startswith(f"seed {report.seed}: LookupError: not written: ['web-")
    assert re.search(
        r"^\d of \d+ faults (is|are) enough:\n    at \d+\.\d{6} s for ", text, re.MULTILINE
    )
    assert "fault begins, at " in report.trace
    assert "fault ends after " in report.trace


def test_the_same_seed_gives_the_same_history() -> None:
    traces: list[list[str]] = []

    async def program(simulation: Simulation) -> None:
        await fills_the_cache(simulation)
        traces.append(simulation.trace)

    simulate(program, seeds=[1, 1, 2])
    assert traces[0] == traces[1] != traces[2]


@pytest.mark.parametrize("hash_seed", ["0", pytest.param("1", marks=pytest.mark.simulation)])
def test_another_process_repeats_the_history(hash_seed: str) -> None:
    with pytest.raises(SimulationFailed) as caught:
        simulate(writes_once, seeds=range(100))
    code = (
        "from aioinformer.testing.simulation import SimulationFailed, simulate\n"
        "from tests.testing.simulation.test_simulation import writes_once\n"
        f"try: simulate(writes_once, seeds=[{caught.value.seed}], keep={caught.value.keep})\n"
        "except SimulationFailed as failed: print(failed)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout == f"{caught.value}\n"


def test_a_program_that_fails_without_faults_needs_none() -> None:
    async def program(simulation: Simulation) -> None:
        raise LookupError("always")

    with pytest.raises(SimulationFailed) as caught:
        simulate(program)
    assert caught.value.keep == []
    assert re.match(r"0 of \d+ faults are needed:", str(caught.value).splitlines()[1])
    assert str(caught.value).endswith("simulate(program, seeds=[0], keep=[])")


def test_a_program_that_is_not_deterministic_is_reported_as_such() -> None:
    runs = iter([LookupError("once")])

    async def program(simulation: Simulation) -> None:
        for error in runs:
            raise error

    with pytest.raises(SimulationFailed, match="LookupError: once") as caught:
        simulate(program, seeds=[1])
    assert "the program is not deterministic" in str(caught.value)
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_program_that_waits_for_an_event_that_never_happens_is_stuck() -> None:
    async def program(simulation: Simulation) -> None:
        await asyncio.Event().wait()

    with pytest.raises(SimulationFailed, match=r"nothing is ready|not at an end") as caught:
        simulate(program, seeds=[1], attempts=2)
    assert isinstance(caught.value.__cause__, Stuck)


def test_a_program_that_does_not_end_is_stopped_at_the_limit() -> None:
    async def program(simulation: Simulation) -> None:
        await asyncio.sleep(1000)

    with pytest.raises(SimulationFailed, match="not at an end after 500 virtual seconds"):
        simulate(program, seeds=[1], limit=500.0, attempts=1)


def test_a_program_that_is_cancelled_has_failed() -> None:
    async def program(simulation: Simulation) -> None:
        raise asyncio.CancelledError

    with pytest.raises(SimulationFailed, match="the program was cancelled"):
        simulate(program, seeds=[1])


def test_an_exception_in_a_task_without_references_is_a_failure() -> None:
    async def program(simulation: Simulation) -> None:
        async def fail() -> None:
            raise ValueError("forgotten")

        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        del task
        await asyncio.sleep(1)

    with pytest.raises(SimulationFailed, match="ValueError: forgotten"):
        simulate(program, seeds=[1])


def test_exceptions_in_groups_are_shrunk_by_their_kinds() -> None:
    async def program(simulation: Simulation) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fills_the_cache(simulation))
            await simulation.settled()
            if any("status" in line for line in simulation.trace):
                raise ValueError("a status")

    with pytest.raises(SimulationFailed) as caught:
        simulate(program, seeds=range(20))
    assert len(caught.value.keep) == 1


def test_notes_are_in_the_trace_and_warnings_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    lines: list[str] = []

    async def program(simulation: Simulation) -> None:
        await asyncio.sleep(2)
        simulation.note("here")
        await fills_the_cache(simulation)
        lines.extend(simulation.trace)

    simulate(program, seeds=range(5))
    assert "    2.000000 here" in lines
    assert any("log WARNING: " in line for line in lines)
    assert caplog.records == []
    assert logging.getLogger("aioinformer").propagate

"""The calls that an event passes, and the numbers that the guide to the architecture states."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from aioinformer.testing import ApiServerThread, Cluster, Features
from tests.walks import Walk, event_walk, failure_walks, modules

GUIDE = Path(__file__).parent.parent / "examples/guides/architecture.md"
ROW = re.compile(r"^\| ([^|]+) \| (\d+) \| (\d+) \|$", re.MULTILINE)


def stated(walk: str) -> tuple[int, int]:
    """Return the calls and the modules that the guide states for a walk."""
    (row,) = [found for found in ROW.findall(GUIDE.read_text()) if found[0] == walk]
    return int(row[1]), int(row[2])


def check(name: str, walk: Walk, *, slack: int = 0) -> None:
    """Check that a walk is not longer than the guide states, by more than ``slack`` calls."""
    calls, places = (number + slack for number in stated(name))
    listed = "\n".join(f"{call.module} {call.function}" for call in walk)
    assert len(walk) <= calls, f"{name} takes more calls than the guide states:\n{listed}"
    assert len(modules(walk)) <= places, f"{name} passes more modules:\n{listed}"


@pytest.fixture
def server() -> ApiServerThread:
    return ApiServerThread(Cluster(features=Features(watch_list=False)))


async def test_a_watch_event_passes_no_more_calls_than_the_guide_states(
    server: ApiServerThread,
) -> None:
    with server:
        check("a watch event, to the handler", await event_walk(server))


async def test_the_guide_states_the_approximate_numbers_of_calls_of_other_operations(
    server: ApiServerThread, caplog: pytest.LogCaptureFixture
) -> None:
    with server, caplog.at_level(logging.CRITICAL + 1, "aioinformer"):  # log lines call, too
        for name, walk in (await failure_walks(server)).items():
            check(name, walk, slack=len(walk) // 10)  # these happen rarely, so a call costs nothing

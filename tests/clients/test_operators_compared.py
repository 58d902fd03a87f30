"""The operators that the guide compares, as processes, through the life of a Site."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.operators_compared.life import live
from examples.operators_compared.programs import FOLDER, command_of
from tests.apiserver.server.build import BuildUnavailable, build_cached

pytestmark = pytest.mark.clients

STEPS = [
    "starts, and makes the children",
    "shows Ready=False",
    "shows Ready=True",
    "records the Event",
    "changes the page",
    "makes a deleted child again",
    "cleans up before the end",
    "ends after SIGTERM",
]


@pytest.fixture(scope="session")
def go_operator() -> list[str]:
    """Return the command of the program in Go, which is built when its sources change."""
    try:
        return [str(build_cached(FOLDER / "controller_runtime", "sites"))]
    except BuildUnavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.timeout(180)
async def test_the_kopf_operator_performs_each_step_of_the_comparison(tmp_path: Path) -> None:
    report = await live(await command_of("kopf", tmp_path), tmp_path)
    assert [*report.seconds] == STEPS
    assert report.exit_code == 0


@pytest.mark.timeout(580)  # of a first build, which downloads the modules
async def test_the_go_operator_performs_each_step_of_the_comparison(
    go_operator: list[str], tmp_path: Path
) -> None:
    report = await live(go_operator, tmp_path, extra_sites=20)
    assert [*report.seconds] == [*STEPS[:-1], "makes the children of 20 Sites", STEPS[-1]]
    assert report.exit_code == 0
    assert report.memory[20] < 200e6

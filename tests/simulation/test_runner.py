"""A failure can be repeated: a seed has one trace, and the command line shows it again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.__main__ import main
from tests.simulation.bugs.delivery import a_wait_never_sleeps
from tests.simulation.bugs.reflector import an_index_loses_entries
from tests.simulation.generator import draw
from tests.simulation.runner import examine, explain, parse_ranges, simulate

SEED = 5


@pytest.mark.simulation
def test_a_trace_is_the_same_in_another_process_with_another_hash_seed() -> None:
    ours = simulate(draw(SEED)).trace()
    assert ours.count("\n") > 1000
    other = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"  # without one it is random
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seed", str(SEED), "--trace"],
        env={**os.environ, "PYTHONHASHSEED": other},
        capture_output=True,
        check=True,
    )
    assert ours == done.stdout.decode()


def test_an_explanation_has_the_seed_the_smallest_history_and_the_repeat_command() -> None:
    plan = draw(SEED)
    with an_index_loses_entries.planted():
        violation = examine(plan)
        assert violation is not None
        text = explain(plan, violation, budget=60)
    assert f"seed {SEED}: promise 3" in text
    repeat = text.splitlines()[-1].split()
    kept = parse_ranges(repeat[repeat.index("--keep") + 1])
    assert len(kept) <= 5, text
    with an_index_loses_entries.planted():
        assert str(examine(plan.keep(kept))) in text


@pytest.mark.simulation
def test_a_history_that_never_ends_breaks_a_promise(capsys: pytest.CaptureFixture[str]) -> None:
    with a_wait_never_sleeps.planted():
        assert main(["--seed", "3", "--keep", "none"]) == 1
    assert "promise 9 (liveness)" in capsys.readouterr().out

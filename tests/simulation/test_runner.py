"""A failure can be repeated: a seed has one trace, and the command line shows it again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.__main__ import main
from tests.simulation.bugs.delivery import a_wait_never_sleeps
from tests.simulation.bugs.reflector import an_index_loses_entries
from tests.simulation.generator import draw
from tests.simulation.runner import command, examine, explain, parse_ranges, ranges, simulate

SEED = 5


def trace(*arguments: str, hash_seed: str) -> bytes:
    """Return the output of another process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--trace", *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    )
    return done.stdout


@pytest.mark.simulation
def test_a_trace_is_the_same_in_another_process_with_another_hash_seed() -> None:
    ours = simulate(draw(SEED)).trace()
    assert ours.count("\n") > 1000
    other = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"  # without one it is random
    assert ours == trace("--seed", str(SEED), hash_seed=other).decode()
    assert ours != simulate(draw(SEED + 1)).trace()


def test_a_part_of_a_history_can_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    kept = [*range(40), 77, 300]
    assert main(["--seed", str(SEED), "--keep", ranges(kept), "--trace"]) == 0
    assert capsys.readouterr().out == simulate(draw(SEED).keep(kept)).trace()


def test_an_explanation_has_the_seed_the_smallest_history_and_the_repeat_command() -> None:
    plan = draw(SEED)
    with an_index_loses_entries.planted():
        violation = examine(plan)
        assert violation is not None
        text = explain(plan, violation, budget=60)
    assert f"seed {SEED}: promise 3" in text
    repeat = text.splitlines()[-1].split()
    assert repeat[:5] == ["PYTHONHASHSEED=0", "python", "-m", "tests.simulation", "--seed"]
    kept = parse_ranges(repeat[repeat.index("--keep") + 1])
    assert len(kept) <= 5, text
    with an_index_loses_entries.planted():
        again = examine(plan.keep(kept))
    assert again is not None
    assert again.promise == 3
    assert str(again) in text


@pytest.mark.simulation
def test_the_command_line_runs_several_histories(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--histories", "2"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("<History seed=3 writes=5")
    assert second.startswith("<History seed=4 ")


@pytest.mark.simulation
def test_the_command_line_explains_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with an_index_loses_entries.planted():
        assert main(["--seed", "3", "--histories", "9"]) == 1
    explained = capsys.readouterr().out
    assert "seed 3: promise 3" in explained
    words = explained.splitlines()[-1].split()
    with an_index_loses_entries.planted():
        assert main(words[words.index("--seed") :]) == 1
    repeated = capsys.readouterr().out
    assert " Write version=" in repeated, "the trace"
    assert repeated.splitlines()[-2].startswith("seed 3: promise 3")


@pytest.mark.simulation
def test_a_history_that_never_ends_breaks_a_promise(capsys: pytest.CaptureFixture[str]) -> None:
    with a_wait_never_sleeps.planted():
        assert main(["--seed", "3", "--keep", "none"]) == 1
        assert "promise 9 (liveness)" in capsys.readouterr().out
        violation = examine(draw(3).keep([]))
    assert violation is not None
    assert "time stands still; tasks:" in str(violation)


def test_a_history_without_steps_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(draw(1), []).endswith("--seed 1 --keep none --trace")
    assert main(["--seed", "1", "--keep", "none"]) == 0
    assert "writes=0 faults=0" in capsys.readouterr().out


@pytest.mark.simulation
def test_the_command_line_shows_which_rows_were_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--histories", "3", "--rows"]) == 0
    *_, stream, lists, page, watch, check, discovery = capsys.readouterr().out.splitlines()
    assert stream.startswith("WATCHLIST       EXPIRED=")
    assert lists.startswith("LIST            EXPIRED=")
    assert page.startswith("PAGE            EXPIRED=")
    assert int(watch.partition("ENDED=")[2].split()[0]) > 0
    assert (check.split()[0], discovery.split()[0]) == ("FRESHNESS_CHECK", "DISCOVERY")


@given(st.sets(st.integers(0, 50)))
def test_ranges_are_read_as_written(numbers: set[int]) -> None:
    assert parse_ranges(ranges(numbers) or "none") == sorted(numbers)


def test_consecutive_numbers_are_shown_as_ranges() -> None:
    assert ranges([3, 1, 2, 9]) == "1-3,9"

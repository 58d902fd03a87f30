"""Seeds, mutations of seeds and earlier findings, in every parser of hostile bytes."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzzing.targets import CORPUS, TARGETS, FuzzTarget

NOISE = 5
"""The factor that a machine with other work may add to the time, caches and all."""
MEMORY_PER_BYTE = 200
"""Bytes of memory that a parser may hold for each byte of its input. A regular expression that
backtracks over the input takes the most: 126."""
HOSTILE_SIZE = 64 * 1024
"""Bytes of a hostile input; the runtime reads no larger chunk from a socket."""
MEMORY_BASE = 1_000_000
"""Bytes of memory that a parser may hold for any input."""


@st.composite
def mutated(draw: st.DrawFn, target: FuzzTarget) -> bytes:
    """Draw a seed in which some pieces are replaced by tokens, other bytes, or other pieces."""
    data = draw(st.sampled_from(target.seeds))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        copied = draw(st.integers(0, len(data)))
        piece = draw(
            st.sampled_from(target.tokens)
            | st.binary(max_size=4)
            | st.just(data[copied : copied + 30])
        )
        data = data[:start] + piece + data[end:]
    return data


inputs = st.sampled_from(sorted(TARGETS)).flatmap(
    lambda name: st.tuples(st.just(name), mutated(TARGETS[name]))
)


@given(inputs)
def test_a_mutated_input_is_read_as_the_oracle_reads_it_or_is_a_named_error(
    drawn: tuple[str, bytes],
) -> None:
    name, data = drawn
    TARGETS[name].check(data)


def corpus() -> Iterator[tuple[str, Path]]:
    """Return the inputs that failed once."""
    for path in sorted(CORPUS.glob("*/*")):
        yield path.parent.name, path


@pytest.mark.parametrize(("name", "path"), [*corpus()], ids=lambda each: Path(each).name)
def test_an_input_that_failed_once_does_not_fail_again(name: str, path: Path) -> None:
    TARGETS[name].check(path.read_bytes())


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_each_seed_is_accepted_and_each_prefix_of_a_seed_ends_in_a_result(name: str) -> None:
    target = TARGETS[name]
    for seed in target.seeds:
        target.check(seed)
        for end in range(0, len(seed), 7):
            target.check(seed[:end])


def hostile(target: FuzzTarget, *, inside: bool) -> Iterator[bytes]:
    """Return large inputs: each token many times, alone or in the middle of a seed."""
    seed = target.seeds[0]
    for token in target.tokens:
        many = token * (HOSTILE_SIZE // len(token))
        yield seed[: len(seed) // 2] + many + seed[len(seed) // 2 :] if inside else many


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(True, id="in a seed"),
        pytest.param(False, id="alone", marks=pytest.mark.simulation),
    ],
)
@pytest.mark.parametrize("name", sorted(each for each in TARGETS if TARGETS[each].milliseconds))
def test_hostile_repetitions_take_time_and_memory_in_proportion(name: str, *, inside: bool) -> None:
    target = TARGETS[name]
    limit = NOISE * (target.milliseconds or 0) / 1000
    gc.freeze()  # otherwise each collection below visits the objects of all earlier tests
    for data in hostile(target, inside=inside):
        gc.collect()
        began = time.thread_time()
        target.read(data)
        took = time.thread_time() - began
        tracemalloc.start()  # not before, since this makes each allocation slow
        target.read(data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        start = data[:40]
        assert took < limit * (1 + len(data) / 65536), start
        assert peak < MEMORY_BASE + MEMORY_PER_BYTE * len(data), start

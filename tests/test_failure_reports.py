"""The report of a failed test, and the warnings that make an asynchronous test fail."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.conftest import AsyncioWarnings

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]

FAILING_TEST = """
import ast
import gc


class ParsesAtItsEnd:
    def __init__(self):
        self.cycle = self

    def __del__(self):
        parse_deeper(20)


def parse_deeper(depth):
    return parse_deeper(depth - 1) if depth else ast.parse("name = 1")


def test_that_fails():
    gc.collect()
    gc.disable()
    for _ in range(100):
        ParsesAtItsEnd()
    gc.set_threshold(4_000)
    gc.enable()
    raise ValueError("the reason")


NUMBERS = [{numbers}]
"""


@pytest.mark.clients
def test_a_failure_is_reported_although_finalizers_parse_code(pytester: pytest.Pytester) -> None:
    """Such a finalizer formats a traceback in Python 3.11, which ended the whole run."""
    pytester.syspathinsert(ROOT)
    numbers = ", ".join(f"{number} + {number}" for number in range(5_000))
    pytester.makepyfile(FAILING_TEST.replace("{numbers}", numbers))

    run = pytester.runpytest_subprocess("-p", "tests.conftest", "-p", "no:cacheprovider")

    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(["*ValueError: the reason*"])


SLOW = "Executing <Handle> took 2.000 seconds"


@pytest.mark.parametrize(("waited", "kept"), [(0.0, True), (1.9, False)])
async def test_a_warning_of_a_step_that_a_busy_machine_made_slow_reaches_no_handler(
    waited: float, *, kept: bool
) -> None:
    logger, received, stall = logging.Logger("like asyncio's"), list[str](), 0.0
    handler = logging.Handler()
    handler.emit = lambda record: received.append(record.getMessage())  # type: ignore[method-assign]
    warnings = AsyncioWarnings(lambda: stall)
    logger.addFilter(warnings)
    logger.addHandler(handler)

    stall = waited
    logger.warning(SLOW)
    logger.info("no warning")
    logger.error("another one")

    assert received == [*[SLOW] * kept, "no warning", "another one"]
    assert warnings.messages == [*[SLOW] * kept, "another one"]

"""The report of a failed test, while the garbage collector has work."""

from __future__ import annotations

from pathlib import Path

import pytest

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

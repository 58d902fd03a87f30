"""The reports that the workers of the default run send to their controller."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]

SETTINGS = """
[tool.pytest.ini_options]
testpaths = ["."]
addopts = ["-m", "not slow", "-n", "1"]
markers = ["slow: excluded"]
"""

CONFTEST = """
import pytest
from tests.conftest import pytest_configure_node, pytest_runtest_protocol

received = []

def pytest_runtest_logreport(report):
    if hasattr(report, "node"):
        received.append(f"{report.when} {report.outcome}")

def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"received: {', '.join(sorted(received))}")

@pytest.fixture
def broken():
    raise ValueError("the set-up fails")

@pytest.fixture
def left_behind():
    yield
    raise ValueError("the tear-down fails")
"""

TESTS = """
import pytest

def test_passes(): pass

def test_fails(): raise ValueError("the call fails")

def test_is_not_set_up(broken): pass

def test_is_not_torn_down(left_behind): pass

def test_skips(): pytest.skip()

@pytest.mark.xfail
def test_fails_as_expected(): raise ValueError

@pytest.mark.skip
def test_is_skipped(): pass
"""

SENT = (
    "call failed, call passed, call passed, call skipped, call skipped, setup failed, "
    "setup skipped, teardown failed"
)
"""The reports of the calls, and of whatever did not pass."""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return tests with each result, whose workers send as those of the default run do."""
    pytester.syspathinsert(ROOT)
    pytester.makepyprojecttoml(SETTINGS)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    return pytester


@pytest.mark.clients
def test_calls_and_whatever_did_not_pass_are_reported(project: pytest.Pytester) -> None:
    run = project.runpytest_subprocess("-p", "no:cacheprovider")

    run.assert_outcomes(passed=2, failed=1, errors=2, skipped=2, xfailed=1)
    run.stdout.fnmatch_lines(["*ValueError: the tear-down fails*", f"received: {SENT}"])


@pytest.mark.clients
@pytest.mark.parametrize("option", ["--durations=1", "--junitxml=report.xml", "-x"])
def test_an_option_that_needs_all_reports_receives_them(
    project: pytest.Pytester, option: str
) -> None:
    run = project.runpytest_subprocess("-p", "no:cacheprovider", option)

    run.stdout.fnmatch_lines(["received: *setup passed*teardown passed*"])

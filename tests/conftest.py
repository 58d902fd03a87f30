"""Checks of every test, and the number of worker processes.

Checks of every test: tasks left behind, a blocked event loop, errors that were only logged.

An asynchronous test fails if a task that it started outlives the test, or if one step blocked the
loop for 1.5 s (a guard against blocking calls; asyncio's debug mode measures the time, from which
the time is subtracted that the thread waited for a CPU), or if asyncio logged an exception that was
not retrieved.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
from collections.abc import AsyncIterator, Generator, Iterator

import pytest
import pytest_asyncio
from hypothesis import settings

from tests.cpu_time import cpu_wait_seconds

MAX_STEP_SECONDS = 1.5
"""Seconds that one step of the loop may take in a test. A full garbage collection is in somebody's
step."""

SLOW_STEP = re.compile(r"Executing .* took ([\d.]+) seconds", re.DOTALL)
"""The warning of asyncio's debug mode."""


class _AsyncioWarnings(logging.Handler):
    """Keeps what asyncio complains about, except for steps that other processes made slow."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self._cpu_wait = cpu_wait_seconds()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if (slow := SLOW_STEP.match(message)) is not None:
            # All of the waiting in this test may have been in this one step.
            waited = cpu_wait_seconds() - self._cpu_wait
            if float(slow[1]) - waited < asyncio.get_running_loop().slow_callback_duration:
                return
        self.messages.append(message)


# Explicit numbers of examples are few; what has none takes as many as the profile says.
settings.register_profile("quick", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.load_profile("quick")  # the option --hypothesis-profile=thorough comes later, and wins


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of worker processes: three for two CPUs in the whole default run, else 0.

    A worker that waits for a process or a socket leaves its CPU to another one. A few selected
    tests end before the workers have started. The tests of a mark share servers and browsers, which
    each worker would start again; ``-n 2`` runs them in parallel all the same.
    """
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    selected = (
        config.option.keyword or getattr(config.option, "lf", False) or not _is_default_mark(config)
    )
    if not whole or selected:
        return 0
    cpus = len(os.sched_getaffinity(0))
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS", cpus + cpus // 2))


def _is_default_mark(config: pytest.Config) -> bool:
    """Return True if the marks are those of ``addopts`` in pyproject.toml."""
    return bool(config.option.markexpr in config.getini("addopts"))


def pytest_collection_finish() -> None:
    """Exempt the collected tests and their imports from garbage collection.

    They live until the end, and the garbage collector would visit these thousands of objects again
    and again, in a third of a second each time.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a failure without garbage collection.

    pytest parses the source of a failed test. A finalizer that formats a traceback meanwhile (an
    unclosed transport, a pending task) parses code too, which makes the first ``ast.parse`` raise
    SystemError in Python 3.11 (python/cpython#106905) and ends the whole run.
    """
    if call.excinfo is None or not gc.isenabled():
        return (yield)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(autouse=True)
def _watched(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.Function) and pytest_asyncio.is_async_test(request.node):
        request.getfixturevalue("_quiet_loop")


@pytest.fixture
def _complaints() -> Iterator[list[str]]:
    handler = _AsyncioWarnings()
    logger = logging.getLogger("asyncio")
    logger.addHandler(handler)
    yield handler.messages
    logger.removeHandler(handler)


@pytest_asyncio.fixture
async def _quiet_loop(_complaints: list[str]) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = MAX_STEP_SECONDS
    before = asyncio.all_tasks()
    yield
    left = [task for task in asyncio.all_tasks() - before if task is not asyncio.current_task()]
    assert not left, f"tasks left behind: {left}"
    assert not _complaints, f"asyncio complained: {_complaints}"

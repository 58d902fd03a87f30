"""Checks of every test, and the number of worker processes.

Checks of every test: tasks left behind, a blocked event loop, errors that were only logged.

An asynchronous test fails if a task that it started outlives the test, or if one step blocked the
loop for 1.5 s (a guard against blocking calls; asyncio's debug mode measures the time, from which
the time is subtracted in which the thread had none), or if asyncio logged an exception that was
not retrieved.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pytest
import pytest_asyncio
from hypothesis import settings

from tests.cpu_time import StallMeter, cpu_wait_seconds
from tests.runtime.loop_clock import LoopClock

TESTS = Path(__file__).parent

MARKED_FOLDERS = ("apiserver", "browser")
"""The folders in which every test has the folder's mark."""

MAX_STEP_SECONDS = 1.5
"""Seconds that one step of the loop may take in a test. A full garbage collection is a part of
the step in which it begins."""

UNSTABLE_ID = re.compile(r" at 0x[0-9a-f]+|\{'[^':]+'(?:, '[^':]+')+\}")
"""The part of a test's id that differs between processes: the address in Python's default text of
an object, or the order of the strings of a set."""

SLOW_STEP = re.compile(r"Executing .* took ([\d.]+) seconds", re.DOTALL)
"""The warning of asyncio's debug mode."""


STALLS = StallMeter()
STALLS.start()


def _waited_seconds() -> float:
    """Return the seconds for which this thread waited for a CPU, or the process had none."""
    return cpu_wait_seconds() + STALLS.seconds


class AsyncioWarnings(logging.Filter):
    """Keeps what asyncio complains about, and drops the warnings of steps that a busy machine made
    slow: no handler receives these, since tests compare what is logged.
    """

    def __init__(self, waited_seconds: Callable[[], float] = _waited_seconds) -> None:
        super().__init__()
        self.messages: list[str] = []
        self._waited_seconds = waited_seconds
        self._waited = waited_seconds()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        message = record.getMessage()
        if (slow := SLOW_STEP.match(message)) is not None:
            # All of the waiting in this test may have been in this one step.
            waited = self._waited_seconds() - self._waited
            if float(slow[1]) - waited < asyncio.get_running_loop().slow_callback_duration:
                return False
        self.messages.append(message)
        return True


# Without stored bytecode each worker would compile all tests in every run, and each process that a
# test starts would compile the whole package.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell has a background command ignore SIGINT, and with it all programs that tests start and
# interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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
    if not _is_default_run(config):
        return 0
    cpus = len(os.sched_getaffinity(0))
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS", cpus + cpus // 2))


def _is_default_run(config: pytest.Config) -> bool:
    """Return True for all tests with the marks of ``addopts`` in pyproject.toml."""
    if (worker := _worker_input(config)) is not None:
        return bool(worker["default_run"])
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    selected = config.option.keyword or getattr(config.option, "lf", False)
    return bool(whole and not selected and config.option.markexpr in config.getini("addopts"))


def _worker_input(config: pytest.Config) -> dict[str, Any] | None:
    """Return what a worker has received from its controller; ``None`` in the controller."""
    return getattr(config, "workerinput", None)


class _Worker(Protocol):
    """A worker process, as pytest-xdist passes it to its hooks."""

    config: pytest.Config
    workerinput: dict[str, Any]


def pytest_configure_node(node: _Worker) -> None:
    """Tell a worker about the selection: it receives paths, whether the user gave them or not."""
    node.workerinput["default_run"] = _is_default_run(node.config)


def pytest_collection(session: pytest.Session) -> None:
    """Import the test modules in a worker, each worker beginning with another part of them.

    The first import of a module compiles the module and rewrites its assertions, and stores the
    result: half a minute for all modules. Workers that import in the same order would all do this
    work at the same time. So each of them finds what the others have stored.
    """
    gc.disable()  # until pytest_collection_finish
    worker = _worker_input(session.config)
    if worker is None or not worker["default_run"]:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    paths = [
        path
        for path in sorted(TESTS.rglob("test_*.py"))
        if path.relative_to(TESTS).parts[0] not in MARKED_FOLDERS
    ]
    first = len(paths) * number // count
    for path in paths[first:] + paths[:first]:
        name = ".".join((TESTS.name, *path.relative_to(TESTS).with_suffix("").parts))
        # What fails here fails again when pytest collects the module, and is reported then.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the folders whose tests all have a mark that the default run excludes."""
    marked = collection_path.parent == TESTS and collection_path.name in MARKED_FOLDERS
    return True if marked and _is_default_run(config) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Check the loop of each asynchronous test, and the ids of all tests.

    An autouse fixture would cost each synchronous test as much as the shortest of them take. An id
    with the address of an object differs between the workers: pytest-xdist would run no test.
    """
    for item in items:
        if UNSTABLE_ID.search(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid}: give the parameter an id of its own")
        if not isinstance(item, pytest.Function) or not pytest_asyncio.is_async_test(item):
            continue
        # Set up first, the fixture is torn down last. The items of a function share the list.
        if _quiet_loop.__name__ not in item.fixturenames:
            item.fixturenames.insert(0, _quiet_loop.__name__)


def pytest_collection_finish() -> None:
    """Exempt the collected tests and their imports from garbage collection.

    They live until the end, and the garbage collector would visit these thousands of objects again
    and again, in a third of a second each time. The little garbage among them stays as well, since
    a collection that finds it takes as long as fifty tests. The default threshold of 700 objects
    makes a collection of what most tests still need.
    """
    gc.set_threshold(5_000, 10, 10)
    gc.freeze()
    gc.enable()


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


@pytest.fixture
def _complaints() -> Iterator[list[str]]:
    warnings = AsyncioWarnings()
    logger = logging.getLogger("asyncio")
    logger.addFilter(warnings)
    yield warnings.messages
    logger.removeFilter(warnings)


@pytest.fixture
def _quiet_loop(_complaints: list[str], _function_scoped_runner: asyncio.Runner) -> Iterator[None]:
    """Check the loop of an asynchronous test; pytest_collection_modifyitems adds it to each.

    A coroutine as a fixture would be a task at the start of each test, and another one at the end.
    """
    loop = _function_scoped_runner.get_loop()
    whole = loop.get_debug()  # by ``-X dev`` or $PYTHONASYNCIODEBUG
    loop.set_debug(True)
    if isinstance(loop, asyncio.BaseEventLoop) and not whole:
        _measure_only(loop)
    loop.slow_callback_duration = MAX_STEP_SECONDS
    before = asyncio.all_tasks(loop)
    yield
    loop.call_soon(loop.stop)  # what is ready runs: a task that ends now is not left behind
    loop.run_forever()
    left = asyncio.all_tasks(loop) - before
    assert not left, f"tasks left behind: {left}"
    assert not _complaints, f"asyncio complained: {_complaints}"


def _measure_only(loop: asyncio.BaseEventLoop) -> None:
    """Leave of a loop's debug mode the time of its steps and the check of the calling thread.

    The rest takes longer than most tests. ``python -X dev -m pytest`` has it, for the text of a
    failure.
    """
    methods = vars(loop)
    # Futures, handles and aiohttp, which ask this method, record stacks.
    methods["get_debug"] = lambda: False
    # A coroutine records where it was created.
    methods["_set_coroutine_origin_tracking"] = _do_nothing
    # A coroutine function as a callback is also a coroutine that is never awaited: a warning.
    methods["_check_callback"] = _do_nothing


def _do_nothing(*_arguments: object) -> None:
    pass


@pytest.fixture
async def loop_clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    """Return the clock of the running loop, which nothing but the test advances."""
    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock)
    return clock


@pytest.fixture
def zone_before_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the local time be five hours before UTC."""
    monkeypatch.setenv("TZ", "PLACE-5")
    time.tzset()
    assert time.timezone == -5 * 3600
    yield
    monkeypatch.undo()
    time.tzset()

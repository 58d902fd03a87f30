"""Messages of the command line for common mistakes: one line, never a traceback.

The servers run in a thread, because the command runs an event loop in the main thread. The texts
are the library's own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aioinformer.__main__ import main
from tests.client.conftest import Certificates, certificates
from tests.client.failure_setups import CANARY, FailureContext, FailureSetup
from tests.client.user_errors import USER_ERRORS, UserError

__all__ = ["certificates"]  # a fixture, for pytest to find

LINE_TIMEOUT = 15.0
"""Seconds for a line to come: the machine may be busy."""


@contextmanager
def made(mistake: UserError, stage: FailureSetup) -> Generator[FailureContext]:
    """Run the servers of a mistake in another thread."""
    ready, situations = threading.Event(), list[FailureContext]()
    over = asyncio.Event()

    async def run() -> None:
        async with mistake.setup(stage) as situation:
            situations.append(situation)
            loops.append(asyncio.get_running_loop())
            ready.set()
            await over.wait()

    loops: list[asyncio.AbstractEventLoop] = []
    thread = threading.Thread(target=lambda: asyncio.run(run()), name="servers")
    thread.start()
    assert ready.wait(LINE_TIMEOUT)
    try:
        yield situations[0]
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join()


def argv(mistake: UserError, situation: FailureContext) -> list[str]:
    words = ["watch", mistake.resource, "-n", "web", "--kubeconfig", situation.file]
    if mistake.context is not None:
        words += ["--context", mistake.context]
    if mistake.fields:
        words += ["--field-selector", mistake.fields]
    return words


@pytest.mark.parametrize("mistake", [each for each in USER_ERRORS if each.code], ids=str)
def test_a_beginners_mistake_is_one_line(
    mistake: UserError,
    tmp_path: Path,
    certificates: Certificates,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with made(mistake, FailureSetup(tmp_path, certificates)) as situation:
        code = main(argv(mistake, situation))
    out, err = capfd.readouterr()

    assert (code, out) == (mistake.code, "")
    assert err.endswith(f"{mistake.expected_text(situation)}\n")
    assert err.startswith("aioinformer: ")
    assert err.count("\n") == 1
    assert CANARY not in err


@pytest.mark.parametrize("mistake", [each for each in USER_ERRORS if not each.code], ids=str)
def test_an_error_that_is_retried_is_one_line_for_each_attempt(
    mistake: UserError,
    tmp_path: Path,
    certificates: Certificates,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Somebody may be granting the role at this moment."""
    with (
        made(mistake, FailureSetup(tmp_path, certificates)) as situation,
        interrupted_at_a_warning(),
    ):
        code = main(argv(mistake, situation))
    out, err = capfd.readouterr()

    assert (code, out) == (130, "")
    said = mistake.expected_text(situation)
    assert err == f"aioinformer: pods in web: {mistake.error.__name__}: {said}\n"


class Interrupting(logging.Handler):
    """Somebody who has read a warning and presses Ctrl-C."""

    def emit(self, record: logging.LogRecord) -> None:
        os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def interrupted_at_a_warning() -> Generator[None]:
    handler, before = Interrupting(logging.WARNING), signal.getsignal(signal.SIGINT)
    logger = logging.getLogger("aioinformer")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        signal.signal(signal.SIGINT, before)  # a process that is about to end doesn't do that

"""A command from its start to its exit code."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from aioinformer._cli.terminal.command_process import Terminal, run_command
from aioinformer.errors import (
    ConfigurationError,
    ConnectionFailed,
    InformerError,
    SyncTimeout,
    UnknownResource,
)


def failing(error: BaseException) -> int:
    async def command(_: Terminal) -> int:
        raise error

    return run_command(command)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigurationError("no cluster"), 2, "no cluster"),
        (UnknownResource("no podz"), 2, "no podz"),
        (ConnectionFailed("refused", phase="list"), 1, "refused"),
        (SyncTimeout(1, {"pods": "listing"}), 1, "not synced after 1 s: pods: listing"),
        (
            SyncTimeout(1, dict.fromkeys("abcdefgh", "new")),
            1,
            "not synced after 1 s: a: new; b: new; c: new; d: new; e: new; and 3 more",
        ),
        (InformerError("two\nlines"), 1, "two lines"),
        (OSError(28, "No space left on device"), 1, "stdout: No space left on device"),
    ],
)
def test_an_expected_error_is_shown_in_one_line(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(error) == code
    assert capsys.readouterr().err == f"aioinformer: {said}\n"


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        failing(ZeroDivisionError())


@pytest.fixture
def _signals() -> Iterator[None]:
    """Restore the signal handlers, which ``run_command`` leaves changed at its end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_lets_the_command_run_its_cleanup(
    number: signal.Signals, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    async def command(terminal: Terminal) -> int:
        try:
            os.kill(os.getpid(), number)
            await asyncio.sleep(10)
        finally:
            await terminal.output.write("tidy\n")
        return 0

    assert run_command(command) == code
    assert capfd.readouterr() == ("tidy\n", "")
    assert signal.getsignal(number) is signal.SIG_DFL, "a second one ends the process at once"


def test_the_signal_handlers_are_restored_after_a_command_without_a_signal() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    async def command(_: Terminal) -> int:
        return 0

    run_command(command)

    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_an_unexpected_cancellation_is_raised() -> None:
    with pytest.raises(asyncio.CancelledError):
        failing(asyncio.CancelledError())

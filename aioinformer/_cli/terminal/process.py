"""One command from its start to an exit code: signals, errors, a reader that goes.

A command is a coroutine function that gets a ``Terminal`` and returns its exit code. The first
SIGINT or SIGTERM cancels it, so that every ``async with`` in it is left in order; a second one
ends the process at once, as if nobody handled it. What the library raises on purpose becomes one
line; anything else is a bug and keeps its traceback. POSIX only: Windows has no signal handlers
in an event loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from aioinformer._cli.terminal.messages import Messages
from aioinformer._cli.terminal.output import Colour, Output
from aioinformer.errors import InformerError, UsageError

__all__ = ["EXIT_USAGE", "Command", "Terminal", "run_command"]

STDOUT_FD = 1

EXIT_FAILED = 1
EXIT_USAGE = 2
"""What was asked for can't be; argparse's code for wrong arguments."""
EXIT_SIGNAL_BASE = 128
"""Plus the signal's number: what shells report."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where a command writes."""

    output: Output
    messages: Messages


Command: TypeAlias = Callable[[Terminal], Coroutine[Any, Any, int]]


def run_command(command: Command, *, verbose: bool = False, colour: Colour = "auto") -> int:
    """Run a command in an event loop of its own; its exit code."""
    notices = Messages(sys.stderr)
    with notices.handle_logging(verbose=verbose):
        try:
            encoding = sys.stdout.encoding if sys.stdout else "utf-8"
            output = Output(STDOUT_FD, os.environ, encoding=encoding, colour=colour)
            code = asyncio.run(_run_until_signal(command, Terminal(output, notices)))
        except BrokenPipeError:
            return EXIT_SIGNAL_BASE + signal.SIGPIPE
        except UsageError as error:
            notices.show(str(error))
            return EXIT_USAGE
        except InformerError as error:
            notices.show(str(error))
            return EXIT_FAILED
        except OSError as error:  # the library's are mapped, so it is the output's
            notices.show(f"stdout: {error.strerror or error}")
            return EXIT_FAILED
    if code > EXIT_SIGNAL_BASE:
        # The loop has put Python's handlers back. A thread may still wait for a credential
        # plugin that was sent no signal; the second one shall end that wait, without a traceback.
        signal.signal(code - EXIT_SIGNAL_BASE, signal.SIG_DFL)
    return code


async def _run_until_signal(command: Command, terminal: Terminal) -> int:
    received: list[signal.Signals] = []
    with _cancel_on_signal(terminal.output, received):
        try:
            code = await command(terminal)
        except asyncio.CancelledError:
            if not received:
                raise
            code = 0
        finally:
            terminal.messages.show_status("")
    return EXIT_SIGNAL_BASE + received[0] if received else code


@contextmanager
def _cancel_on_signal(output: Output, received: list[signal.Signals]) -> Generator[None]:
    """Cancel this task at a signal, or when the pipe has lost its reader."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def end(number: signal.Signals) -> None:
        if number is signal.SIGPIPE:
            loop.remove_reader(output.fd)
        else:
            signal.signal(number, signal.SIG_DFL)
        received.append(number)
        if task is not None and len(received) == 1:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end, number)
    if output.is_pipe:  # it can't be read, so it is ready for that only once its reader is gone
        loop.add_reader(output.fd, end, signal.SIGPIPE)
    try:
        yield
    finally:
        loop.remove_reader(output.fd)

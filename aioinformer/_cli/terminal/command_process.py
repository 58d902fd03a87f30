"""The life of a command's process: signals, errors, broken pipes, exit codes.

The first SIGINT or SIGTERM cancels the command, so that every ``async with`` in it is left in
order. The second signal ends the process at once by the signal's default action. An error of the
library is shown as one line; any other exception is a bug and keeps its traceback. POSIX only.
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

STDOUT_FD = 1

EXIT_FAILED = 1
EXIT_USAGE = 2
"""The command can't do what the arguments ask for; argparse uses the same code."""
EXIT_SIGNAL_BASE = 128
"""The exit code of a process that ended by a signal, less the signal's number."""


@dataclass(frozen=True, slots=True)
class Terminal:
    output: Output
    messages: Messages


Command: TypeAlias = Callable[[Terminal], Coroutine[Any, Any, int]]


def run_command(command: Command, *, verbose: bool = False, colour: Colour = "auto") -> int:
    messages = Messages(sys.stderr)
    with messages.handle_logging(verbose=verbose):
        try:
            encoding = sys.stdout.encoding if sys.stdout else "utf-8"
            output = Output(STDOUT_FD, os.environ, encoding=encoding, colour=colour)
            code = asyncio.run(_run_until_signal(command, Terminal(output, messages)))
        except BrokenPipeError:
            return EXIT_SIGNAL_BASE + signal.SIGPIPE
        except UsageError as error:
            messages.show(str(error))
            return EXIT_USAGE
        except InformerError as error:
            messages.show(str(error))
            return EXIT_FAILED
        except OSError as error:  # the library maps its own, so this error is of the output
            messages.show(f"stdout: {error.strerror or error}")
            return EXIT_FAILED
    if code > EXIT_SIGNAL_BASE:
        # asyncio.run has restored Python's own handlers. A thread may still wait for a credential
        # plugin that received no signal. With the default action, the next signal ends that wait
        # without a traceback.
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
    """Cancel the current task at a signal, or when the reader closes the output pipe."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def on_signal(number: signal.Signals) -> None:
        if number is signal.SIGPIPE:
            loop.remove_reader(output.fd)
        else:
            signal.signal(number, signal.SIG_DFL)
        received.append(number)
        if task is not None and len(received) == 1:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    if output.is_pipe:  # the write end of a pipe becomes "readable" when its reader has closed
        loop.add_reader(output.fd, on_signal, signal.SIGPIPE)
    try:
        yield
    finally:
        loop.remove_reader(output.fd)

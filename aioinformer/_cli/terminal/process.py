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

from aioinformer._cli.terminal.messages import Notices
from aioinformer._cli.terminal.output import Colour, Output
from aioinformer.errors import InformerError, UsageError

__all__ = ["UNUSABLE", "Command", "Terminal", "run"]

STDOUT = 1

FAILED = 1
UNUSABLE = 2
"""What was asked for can't be; argparse's code for wrong arguments."""
BY_SIGNAL = 128
"""Plus the signal's number: what shells report."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where a command writes."""

    output: Output
    notices: Notices


Command: TypeAlias = Callable[[Terminal], Coroutine[Any, Any, int]]


def run(command: Command, *, verbose: bool = False, colour: Colour = "auto") -> int:
    """Run a command in an event loop of its own; its exit code."""
    notices = Notices(sys.stderr)
    with notices.logging(verbose=verbose):
        try:
            encoding = sys.stdout.encoding if sys.stdout else "utf-8"
            output = Output(STDOUT, os.environ, encoding=encoding, colour=colour)
            code = asyncio.run(_run(command, Terminal(output, notices)))
        except BrokenPipeError:
            return BY_SIGNAL + signal.SIGPIPE
        except UsageError as error:
            notices.say(str(error))
            return UNUSABLE
        except InformerError as error:
            notices.say(str(error))
            return FAILED
        except OSError as error:  # the library's are mapped, so it is the output's
            notices.say(f"stdout: {error.strerror or error}")
            return FAILED
    if code > BY_SIGNAL:
        # The loop has put Python's handlers back. A thread may still wait for a credential
        # plugin that was sent no signal; the second one shall end that wait, without a traceback.
        signal.signal(code - BY_SIGNAL, signal.SIG_DFL)
    return code


async def _run(command: Command, terminal: Terminal) -> int:
    received: list[signal.Signals] = []
    with _ending(terminal.output, received):
        try:
            code = await command(terminal)
        except asyncio.CancelledError:
            if not received:
                raise
            code = 0
        finally:
            terminal.notices.status("")
    return BY_SIGNAL + received[0] if received else code


@contextmanager
def _ending(output: Output, received: list[signal.Signals]) -> Generator[None]:
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
    if output.pipe:  # it can't be read, so it is ready for that only once its reader is gone
        loop.add_reader(output.fd, end, signal.SIGPIPE)
    try:
        yield
    finally:
        loop.remove_reader(output.fd)

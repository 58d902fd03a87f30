"""The operator as a whole process: event loop, signals, log, exit code.

A second signal has its default action, for a person who doesn't want to wait.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from aioinformer.errors import InformerError, NotRunning, UsageError

log = logging.getLogger("aioinformer.operator")

EXIT_STOPPED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2

SIGNALS = (signal.SIGTERM, signal.SIGINT)

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class Stoppable(Protocol):
    """A program that runs until it is stopped."""

    async def run(self) -> None:
        """Run to the end."""
        ...

    def stop(self) -> None:
        """End the run in order."""
        ...


def run_process(program: Stoppable, *, name: str, log_level: int | str | None) -> int:
    """Run a program in a new event loop until it ends or a signal stops it; return the exit code.

    An exception that isn't one of the library's is a bug and passes through. Raises ``UsageError``
    outside of the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise UsageError(
            "main() handles signals, which Python permits in the main thread only; "
            "in another thread, use asyncio.run(operator.run())"
        )
    if log_level is not None:
        logging.basicConfig(level=log_level, format=LOG_FORMAT)  # no effect if logging is set up
    try:
        asyncio.run(_run_until_signal(program, name))
    except InformerError as error:
        log.critical("%s: %s: %s", name, type(error).__name__, error)
        # An informer or a client that has ended is a failure, not a wrong argument.
        wrong_use = isinstance(error, UsageError) and not isinstance(error, NotRunning)
        return EXIT_USAGE if wrong_use else EXIT_FAILED
    return EXIT_STOPPED


async def _run_until_signal(program: Stoppable, name: str) -> None:
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        log.info(
            "%s: %s received; a second signal ends the process at once",
            name,
            signal.Signals(number).name,
        )
        program.stop()

    with _on_first_signal(lambda number: loop.call_soon_threadsafe(stop, number)):
        await program.run()


@contextmanager
def _on_first_signal(action: Callable[[int], object]) -> Generator[None]:
    """Call ``action`` at the first signal, and restore the default action for the second."""

    def handle(number: int, _: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        action(number)

    previous = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, handler)

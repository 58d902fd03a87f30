"""The command line in this process, through its entry point ``main``.

A command needs the main thread for its signals. So a test with the fixture ``cli`` runs in another
thread, and the main thread runs the commands that the test starts.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from queue import SimpleQueue
from typing import TypeAlias

from aioinformer.__main__ import main

LIMIT = 30.0
"""Seconds to wait for a text or an end, long enough for a busy machine."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)

Ended: TypeAlias = tuple[int, str, str]
"""The exit code, and the rest of stdout and stderr."""


def poll(condition: Callable[[], bool], every: float = 0.01) -> None:
    """Wait until a condition is fulfilled."""
    for _ in range(int(LIMIT / every)):
        if condition():
            return
        time.sleep(every)
    raise AssertionError("the condition was not fulfilled")


class Text:
    """What a command writes to a pipe or terminal, as far as it was not read yet."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._data = b""

    def _receive(self, deadline: float) -> bool:
        """Wait for more, and return False at the end."""
        left = deadline - time.monotonic()
        ready = left > 0 and bool(select.select([self._fd], [], [], left)[0])
        assert ready, f"only {self._data!r}"
        try:
            more = os.read(self._fd, 65_536)
        except OSError:  # a terminal that the command has closed
            more = b""
        self._data += more
        return bool(more)

    def pending(self, timeout: float = 0.0) -> bool:
        """Return True if there is more to read, within a time."""
        return bool(self._data or select.select([self._fd], [], [], timeout)[0])

    def read_until(self, end: str) -> str:
        """Read up to ``end``; everything if the command ends before."""
        mark, deadline = end.encode(), time.monotonic() + LIMIT
        while mark not in self._data and self._receive(deadline):
            pass
        size = self._data.find(mark) + len(mark) if mark in self._data else len(self._data)
        text, self._data = self._data[:size], self._data[size:]
        return text.decode(errors="replace")

    def resize(self, columns: int, lines: int) -> None:
        """Change the size of the terminal."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read_all(self) -> str:
        deadline = time.monotonic() + LIMIT
        while self._receive(deadline):
            pass
        text, self._data = self._data, b""
        return text.decode(errors="replace")


class RunningCommand:
    def __init__(self, ended: Future[int], out: Text, err: Text) -> None:
        self._ended = ended
        self.out, self.err = out, err
        self._signalled = False

    def read_line(self) -> str:
        """Read the next line of stdout."""
        return self.out.read_until("\n")

    def read_stderr_line(self) -> str:
        """Read the next line of stderr."""
        return self.err.read_until("\n")

    def send_signal(self, number: signal.Signals) -> None:
        """Send the first signal, which cancels the command; another one would end the tests."""
        assert not self._signalled
        self._signalled = True
        if not self._ended.done():
            os.kill(os.getpid(), number)

    def wait(self) -> Ended:
        """Wait for the end; return the exit code and the rest of stdout and stderr."""
        out, err = self.out.read_all(), self.err.read_all()
        return self._ended.result(LIMIT), out, err

    def interrupt(self) -> Ended:
        """Press Ctrl-C, and wait for the end."""
        self.send_signal(signal.SIGINT)
        return self.wait()

    def finish(self) -> None:
        """End the command if it still runs."""
        if not self._signalled:
            self.send_signal(signal.SIGINT)
        with suppress(BaseException):
            self._ended.result(LIMIT)


class CommandLine:
    """Runs a test in a thread, and in the main thread the commands that the test starts."""

    def __init__(self) -> None:
        self._commands = SimpleQueue[Callable[[], None] | None]()

    def run_test(self, test: Callable[[], None]) -> None:
        with ThreadPoolExecutor(1) as threads:
            done = threads.submit(test)
            done.add_done_callback(lambda _: self._commands.put(None))
            while (command := self._commands.get()) is not None:
                command()
            done.result()

    def run(self, *argv: str) -> Ended:
        """Run a command to its end."""
        with self.started(*argv) as command:
            return command.wait()

    @contextmanager
    def started(
        self, *argv: str, stdout: int | None = None, encoding: str = "utf-8"
    ) -> Generator[RunningCommand]:
        """Start a command on pipes, and interrupt it at the end of the block."""
        with ExitStack() as stack:
            (out, out_end), (err, err_end) = os.pipe(), os.pipe()
            stack.callback(os.close, out)
            stack.callback(os.close, err)
            if stdout is not None:
                os.dup2(stdout, out_end)
            command = self._start(argv, out_end, err_end, encoding)
            running = RunningCommand(command, Text(out), Text(err))
            stack.callback(running.finish)
            yield running

    @contextmanager
    def in_terminal(
        self, *argv: str, columns: int = 80, lines: int = 24, encoding: str = "utf-8"
    ) -> Generator[RunningCommand]:
        """Start a command in a terminal of a size, and interrupt it at the end of the block."""
        master, slave = pty.openpty()
        screen = Text(master)
        screen.resize(columns, lines)
        running = RunningCommand(self._start(argv, slave, os.dup(slave), encoding), screen, screen)
        try:
            yield running
        finally:
            running.finish()
            os.close(master)

    def _start(self, argv: tuple[str, ...], out: int, err: int, encoding: str) -> Future[int]:
        """Let the main thread run a command, which closes both descriptors at its end."""
        ended = Future[int]()

        def run() -> None:
            try:
                with _standard_streams(out, err, encoding):
                    code = _run(argv)
            except BaseException as error:  # noqa: BLE001 - raised in the test
                ended.set_exception(error)
            else:
                ended.set_result(code)

        self._commands.put(run)
        return ended


def _run(argv: tuple[str, ...]) -> int:
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        return main(argv)
    except SystemExit as end:
        return int(end.code or 0)
    finally:  # a signal leaves the handlers changed, for a process that is about to end
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def _standard_streams(out: int, err: int, encoding: str) -> Generator[None]:
    """Make the descriptors stdout and stderr of this process."""
    before = sys.stdout, sys.stderr
    kept = [(number, os.dup(number)) for number in (1, 2)]
    for number, fd in ((1, out), (2, err)):
        os.dup2(fd, number)
        os.close(fd)
    try:
        with (
            open(1, "w", encoding=encoding, closefd=False) as sys.stdout,
            open(2, "w", encoding=encoding, closefd=False) as sys.stderr,
        ):
            yield
    finally:
        sys.stdout, sys.stderr = before
        for number, fd in kept:
            os.dup2(fd, number)
            os.close(fd)

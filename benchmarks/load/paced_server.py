"""A load server that sends a given number of events a second, each with its time.

    python -m benchmarks.load.paced_server FOLDER --pods N --events N --rate N

Lists and initial states are those of ``benchmarks.load.server``. The ``resourceVersion`` of each
event is the time at which its bytes were passed to the kernel, in nanoseconds of the machine's
monotonic clock. All processes share this clock, so a listener in another process can compute the
latency.
"""

from __future__ import annotations

import argparse
import random
import socket
import threading
import time
from pathlib import Path

from benchmarks.load.pods import SEED, modified
from benchmarks.load.server import CONTENT_TYPES, JSON, LoadServer, begin

__all__ = ["PacedServer"]

INEXACT = 0.00005
"""Seconds by which ``time.sleep`` may overrun. Polling the clock instead would be exact, but would
occupy a processor that the measured processes need."""


class PacedServer(LoadServer):
    """Serves one dataset to one client, and then sends single events at a fixed rate."""

    def __init__(self, folder: Path, pods: int, events: int, rate: float) -> None:
        """Listen on a free port; call ``run`` to serve."""
        super().__init__(folder)
        self._pods, self._events, self._rate = pods, events, rate

    def _watch(self, connection: socket.socket, form: str, *, initial: bool) -> None:
        begin(connection, CONTENT_TYPES[JSON, "watch"])
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if initial:
            self._send(connection, "initial", form)
        self._go.wait()
        chance, start = random.Random(SEED), time.monotonic()
        for count in range(self._events):
            number = chance.randrange(self._pods)
            _wait_until(start + count / self._rate)
            line = modified(number, time.monotonic_ns())
            connection.sendall(b"%x\r\n%b\r\n" % (len(line), line))
        threading.Event().wait()


def _wait_until(due: float) -> None:
    if (left := due - time.monotonic()) > INEXACT:
        time.sleep(left - INEXACT)


def main() -> None:
    """Serve the folder that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    options = parser.parse_args()
    server = PacedServer(options.folder, options.pods, options.events, options.rate)
    print(server.port, flush=True)
    server.run()


if __name__ == "__main__":
    main()

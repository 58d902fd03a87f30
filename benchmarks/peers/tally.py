"""The measurement that is common to the peers in Python.

Most clients have no cache. Then the program keeps the objects in a dict, as their users do, so that
the memory of their objects can be measured.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.load.meter import Sample, Stopwatch, highest, resident
from benchmarks.load.pods import digest

__all__ = ["SETTLE", "Tally", "release", "report"]

SETTLE = 0.5
"""Seconds to wait before the memory is read; the same for all contestants."""


class Tally:
    """The objects and times of one measurement; its methods are called in the order below."""

    def __init__(self) -> None:
        """Start to measure the initial list."""
        gc.collect()
        self.objects: dict[str, Any] = {}
        self.last: dict[str, str] = {}
        self.delivered = 0
        self._sync = self._events = (0.0, 0.0)
        self._peak = self._settled = 0
        self._bare = resident()
        self._watch = Stopwatch()

    def add(self, name: str, version: str, obj: object) -> None:
        """Record an object of the initial list."""
        self.last[name] = version
        self.objects[name] = obj

    def synced(self, pods: int) -> None:
        """Record the end of the initial list, which contained so many ``pods``."""
        self._sync = self._watch.stop()
        if len(self.last) != pods:
            raise AssertionError(f"{len(self.last)} of {pods} pods were listed")
        self._peak = highest()

    def settled(self) -> None:
        """Record the memory, ``SETTLE`` seconds after the list, and start to measure the events."""
        gc.collect()
        self._settled = resident()
        self._watch = Stopwatch()

    def update(self, name: str, version: str, obj: object) -> None:
        """Record an event."""
        self.last[name] = version
        self.objects[name] = obj
        self.delivered += 1

    def ended(self) -> None:
        """Record the end of the events."""
        self._events = self._watch.stop()

    @property
    def sample(self) -> Sample:
        """The result."""
        return Sample(
            sync_wall=self._sync[0],
            sync_cpu=self._sync[1],
            events_wall=self._events[0],
            events_cpu=self._events[1],
            bare=self._bare,
            peak=self._peak,
            settled=self._settled,
            delivered=self.delivered,
            digest=digest(self.last),
        )


def release(server: str) -> None:
    """Make the load server send the events; returns at once."""
    threading.Thread(target=_post, args=(server,), daemon=True).start()


def _post(server: str) -> None:
    connection = http.client.HTTPConnection(server.removeprefix("http://"))
    connection.request("POST", "/go", headers={"Content-Length": "0"})
    connection.getresponse().read()
    connection.close()


def report(measure: Callable[[str, int, int], Sample], description: str) -> None:
    """Parse the command line, measure, and print the sample.

    Args:
        measure: receives the URL of the load server and the numbers of pods and of events.
        description: the program's own, for ``--help``.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--server", required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--events", type=int, required=True)
    arguments = parser.parse_args()
    sample = measure(arguments.server, arguments.pods, arguments.events)
    sys.stdout.buffer.write(msgspec.json.encode(sample) + b"\n")

"""An informer of widgets in a process of its own, which answers questions about its state.

    python -m tests.apiserver.programs.informer_process KUBECONFIG \
        [--list] [--bookmark-interval SECONDS]

The process reads commands from its standard input, one a line, and answers with one line of JSON.
``state`` asks for the cache and for what the handler was delivered. ``exhaust`` lowers the limit of
descriptors to those that are open, and ``restore`` raises the limit again. At the end of the input
the process leaves its informer, and answers with the tasks and sockets that are left. The log goes
to the standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import resource
import socket
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioinformer import Added, Client, Problem, Resource, SharedInformer
from aioinformer._core.listwatch.server_profile import ServerProfile
from benchmarks.load.meter import count_sockets
from tests.promises.event_recorder import RecordingHandler, check_event_order, states
from tests.runtime.informers import running_in_background

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))
LOG_FORMAT = "%(levelname)s %(message)s"


@dataclass
class Observed:
    """An informer and what it reported."""

    informer: SharedInformer
    recorder: RecordingHandler
    causes: Counter[str] = field(default_factory=Counter[str])

    def describe(self) -> dict[str, Any]:
        """Return the state, for a test to compare."""
        added = Counter(event.obj.uid for event in self.recorder.events if isinstance(event, Added))
        try:
            delivered, wrong = check_event_order(self.recorder.events), ""
        except AssertionError as error:
            delivered, wrong = {}, str(error)
        return {
            "synced": self.informer.synced,
            "cache": _encode(states(self.informer.lister.unsynced)),
            "delivered": _encode(delivered),
            "wrong": wrong,
            "added twice": [uid for uid, times in added.items() if times > 1],
            "handler errors": sum(each.statistics().errors for each in self.informer.registrations),
            "causes": dict(self.causes),
        }


def _encode(found: dict[Any, tuple[str, str]]) -> dict[str, list[str]]:
    return {str(key): list(state) for key, state in found.items()}


def exhaust_descriptors() -> None:
    """Lower the limit of descriptors, so that no connection can be opened.

    The limit is the number of the lowest connection, too: when this connection is closed, its
    number is not free again.
    """
    used = [int(each) for each in os.listdir("/proc/self/fd")]  # noqa: PTH208 - one descriptor
    free = next(number for number in range(len(used) + 1) if number not in used[:-1])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = min([free, *(number for number in used if is_connection(number))])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def is_connection(descriptor: int) -> bool:
    """Return True if an open descriptor is a TCP connection."""
    try:
        found = socket.socket(fileno=descriptor)
    except OSError:
        return False  # a file, or the listing of descriptors, which is closed
    family = found.family
    found.detach()
    return family == socket.AF_INET


def restore_descriptors() -> None:
    """Raise the limit of descriptors to the highest one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def obey(observed: Observed) -> None:
    """Answer commands until the end of the input."""
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    try:
        while line := await commands.readline():
            match line.decode().strip():
                case "state":
                    answer(observed.describe())
                case "exhaust":
                    exhaust_descriptors()
                    answer("done")
                case "restore":
                    restore_descriptors()
                    answer("done")
                case unknown:
                    answer(f"unknown command {unknown!r}")
    finally:
        transport.close()


async def main(options: argparse.Namespace) -> None:
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    sockets = count_sockets()
    causes: Counter[str] = Counter()

    def count_problem(problem: Problem) -> None:
        causes[problem.cause] += 1

    async with Client.connect(kubeconfig=options.kubeconfig) as client:
        informer = SharedInformer(
            client.lister_watcher(WIDGETS, namespace="web"),
            namespace="web",
            watch_list=not options.list,
            profile=ServerProfile(bookmark_interval=options.bookmark_interval),
            on_error=count_problem,
        )
        recorder = RecordingHandler(informer)
        informer.add_handler(recorder)
        async with running_in_background(informer.run()):
            await obey(Observed(informer, recorder, causes))
    await asyncio.sleep(0.3)  # asyncio closes the sockets of connections in the next turns
    answer({"tasks": len(asyncio.all_tasks()) - 1, "sockets": count_sockets() - sockets})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--bookmark-interval", type=float)
    asyncio.run(main(parser.parse_args()))

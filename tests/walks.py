"""The walks of the library: the calls that an event, a list, a relist diff and an error pass.

    python -m tests.walks [-v]

The embedded server runs in a thread of its own, so that only calls of the library's client side are
counted. A call is a function that begins, or a coroutine that is resumed, comprehensions aside.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple, TypeAlias

import aioinformer
from aioinformer import Client, KubeObject, Problem, SharedInformerFactory
from aioinformer.testing import ApiServerThread, Cluster, Features

__all__ = ["Walk", "event_walk", "failure_walks", "modules"]

ROOT = str(Path(aioinformer.__file__).parent)
TEST_TOOLS = str(Path(aioinformer.__file__).parent / "testing")


class Call(NamedTuple):
    """A function that began, or a coroutine that was resumed."""

    module: str
    function: str


Walk: TypeAlias = Sequence[Call]


def modules(walk: Walk) -> set[str]:
    """Return the modules that the calls of a walk are in."""
    return {call.module for call in walk}


class Recorder:
    """The calls of this thread in the library, while ``recording``."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def start(self) -> None:
        """Discard what was recorded, and record from now on."""
        self.calls.clear()
        sys.setprofile(self._record)

    def stop(self) -> Walk:
        """Return what was recorded, and stop."""
        sys.setprofile(None)
        return tuple(self.calls)

    def _record(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT):
            return
        if code.co_filename.startswith(TEST_TOOLS) or code.co_name.startswith("<"):
            return
        self.calls.append(Call(code.co_filename[len(ROOT) + 1 :], code.co_qualname))


class Program:
    """An informer of one pod, with an async handler of updates that may fail."""

    def __init__(self, server: ApiServerThread) -> None:
        self._server = server
        self.recorder = Recorder()
        self.updated = asyncio.Event()
        self.reported = asyncio.Event()
        self.fails = False
        self.walk: Walk = ()
        """The calls up to the last run of the handler, or of the error hook."""

    def change(self, value: str) -> None:
        """Change the pod."""
        self.updated.clear()
        metadata = {"name": "walk", "namespace": "default", "labels": {"v": value}}
        fields = {"managedFields": [{"manager": "walk", "operation": "Update"}]}  # as real servers
        pod = {"metadata": {**metadata, **fields}, "spec": {"nodeName": "a"}}
        self._server.cluster.update("pods", pod)

    async def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        """Handle a change."""
        self.walk = self.recorder.stop()
        self.updated.set()
        if self.fails:
            self.recorder.start()
            raise ValueError("planned")

    def on_error(self, problem: Problem) -> None:
        """Receive a problem."""
        if self.fails:
            self.walk = self.recorder.stop()
            self.reported.set()


@asynccontextmanager
async def running(server: ApiServerThread) -> AsyncGenerator[Program]:
    """Run the informer, up to the first change that its handler has received."""
    pod = {"metadata": {"name": "walk", "namespace": "default"}}
    server.cluster.create("pods", pod)
    program = Program(server)
    async with (
        Client(server.url) as client,
        SharedInformerFactory(client, on_error=program.on_error) as informers,
    ):
        informers.informer("pods").on_update(program.on_update)
        await informers.wait_synced(timeout=30)
        program.change("first")
        await program.updated.wait()
        yield program


async def event_walk(server: ApiServerThread) -> Walk:
    """Return the calls from the bytes of a watch event to the first line of its handler."""
    walks = list[Walk]()
    async with running(server) as program:
        for number in range(5):
            await asyncio.sleep(0.05)  # the next event comes alone, to an idle informer
            program.recorder.start()
            program.change(str(number))
            await program.updated.wait()
            walks.append(program.walk)
    return min(walks, key=len)  # timers may run in between


async def failure_walks(server: ApiServerThread) -> dict[str, Walk]:
    """Return the walks of an error of a handler, and of a list and its diff after an outage."""
    async with running(server) as program:
        program.fails = True
        program.change("fails")
        await program.reported.wait()
        walks = {"a handler's error, to the hook": program.walk}
        program.fails = False
        with server.faults.refuse(), server.faults.reset():
            program.change("missed")
            server.cluster.compact()
            program.recorder.start()
        await program.updated.wait()
    names = [call.function for call in program.walk]
    queued = names.index("DeltaQueue.replace")
    # Requests before the last one were refused.
    sent = queued - names[queued::-1].index("InformerReporter.request_started")
    listed = names.index("Reflector._list", sent)
    put = len(names) - names[::-1].index("Mailbox.put_relist")
    walks["a list of one object, to the queue"] = program.walk[listed:queued]
    walks["its diff, to the mailboxes"] = program.walk[queued:put]
    return walks


def main() -> None:
    """Print the walks."""
    logging.disable(logging.CRITICAL)
    with ApiServerThread() as server:
        walks = {"a watch event, to the handler": asyncio.run(event_walk(server))}
    with ApiServerThread(Cluster(features=Features(watch_list=False))) as server:
        walks |= asyncio.run(failure_walks(server))
    for name, walk in walks.items():
        print(f"{name}: {len(walk)} calls in {len(modules(walk))} modules")
        for call in walk if "-v" in sys.argv else ():
            print(f"    {call.module} {call.function}")


if __name__ == "__main__":
    main()

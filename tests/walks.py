"""The calls that a watch event passes, from the bytes to the first line of its handler.

    python -m tests.walks [-v]

The embedded server runs in a thread of its own, so that only calls of the library's client side are
counted. A call is a function that begins, or a coroutine that is resumed, comprehensions aside.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import aioinformer
from aioinformer import Client, KubeObject, SharedInformerFactory
from aioinformer.testing import ApiServerThread

__all__ = ["Call", "event_calls"]

ROOT = str(Path(aioinformer.__file__).parent)
TEST_TOOLS = str(Path(aioinformer.__file__).parent / "testing")


class Call(NamedTuple):
    """A function that began, or a coroutine that was resumed."""

    module: str
    function: str


class Recorder:
    """The calls of this thread in the library, from ``start`` to the call of the handler."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.handled = asyncio.Event()

    def start(self) -> None:
        """Discard what was recorded, and record from now on."""
        self.calls = []
        self.handled.clear()
        sys.setprofile(self._record)

    async def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        """Stop: this is the handler."""
        sys.setprofile(None)
        self.handled.set()

    def _record(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT):
            return
        if code.co_filename.startswith(TEST_TOOLS) or code.co_name.startswith("<"):
            return
        self.calls.append(Call(code.co_filename[len(ROOT) + 1 :], code.co_qualname))


async def event_calls(server: ApiServerThread) -> Sequence[Call]:
    """Return the calls from the bytes of a watch event to the first line of its handler."""
    recorder, found = Recorder(), list[Sequence[Call]]()
    server.cluster.create("pods", {"metadata": {"name": "walk", "namespace": "default"}})
    async with Client(server.url) as client, SharedInformerFactory(client) as informers:
        informers.informer("pods").on_update(recorder.on_update)
        await informers.wait_synced(timeout=30)
        for number in range(6):
            await asyncio.sleep(0.05)  # the next event comes alone, to an idle informer
            recorder.start()
            metadata = {"name": "walk", "namespace": "default", "labels": {"v": str(number)}}
            fields = {"managedFields": [{"manager": "walk", "operation": "Update"}]}
            server.cluster.update("pods", {"metadata": metadata | fields, "spec": {}})
            await recorder.handled.wait()
            found.append(recorder.calls)
    return min(found, key=len)  # timers may run in between


def main() -> None:
    """Print the calls."""
    with ApiServerThread() as server:
        calls = asyncio.run(event_calls(server))
    modules = {call.module for call in calls}
    print(f"a watch event, to the handler: {len(calls)} calls in {len(modules)} modules")
    for call in calls if "-v" in sys.argv else ():
        print(f"    {call.module} {call.function}")


if __name__ == "__main__":
    main()

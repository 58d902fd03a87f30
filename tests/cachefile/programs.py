"""Programs that are started, stopped and started again with one cache file."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest

from aioinformer import CacheFile, Deleted, Event, SharedInformer, SharedInformerFactory, Updated
from aioinformer.metrics import Metrics
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.runtime.informers import FAST_BACKOFF

INTERVAL = 0.01
"""Seconds between two writes."""


class RequestLog(Metrics):
    """The kinds of the requests that an informer makes."""

    def __init__(self) -> None:
        self.verbs: list[str] = []

    def request_started(self, informer: str, verb: str) -> None:
        self.verbs.append(verb)


def text_of(event: Event) -> str:
    """Return an event as short text."""
    match event:
        case Updated(old, new):
            return f"~ {new.name} {value_of(old)}->{value_of(new)}"
        case Deleted(obj, reason):
            return f"- {obj.name} {reason}"
        case _:
            return f"{'=' if event.initial else '+'} {event.obj.name}"


def value_of(obj: Any) -> str:
    return str(obj.labels.get("value", ""))


class Program:
    """One run of a program with an informer of pods."""

    def __init__(self, factory: SharedInformerFactory, informer: SharedInformer) -> None:
        self.factory = factory
        self.pods = informer
        self.heard: list[str] = []
        self.requests = RequestLog()

    def handle(self, event: Event) -> None:
        self.heard.append(text_of(event))


@asynccontextmanager
async def running(
    cluster: Cluster,
    path: Path,
    *,
    durable: str | None = None,
    since: Literal["everything", "now"] = "everything",
    faults: Faults | None = None,
    setup: Callable[[Program], object] = lambda _: None,
    wait: bool = True,
    shutdown_timeout: float = 30.0,
    **options: Any,
) -> AsyncGenerator[Program]:
    """Run a program whose handler writes down what it receives."""
    source = ClusterSource(cluster, faults) if faults else ClusterSource(cluster)
    requests = RequestLog()
    cache = options.pop("cache", None) or CacheFile(path, interval=INTERVAL)
    factory = SharedInformerFactory(
        source,
        cache=cache,
        backoff=FAST_BACKOFF,
        metrics=requests,
        shutdown_timeout=shutdown_timeout,
    )
    program = Program(factory, factory.informer("pods", **options))
    program.requests = requests
    program.pods.add_handler(program.handle, durable=durable, durable_since=since)
    setup(program)
    async with factory:
        if wait:
            await program.pods.wait_synced(timeout=30)
        yield program


def send_bookmarks_often(cluster: Cluster) -> None:
    """Have restored states confirmed at once. A watch without bookmarks confirms them after 4 s."""
    loop = asyncio.get_running_loop()

    def send() -> None:
        cluster.send_bookmarks()
        loop.call_later(0.05, send)

    send()


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until ``condition`` returns true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - looks at the program, as a user would
            await asyncio.sleep(0.005)


def pods_are_stored(cluster: Cluster, path: Path, *namespaces: str) -> bool:
    """Return True if a cache file or its log contains all pods of these namespaces.

    SQLite can't read the file meanwhile, since the informer's connection has locked the file.
    """
    content = b"".join(each.read_bytes() for each in (path, Path(f"{path}-wal")) if each.exists())
    pods = [pod for each in namespaces for pod in cluster.objects("pods", namespace=each)]
    return all(pod["metadata"]["uid"].encode() in content for pod in pods)


def change_connect(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[], object] = bool, **changes: Any
) -> None:
    """Call ``before`` when SQLite is about to open a file, and open it with other options."""
    connect = sqlite3.connect

    def changed(*arguments: Any, **options: Any) -> sqlite3.Connection:
        before()
        connection: sqlite3.Connection = connect(*arguments, **(options | changes))
        return connection

    monkeypatch.setattr(sqlite3, "connect", changed)


def crash_file(random: Random, path: Path, crashed: Path, *, cut: bool | None = None) -> None:
    """Copy a file as a crash leaves it: with the beginning of what its write-ahead log had.

    ``cut`` is whether the log lost its end, as after a loss of power; by default at random.
    """
    if not path.exists():
        return
    shutil.copyfile(path, crashed)
    log = path.with_name(f"{path.name}-wal")
    kept = log.read_bytes() if log.exists() else b""
    cut = random.random() < 0.5 if cut is None else cut
    crashed_log = crashed.with_name(f"{crashed.name}-wal")
    crashed_log.touch(0o600)
    crashed_log.write_bytes(kept[: random.randrange(len(kept) + 1)] if cut else kept)

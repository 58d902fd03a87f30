"""Many informers in a process of its own, for a test of load.

    python -m tests.apiserver.programs.load_process KUBECONFIG --scopes N

One informer reads the widgets of all namespaces, and one each those of ``load-0`` and so on. The
process prints a line when all are synced. For each line of its standard input it prints the state,
and at the end of the input the tasks and sockets that are left.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioinformer import (
    Client,
    DeleteReason,
    KubeObject,
    ObjectKey,
    Problem,
    Registration,
    Resource,
    SharedInformer,
    SharedInformerFactory,
)
from benchmarks.load.meter import count_sockets, forget_highest, highest, resident

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))


def digest(states: Iterable[tuple[str, str, str]]) -> str:
    """Return a digest of keys, uids and versions, which doesn't depend on their order."""
    lines = "\n".join(sorted(" ".join(state) for state in states))
    return hashlib.sha256(lines.encode()).hexdigest()


@dataclass
class Follower:
    """A handler that keeps the version of each object, and counts events out of order."""

    held: dict[ObjectKey, tuple[str, str]] = field(default_factory=dict[ObjectKey, tuple[str, str]])
    events: int = 0
    wrong: int = 0

    def on_add(self, obj: KubeObject, *, initial: bool) -> None:
        self.events += 1
        self.wrong += obj.key in self.held
        self.held[obj.key] = obj.uid, obj.resource_version

    def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        self.events += 1
        self.wrong += self.held.get(new.key) != (old.uid, old.resource_version)
        self.held[new.key] = new.uid, new.resource_version

    def on_delete(self, obj: KubeObject, *, reason: DeleteReason) -> None:
        self.events += 1
        self.wrong += self.held.pop(obj.key, None) is None


@dataclass
class Load:
    """The informers and their handlers."""

    informers: list[SharedInformer] = field(default_factory=list[SharedInformer])
    followers: list[Follower] = field(default_factory=list[Follower])
    registrations: list[Registration] = field(default_factory=list[Registration])
    causes: Counter[str] = field(default_factory=Counter[str])

    def add(self, informer: SharedInformer) -> None:
        follower = Follower()
        self.registrations.append(informer.add_handler(follower))
        self.informers.append(informer)
        self.followers.append(follower)

    def describe(self) -> dict[str, Any]:
        """Return the state. The digests are those of the first informer, and of all others."""
        caches = [
            [(str(obj.key), obj.uid, obj.resource_version) for obj in informer.lister]
            for informer in self.informers
        ]
        held = [
            [(str(key), *state) for key, state in follower.held.items()]
            for follower in self.followers
        ]
        return {
            "objects": sum(map(len, caches)),
            "events": sum(follower.events for follower in self.followers),
            "wrong": sum(follower.wrong for follower in self.followers),
            "digests": [
                digest(each)
                for found in (caches, held)
                for each in (found[0], [state for states in found[1:] for state in states])
            ],
            "causes": dict(self.causes),
            "memory": resident(),
            "cpu": time.process_time(),
            "peak": highest(),
        }


def answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def main(kubeconfig: Path, scopes: int) -> None:
    sockets, load = count_sockets(), Load()

    def count_problem(problem: Problem) -> None:
        load.causes[problem.cause] += 1

    async with (
        Client.connect(kubeconfig=kubeconfig) as client,
        SharedInformerFactory(client, on_error=count_problem) as informers,
    ):
        load.add(informers.informer(WIDGETS))
        for number in range(scopes):
            load.add(informers.informer(WIDGETS, namespace=f"load-{number}"))
        await informers.wait_synced(timeout=240)
        for registration in load.registrations:
            await registration.wait_synced(240)
        forget_highest()
        answer(load.describe())
        while await asyncio.to_thread(sys.stdin.readline):
            answer(load.describe())
    await asyncio.sleep(1.0)  # asyncio closes the sockets of connections in the next turns
    answer({"tasks": len(asyncio.all_tasks()) - 1, "sockets": count_sockets() - sockets})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("--scopes", type=int, required=True)
    asyncio.run(main(**vars(parser.parse_args())))

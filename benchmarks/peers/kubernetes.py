"""The official client as a peer: ``kubernetes.informer``, its shared informer in a thread.

The informer has a cache and handlers, no indexes, and no signal of a complete initial list: the
program counts the additions.
"""

from __future__ import annotations

import threading
import time
from importlib import import_module
from typing import Any

from benchmarks.load.meter import Sample
from benchmarks.peers.tally import SETTLE, Tally, release, report

__all__ = ["measure"]

client: Any = import_module("kubernetes.client")  # the package has no types
informers: Any = import_module("kubernetes.informer")


def measure(server: str, pods: int, events: int) -> Sample:
    """Wait for the initial list, let the memory settle, then receive the events."""
    api: Any = client.ApiClient(client.Configuration(host=server))
    core: Any = client.CoreV1Api(api)
    listed, done = threading.Event(), threading.Event()
    tally = Tally()

    def on_added(pod: Any) -> None:
        tally.last[pod.metadata.name] = pod.metadata.resource_version
        if len(tally.last) == pods:
            listed.set()

    def on_modified(pod: Any) -> None:
        tally.last[pod.metadata.name] = pod.metadata.resource_version
        tally.delivered += 1
        if tally.delivered == events:
            done.set()

    informer: Any = informers.SharedInformer(core.list_pod_for_all_namespaces)
    informer.add_event_handler(informers.ADDED, on_added)
    informer.add_event_handler(informers.MODIFIED, on_modified)
    informer.start()
    listed.wait()
    tally.synced(pods)
    time.sleep(SETTLE)
    tally.settled()
    release(server)
    done.wait()
    tally.ended()
    cached = {pod.metadata.name: pod.metadata.resource_version for pod in informer.cache.list()}
    if cached != tally.last:
        raise AssertionError("the cache differs from the last delivered versions")
    return tally.sample


if __name__ == "__main__":
    report(measure, __doc__ or "")

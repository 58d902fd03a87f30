"""Functions of a program that raise what is no ``Exception``: they stop nothing but themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import (
    Controller,
    Event,
    KubeObject,
    Metrics,
    ObjectKey,
    ReconcileContext,
    SharedInformerFactory,
)
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run


class Odd(BaseException):
    """An exception that ``except Exception`` does not catch."""


ERRORS = (asyncio.CancelledError, GeneratorExit, Odd)


def raising(error: type[BaseException]) -> Callable[..., Any]:
    def function(*_: object, **__: object) -> Any:
        raise error("of the program")

    return function


class Broken:
    """Metrics or traces of which every method raises."""

    def __init__(self, interface: type, error: type[BaseException]) -> None:
        for name in vars(interface):
            if not name.startswith("_"):
                setattr(self, name, raising(error))


class Spans:
    """Tracing whose spans and traces raise."""

    def __init__(self, error: type[BaseException]) -> None:
        self.broken: Any = Broken(Metrics, error)
        for name in ("asked", "received", "complete", "ended", "closed", "current"):
            setattr(self.broken, name, raising(error))

    def informer(self, informer: str, resource: str) -> Any:
        return self.broken

    def handler(self, informer: str, listener: str) -> Any:
        def begin(_: object) -> Any:
            return self.broken

        return begin

    def reconcile(self, controller: str) -> Any:
        return self.broken


class Tracer:
    """Tracing that raises before it has a span."""

    def __init__(self, error: type[BaseException]) -> None:
        self.informer = self.handler = self.reconcile = raising(error)


def options(broken: str, error: type[BaseException]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options of a factory and of its informer, one of whose functions raises ``error``."""
    of_factory: dict[str, dict[str, Any]] = {
        "metrics": {"metrics": Broken(Metrics, error)},
        "spans": {"tracing": Spans(error)},
        "tracing": {"tracing": Tracer(error)},
        "on_error": {"on_error": raising(error)},
    }
    of_informer: dict[str, dict[str, Any]] = {
        "transform": {"transform": raising(error)},
        "convert": {"convert": raising(error)},
        "index": {"indexers": {"broken": raising(error)}},
        "to_keys of a rejected object": {"transform": reject_labelled},
    }
    return of_factory.get(broken, {}), of_informer.get(broken, {})


def reject_labelled(obj: KubeObject) -> KubeObject:
    if obj.labels:
        raise ValueError("it has labels")
    return obj


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(
    "broken",
    [
        *("metrics", "spans", "tracing", "on_error", "transform", "convert", "index"),
        *("filter", "handler", "to_keys", "to_keys of a rejected object", "reconcile"),
    ],
)
def test_a_function_that_raises_what_is_no_exception_stops_nothing_else(
    broken: str, error: type[BaseException]
) -> None:
    seen: list[str] = []
    runs: list[str] = []

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        runs.append(key.name)
        if broken == "reconcile" and len(runs) == 1:
            raise error

    def see(event: Event[KubeObject]) -> None:
        seen.append(event.obj.name)

    async def main() -> None:
        cluster = Cluster()
        chosen, shape = options(broken, error)
        async with SharedInformerFactory(ClusterSource(cluster), **chosen) as each:
            pods, nodes = each.informer("pods", **shape), each.informer("nodes")
            nodes.add_handler(see)
            if broken == "handler":
                pods.add_handler(raising(error))
            if broken == "filter":
                pods.add_handler(see, filter=raising(error))
            controller = Controller(nodes, reconcile, **chosen)
            if "to_keys" in broken:
                controller.watches(pods, raising(error))
            async with controller:
                cluster.create("pods", {"metadata": {"name": "web"}})
                await asyncio.sleep(10)
                cluster.merge_patch("pods", "web", {"metadata": {"labels": {"a": "b"}}})
                await asyncio.sleep(1)
                cluster.create("nodes", {"metadata": {"name": "node-1"}})
                await asyncio.sleep(10)
                assert {pods.health.state, nodes.health.state} == {"watching"}
                assert (controller.state, seen[-1], runs[-1]) == ("running", "node-1", "node-1")

    run(main(), seed=1)


def test_a_cancellation_from_outside_arrives_through_broken_traces() -> None:
    async def main() -> None:
        cluster = Cluster()
        cancelled: list[str] = []
        factory = SharedInformerFactory(ClusterSource(cluster), tracing=Spans(Odd))
        async with factory:

            async def wait(event: Event[KubeObject]) -> None:
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    cancelled.append(event.obj.name)
                    raise

            factory.informer("pods").add_handler(wait)
            cluster.create("pods", {"metadata": {"name": "web"}})
            await asyncio.sleep(10)
        assert cancelled == ["web"]
        assert asyncio.get_running_loop().time() < 30

    run(main(), seed=1)

"""Informers and other endless tasks that run for the length of a ``with`` block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from typing_extensions import Unpack

from aioinformer import BackoffPolicy, KubeObject, SharedInformer
from aioinformer._informers.options import InformerKeywords, InformerOptions
from aioinformer.testing import Cluster, ClusterSource
from tests.runtime.scripted_source import PODS

T = TypeVar("T")

FAST_BACKOFF = BackoffPolicy(initial=0.005, maximum=0.01, jitter=0)
"""Waits after failures that are short enough for a test."""
SLOW_BACKOFF = BackoffPolicy(initial=60, maximum=60, jitter=0)
"""Waits after failures that are longer than any test."""


@asynccontextmanager
async def running_in_background(
    work: Coroutine[Any, Any, None],
) -> AsyncGenerator[asyncio.Task[None]]:
    """Run ``work`` in a task, and cancel the task at the end. Exceptions of ``work`` are raised."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def running_informer(informer: SharedInformer[T]) -> AsyncGenerator[SharedInformer[T]]:
    """Run an informer, and yield it when it is synced."""
    async with running_in_background(informer.run()):
        await informer.wait_synced(timeout=30)
        yield informer


def pod_informer(cluster: Cluster, **options: Unpack[InformerKeywords]) -> SharedInformer:
    """Return an informer of a cluster's pods."""
    source = ClusterSource(cluster).lister_watcher(PODS)
    return SharedInformer(source, options=InformerOptions(backoff=FAST_BACKOFF), **options)


def cluster_with_pods(*names: str) -> Cluster:
    """Return a cluster with these pods in its default namespace."""
    cluster = Cluster()
    for name in names:
        cluster.create("pods", {"metadata": {"name": name}})
    return cluster


def label_pod(cluster: Cluster, name: str, value: str) -> None:
    """Set the label ``value`` of a pod."""
    cluster.merge_patch("pods", name, {"metadata": {"labels": {"value": value}}})


def names(objects: list[KubeObject]) -> list[str]:
    return sorted(obj.name for obj in objects)

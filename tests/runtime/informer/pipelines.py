"""Pipelines of informers of a cluster in memory, with the parts that tests look at."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aioinformer import Metrics
from aioinformer._core.cache.store import Indexers
from aioinformer._core.codec.shape import Shape
from aioinformer._informers.features import make_features
from aioinformer._informers.options import InformerOptions
from aioinformer._runtime.informer.pipeline import InformerPipeline
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.runtime.informers import FAST_BACKOFF, running_in_background
from tests.runtime.scripted_source import PODS

__all__ = ["make_pipeline", "running_pipeline"]


def make_pipeline(
    cluster: Cluster,
    *,
    shape: Shape[Any] | None = None,
    namespace: str | None = None,
    indexers: Indexers[Any] | None = None,
    faults: Faults | None = None,
    source: ListerWatcher | None = None,
    metrics: Metrics | None = None,
    **options: Any,
) -> InformerPipeline[Any]:
    """Return the pipeline of an informer of pods, of a cluster or of another source."""
    pods = ClusterSource(cluster, faults or Faults())
    chosen = InformerOptions(backoff=FAST_BACKOFF, metrics=metrics, **options)
    return InformerPipeline(
        source or pods.lister_watcher(PODS, namespace=namespace, labels="", fields=""),
        shape or Shape.of(),
        chosen.make_reporter("pods", label="pods", resource="pods"),
        chosen,
        namespace=namespace,
        indexers=indexers,
        managed_fields=False,
        profile=None,
        features=make_features(chosen, chosen.features),
    )


@asynccontextmanager
async def running_pipeline(pipeline: InformerPipeline[Any]) -> AsyncGenerator[None]:
    """Run a pipeline, and wait until it is synced."""
    async with running_in_background(pipeline.run(None)):
        await pipeline.reader.wait_synced(timeout=30)
        yield

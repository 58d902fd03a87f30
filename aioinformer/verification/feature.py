"""The comparison of an informer's cache with the server, and its results in health."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from aioinformer._runtime.informer.feature import Feature, find_feature
from aioinformer._runtime.informer.pipeline import InformerPipeline
from aioinformer._runtime.reporting.health import Health
from aioinformer.errors import NotSynced
from aioinformer.verification.state.verification import Verification
from aioinformer.verification.verifier import verify


class VerificationFeature(Feature):
    """The numbers of an informer's comparisons."""

    def __init__(self) -> None:
        self._differences = 0
        self._repaired = 0
        self._verified_at: float | None = None
        self._clock: Callable[[], float] = float

    def record_result(self, result: Verification) -> None:
        self._clock = asyncio.get_running_loop().time
        self._differences = len(result.differences) - result.repaired
        self._repaired += result.repaired
        if not result.differences:
            self._verified_at = self._clock()

    def summarize(self, health: Health) -> Health:
        at = self._verified_at
        return replace(
            health,
            verified=None if at is None else self._clock() - at,
            differences=self._differences,
            repaired=self._repaired,
        )


async def verify_informer(
    pipeline: InformerPipeline[Any], *, contents: bool, repair: bool, timeout: float | None
) -> Verification:
    """See ``SharedInformer.verify``."""
    if not pipeline.indexer.state.synced:
        raise NotSynced("there is nothing to verify before the initial list is complete")
    return await pipeline.reader.run_with_timeout(
        timeout,
        lambda: "a state that the server has confirmed",
        lambda: _compare(pipeline, contents=contents, repair=repair),
    )


async def _compare(
    pipeline: InformerPipeline[Any], *, contents: bool, repair: bool
) -> Verification:
    results = [
        await verify(
            part,
            pipeline.pump.waiters,
            contents=contents,
            managed_fields=pipeline.builder.managed_fields,
            converter=pipeline.builder.converter,
            repair=pipeline.queue.put if repair else None,
        )
        for part in pipeline.reflectors.parts()
    ]
    result = Verification.merge([each for each in results if each is not None])
    feature = find_feature(pipeline.features, VerificationFeature)
    if feature is None:
        feature = VerificationFeature()
        pipeline.features.append(feature)
    feature.record_result(result)
    return result

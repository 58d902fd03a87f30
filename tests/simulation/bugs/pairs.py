"""Bugs of parts that the histories of pairs have alone: controllers and cache files."""

from __future__ import annotations

from typing import Any

from aioinformer import ObjectKey
from aioinformer.cachefile.durable_position import DurablePosition
from aioinformer.controllers.finalizer import FinalizedReconcile
from aioinformer.controllers.workers import Workers
from tests.simulation.bugs.planted_bug import Original, planted_bug


@planted_bug(FinalizedReconcile, "_clean_up", promises={1})
async def a_cleanup_is_skipped(clean_up: Original, finalized: Any, *args: Any) -> Any:
    finalized._cleanup = _do_nothing
    return await clean_up(finalized, *args)


async def _do_nothing(*_: Any) -> None:
    """Clean nothing up."""


@planted_bug(Workers, "enqueue", promises={1})
def some_objects_are_not_reconciled(
    enqueue: Original, workers: Workers, key: ObjectKey, *args: Any
) -> Any:
    return None if key.name.endswith("3") else enqueue(workers, key, *args)


@planted_bug(DurablePosition, "skips_first_state", promises={2})
def a_restored_state_is_delivered_again(_: Original, *args: Any, **options: Any) -> Any:
    return False

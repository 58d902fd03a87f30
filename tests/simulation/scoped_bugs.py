"""The planted bugs of informers of several namespaces: the name of each says what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from aioinformer._core.cache.partitions import PartitionedIndexer
from aioinformer._core.listwatch.polling import Polling
from aioinformer._core.objects.deltas import Replaced
from aioinformer._runtime.reflector.delta_queue import ScopeQueue
from aioinformer._runtime.scopes.scope_set import ScopeSet
from tests.simulation.planted_bug import Original, planted_bug, planted_bugs


@planted_bug(ScopeQueue, "remove", promises={1, 2, 3, 9})
def a_removed_namespace_stays(_: Original, queue: ScopeQueue) -> Any:
    queue.closed = True


@planted_bug(ScopeQueue, "remove", promises={2})
def a_removed_namespace_vanishes(_: Original, queue: ScopeQueue) -> Any:
    queue.replace((), "", reason="vanished")
    queue.closed = True


@planted_bug(PartitionedIndexer, "complete", promises={6})
def several_namespaces_are_synced_early(complete: Original, indexer: PartitionedIndexer) -> Any:
    complete(indexer)
    indexer.state.synced = True


@planted_bug(PartitionedIndexer, "skip_scope")
def an_optional_namespace_is_waited_for(_: Original, *args: Any) -> Any:
    return


@planted_bug(PartitionedIndexer, "replace", promises={1, 2, 3})
def a_relist_replaces_another_namespace(
    begin: Original, indexer: PartitionedIndexer, replaced: Replaced
) -> Any:
    for other in indexer.state.scopes - {replaced.scope}:
        if (part := indexer.part(other)) is not None and replaced.reason == "vanished":
            part.state.objects.clear()
    return begin(indexer, replaced)


@planted_bug(ScopeSet, "_scope_health", promises={10})
def a_refused_namespace_is_not_shown(health: Original, scopes: Any, *args: Any) -> Any:
    return replace(health(scopes, *args), error=None)


@planted_bug(Polling, "delay", promises={11})
def polling_waits_too_little(_: Original, polling: Polling, *args: Any) -> Any:
    return 5.0  # with shorter waits a history has so many requests that it takes a minute


BUGS = [each for each in planted_bugs(globals()) if each.promises]
"""The bugs that the drawn histories find. The others need a history of their own."""

"""The planted bugs of informers of several namespaces: the name of each says what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from aioinformer import Deleted, Event, Scope, SharedInformer, Updated
from aioinformer._core.listwatch.polling import Polling
from aioinformer._core.objects.deltas import Replaced
from aioinformer.namespaces.namespace_follower import NamespaceFollower
from aioinformer.namespaces.scope_set import ScopeQueue, ScopeSet
from aioinformer.namespaces.state.partitions import PartitionedIndexer
from tests.simulation.bugs.planted_bug import Original, planted_bug, planted_bugs


@planted_bug(ScopeQueue, "remove", promises={1, 2, 3, 9})
def a_removed_namespace_stays(_: Original, queue: ScopeQueue) -> Any:
    queue.closed = True


@planted_bug(ScopeQueue, "remove", promises={2})
def a_removed_namespace_vanishes(_: Original, queue: ScopeQueue) -> Any:
    queue.put(Replaced((), ""))
    queue.closed = True


@planted_bug(PartitionedIndexer, "complete", promises={6})
def several_namespaces_are_synced_early(complete: Original, indexer: PartitionedIndexer) -> Any:
    complete(indexer)
    indexer.state.synced = True


@planted_bug(PartitionedIndexer, "skip_scope")
def an_optional_namespace_is_waited_for(_: Original, *args: Any) -> Any:
    return


@planted_bug(PartitionedIndexer, "replace", promises={1, 2, 3, 10})
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


@planted_bug(SharedInformer, "add_namespace", promises={1, 2, 3})
def a_namespace_keeps_its_first_selector(
    add: Original, informer: SharedInformer, namespace: str, scope: Scope
) -> Any:
    first = _FIRST_SCOPES.setdefault(informer, {})
    return add(informer, namespace, first.setdefault(namespace, scope))


_FIRST_SCOPES = WeakKeyDictionary[SharedInformer, dict[str, Scope]]()
"""The selectors with which each informer read its namespaces for the first time."""


@planted_bug(NamespaceFollower, "_remove", promises={1})
def a_namespace_that_ceases_to_match_is_read_on(
    _: Original, follower: NamespaceFollower, name: str
) -> Any:
    return


@planted_bug(NamespaceFollower, "_apply", promises={1})
def a_namespace_that_is_created_again_is_the_old_one(
    apply: Original, follower: Any, event: Event
) -> Any:
    """Pay no attention to deletions and uids."""
    if isinstance(event, Deleted):
        return False
    if event.obj.name in follower._present:
        follower._present[event.obj.name] = event.obj.uid
    return apply(follower, event)


@planted_bug(NamespaceFollower, "_apply", promises={1})
def labels_that_change_are_not_followed(
    apply: Original, follower: NamespaceFollower, event: Event
) -> Any:
    return not isinstance(event, Updated) and apply(follower, event)


FOLLOWER_BUGS = [
    a_namespace_that_ceases_to_match_is_read_on,
    a_namespace_that_is_created_again_is_the_old_one,
    labels_that_change_are_not_followed,
]
"""The bugs that histories of followed namespaces find."""
BUGS = [each for each in planted_bugs(globals()) if each.promises and each not in FOLLOWER_BUGS]
"""The bugs that the other drawn histories find. The others need a history of their own."""

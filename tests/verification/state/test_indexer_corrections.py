"""Corrections of the cache by a verification, among changes that happen meanwhile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.objects.deltas import CorrectionGuard, Delta, Replaced
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, ObjectKey
from aioinformer.verification.state.verification import Comparison
from tests.core.builders import key, pod

NAMES = st.sampled_from("abc")
WRONG = st.dictionaries(NAMES, st.sampled_from(["missing", "surplus", "content", "version", "uid"]))
CHANGES = st.lists(st.tuples(st.sampled_from(["write", "delete", "relist"]), NAMES), max_size=5)


def relist(indexer: Indexer, server: dict[str, KubeObject], version: str) -> list[Event]:
    replacement = indexer.replace(Replaced(list(server.values()), version))
    while not replacement.step(64):
        pass
    return [*replacement.commit()]


@given(st.sets(NAMES), WRONG, CHANGES)
def test_the_cache_equals_the_server_after_corrections_and_any_changes(
    exist: set[str], wrong: dict[str, str], changes: list[tuple[str, str]]
) -> None:
    server = {name: pod(name, rv="10") for name in exist}
    indexer, view = Indexer(), dict[ObjectKey, KubeObject]()
    cached = dict(server)
    for name, how in wrong.items():
        if how == "missing":
            cached.pop(name, None)
        elif how == "surplus" or name in server:
            cached[name] = {
                "surplus": pod(name, rv="9"),
                "content": pod(name, rv="10", node="other"),
                "version": pod(name, rv="8"),
                "uid": pod(name, rv="7", uid="another"),
            }[how]
    events = relist(indexer, cached, "10")
    guard = CorrectionGuard()
    indexer.guards.append(guard)
    comparison = Comparison(indexer.state.objects.copy(), "10", contents=True, guard=guard)
    for obj in server.values():
        comparison.add_server_object(obj)
    while not comparison.step(64):
        pass
    for number, (kind, name) in enumerate(changes, 11):
        if kind == "write":
            server[name] = pod(name, rv=str(number), uid=f"uid-{name}", node=str(number))
            indexer.apply(Delta("Updated", server[name]), events)
        elif kind == "delete" and name in server:
            del server[name]
            indexer.apply(Delta("Deleted", pod(name, rv=str(number))), events)
        elif kind == "relist":
            events += relist(indexer, server, str(number))
    guard.pending = len(comparison.corrections)
    version = indexer.state.resource_version
    for correction in comparison.corrections:
        indexer.correct(correction, events)

    assert indexer.state.objects == {key(name): obj for name, obj in server.items()}
    assert (guard.pending, indexer.state.resource_version) == (0, version)
    for event in events:
        if isinstance(event, Deleted):
            del view[event.key]
        else:
            assert isinstance(event, Added) == (event.key not in view)
            view[event.key] = event.obj
    assert view == indexer.state.objects

"""A state of a cache that is to be written: what differs from the last one, split by scope."""

from __future__ import annotations

from aioinformer import Added, Deleted, Updated
from aioinformer.cachefile.checkpointer import (
    Checkpoint,
    ScopeRecord,
    SealedScope,
    finish_record,
)
from aioinformer.cachefile.state.change_record import ChangeRecord
from tests.core.builders import pod


def checkpoint(*scopes: str, records: tuple[ChangeRecord, ...]) -> Checkpoint:
    """Return a state with these scopes."""
    sealed = {
        each: SealedScope(ScopeRecord(each, 0, each), "7", reread=False, parts=None)
        for each in scopes
    }
    return Checkpoint(sealed, records)


async def test_the_newest_state_of_each_object_is_written_in_its_own_scope() -> None:
    first, second = ChangeRecord(), ChangeRecord()
    old, new, other = pod("a", rv="1"), pod("a", rv="2"), pod("b", namespace="shop")
    unchanged = pod("d")
    first.record_list([[Added(old)], [Added(other)], [Added(unchanged)]])
    second.record([Updated(old, new), Deleted(other)])
    second.record([Added(pod("c", namespace="forgotten"))])
    sealed = checkpoint("web", "shop", "empty", records=(first, second))

    changes = await sealed.split_changes()

    assert changes == {
        "web": {new.key: new, unchanged.key: unchanged},
        "shop": {other.key: None},
        "empty": {},
    }


async def test_an_informer_with_one_scope_writes_the_objects_of_all_namespaces_in_it() -> None:
    record, found = ChangeRecord(), [pod("a"), pod("b", namespace="shop")]
    record.record([Added(each) for each in found])

    changes = await checkpoint("", records=(record,)).split_changes()

    assert changes == {"": {each.key: each for each in found}}


async def test_the_waiting_batches_of_a_list_are_recorded_before_a_write() -> None:
    record = ChangeRecord()
    record.record_list([[Added(pod(name))] for name in "abc"])

    await finish_record(record)

    assert [key.name for key in record.changes] == ["a", "b", "c"]

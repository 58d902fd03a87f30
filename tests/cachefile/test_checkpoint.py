"""A state of a cache that is to be written: what differs from the last one, split by scope."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from aioinformer import Added, Deleted, ObjectKey, Updated
from aioinformer.cachefile.checkpoint import Checkpoint, finish_record, split_changes
from aioinformer.cachefile.state.change_record import ChangeRecord
from aioinformer.cachefile.state.recorded_shards import SealedShards
from tests.core.builders import pod


def checkpoint(
    version: str = "7",
    *,
    rejecting: bool = False,
    shards: SealedShards | None = None,
    records: tuple[ChangeRecord, ...] = (),
    versions: Mapping[str, str] | None = None,
) -> Checkpoint:
    """Return a state with the scope ``web``."""
    return Checkpoint(
        versions=versions or {"web": version},
        rejecting=frozenset({"web"} if rejecting else ()),
        records=records,
        shards={} if shards is None else {"web": shards},
    )


def scope_of(key: ObjectKey) -> str:
    return key.namespace


@pytest.mark.parametrize(
    "later",
    [
        checkpoint("8"),
        checkpoint(rejecting=True),
        checkpoint(shards=SealedShards(frozenset({1}), frozenset())),
    ],
    ids=["version", "rejected", "shards"],
)
def test_a_state_differs_from_the_written_one_in_more_than_objects(later: Checkpoint) -> None:
    assert later.differs("web", checkpoint())


def test_a_state_that_was_written_does_not_differ() -> None:
    assert checkpoint().differs("web", None)
    assert not checkpoint().differs("web", checkpoint())


def test_a_scope_that_was_not_written_before_differs() -> None:
    assert checkpoint().differs("web", checkpoint(versions={"shop": "7"}))


async def test_the_newest_state_of_each_object_is_written_in_its_own_scope() -> None:
    first, second = ChangeRecord(), ChangeRecord()
    old, new, other = pod("a", rv="1"), pod("a", rv="2"), pod("b", namespace="shop")
    unchanged = pod("d")
    first.record_list([[Added(old)], [Added(other)], [Added(unchanged)]])
    second.record([Updated(old, new), Deleted(other)])
    second.record([Added(pod("c", namespace="forgotten"))])
    sealed = checkpoint(records=(first, second), versions={"web": "7", "shop": "3", "empty": "1"})

    changes = await split_changes(sealed, scope_of)

    assert changes == {
        "web": {new.key: new, unchanged.key: unchanged},
        "shop": {other.key: None},
        "empty": {},
    }


async def test_the_waiting_batches_of_a_list_are_recorded_before_a_write() -> None:
    record = ChangeRecord()
    record.record_list([[Added(pod(name))] for name in "abc"])

    await finish_record(record)

    assert [key.name for key in record.changes] == ["a", "b", "c"]

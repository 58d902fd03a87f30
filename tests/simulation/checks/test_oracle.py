"""The server's states of a selection, computed from its log of writes."""

from __future__ import annotations

from dataclasses import replace

from aioinformer import ObjectKey
from tests.simulation.checks.oracle import Oracle
from tests.simulation.plan import DROPPED, SHIFT, InformerSpec
from tests.simulation.records import BackupMade, Restored, Version, Write

A, B = ObjectKey("web", "a"), ObjectKey("db", "b")


def write(
    version: int, key: ObjectKey, app: str, *, uid: str = "1", deleted: bool = False
) -> Write:
    return Write(version * 10, float(version), version, key, uid, app, "node", deleted)


WRITES = [
    write(1, A, "shop"),
    write(2, B, "shop"),
    write(3, A, "blog"),
    write(4, A, "shop"),
    write(5, B, "", deleted=True),
    write(6, A, "", deleted=True),
    write(7, A, "shop", uid="2"),
]


def states(oracle: Oracle, *versions: int) -> list[dict[ObjectKey, Version]]:
    """On the last timeline."""
    cursor = oracle.cursors(until=10**6)[-1]
    return [dict(cursor.to(version)) for version in versions]


def test_everything_is_selected_without_a_selector() -> None:
    oracle = Oracle(WRITES, InformerSpec(name="all"))
    assert states(oracle, 0, 2, 3, 5, 7) == [
        {},
        {A: Version("1", 1), B: Version("1", 2)},
        {A: Version("1", 3), B: Version("1", 2)},
        {A: Version("1", 4)},
        {A: Version("2", 7)},
    ]
    assert oracle.final == {A: Version("2", 7)}
    assert repr(oracle) == "<Truth timelines=1 final=1>"


def test_what_leaves_a_selector_is_gone_and_may_come_back() -> None:
    oracle = Oracle(WRITES, InformerSpec(name="shop", app="shop"))
    assert states(oracle, 2, 3, 4) == [
        {A: Version("1", 1), B: Version("1", 2)},
        {B: Version("1", 2)},
        {A: Version("1", 4), B: Version("1", 2)},
    ]
    assert (A, Version("1", 3)) not in oracle.stored
    assert oracle.left(A, Version("1", 1))
    assert oracle.left(A, Version("1", 4))
    assert not oracle.left(A, Version("1", 6)), "what its DELETED shows"
    assert not oracle.left(A, Version("1", 4), before=60)
    assert not oracle.left(A, Version("2", 7))


def test_a_namespace_is_a_world_of_its_own() -> None:
    oracle = Oracle(WRITES, InformerSpec(name="db", namespace="db"))
    assert states(oracle, 1, 2, 4, 7) == [{}, {B: Version("1", 2)}, {B: Version("1", 2)}, {}]


def test_what_a_transform_drops_is_as_good_as_gone_and_the_rest_is_changed() -> None:
    on = [replace(each, node=DROPPED if each.app == "blog" else "node") for each in WRITES]
    oracle = Oracle(on, InformerSpec(name="cut", transform="cuts"))
    assert states(oracle, 1, 3, 4) == [
        {A: Version("1", 1, SHIFT)},
        {B: Version("1", 2, SHIFT)},
        {A: Version("1", 4, SHIFT), B: Version("1", 2, SHIFT)},
    ]


BACKUP = BackupMade(45, 4.5, 4)
REWOUND = [
    *WRITES,
    Write(100, 10.0, 5, A, "1", "shop", "node", deleted=False, value=9),
    Write(110, 11.0, 6, B, "", "", "", deleted=True),
]
RESTORED = [Restored(95, 9.5, BACKUP, 7)]


def test_after_a_rewind_there_are_two_states_of_a_version() -> None:
    oracle = Oracle(REWOUND, InformerSpec(name="all"), RESTORED)
    before, after = oracle.cursors(until=1000)
    assert before.to(5) == {A: Version("1", 4)}
    assert after.to(4) == {A: Version("1", 4), B: Version("1", 2)}
    assert after.to(5) == {A: Version("1", 5, 9), B: Version("1", 2)}
    assert oracle.final == {A: Version("1", 5, 9)}
    assert after.backup_version == 4
    assert len(oracle.cursors(until=94)) == 1


def test_what_a_backup_doesnt_have_goes_with_the_rewind() -> None:
    oracle = Oracle(REWOUND, InformerSpec(name="all"), RESTORED)
    assert oracle.left(A, Version("2", 7))
    assert not oracle.left(A, Version("2", 7), before=95)
    assert oracle.left(B, Version("1", 2), before=60), "it had gone once"
    assert not oracle.left(A, Version("1", 5, 9))
    assert oracle.made(A, Version("1", 5, 9)) == 100

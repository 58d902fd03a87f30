"""What the server held of a selection, worked out from its log of writes."""

from __future__ import annotations

from dataclasses import replace

from aioinformer import ObjectKey
from tests.simulation.checks.oracle import Truth
from tests.simulation.plan import DROPPED, SHIFT, InformerSpec
from tests.simulation.records import Kept, Restored, Version, Write

A, B = ObjectKey("web", "a"), ObjectKey("db", "b")


def write(version: int, key: ObjectKey, app: str, *, uid: str = "1", gone: bool = False) -> Write:
    return Write(version * 10, float(version), version, key, uid, app, "node", gone)


WRITES = [
    write(1, A, "shop"),
    write(2, B, "shop"),
    write(3, A, "blog"),
    write(4, A, "shop"),
    write(5, B, "", gone=True),
    write(6, A, "", gone=True),
    write(7, A, "shop", uid="2"),
]


def states(truth: Truth, *versions: int) -> list[dict[ObjectKey, Version]]:
    """On the last timeline."""
    walk = truth.walks(until=10**6)[-1]
    return [dict(walk.to(version)) for version in versions]


def test_everything_is_selected_without_a_selector() -> None:
    truth = Truth(WRITES, InformerSpec(name="all"))
    assert states(truth, 0, 2, 3, 5, 7) == [
        {},
        {A: Version("1", 1), B: Version("1", 2)},
        {A: Version("1", 3), B: Version("1", 2)},
        {A: Version("1", 4)},
        {A: Version("2", 7)},
    ]
    assert truth.final == {A: Version("2", 7)}
    assert repr(truth) == "<Truth timelines=1 final=1>"


def test_what_leaves_a_selector_is_gone_and_may_come_back() -> None:
    truth = Truth(WRITES, InformerSpec(name="shop", app="shop"))
    assert states(truth, 2, 3, 4) == [
        {A: Version("1", 1), B: Version("1", 2)},
        {B: Version("1", 2)},
        {A: Version("1", 4), B: Version("1", 2)},
    ]
    assert (A, Version("1", 3)) not in truth.stored
    assert truth.left(A, Version("1", 1))
    assert truth.left(A, Version("1", 4))
    assert not truth.left(A, Version("1", 6)), "what its DELETED shows"
    assert not truth.left(A, Version("1", 4), before=60)
    assert not truth.left(A, Version("2", 7))


def test_a_namespace_is_a_world_of_its_own() -> None:
    truth = Truth(WRITES, InformerSpec(name="db", namespace="db"))
    assert states(truth, 1, 2, 4, 7) == [{}, {B: Version("1", 2)}, {B: Version("1", 2)}, {}]


def test_what_a_transform_drops_is_as_good_as_gone_and_the_rest_is_changed() -> None:
    on = [replace(each, node=DROPPED if each.app == "blog" else "node") for each in WRITES]
    truth = Truth(on, InformerSpec(name="cut", transform="cuts"))
    assert states(truth, 1, 3, 4) == [
        {A: Version("1", 1, SHIFT)},
        {B: Version("1", 2, SHIFT)},
        {A: Version("1", 4, SHIFT), B: Version("1", 2, SHIFT)},
    ]


BACKUP = Kept(45, 4.5, 4)
REWOUND = [
    *WRITES,
    Write(100, 10.0, 5, A, "1", "shop", "node", gone=False, value=9),
    Write(110, 11.0, 6, B, "", "", "", gone=True),
]
RESTORED = [Restored(95, 9.5, BACKUP, 7)]


def test_after_a_rewind_there_are_two_states_of_a_version() -> None:
    truth = Truth(REWOUND, InformerSpec(name="all"), RESTORED)
    before, after = truth.walks(until=1000)
    assert before.to(5) == {A: Version("1", 4)}
    assert after.to(4) == {A: Version("1", 4), B: Version("1", 2)}
    assert after.to(5) == {A: Version("1", 5, 9), B: Version("1", 2)}
    assert truth.final == {A: Version("1", 5, 9)}
    assert after.kept == 4
    assert len(truth.walks(until=94)) == 1


def test_what_a_backup_doesnt_have_goes_with_the_rewind() -> None:
    truth = Truth(REWOUND, InformerSpec(name="all"), RESTORED)
    assert truth.left(A, Version("2", 7))
    assert not truth.left(A, Version("2", 7), before=95)
    assert truth.left(B, Version("1", 2), before=60), "it had gone once"
    assert not truth.left(A, Version("1", 5, 9))
    assert truth.made(A, Version("1", 5, 9)) == 100

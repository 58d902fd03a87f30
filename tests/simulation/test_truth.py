"""What the server held of a selection, worked out from its log of writes."""

from __future__ import annotations

from aioinformer import ObjectKey
from aioinformer.testing.simulation.history import Sample, Version, Write
from aioinformer.testing.simulation.plan import InformerSpec
from aioinformer.testing.simulation.truth import Truth

A, B = ObjectKey("web", "a"), ObjectKey("db", "b")


def write(version: int, key: ObjectKey, app: str, *, uid: str = "1", gone: bool = False) -> Write:
    return Write(version * 10, float(version), version, key, uid, app, "node", gone)


def sample(version: int) -> Sample:
    return Sample(
        version, 0.0, "all", True, str(version), {}, None, frozenset(), "", "", None, (), 0, ()
    )


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
    return [dict(state) for _, state in truth.beside(map(sample, versions))]


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
    assert repr(truth) == "<Truth changes=7 final=1>"


def test_what_leaves_a_selector_is_gone_and_may_come_back() -> None:
    truth = Truth(WRITES, InformerSpec(name="shop", app="shop"))
    assert states(truth, 2, 3, 4) == [
        {A: Version("1", 1), B: Version("1", 2)},
        {B: Version("1", 2)},
        {A: Version("1", 4), B: Version("1", 2)},
    ]
    assert (A, Version("1", 3)) not in truth.stored
    assert truth.left(A, "1", after=1)
    assert truth.left(A, "1", after=4)
    assert not truth.left(A, "1", after=6)
    assert not truth.left(A, "1", after=4, before=60)
    assert not truth.left(A, "2", after=0)


def test_a_namespace_is_a_world_of_its_own() -> None:
    truth = Truth(WRITES, InformerSpec(name="db", namespace="db"))
    assert states(truth, 1, 2, 4, 7) == [{}, {B: Version("1", 2)}, {B: Version("1", 2)}, {}]


def test_samples_are_compared_by_version_whenever_they_were_taken() -> None:
    truth = Truth(WRITES, InformerSpec(name="all"))
    found = [(each.version, len(state)) for each, state in truth.beside(map(sample, (5, 1, 2, 1)))]
    assert found == [("1", 1), ("1", 1), ("2", 2), ("5", 1)]

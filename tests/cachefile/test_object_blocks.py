"""The table of objects: what is read, and the size of the file."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Generator
from contextlib import closing
from random import Random

import pytest

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer.cachefile.object_blocks import SCHEMA, ObjectBlocks
from aioinformer.cachefile.state.change_record import Changes
from tests.core.builders import PODS, pod

State = dict[ObjectKey, KubeObject]


@pytest.fixture(name="connection")
def a_connection() -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        yield connection


def read(blocks: ObjectBlocks, scope: int = 1) -> State:
    found = list(blocks.read(scope, PODS, None))
    assert len({obj.key for obj in found}) == len(found)
    return {obj.key: obj for obj in found}


def count(connection: sqlite3.Connection) -> int:
    number: int = connection.execute("SELECT count(*) FROM blocks").fetchone()[0]
    return number


def test_many_writes_leave_the_newest_states_in_a_bounded_file(
    connection: sqlite3.Connection,
) -> None:
    random, state = Random(3), State()
    blocks = ObjectBlocks(connection)
    for version in range(400):
        changes: Changes = {}
        for _ in range(random.choice([0, 1, 40, 300])):
            key = ObjectKey("web", f"p{random.randrange(500)}")
            if random.random() < 0.3:
                state.pop(key, None)
                changes[key] = None
            else:
                state[key] = changes[key] = pod(key.name, rv=str(version), node="n" * version)
        blocks.write(1, changes)
        if version % 50 == 0:
            assert read(blocks) == state
            assert read(ObjectBlocks(connection)) == state
    assert read(blocks) == state
    sizes = connection.execute("SELECT id FROM blocks").fetchall()
    assert len(sizes) < 400, "blocks were reclaimed"
    blocks.remove(1)
    assert read(blocks) == {}
    assert count(connection) == 0


def test_a_file_stores_and_removes_each_scope_separately(connection: sqlite3.Connection) -> None:
    blocks = ObjectBlocks(connection)
    for version in range(60):
        for scope in (1, 2):
            changes: Changes = {
                (obj := pod(f"p{number}", rv=f"{scope}{version}")).key: obj for number in range(50)
            }
            blocks.write(scope, changes)
    for scope in (1, 2):
        assert {obj.resource_version for obj in read(blocks, scope).values()} == {f"{scope}59"}
    blocks.remove(1)
    assert read(blocks, 1) == {}
    assert len(read(blocks, 2)) == 50


def test_large_objects_are_stored_with_few_others_in_a_block(
    connection: sqlite3.Connection,
) -> None:
    blocks = ObjectBlocks(connection)
    large = {(obj := pod(f"p{n}", node="n" * 700_000)).key: obj for n in range(6)}
    blocks.write(1, dict[ObjectKey, KubeObject | None](large))
    assert count(connection) == 3
    assert read(blocks) == large


def test_no_block_is_removed_while_objects_are_read(connection: sqlite3.Connection) -> None:
    blocks = ObjectBlocks(connection)
    first = {(obj := pod(f"first{n}")).key: obj for n in range(300)}
    blocks.write(1, dict[ObjectKey, KubeObject | None](first))
    reading = blocks.read(1, PODS, None)
    found = [next(reading)]
    for version in range(20):
        later: Changes = {(obj := pod(f"p{n}", rv=str(version))).key: obj for n in range(256)}
        blocks.write(1, later)
    before = count(connection)
    found += reading
    assert {obj.key for obj in found} == first.keys()
    for _ in range(20):
        blocks.write(1, {})
    assert count(connection) < before, "blocks are reclaimed afterwards"
    assert len(read(blocks)) == 556


def test_a_read_returns_only_the_admitted_objects(
    connection: sqlite3.Connection,
) -> None:
    blocks = ObjectBlocks(connection)
    pods = [pod(f"p{n}") for n in range(300)]
    changes: Changes = {
        ObjectKey(f"ns{n % 40}", obj.name): KubeObject(
            ObjectKey(f"ns{n % 40}", obj.name), "uid", "1", obj.raw, PODS
        )
        for n, obj in enumerate(pods)
    }
    blocks.write(1, changes)

    def admit(uid: str, namespace: str) -> bool:
        return uid == "uid" and namespace.endswith("7")

    expected = {key for key in changes if key.namespace.endswith("7")}
    assert 0 < len(expected) < 300
    assert {obj.key for obj in blocks.read(1, PODS, admit)} == expected
    assert set(blocks.find_keys(1, admit)) == expected


def test_a_block_of_another_size_is_corrupt(connection: sqlite3.Connection) -> None:
    blocks = ObjectBlocks(connection)
    blocks.write(1, {(obj := pod("a")).key: obj})
    connection.execute("UPDATE blocks SET bodies = ?", (zlib.compress(b"."),))
    with pytest.raises(ValueError, match="block 1 is damaged"):
        read(blocks)

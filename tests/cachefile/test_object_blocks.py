"""The table of objects: what is read, and the size of the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing

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


def read(blocks: ObjectBlocks) -> State:
    found = list(blocks.read(1, PODS, None))
    assert len({obj.key for obj in found}) == len(found)
    return {obj.key: obj for obj in found}


def count(connection: sqlite3.Connection) -> int:
    number: int = connection.execute("SELECT count(*) FROM blocks").fetchone()[0]
    return number


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

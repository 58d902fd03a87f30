"""True past states in a file after a crash at any point."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from aioinformer import KubeObject, ObjectKey
from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
from aioinformer.cachefile.database import Database
from aioinformer.cachefile.state import block_index
from aioinformer.cachefile.state.change_record import Changes
from aioinformer.cachefile.stored_scope import ScopeWrite
from tests.core.builders import PODS, pod

State = dict[ObjectKey, KubeObject]


def open_database(path: Path) -> Database:
    return Database(path, ClusterIdentity("uid", "endpoint"))


def read(database: Database) -> tuple[str, State]:
    """Return the version and the objects of a scope."""
    if not (scopes := database.read_scopes("pods")):
        return "", {}
    [stored] = scopes
    found = [obj for batch in database.read_objects(stored, PODS, 3) for obj in batch]
    assert len({obj.key for obj in found}) == len(found)
    return stored.version, {obj.key: obj for obj in found}


def write(database: Database, version: str, changes: Changes) -> None:
    database.write([ScopeWrite("pods", version, False, ["audit"], changes)])


def random_changes(random: Random, state: State, version: int) -> tuple[int, Changes]:
    """Return the changes to a later version, and apply them to ``state``."""
    changes: Changes = {}
    for _ in range(random.randint(0, 12)):
        version += 1
        key = ObjectKey("web", f"p{random.randrange(30)}")
        if key in state and random.random() < 0.3:
            del state[key]
            changes[key] = None
        else:
            size = random.choice([1, 100, 5000])
            state[key] = changes[key] = pod(key.name, rv=str(version), node="n" * size)
    return version + 1, changes


@pytest.mark.parametrize("crashes", [60, pytest.param(1000, marks=pytest.mark.simulation)])
@pytest.mark.timeout(300)
def test_after_simulated_crashes_the_file_is_a_past_state(
    tmp_path: Path, crashes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash leaves the database, and the beginning of what the write-ahead log had.

    What was synchronized is in the log's beginning, so that a file system that loses the rest is
    simulated as well. The process alone (``kill -9``) loses nothing that was written.
    """
    monkeypatch.setattr(block_index, "SPARE_ENTRIES", 10)  # most writes reclaim blocks as well
    random, crashed = Random(22), tmp_path / "crashed.db"
    crashed_log = tmp_path / "crashed.db-wal"
    lost = 0
    for history in range(10):
        path, states = tmp_path / f"{history}.db", dict[str, State]({"": {}})
        database, state, version = open_database(path), State(), 0
        log = path.with_name(f"{path.name}-wal")
        for _ in range(crashes // 10):
            version, changes = random_changes(random, state, version)
            write(database, str(version), changes)
            states[str(version)] = dict(state)
            shutil.copyfile(path, crashed)
            kept = log.read_bytes()
            cut = random.random() < 0.7
            crashed_log.touch(0o600)
            crashed_log.write_bytes(kept[: random.randrange(len(kept) + 1)] if cut else kept)
            restored = open_database(crashed)
            found_version, found = read(restored)
            restored.close()
            assert found == states[found_version], f"history {history}, version {version}"
            assert cut or found_version == str(version), "kill -9 loses nothing"
            lost += found_version != str(version)
            crashed.unlink()
        database.close()
    assert lost > crashes / 10, "many of the crashes have lost something"

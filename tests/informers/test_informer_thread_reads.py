"""Reads from threads are exact while the event loop goes on writing.

Four threads ask everything that a lister can be asked. Each answer must be right for the very
versions that are in it, and hold all that never changes; and no question may fail.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from random import Random

import pytest

from aioinformer import Delta, Indexer, KubeObject, Lister, ObjectKey, field, label_index
from aioinformer._core.cache.indexes import IndexBuild
from aioinformer._core.objects.deltas import Replaced
from tests.core.builders import PODS, pod

THREADS = 4
NODES = ["n0", "n1", "n2"]
ROUNDS = 3000
SWITCH = 1e-5
"""Seconds between two switches of threads; the default is too long to hit anything."""

node_of = field("spec.nodeName")


def all_nodes(obj: KubeObject) -> list[str]:
    return ["any", node_of(obj)]


STABLE = [pod(f"s-{n}", node=NODES[n % 3], labels={"app": f"a{n % 2}"}) for n in range(12)]
STABLE_KEYS = {obj.key for obj in STABLE}


class Writer:
    """The event loop's part: changes, deletions, relists, and an index that is built."""

    def __init__(self, seed: int) -> None:
        self.indexer = Indexer(
            {"node": node_of, "some": all_nodes, "labels": label_index("app"), "all": label_index()}
        )
        self._random = Random(seed)
        self._version = 100
        self._objects: dict[ObjectKey, KubeObject] = {obj.key: obj for obj in STABLE}
        self._building: IndexBuild | None = None
        self.built = 0
        self._relist()

    def write(self) -> None:
        chance = self._random.random()
        if chance < 0.01:
            self._relist()
        elif chance < 0.05:
            self._build()
        else:
            self._change()

    def _new(self) -> KubeObject:
        self._version += 1
        node, app = self._random.choice(NODES), f"a{self._random.randrange(2)}"
        return pod(
            f"p-{self._random.randrange(8)}", rv=str(self._version), node=node, labels={"app": app}
        )

    def _change(self) -> None:
        obj = self._new()
        deleted = self._random.random() < 0.3
        self.indexer.apply(Delta("Deleted" if deleted else "Updated", obj), [])
        if deleted:
            self._objects.pop(obj.key, None)
        else:
            self._objects[obj.key] = obj

    def _relist(self) -> None:
        for _ in range(4):
            obj = self._new()
            self._objects[obj.key] = obj
        replaced = Replaced(tuple(self._objects.values()), str(self._version))
        replacement = self.indexer.replace(replaced)
        while not replacement.step(5):
            pass
        replacement.commit()
        while not replacement.step(5):
            pass

    def _build(self) -> None:
        if self._building is None:
            self._building = self.indexer.build_index(f"late-{self.built}", node_of)
            assert self._building is not None
        if self._building.step(5):
            self._building.commit()
            self._building = None
            self.built += 1


class Reader:
    """The reads of one thread."""

    def __init__(self, indexer: Indexer, seed: int) -> None:
        self._lister = Lister(indexer, PODS)
        self._random = Random(seed)
        self.asked = 0

    def read(self) -> None:
        questions: tuple[Callable[[], None], ...] = (
            self._get,
            self._list,
            self._by_index,
            self._by_label,
            self._index_of_an_object,
            self._values,
            self._late,
        )
        self._random.choice(questions)()
        self.asked += 1

    def _get(self) -> None:
        key = ObjectKey("web", f"p-{self._random.randrange(8)}")
        obj = self._lister.get(key)
        assert obj is None or obj.key == key
        stable = self._random.choice(STABLE)
        assert self._lister[stable.key] is stable
        assert stable in self._lister

    def _list(self) -> None:
        exact(self._lister.list(), lambda _: True)
        exact(list(self._lister), lambda _: True)
        assert set(self._lister.keys()) >= STABLE_KEYS
        assert len(self._lister) >= len(STABLE)

    def _by_index(self) -> None:
        node = self._random.choice(NODES)
        exact(self._lister.by_index("node", node), lambda obj: node_of(obj) == node)
        exact(self._lister.by_index("some", node), lambda obj: node_of(obj) == node)
        exact(self._lister.by_index("some", "any"), lambda _: True)
        keys = self._lister.index_keys("node", node)
        assert keys == sorted(set(keys))
        assert {obj.key for obj in STABLE if node_of(obj) == node} <= set(keys)

    def _by_label(self) -> None:
        exact(self._lister.list(labels="app=a1"), lambda obj: obj.labels["app"] == "a1")
        exact(self._lister.list(labels="app in (a0,a1)"), lambda _: True)
        exact(
            self._lister.list(labels="app=a0", fields="spec.nodeName=n1"),
            lambda obj: obj.labels["app"] == "a0" and node_of(obj) == "n1",
        )

    def _index_of_an_object(self) -> None:
        asked = self._random.choice(STABLE)
        exact(self._lister.index("node", asked), lambda obj: node_of(obj) == node_of(asked))
        exact(self._lister.index("some", asked), lambda _: True)

    def _values(self) -> None:
        assert sorted(self._lister.index_values("node")) == NODES
        counts = self._lister.index_counts("node")
        assert all(counts[node] >= 4 for node in NODES)
        assert self._lister.count(labels="app=a0") >= 6

    def _late(self) -> None:
        for name in self._lister.indexers:
            if name.startswith("late"):
                exact(self._lister.by_index(name, "n2"), lambda obj: node_of(obj) == "n2")


def exact(objects: Sequence[KubeObject], meant: Callable[[KubeObject], bool]) -> None:
    """Each object once, none that isn't meant, and all of those that never change."""
    keys = {obj.key for obj in objects}
    assert len(keys) == len(objects)
    assert all(map(meant, objects)), [obj for obj in objects if not meant(obj)]
    assert {obj.key for obj in STABLE if meant(obj)} <= keys


@pytest.fixture
def _often() -> Generator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    yield
    sys.setswitchinterval(before)


@contextmanager
def reading(readers: Sequence[Reader], failures: list[BaseException]) -> Generator[None]:
    """Readers in threads of their own, which read without pause."""
    stop = threading.Event()

    def run(reader: Reader) -> None:
        try:
            while not stop.is_set():
                reader.read()
        except BaseException as error:  # noqa: BLE001 - it is for the test's own thread to raise
            failures.append(error)

    threads = [threading.Thread(target=run, args=(reader,)) for reader in readers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.client_go(113)
@pytest.mark.usefixtures("_often")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.simulation)])
def test_four_threads_read_correct_states_while_the_cache_changes(seed: int) -> None:
    writer, failures = Writer(seed), list[BaseException]()
    readers = [Reader(writer.indexer, seed * THREADS + number) for number in range(THREADS)]
    with reading(readers, failures):
        for _ in range(ROUNDS):
            writer.write()
            if failures:
                break
        # A thread may begin after all of these rounds.
        while not failures and not all(reader.asked > 10 for reader in readers):
            writer.write()

    if failures:
        raise failures[0]
    lister = Lister(writer.indexer, PODS)
    for node in NODES:
        assert set(lister.by_index("node", node)) == {o for o in lister if node_of(o) == node}
    assert writer.built > 5

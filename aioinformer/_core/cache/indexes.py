"""An index by label, which the lister's label selectors find by themselves.

``indexers={"labels": label_index("app")}``: from then on ``lister.list(labels="app=shop")`` looks
at the objects with that label, and not at all of them. How a selector makes use of it is
``query``'s.

An index over a cache that is in use: built in steps beside the others, then visible at once.

While it grows, every change is filed in it too (``State.building``), so that at the end nothing
is missing. If a new state is staged or swapped in meanwhile, the index is built over that as well.
An index function that raises ends it; the cache and its other indexes haven't noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from aioinformer._core.cache.store import CacheState, Index, IndexValues
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import NeedsJson
from aioinformer.errors import IndexFailed, UsageError

__all__ = ["IndexBuild", "LabelIndex", "label_index"]


CACHE_SIZE = 256
"""Label indexes that are kept. It matters that the same keys are the same function: two parts of
a program may ask for one informer with the same index."""


@dataclass(frozen=True, slots=True)
class LabelIndex(NeedsJson):
    """An index function: files an object under ``key=value`` of its labels."""

    keys: tuple[str, ...] = ()
    """Which labels; none for all."""

    def __call__(self, obj: KubeObject) -> tuple[str, ...]:
        """The values of ``obj``.

        Raises:
            ObjectDecodeError: the labels can't be read.
        """
        labels = obj.labels
        return tuple(self.value(key, labels[key]) for key in self.keys or labels if key in labels)

    def covers(self, key: str) -> bool:
        """Whether objects are filed by this label."""
        return not self.keys or key in self.keys

    @staticmethod
    def value(key: str, value: str) -> str:
        """Under what an object with this label is filed."""
        return f"{key}={value}"

    def __repr__(self) -> str:
        return f"label_index({', '.join(map(repr, self.keys))})"


def label_index(*keys: str) -> LabelIndex:
    """An index function by labels. Selectors with ``=``, ``==`` or ``in`` are then fast.

    Args:
        keys: which labels. None means all of them: good for many selectors, but each label of
            each object costs about 100 bytes, and each change the reading of the old labels too.
    """
    return _cached_label_index(tuple(sorted(set(keys))))


@lru_cache(maxsize=CACHE_SIZE)
def _cached_label_index(keys: tuple[str, ...]) -> LabelIndex:
    return LabelIndex(keys)


class IndexBuild:
    """An index in the making: ``step`` until done, then ``commit`` with nothing in between.

    If that doesn't come about, ``abandon`` it.
    """

    def __init__(self, index: Index, states: Callable[[], Iterable[CacheState]]) -> None:
        """Begin.

        Args:
            index: the index, over nothing.
            states: gives the state that is held, and the one that is being staged, if there is.
        """
        self.name = index.name
        self._index = index
        self._states = states
        self._partial_indexes: dict[CacheState, Index] = {}
        self._failure: IndexFailed | None = None
        self._filed_count = 0
        self._steps = self._build()

    def step(self, n: int) -> bool:
        """File about ``n`` objects; whether it is done.

        Raises:
            IndexFailed: the function raised, now or for a change since.
        """
        done = sum(1 for _ in islice(self._steps, n)) < n
        if self._failure is not None:
            raise self._failure
        if done and self._next_state() is not None:  # a state that began to be staged since
            self._steps, done = self._build(), False
        return done

    def commit(self) -> None:
        """Make the index visible, unless somebody else has added the same one meanwhile.

        Raises:
            UsageError: there is another one of that name by now.
        """
        states = list(self._states())
        known = [state.indexes[self.name] for state in states if self.name in state.indexes]
        if any(index.function != self._index.function for index in known):
            raise UsageError(f"there is an index {self.name!r} by now, with another function")
        for state in () if known else states:
            index = self._partial_indexes[state]
            index.function, index.adapter = self._index.function, self._index.adapter
            state.indexes = {**state.indexes, self.name: index}
        self.abandon()

    def abandon(self) -> None:
        """File no more changes. What is visible stays."""
        for state, index in self._partial_indexes.items():
            state.building = tuple(each for each in state.building if each is not index)
        self._partial_indexes.clear()
        self._steps.close()

    def _build(self) -> Generator[None]:
        while (state := self._next_state()) is not None:
            index = self._partial_indexes[state] = Index(self.name, self._call_function)
            state.building = (*state.building, index)
            objects = list(state.objects.values())
            for obj in objects:
                if self._is_replaced(state):
                    break
                # A newer version, or a deletion, was filed when it came.
                if state.objects.get(obj.key) is obj:
                    index.move(obj, (), index.values(obj))
                    self._filed_count += 1
                yield
            else:
                continue
            del (
                self._partial_indexes[state],
                state,
                index,
                obj,
            )  # before what they hold is freed in steps
            while objects:
                objects.pop()
                yield

    def _next_state(self) -> CacheState | None:
        return next((state for state in self._states() if state not in self._partial_indexes), None)

    def _is_replaced(self, state: CacheState) -> bool:
        return all(state is not each for each in self._states())

    def _call_function(self, obj: KubeObject) -> IndexValues:
        """The function, which may be wrong; but applying a change must not fail for that."""
        try:
            return self._index.values(obj)
        except Exception as error:  # noqa: BLE001 - a program's function may raise anything
            if self._failure is None:
                self._failure = IndexFailed(self.name, obj.resource, obj.key, error)
                self._failure.__cause__ = error
            return ()

    def __repr__(self) -> str:
        return f"<IndexBuild {self.name} filed={self._filed_count}>"

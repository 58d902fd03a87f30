"""Label indexes, and the construction of an index over a cache that is in use.

``IndexBuild`` builds an index in steps beside the existing ones. Meanwhile every change is filed in
the growing index, too (``CacheState.building``). If a new state is staged or installed, the index
is built over that state as well. An index function that raises ends the build and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from aioinformer._core.cache.store import CacheState, Index, IndexValues
from aioinformer._core.chunked_list import drain_chunks, iter_chunks
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import NeedsJson
from aioinformer.errors import IndexFailed, UsageError

CACHE_SIZE = 256
"""Label indexes that are remembered: two requests for one informer need the same function."""


class LabelIndex(Struct, NeedsJson, frozen=True):
    """An index function that files an object under ``key=value`` for each of its labels."""

    keys: tuple[str, ...] = ()
    """The keys of the labels to index; empty for all labels."""

    def __call__(self, obj: KubeObject) -> tuple[str, ...]:
        """Return the index values of ``obj``; raise ``ObjectDecodeError`` for invalid labels."""
        labels = obj.labels
        return tuple(self.value(key, labels[key]) for key in self.keys or labels if key in labels)

    def covers(self, key: str) -> bool:
        """Return True if objects are filed by this label."""
        return not self.keys or key in self.keys

    @staticmethod
    def value(key: str, value: str) -> str:
        """Return the index value of an object with this label."""
        return f"{key}={value}"

    def __repr__(self) -> str:
        return f"label_index({', '.join(map(repr, self.keys))})"


def label_index(*keys: str) -> LabelIndex:
    """Return an index function by labels, which makes selectors with ``=``, ``==`` or ``in`` fast.

    Args:
        keys: the labels to index; without any, all labels. That serves many selectors, but each
            label of each object costs about 100 bytes, and each change has to read the old labels,
            too.
    """
    return _cached_label_index(tuple(sorted(set(keys))))


@lru_cache(maxsize=CACHE_SIZE)
def _cached_label_index(keys: tuple[str, ...]) -> LabelIndex:
    return LabelIndex(keys)


class IndexBuild:
    """An index under construction: ``step`` until done, then ``commit`` with no ``await`` between.

    Call ``abandon`` if the build isn't committed.
    """

    def __init__(self, index: Index, states: Callable[[], Iterable[CacheState]]) -> None:
        """Build ``index`` over ``states()``: the current state, and the staged one if it exists."""
        self.name = index.name
        self._index = index
        self._states = states
        self._partial_indexes: dict[CacheState, Index] = {}
        self._failure: IndexFailed | None = None
        self._filed_count = 0
        self._steps = self._build()

    def step(self, n: int) -> bool:
        """File about ``n`` objects; return True if the build is done.

        Raises:
            IndexFailed: the function raised, here or for a change since the last step.
        """
        done = sum(1 for _ in islice(self._steps, n)) < n
        if self._failure is not None:
            raise self._failure
        if done and self._next_state() is not None:  # the staging of a state has begun since
            self._steps, done = self._build(), False
        return done

    def commit(self) -> None:
        """Make the index visible, unless it exists; raise ``UsageError`` if its name is taken."""
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
        """Stop filing changes. A committed index stays."""
        for state, index in self._partial_indexes.items():
            state.building = tuple(each for each in state.building if each is not index)
        self._partial_indexes.clear()
        self._steps.close()

    def _build(self) -> Generator[None]:
        while (state := self._next_state()) is not None:
            index = self._partial_indexes[state] = self._index.empty_copy()
            index.function, index.adapter = self._call_function, None
            state.building = (*state.building, index)
            objects = drain_chunks([*iter_chunks(state.objects.values())])
            for obj in objects:
                if self._is_replaced(state):
                    break
                # If it isn't, a newer version or a deletion was filed when it arrived.
                if state.objects.get(obj.key) is obj:
                    index.move(obj, (), index.values(obj))
                    self._filed_count += 1
                yield
            else:
                continue
            # The loop variables would keep the objects alive while the rest is freed in steps.
            del self._partial_indexes[state], state, index, obj
            while next(objects, None) is not None:
                yield

    def _next_state(self) -> CacheState | None:
        return next((state for state in self._states() if state not in self._partial_indexes), None)

    def _is_replaced(self, state: CacheState) -> bool:
        return all(state is not each for each in self._states())

    def _call_function(self, obj: KubeObject) -> IndexValues:
        """Call the function; record its exception, which must not end the applying of a change."""
        try:
            return self._index.values(obj)
        except Exception as error:  # noqa: BLE001 - a program's function may raise anything
            if self._failure is None:
                self._failure = IndexFailed(self.name, obj.resource, obj.key, error, new=True)
                self._failure.__cause__ = error
            return ()

    def __repr__(self) -> str:
        return f"<IndexBuild {self.name} filed={self._filed_count}>"

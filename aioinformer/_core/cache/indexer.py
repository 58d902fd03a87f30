"""The indexer: the cache's only writer. It applies queue entries and returns the events.

Whether a change is an addition or an update depends on the cached state, not on the server's word
for it (client-go's ``processDeltas``), with two differences: a re-created object is a deletion and
an addition, never an update across uids; and a state that is already cached is no event. A relist
is staged beside the live state in steps, and installed in one step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from aioinformer._core.cache.comparison import (
    append_change,
    is_same_content,
    removal_reason,
    without_traceback,
)
from aioinformer._core.cache.indexes import IndexBuild
from aioinformer._core.cache.store import (
    DICT_RESIZE_POINTS,
    CacheState,
    Index,
    IndexFunction,
    free_batches,
    work_units,
)
from aioinformer._core.callables import check_not_async
from aioinformer._core.chunked_list import ChunkedList, chunks_of
from aioinformer._core.objects.deltas import (
    Bookmark,
    Confirmed,
    Correction,
    CorrectionGuard,
    Delta,
    Replaced,
)
from aioinformer._core.objects.kube_object import (
    DIFFERENT,
    SAME_VERSION,
    Added,
    Deleted,
    DeleteReason,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
    compare_identity,
)
from aioinformer._core.objects.object_key import Admit, is_older
from aioinformer._core.objects.stored import ExcludedObject
from aioinformer._core.objects.view import ObjectView
from aioinformer.errors import UsageError


class Rejection(NamedTuple):
    uid: str
    """Of the rejected object, which may not be cached."""
    error: Exception


def _errors_of(rejections: Mapping[ObjectKey, Rejection]) -> Mapping[ObjectKey, Exception]:
    return {key: each.error for key, each in rejections.items()}


class Indexer:
    """Holds the state of the cache and applies changes to it."""

    def __init__(
        self,
        indexers: Mapping[str, IndexFunction[Any]] | None = None,
        *,
        view: ObjectView[Any] | None = None,
    ) -> None:
        """Make an empty cache.

        Args:
            indexers: index functions by index name.
            view: converts stored objects to what programs and index functions see, if they differ.

        Raises:
            UsageError: an index function reads JSON that isn't kept.
        """
        self.view = view
        self.state = CacheState()
        """The current state. A reader picks it up once for each read."""
        self.rejections: dict[ObjectKey, Rejection] = {}
        """By key of objects whose newest version was rejected. The previous one stays."""
        self._staged: CacheState | None = None
        self.extended_to = ""
        """The newest version of a state that has extended the last whole one, or empty. The watch
        may be behind it."""
        self.guards: list[CorrectionGuard] = []
        """The guards of running comparisons that may correct the cache."""
        self.add_indexers(indexers or {})

    @property
    def states(self) -> tuple[CacheState, ...]:
        return (self.state,) if self._staged is None else (self.state, self._staged)

    def add_indexers(self, indexers: Mapping[str, IndexFunction[Any]]) -> None:
        """Add indexes to an empty cache. Adding a function again under its name is no error.

        Raises:
            UsageError: a name is taken by another function, objects are cached already, or a
                function reads JSON that isn't kept.
        """
        new = {
            name: function for name, function in indexers.items() if self._is_new(name, function)
        }
        if new and self._in_use:
            raise UsageError(
                f"the index {min(new)!r} can't be added at once, since objects are cached already; "
                "write `await informer.add_index(name, function)`"
            )
        indexes = {name: self._make_index(name, function) for name, function in new.items()}
        self.state.indexes = {**self.state.indexes, **indexes}

    def _make_index(self, name: str, function: IndexFunction[Any]) -> Index:
        given: object = function  # programs without a type checker pass a path by mistake
        if not callable(given):
            hint = f"; write field({given!r})" if isinstance(given, str) else ""
            raise TypeError(
                f"the index {name!r} needs a function of an object, not {given!r}{hint}"
            )
        check_not_async(function, f"the function of the index {name!r}")
        seen = (
            None if self.view is None else self.view.adapter_for(function, f"the index {name!r}:")
        )
        return Index(name, function, seen)

    def build_index(self, name: str, function: IndexFunction[Any]) -> IndexBuild | None:
        """Begin to build an index over the cached objects; return ``None`` if it exists already.

        Raises:
            UsageError: the name is taken by another function, or it reads JSON that isn't kept.
        """
        index = self.new_index(name, function)
        return None if index is None else IndexBuild(index, lambda: self.states)

    def new_index(self, name: str, function: IndexFunction[Any]) -> Index | None:
        """Return an index without objects, or ``None``; as ``build_index``."""
        return self._make_index(name, function) if self._is_new(name, function) else None

    @property
    def _in_use(self) -> bool:
        return bool(self.state.objects or self.state.synced or self._staged is not None)

    def _is_new(self, name: str, function: IndexFunction[Any]) -> bool:
        known = self.state.indexes.get(name)
        if known is not None and known.function != function:  # two bound methods may be equal
            raise UsageError(f"there is an index {name!r} already, with another function")
        return known is None

    def __contains__(self, key: object) -> bool:
        # The deletion of an object that was always rejected matters, too: it clears ``rejections``.
        return key in self.state.objects or key in self.rejections

    @property
    def rejected(self) -> Mapping[ObjectKey, Exception]:
        return _errors_of(self.rejections)

    def rejection(self, key: ObjectKey) -> Exception | None:
        """Return the error of the newest version of this key, if that was rejected."""
        return self.rejected.get(key)

    def holds(self, obj: KubeObject) -> bool:
        """Return True if this object, by uid, is still cached in any version."""
        cached = self.state.objects.get(obj.key)
        # Mostly the same object, whose uid need not be read: this runs for each replayed object.
        return cached is obj or (cached is not None and cached.uid == obj.uid)

    def deduplicate(self, obj: KubeObject) -> KubeObject:
        """Return the cached object if it equals ``obj``, so that a relist holds no copy of it."""
        cached = self.state.objects.get(obj.key)
        return cached if cached is not None and is_same_content(cached, obj) else obj

    def apply(self, delta: Delta, events: list[Event]) -> Exception | None:
        """Apply one change and append its events.

        Returns the error that rejected the object, whose cached version stays; ``None`` otherwise.
        """
        state, obj = self.state, delta.obj
        old = state.objects.get(obj.key)
        state.resource_version = obj.resource_version or state.resource_version
        if delta.kind == "Deleted":
            if old is None or not self._is_predecessor(obj, old):
                self._delete(old, obj, events)
            return None
        if type(obj) is ExcludedObject:
            return self._exclude(old, obj, events)
        comparison = DIFFERENT if old is None else compare_identity(old, obj)
        if comparison == SAME_VERSION and old is not None and is_same_content(old, obj):
            self.rejections.pop(obj.key, None)
            return None
        if comparison == DIFFERENT and old is not None and self._is_predecessor(obj, old):
            return None
        try:
            state.put(obj, old)
        except Exception as error:  # noqa: BLE001 - a program's function may raise anything
            return self._exclude(old, ExcludedObject.of(obj, error), events)
        if self.rejections:
            self.rejections.pop(obj.key, None)
        if old is None:
            events.append(Added(obj))
        elif comparison != DIFFERENT:  # as in ``append_change``, without a second comparison
            events.append(Updated(old, obj))
        else:
            append_change(old, obj, events)
        return None

    def _is_predecessor(self, obj: KubeObject, cached: KubeObject) -> bool:
        """Return True if ``cached``, of a state that extends, is newer than this change."""
        return (
            bool(self.extended_to)
            and obj.uid != cached.uid
            and is_older(obj.resource_version, self.extended_to)
            and is_older(obj.resource_version, cached.resource_version)
        )

    def _exclude(
        self, old: KubeObject | None, obj: ExcludedObject, events: list[Event]
    ) -> Exception | None:
        """Remove ``old`` if it can't stay beside ``obj``. Return the error of ``obj``."""
        self._record_removal(obj.key)
        if obj.error is None:
            self.rejections.pop(obj.key, None)
        else:
            self.rejections[obj.key] = Rejection(obj.uid, obj.error)
        if old is not None and (reason := removal_reason(old, obj)) is not None:
            self.state.remove(old)
            events.append(Deleted(old, reason))
        return obj.error

    def _delete(self, old: KubeObject | None, obj: KubeObject, events: list[Event]) -> None:
        was_rejected = self.rejections.pop(obj.key, None) is not None
        self._record_removal(obj.key)
        if old is None:
            return
        self.state.remove(old)
        if obj.uid != old.uid:  # the deletion of ``old`` itself was missed
            events.append(Deleted(old, "vanished"))
        elif was_rejected or type(obj) is ExcludedObject:  # programs must not see ``obj``
            events.append(Deleted(old))
        else:
            events.append(Deleted(obj, "deleted", old))

    def correct(self, correction: Correction, events: list[Event]) -> Exception | None:
        """Apply a correction, unless the object has changed since; the applied version stays.

        Returns the error that rejected the server's object; ``None`` otherwise.
        """
        guard, old, obj = correction.guard, correction.cached, correction.obj
        guard.pending -= 1
        changed = self.state.objects.get(correction.key) is not old
        if changed or not guard.valid or correction.key in guard.removed:
            return None
        if obj is None:
            if old is not None:
                self.state.remove(old)
                events.append(Deleted(old, "vanished"))
        else:
            try:
                self.state.put(obj, old)
            except Exception as error:  # noqa: BLE001 - a program's function may raise anything
                return self._exclude(old, ExcludedObject.of(obj, error), events)
            if old is None:
                events.append(Added(obj))
            else:
                append_change(old, obj, events)
        guard.applied += 1
        return None

    def _record_removal(self, key: ObjectKey) -> None:
        for guard in self.guards:
            guard.removed.add(key)

    def bookmark(self, bookmark: Bookmark) -> None:
        """Move the applied version on to the bookmark's, unless that is older."""
        version, known = bookmark.resource_version, self.state.resource_version
        if version and not is_older(version, known):
            self.state.resource_version = version

    def confirm_restored(self, confirmed: Confirmed) -> None:
        """Record that the server has confirmed the restored state."""
        self.state.restored, self.state.synced = False, True

    def scope_states(self) -> Mapping[str, CacheState]:
        """Return the only state."""
        return {"": self.state}

    def lacks(self, scope: str) -> bool:
        return False

    def is_removing(self, scope: str) -> bool:
        return False

    def replace(
        self, replaced: Replaced, on_commit: Callable[[], None] | None = None
    ) -> StagedReplacement:
        """Begin to replace the whole state. ``on_commit`` is called in the step of the commit."""
        staged = self._staged = self.state.empty_copy()
        return StagedReplacement(self, replaced, staged, on_commit)

    def install(self, state: CacheState, rejections: dict[ObjectKey, Rejection]) -> None:
        """Make ``state`` the current state."""
        self.state, self.rejections, self._staged = state, rejections, None
        for guard in self.guards:
            guard.valid = False

    def __repr__(self) -> str:
        state = self.state
        return f"<Indexer objects={len(state.objects)} rv={state.resource_version or 'none'}>"


class StagedReplacement:
    """A relist that is staged in steps: ``step`` until done, ``commit``, ``step`` until done again.

    Nothing else may be applied to the indexer between the first step and the commit. The steps
    after the commit free the old state.
    """

    def __init__(
        self,
        indexer: Indexer,
        replaced: Replaced,
        staged: CacheState,
        on_commit: Callable[[], None] | None,
    ) -> None:
        self._indexer, self._replaced, self._on_commit = indexer, replaced, on_commit
        self._old = old = indexer.state
        self._new = staged
        self.initial = not (old.synced or old.restored)
        """True if this is the first state of the cache."""
        staged.restored, staged.synced = replaced.restored, not replaced.restored
        staged.resource_version = replaced.resource_version
        if not replaced.is_whole:
            staged.resource_version, staged.synced = old.resource_version, old.synced
        self._changes = ChunkedList[Event]()
        self._deletions = ChunkedList[Event]()
        self._rejections: dict[ObjectKey, Rejection] = {}
        self._repeated: dict[ObjectKey, int] = {}
        """By key that the list repeats: the changes before its last item, which are discarded."""
        self._removal_reasons: dict[ObjectKey, DeleteReason] = {}
        """The reasons for which excluded objects of the list remove cached ones, by key."""
        self._steps: Iterator[None] = self._stage()

    @property
    def rejected(self) -> Mapping[ObjectKey, Exception]:
        """The errors by key; only the first one has its traceback."""
        return _errors_of(self._rejections)

    def step(self, n: int) -> bool:
        """Handle about ``n`` objects, or a part of these; return True if that was all."""
        return len(list(islice(self._steps, n))) < n

    def commit(self) -> ChunkedList[Event]:
        """Install the new state in one step. Return the deletions, then the rest in list order."""
        self._indexer.install(self._new, self._rejections)
        if self._replaced.kept is None:
            replaced = self._replaced
            self._indexer.extended_to = replaced.resource_version if replaced.extends else ""
        self._steps = self._free()
        events, changes = self._deletions, self._changes
        events.extend(changes)
        self._deletions = self._changes = ChunkedList[Event]()  # each listener frees its chunks
        if self._on_commit is not None:
            self._on_commit()
        return events

    def _stage(self) -> Iterator[None]:
        if not self._replaced.is_whole:
            yield from self._stage_cached(self._replaced.kept)
        for obj in self._replaced.objects:
            if len(self._new.objects) in DICT_RESIZE_POINTS:
                yield from self._new.resize_dicts()
            self._stage_object(obj)
            yield
        if self._repeated:
            yield from self._discard_repeated()
        if not self._replaced.is_whole:
            return
        for key, obj in self._old.objects.items():
            if key not in self._new.objects:
                reason = self._removal_reasons.get(key, self._replaced.reason)
                self._deletions.append(Deleted(obj, reason))
            yield

    def _stage_cached(self, kept: Admit | None) -> Iterator[None]:
        """Keep the admitted cached objects, and delete the others; keep all for ``None``."""
        for key, obj in self._old.objects.items():
            if len(self._new.objects) in DICT_RESIZE_POINTS:
                yield from self._new.resize_dicts()
            if kept is None or kept(obj.uid, key.namespace):
                self._new.put(obj, None)  # index functions accepted it before
            else:
                self._deletions.append(Deleted(obj, self._replaced.reason))
            yield
        self._rejections = {
            key: each
            for key, each in self._indexer.rejections.items()
            if kept is None or kept(each.uid, key.namespace)
        }

    def _is_initial(self, obj: KubeObject) -> bool:
        admit = self._replaced.initial
        return admit is not None and admit(obj.uid, obj.key.namespace)

    def _stage_object(self, obj: KubeObject) -> None:
        staged = self._new.objects.get(obj.key)
        if staged is not None or (self._rejections and obj.key in self._rejections):
            self._discard_earlier(obj.key)
        old = self._old.objects.get(obj.key)
        if type(obj) is ExcludedObject:
            self._exclude(old, obj, staged)
            return
        unchanged = old is not None and is_same_content(old, obj)
        if old is not None and unchanged:
            obj = old  # the bytes of ``old`` are in memory already
        try:
            self._new.put(obj, staged)
        except Exception as error:  # noqa: BLE001 - a program's function may raise anything
            self._exclude(old, ExcludedObject.of(obj, error), staged)
            return
        if unchanged:
            return
        if old is None:
            self._changes.append(Added(obj, initial=self.initial or self._is_initial(obj)))
        else:
            append_change(old, obj, self._changes)

    def _exclude(
        self, old: KubeObject | None, obj: ExcludedObject, staged: KubeObject | None
    ) -> None:
        reason = None if old is None else removal_reason(old, obj)
        if obj.error is not None:
            self._reject(obj.key, obj.uid, obj.error)
        if reason is not None:
            self._removal_reasons[obj.key] = reason
        self._retain(old if reason is None else None, staged)

    def _reject(self, key: ObjectKey, uid: str, error: Exception) -> None:
        # The frames of a traceback keep removed objects alive, so only the first one is kept.
        kept = without_traceback(error) if self._rejections else error
        self._rejections[key] = Rejection(uid, kept)

    def _retain(self, old: KubeObject | None, staged: KubeObject | None) -> None:
        """Keep the cached object in the place of an earlier item of the list with its key."""
        if old is not None:
            self._new.put(old, staged)  # index functions accepted it before, so they accept it now
        elif staged is not None:
            self._new.remove(staged)

    def _discard_earlier(self, key: ObjectKey) -> None:
        """Discard an earlier item of the same key; the last one of a list counts."""
        self._repeated[key] = len(self._changes)
        self._rejections.pop(key, None)

    def _discard_repeated(self) -> Iterator[None]:
        """Discard all changes of earlier items in one pass; a pass for each would be quadratic."""
        number, chunks = 0, deque(self._changes.chunks)
        self._changes = ChunkedList[Event]()
        while chunks:
            for event in chunks.popleft():
                if number >= self._repeated.get(event.obj.key, 0):
                    self._changes.append(event)
                number += 1
                yield

    def _free(self) -> Iterator[None]:
        """Free the old state in steps without emptying it: readers may still use it."""
        old, self._old = self._old, self._new
        to_free: list[list[Any]] = [chunks_of(self._replaced.objects)]
        self._replaced = Replaced((), self._new.resource_version)
        for batch in old.batches_to_free():
            to_free.append(batch)
            yield from work_units(batch)
        del old
        yield from free_batches(to_free)

    def __repr__(self) -> str:
        done, total = len(self._new.objects), len(self._replaced.objects)
        return f"<StagedReplacement staged={done}/{total} rv={self._new.resource_version}>"

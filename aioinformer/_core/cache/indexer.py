"""The cache's only writer: applies what the queue delivers, and says what listeners are to hear.

Whether a change is an add or an update depends on what the cache holds, not on what the server
called it (client-go's processDeltas), with two differences: a re-created object is a deletion
and an addition, never an update across uids; and a state that is already held is no event.

A list that replaces everything is staged beside the live state in steps that the caller sizes,
then swapped in at once; what the old state held is freed in steps too. So is an index that comes
late (``index_building``). Reading is ``lister``'s.

Whether a version of an object says anything new, and what that means for listeners.

A server stamps a version on every change, so that equal versions are equal objects; but after it
went back in time they prove nothing, and what is in the objects is compared. Who asks is
``indexer``, and ``verification``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, repeat
from typing import Any, cast

from aioinformer._core.cache.indexes import IndexBuild
from aioinformer._core.cache.store import DICT_RESIZE_POINTS, CacheState, Index, IndexFunction
from aioinformer._core.callables import check_not_async
from aioinformer._core.objects.deltas import Bookmark, Compare, Delta, Replaced
from aioinformer._core.objects.identity import is_older
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    DeleteReason,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
)
from aioinformer._core.objects.stored import ExcludedObject, ModelObject
from aioinformer._core.objects.view import ObjectView
from aioinformer.errors import ObjectDecodeError, UsageError

__all__ = [
    "Indexer",
    "StagedReplacement",
    "append_change",
    "has_equal_content",
    "is_same_content",
    "is_same_version",
    "removal_reason",
    "without_traceback",
]


def is_same_version(old: KubeObject, new: KubeObject) -> bool:
    """Whether ``new`` says nothing new. A server stamps a version on every change."""
    version = new.resource_version  # first: mostly another one, and then that is all
    return old.resource_version == version and old.uid == new.uid and bool(version)


def is_same_content(old: KubeObject, new: KubeObject) -> bool:
    """Whether ``new`` says nothing new, whatever its version. The items of a list lack the kind
    and apiVersion that the events of a watch have (recordings 10 and 30).
    """
    if old.uid != new.uid or old.resource_version != new.resource_version:
        return False
    if old.api_version != new.api_version:  # read in another version of the resource
        return False
    if type(new) is ExcludedObject:
        return False
    return has_equal_content(old, new)


def has_equal_content(old: KubeObject, new: KubeObject) -> bool:
    """Whether the same is in both, however they were read.

    Models are compared by their own ``==``. One that raises has not said that they are the same:
    then a change is told that is none, rather than one kept back.
    """
    if old.raw and old.raw == new.raw:
        return True
    try:
        return bool(_content(old) == _content(new))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - a program's model may raise anything
        return False


def _content(obj: KubeObject) -> object:
    """What is in it: the items of a list lack kind and apiVersion."""
    if type(obj) is ModelObject:
        return obj.model
    try:
        body = obj.to_dict()
    except ObjectDecodeError:
        return obj.raw
    return {key: value for key, value in body.items() if key not in ("kind", "apiVersion")}


def removal_reason(old: KubeObject, obj: ExcludedObject) -> DeleteReason | None:
    """Why ``old`` is held no more, now that ``obj`` is withheld; ``None`` if it stays."""
    if old.uid != obj.uid:  # the object that was cached is certainly gone
        return "vanished"
    return "dropped" if obj.error is None else None


def without_traceback(error: Exception) -> Exception:
    """The same without what its tracebacks keep alive."""
    if error.__cause__ is not None:
        error.__cause__.__traceback__ = None
    return error.with_traceback(None)


def append_change(old: KubeObject, new: KubeObject, events: list[Event]) -> None:
    """What it means that ``new`` comes in the place of ``old``."""
    if old.uid == new.uid:
        events.append(Updated(old, new))
    else:
        events += (Deleted(old), Added(new))


class Indexer:
    """Holds the state and applies changes to it."""

    def __init__(
        self,
        indexers: Mapping[str, IndexFunction[Any]] | None = None,
        *,
        view: ObjectView[Any] | None = None,
    ) -> None:
        """Make an empty cache.

        Args:
            indexers: index functions by index name.
            view: what they get instead of the cached objects, if it is something else.

        Raises:
            UsageError: an index function reads what isn't kept.
        """
        self.view = view
        """How programs see what is held; ``None`` if they see it as it is."""
        self.state = CacheState()
        """What is held now. Readers pick it up once and stay with it."""
        self.rejected: dict[ObjectKey, Exception] = {}
        """Objects whose newest version an index function refused, or that didn't fit the model or
        the transform; the one before stays."""
        self._staged: CacheState | None = None
        self.add_indexers(indexers or {})

    @property
    def states(self) -> tuple[CacheState, ...]:
        """What is held, and what is being staged to replace it."""
        return (self.state,) if self._staged is None else (self.state, self._staged)

    def add_indexers(self, indexers: Mapping[str, IndexFunction[Any]]) -> None:
        """Add indexes to an empty cache. The same function under the same name again is no error.

        Raises:
            UsageError: a name is taken by another function, or objects are held already, or a
                function reads what isn't kept.
        """
        new = {
            name: function for name, function in indexers.items() if self._is_new(name, function)
        }
        if new and self._in_use:
            raise UsageError(
                f"the cache holds objects already: the index {min(new)!r} takes a while to build; "
                "write `await informer.add_index(name, function)`"
            )
        indexes = {name: self._make_index(name, function) for name, function in new.items()}
        self.state.indexes = {**self.state.indexes, **indexes}

    def _make_index(self, name: str, function: IndexFunction[Any]) -> Index:
        check_not_async(function, f"the function of the index {name!r}")
        seen = (
            None if self.view is None else self.view.adapter_for(function, f"the index {name!r}:")
        )
        return Index(name, function, seen)

    def build_index(self, name: str, function: IndexFunction[Any]) -> IndexBuild | None:
        """Start to add an index, whatever is held; ``None`` if it is there already.

        Raises:
            UsageError: the name is taken by another function, or it reads what isn't kept.
        """
        if not self._is_new(name, function):
            return None
        return IndexBuild(self._make_index(name, function), lambda: self.states)

    @property
    def _in_use(self) -> bool:
        return bool(self.state.objects or self.state.synced or self._staged is not None)

    def _is_new(self, name: str, function: IndexFunction[Any]) -> bool:
        """Whether there is no such index yet; raises if there is another one of that name."""
        known = self.state.indexes.get(name)
        if known is not None and known.function != function:  # two bound methods may be equal
            raise UsageError(f"there is an index {name!r} already, with another function")
        return known is None

    def __contains__(self, key: object) -> bool:
        # Of an object that was refused from the start the deletion matters too: it clears that.
        return key in self.state.objects or key in self.rejected

    def holds(self, obj: KubeObject) -> bool:
        """Whether this very object, by uid, is still cached, in whatever version."""
        held = self.state.objects.get(obj.key)
        return held is not None and held.uid == obj.uid

    def deduplicate(self, obj: KubeObject) -> KubeObject:
        """The cached object if it is the same version of ``obj``, else ``obj``: so that a relist
        doesn't hold what didn't change twice.
        """
        held = self.state.objects.get(obj.key)
        return held if held is not None and self.same(held, obj) else obj

    def same(self, held: KubeObject, obj: KubeObject) -> bool:
        """Whether ``obj`` says nothing new. What is held since a newer state was refused may be of
        a time that the server has gone back behind: equal versions prove nothing then.
        """
        by_content = self.rejected and held.key in self.rejected
        return (is_same_content if by_content else is_same_version)(held, obj)

    def apply(self, delta: Delta, events: list[Event]) -> Exception | None:
        """Apply one change and append what it means for listeners.

        Returns:
            Why the object stays as it was: it was withheld, or an index function raised.
        """
        state, obj = self.state, delta.obj
        old = state.objects.get(obj.key)
        state.resource_version = obj.resource_version or state.resource_version
        if delta.kind == "Deleted":
            self._delete(old, obj, events)
            return None
        if type(obj) is ExcludedObject:
            return self._exclude(old, obj, events)
        if old is not None and self.same(old, obj):
            return None
        try:
            state.put(obj, old)
        except Exception as error:  # noqa: BLE001 - a program's function may raise anything
            self.rejected[obj.key] = error
            return error
        if self.rejected:
            self.rejected.pop(obj.key, None)
        if old is None:
            events.append(Added(obj))
        else:
            append_change(old, obj, events)
        return None

    def _exclude(
        self, old: KubeObject | None, obj: ExcludedObject, events: list[Event]
    ) -> Exception | None:
        """Nothing of ``obj`` is cached; what becomes of ``old``."""
        if obj.error is None:
            self.rejected.pop(obj.key, None)
        else:
            self.rejected[obj.key] = obj.error
        if old is not None and (reason := removal_reason(old, obj)) is not None:
            self.state.remove(old)
            events.append(Deleted(old, reason))
        return obj.error

    def _delete(self, old: KubeObject | None, obj: KubeObject, events: list[Event]) -> None:
        refused = self.rejected.pop(obj.key, None) is not None
        if old is None:
            return
        self.state.remove(old)
        # The listener held ``old``; the last state that it is told of is of the same object. And
        # of the same content, but for the version: else a filter might let the one pass and not
        # the other, and the listener would hold it for ever. What was withheld is no state.
        told = obj.uid == old.uid and not refused and type(obj) is not ExcludedObject
        events.append(Deleted(obj if told else old))

    def bookmark(self, bookmark: Bookmark) -> None:
        """Everything up to this version has been applied. An older one says nothing."""
        version, known = bookmark.resource_version, self.state.resource_version
        if version and not is_older(version, known):
            self.state.resource_version = version

    def replace(self, replaced: Replaced) -> StagedReplacement:
        """Start to replace everything that is held."""
        staged = self._staged = self.state.empty_copy()
        return StagedReplacement(self, replaced, staged)

    def install(self, state: CacheState, rejected: dict[ObjectKey, Exception]) -> None:
        """Hold ``state`` from now on."""
        self.state, self.rejected, self._staged = state, rejected, None

    def __repr__(self) -> str:
        state = self.state
        return f"<Indexer objects={len(state.objects)} rv={state.resource_version or 'none'}>"


class StagedReplacement:
    """A new state in the making: ``step`` until done, ``commit``, ``step`` until done again.

    Nothing else may be applied to the indexer between the first step and the commit.
    """

    def __init__(self, indexer: Indexer, replaced: Replaced, staged: CacheState) -> None:
        """Stage ``replaced`` in the empty ``staged``, beside what ``indexer`` holds."""
        self._indexer = indexer
        self._replaced = replaced
        self._is_same = is_same_content if replaced.compare is Compare.BY_CONTENT else indexer.same
        self._old = indexer.state
        self._new = staged
        self._new.resource_version = replaced.resource_version
        self._new.synced = True
        self._changes: list[Event] = []
        self._deletions: list[Event] = []
        self._rejected: dict[ObjectKey, Exception] = {}
        self._removal_reasons: dict[ObjectKey, DeleteReason] = {}
        """Why what the list withholds is held no more, if it isn't."""
        self._steps: Iterator[None] = self._stage()

    @property
    def initial(self) -> bool:
        """Whether this is the cache's first full state."""
        return not self._old.synced

    @property
    def rejected(self) -> Mapping[ObjectKey, Exception]:
        """Why objects were rejected; only the first reason has its traceback."""
        return self._rejected

    def step(self, n: int) -> bool:
        """Do about ``n`` objects' worth of work; whether it is done."""
        return sum(1 for _ in islice(self._steps, n)) < n

    def commit(self) -> list[Event]:
        """Make the new state the cache's, at once.

        Returns:
            What listeners are to hear: deletions, then the rest in the order of the list.
        """
        self._indexer.install(self._new, self._rejected)
        self._steps = self._free()
        events = self._deletions + self._changes
        self._deletions, self._changes = [], []  # whoever hears them last frees them, not this
        return events

    def _stage(self) -> Iterator[None]:
        for obj in self._replaced.objects:
            if len(self._new.objects) in DICT_RESIZE_POINTS:
                yield from self._new.resize_dicts()
            self._stage_object(obj)
            yield
        for key, obj in self._old.objects.items():
            if key not in self._new.objects:
                reason = self._removal_reasons.get(key, self._replaced.reason)
                self._deletions.append(Deleted(obj, reason))
            yield

    def _stage_object(self, obj: KubeObject) -> None:
        staged = self._new.objects.get(obj.key)
        if staged is not None or obj.key in self._rejected:
            self._discard_earlier(obj.key)
        old = self._old.objects.get(obj.key)
        if type(obj) is ExcludedObject:
            self._exclude(old, obj, staged)
            return
        unchanged = old is not None and self._is_same(old, obj)
        if old is not None and unchanged:
            obj = old  # its bytes are in memory already
        try:
            self._new.put(obj, staged)
        except Exception as error:  # noqa: BLE001 - a program's function may raise anything
            self._reject(obj.key, error)
            self._retain(old, staged)
            return
        if unchanged:
            return
        if old is None:
            self._changes.append(Added(obj, initial=self.initial))
        else:
            append_change(old, obj, self._changes)

    def _exclude(
        self, old: KubeObject | None, obj: ExcludedObject, staged: KubeObject | None
    ) -> None:
        reason = None if old is None else removal_reason(old, obj)
        if obj.error is not None:
            self._reject(obj.key, obj.error)
        if reason is not None:
            self._removal_reasons[obj.key] = reason
        self._retain(old if reason is None else None, staged)

    def _reject(self, key: ObjectKey, error: Exception) -> None:
        # The frames of a traceback keep alive what the cache let go; one is enough to show.
        self._rejected[key] = without_traceback(error) if self._rejected else error

    def _retain(self, old: KubeObject | None, staged: KubeObject | None) -> None:
        """Hold what was held, whatever else the list has said before."""
        if old is not None:
            self._new.put(old, staged)  # accepted before, so accepted now
        elif staged is not None:
            self._new.remove(staged)

    def _discard_earlier(self, key: ObjectKey) -> None:
        """A list should name an object once; of several times the last one counts."""
        self._changes = [event for event in self._changes if event.obj.key != key]
        self._rejected.pop(key, None)

    def _free(self) -> Iterator[None]:
        """Let go of the old state. Readers may still hold it, so it isn't taken apart: what it
        refers to is kept alive by lists, and those are emptied in steps.
        """
        old, self._old = self._old, self._new
        kept: list[list[Any]] = [list(self._replaced.objects)]
        self._replaced = Replaced((), self._new.resource_version)
        for batch in old.batches_to_free():
            kept.append(batch)
            yield from _work_units(batch)
        del old
        while kept:
            batch = kept[-1]
            while batch:
                yield from _work_units(batch.pop())
            kept.pop()

    def __repr__(self) -> str:
        done, total = len(self._new.objects), len(self._replaced.objects)
        return f"<StagedReplacement staged={done}/{total} rv={self._new.resource_version}>"


def _work_units(item: object) -> Iterator[None]:
    """What handling ``item`` counts for: one, and more for a container, which can't be let go, or
    copied, in parts. 64 of its entries are as quick as anything else is with one object.
    """
    size = len(cast("list[object]", item)) if isinstance(item, dict | list) else 0
    return repeat(None, 1 + size // 64)

"""The shards of one scope in the cache file of a group's informer.

A member that restarts receives its shards one after the other. Their rows stay in the file until
the shard returns, or until the server's history has passed their version.

The file holds one state of all shards of a scope, with one resourceVersion. The state of shards
that moved in is newer than the watch of the others at first: such shards are *ahead*, and belong to
the stored state once the watch has reached their version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol, TypeAlias, runtime_checkable

from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import Admit, is_older
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer.sharding.group_shards import GroupShards
from aioinformer.sharding.state.ranges import HashRanges, shard_start
from aioinformer.sharding.state.shard_sets import format_shards, parse_shards

RESTORABLE_SECONDS = 600.0
"""Seconds after the start for which shards are restored: a server usually keeps the changes of five
to ten minutes, and lists the objects of an older state anyway."""

Sealed: TypeAlias = tuple[frozenset[int], frozenset[int]]
"""The shards that are cached at one moment, and those whose objects are the state of the cache's
version: all that are not ahead."""


class StoredState(Protocol):
    """The state of one scope that an earlier run has stored."""

    @property
    def version(self) -> str: ...

    @property
    def parts(self) -> str:
        """The shards whose state this is, as ``StoredShards.promise`` returned them."""
        ...

    @property
    def problem(self) -> str:
        """The reason why the file is no longer used; empty while the file is used."""
        ...

    def read(self, admit: Admit) -> AsyncIterator[list[KubeObject]]:
        """Return the admitted objects in lists. After a problem the iterator ends early."""
        ...


@runtime_checkable
class KeepsShards(Protocol):
    """A feature that keeps the state of shards from one run to the next."""

    async def open_parts(
        self, source: ListerWatcher, scope: str, parts: StoredShards
    ) -> StoredState | None:
        """Return the stored state of a scope, if there is one, and store ``parts`` from now on.

        ``source`` is that of the objects of all shards.
        """
        ...


class StoredShards:
    """The shards of one scope that an earlier run has stored, and those that this run stores."""

    def __init__(self, shards: GroupShards) -> None:
        self._shards = shards
        self._every = frozenset(range(shards.assignment.count))
        self.held: frozenset[int] = frozenset()
        """The shards that the cache holds. Changes in the step that changes the cache."""
        self._ahead: list[tuple[frozenset[int], str]] = []
        self.state: StoredState | None = None
        """The state of an earlier run; ``None`` if there is none, or before ``open``."""
        self._restorable: frozenset[int] = frozenset()
        self._until = 0.0

    async def open(self, keeper: KeepsShards, source: ListerWatcher, scope: str) -> None:
        """Open the file, and read which shards it has of an earlier run."""
        self.state = state = await keeper.open_parts(source, scope, self)
        if state is not None:
            self._restorable = parse_shards(state.parts, len(self._every))
            self._until = asyncio.get_running_loop().time() + RESTORABLE_SECONDS

    # -- shards of an earlier run ----------------------------------------------------------------

    def find(self, shards: frozenset[int]) -> frozenset[int]:
        """Return those of the shards that can be restored."""
        state = self.state
        if state is None or state.problem or asyncio.get_running_loop().time() > self._until:
            self._restorable = frozenset()
        return shards & self._restorable

    def discard(self, shards: frozenset[int]) -> None:
        """Restore these shards no more: the cache holds a later state of them."""
        self._restorable -= shards

    # -- shards that are stored ------------------------------------------------------------------

    def apply(self, replaced: Replaced) -> None:
        """Follow a state that the cache has installed; its objects are not read."""
        if replaced.kept is not None:
            retained = self._shards_of(replaced.kept)
            self.held &= retained
            self._ahead = [(shards & retained, version) for shards, version in self._ahead]
            return
        gained = self._shards_of(replaced.initial)
        self.held |= gained
        if replaced.extends:
            self._ahead.append((gained, replaced.resource_version))
        else:
            self._ahead = []  # the whole state has one version

    def _shards_of(self, admit: HashRanges | Admit | None) -> frozenset[int]:
        if not isinstance(admit, HashRanges):
            return frozenset()
        count = len(self._every)
        return frozenset(each for each in self._every if admit.has_hash(shard_start(each, count)))

    def seal(self, version: str) -> Sealed:
        """Return the shards of this moment, at which the cache has applied ``version``."""
        self._ahead = [each for each in self._ahead if is_older(version, each[1])]
        ahead = frozenset[int]().union(*(shards for shards, _ in self._ahead))
        return self.held, self.held - ahead

    def cached_ranges(self, version: str) -> tuple[HashRanges, HashRanges | None]:
        """Return the hashes of the cached shards as of ``version``, and of those that are ahead."""
        held, complete = self.seal(version)
        ahead, ranges_of = held - complete, self._shards.ranges_of
        return ranges_of(complete), ranges_of(ahead) if ahead else None

    def promise(self, sealed: Sealed, written: Sealed | None) -> tuple[str, Admit | None]:
        """Return the complete shards as text, and the objects whose rows in the file may be those
        of an earlier run; ``written`` is the last state that this run has written.

        All rows of a shard that was gained since are among the changes to write. The first write of
        a run removes the rows of all other shards as well, except for those that may be restored.
        """
        held, complete = sealed
        if written is None:
            outdated = self._every - (self.find(self._every) - held)
        else:
            outdated = held - written[0]
        admit = self._shards.ranges_of(outdated).has if outdated else None
        return format_shards(complete), admit

    def __repr__(self) -> str:
        return (
            f"<StoredShards {len(self.held)} held, {len(self._ahead)} groups ahead, "
            f"{format_shards(self._restorable)} restorable>"
        )

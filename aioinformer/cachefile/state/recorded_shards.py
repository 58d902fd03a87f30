"""The shards of a group whose objects one cache holds, as far as a cache file may promise them.

The file holds one state of all shards of an informer, with one resourceVersion. The state of shards
that moved in is newer than the watch of the others at first: such shards are *ahead*, and belong to
the stored state once the watch has reached their version.
"""

from __future__ import annotations

from msgspec import Struct

from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.object_key import Admit, is_older
from aioinformer.sharding.state.ranges import HashRanges, shard_start


class SealedShards(Struct, frozen=True):
    """The shards of a cache at one moment."""

    held: frozenset[int]
    """The shards whose objects are cached."""
    complete: frozenset[int]
    """Those whose objects are the state of the cache's version. The others are ahead."""


class RecordedShards:
    """The shards that one scope of a cache holds. Changes in the step that changes the cache."""

    def __init__(self, count: int) -> None:
        self._starts = tuple(shard_start(index, count) for index in range(count))
        self.held: frozenset[int] = frozenset()
        self._ahead: list[tuple[frozenset[int], str]] = []

    def apply(self, replaced: Replaced) -> None:
        """Follow a state that the cache has installed; its objects are not read."""
        if replaced.kept is not None:
            kept = self._shards_of(replaced.kept)
            self.held &= kept
            self._ahead = [(shards & kept, version) for shards, version in self._ahead]
            return
        gained = self._shards_of(replaced.initial)
        self.held |= gained
        if replaced.extends:
            self._ahead.append((gained, replaced.resource_version))
        else:
            self._ahead = []  # the whole state has one version

    def _shards_of(self, admit: Admit | None) -> frozenset[int]:
        if not isinstance(admit, HashRanges):
            return frozenset()
        return frozenset(index for index, start in enumerate(self._starts) if admit.has_hash(start))

    def seal(self, version: str) -> SealedShards:
        """Return the shards of this moment, at which the cache has applied ``version``."""
        self._ahead = [each for each in self._ahead if is_older(version, each[1])]
        ahead = frozenset[int]().union(*(shards for shards, _ in self._ahead))
        return SealedShards(self.held, self.held - ahead)

    def __repr__(self) -> str:
        return f"<RecordedShards {len(self.held)} held, {len(self._ahead)} groups ahead>"


def outdated_shards(
    written: SealedShards | None, sealed: SealedShards, *, restorable: frozenset[int], count: int
) -> frozenset[int]:
    """Return the shards whose rows in a file may be those of an earlier run.

    All rows of a shard that was gained since the last write are among the changes to write. The
    first write of a run (``written`` is ``None``) removes the rows of all other shards as well,
    except for those that may still be restored.
    """
    if written is None:
        return frozenset(range(count)) - (restorable - sealed.held)
    return sealed.held - written.held

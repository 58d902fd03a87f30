"""``Shard``: one of several equal parts of a resource's objects."""

from __future__ import annotations

from msgspec import Struct

from aioinformer.sharding.state.ranges import HashRanges, ShardKey

MAX_SHARDS = 65536
"""The most shards of one resource. More would be smaller than the hash spreads evenly."""


class Shard(Struct, frozen=True):
    """One of ``count`` equal parts of a resource's objects, by the hash of a metadata field.

    The shards ``Shard(0, 4)`` to ``Shard(3, 4)`` are disjoint, and every object is in one of them.
    The split is that of a server with the gate ``ShardedListAndWatch`` (KEP-5866, alpha): such a
    server sends the shard alone. From any other server all objects are received, and those of other
    shards are dropped before they are built.

    Args:
        index: the number of the shard, from 0 to ``count - 1``.
        count: the number of shards, 1 to 65,536. Replicas with different counts read overlapping
            parts.
        by: ``"uid"`` spreads the objects evenly. ``"namespace"`` keeps the objects of a namespace
            together, an owner and its children for example; a namespace may be larger than a
            shard's fair part. All cluster-scoped objects would be in one shard: informers reject
            that. A server hashes no other field.

    Raises:
        TypeError: ``index`` or ``count`` is no integer.
        ValueError: a number is out of range, or ``by`` is another text.

    Not promised: equal sizes. The parts of a random hash differ; of 10,000 objects in four shards,
    by about 2 %.

    Example::

        replica, replicas = 2, 4  # from the ordinal of a StatefulSet's pod, for example
        shard = Shard(replica, replicas)
        assert str(shard) == "shard 2 of 4"
    """

    index: int
    count: int
    by: ShardKey = "uid"

    def __post_init__(self) -> None:
        _check_number("index", self.index)
        _check_number("count", self.count)
        if not 1 <= self.count <= MAX_SHARDS:
            raise ValueError(f"count of a Shard must be 1 to {MAX_SHARDS}, not {self.count}")
        if not 0 <= self.index < self.count:
            raise ValueError(
                f"index of a Shard must be 0 to {self.count - 1} (count - 1), not {self.index}"
            )
        if self.by not in ("uid", "namespace"):
            raise ValueError(
                f"by of a Shard must be 'uid' or 'namespace', the fields that servers hash, not "
                f"{self.by!r}"
            )

    @property
    def ranges(self) -> HashRanges:
        return HashRanges.of((self.index,), self.count, self.by)

    def __str__(self) -> str:
        field = "" if self.by == "uid" else f" by {self.by}"
        return f"shard {self.index} of {self.count}{field}"


def _check_number(name: str, number: object) -> None:
    # ``object``, because a program without a type checker may pass a text from its environment.
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{name} of a Shard must be a whole number, not {number!r}")

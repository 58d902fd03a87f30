"""What a server can do: the version that it imitates, and the switches on its command line.

The defaults are those of a kube-apiserver 1.36, the one that the recordings are of.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Features"]

WATCH_LIST_COMPRESSION_MINOR = 37
"""The minor version that compresses WatchLists (``WatchListCompression``, beta and on)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What a server can do."""

    minor: int = 36
    """Kubernetes 1.``minor``. From 37 on a WatchList is compressed for clients that accept gzip,
    and it is *multi-member* gzip: a member for everything that is sent at once."""
    watch_list: bool = True
    """Whether storage can serve a WatchList. If not, it is answered by 200 and an ERROR event with
    code 500, as with an etcd before 3.4.31 or 3.5.13 (recording 43); lists come from etcd then."""
    sharding: bool = False
    """``ShardedListAndWatch`` (alpha): without it ``shardSelector`` is ignored (recording 54)."""

    @property
    def gzipped_watch_lists(self) -> bool:
        """Whether WatchLists are compressed."""
        return self.minor >= WATCH_LIST_COMPRESSION_MINOR

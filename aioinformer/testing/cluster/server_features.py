"""The capabilities of the imitated server: its version, and switches of its command line.

The defaults are those of a kube-apiserver 1.36, after whose answers the cluster is made.
"""

from __future__ import annotations

from dataclasses import dataclass

WATCH_LIST_COMPRESSION_MINOR = 37
"""The first minor version with ``WatchListCompression`` (beta and on)."""

CONSTRAINED_IMPERSONATION_MINOR = 36
"""The first minor version with ``ConstrainedImpersonation`` (beta and on)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The version and the optional features of a server."""

    minor: int = 36
    """Kubernetes 1.``minor``. From 37 on, a WatchList is compressed for clients that accept gzip,
    as *multi-member* gzip: each piece that is sent at once is a gzip member of its own."""
    watch_list: bool = True
    """True if storage can serve a WatchList. If not, a WatchList is answered by 200 and an ERROR
    event with code 500, as with an etcd before 3.4.31 or 3.5.13, and lists come from etcd."""
    sharding: bool = False
    """``ShardedListAndWatch`` (alpha). Without it ``shardSelector`` is ignored."""

    garbage_collection: bool = True
    """True if the deletion of an owner deletes its dependents, as kube-controller-manager does it
    (``--enable-garbage-collector``). Without it the finalizers of foreground deletion stay."""

    @property
    def gzipped_watch_lists(self) -> bool:
        return self.minor >= WATCH_LIST_COMPRESSION_MINOR

    @property
    def constrained_impersonation(self) -> bool:
        """True if single verbs have their own rights to impersonate."""
        return self.minor >= CONSTRAINED_IMPERSONATION_MINOR

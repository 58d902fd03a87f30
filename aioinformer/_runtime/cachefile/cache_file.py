"""``CacheFile``: the options of a cache file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from aioinformer._core.arguments import check_bool, check_seconds, suggest_keywords
from aioinformer._core.codec.shape import Shape
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.cachefile.file_access import FileAccess

__all__ = ["CacheFile"]

WRITE_INTERVAL = 1.0
"""Seconds between two writes. A change that is repeated within them is written once."""

SHARED_INTERVAL = 0.05
"""Seconds between two writes of a shared file: other processes learn the changes from the file."""


class CacheFile:
    """A file in which informers keep their caches, so that a restart needs no list.

    Pass it to a factory, for all of its informers: ``SharedInformerFactory(client,
    cache=CacheFile("pods.db"))``, or to ``informer(...)`` for one of them. Many informers may share
    a file, but one process alone uses a file at a time, unless the file is ``shared``. Where a
    second process, a full disk or a corrupt file makes the file unusable, one line of the log and
    ``health.cache_problem`` say so, and the informers go on without the file.

    Two things are not promised. After a crash, the file may lack the newest changes, which are read
    from the server again. Another version of this library may be unable to read the file, and lists
    then.

    Example::

        from pathlib import Path
        from tempfile import gettempdir

        cache = CacheFile(Path(gettempdir()) / "aioinformer-example" / "pods.db", interval=0.5)
        assert SharedInformerFactory(client, cache=cache)
    """

    @suggest_keywords
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        shared: bool = False,
        interval: float | None = None,
        allow_secrets: bool = False,
        version: str = "",
    ) -> None:
        """Name a file. The first informer opens the file, or creates it for this user alone (0600).

        Args:
            path: the path of the file. Its directory must exist and be on a local disk: SQLite's
                locks and write-ahead log don't work on network file systems.
            shared: True if several processes of this host, such as the workers of a web server,
                use the file. The first one watches the server and writes the file; the others read
                their caches from the file, and one of them takes over when the first one ends. All
                must pass ``shared=True``.
            interval: seconds between two writes: by default 1, and 0.05 for a shared file.
            allow_secrets: True to store Secrets, too, with their contents. By default an informer
                of Secrets goes on without the file.
            version: a text of the program's own, which is stored with each state: a state of
                another version is not used. Change it when a ``transform=`` returns other results
                because of a function that it calls; a change of its own code is noticed.

        Raises:
            TypeError: ``version`` is no text, or ``shared`` or ``allow_secrets`` no bool.
            ValueError: ``interval`` is no positive number of seconds.
        """
        self.path = Path(path)
        check_bool("shared", shared)
        check_bool("allow_secrets", allow_secrets)
        if interval is None:
            interval = SHARED_INTERVAL if shared else WRITE_INTERVAL
        check_seconds("interval", interval)
        # A program without a type checker may pass anything.
        if not isinstance(cast("object", version), str):
            raise TypeError(f"version must be text, not {version!r}")
        self.shared = shared
        self.interval = interval
        self.allow_secrets = allow_secrets
        self.version = version
        self._access: FileAccess | None = None

    def access(self) -> FileAccess:
        """Return the access that the informers of this process share. For informers only."""
        if self._access is None:
            self._access = FileAccess(self.path, shared=self.shared)
        return self._access

    def refusal(self, resource: Resource, shape: Shape[Any], *, on_group: bool = False) -> str:
        """Return why the objects of an informer can't be in the file; empty if they can.

        Args:
            resource: the resource of the informer.
            shape: the stored form of its objects.
            on_group: True if the informer reads the shards of a group.
        """
        if on_group and self.shared:
            return (
                f"{resource} are not in {self.path}: the members of a group hold different shards, "
                "so give each member a CacheFile of its own without shared=True"
            )
        if shape.model is not None:
            return f"{resource} are not in {self.path}: model= keeps no JSON; use convert="
        if resource.group == "" and resource.plural == "secrets" and not self.allow_secrets:
            return f"Secrets are not in {self.path}: pass allow_secrets=True to store them"
        return ""

    def refuse_durable(self, informer: str, *, on_group: bool) -> str:
        """Return why a listener can't be durable in this file; empty if it can.

        Args:
            informer: the name of the informer.
            on_group: True if the informer reads the shards of a group.
        """
        if on_group:
            return (
                f"can't remember the events of {informer}: the replica that holds a shard handles "
                "the shard's events, and the files of the other replicas don't have them; give "
                "each replica a fixed shard=Shard(index, count), or use a Controller"
            )
        if self.shared:
            return (
                f"needs a file of its own, since {self.path} is shared and would stand still for "
                "all processes while this handler is in a call: add the handler in one process, to "
                "an informer with cache=CacheFile(...) of another path"
            )
        return ""

    def __repr__(self) -> str:
        return f"<CacheFile {self.path}>"

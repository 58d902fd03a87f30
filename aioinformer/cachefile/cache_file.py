"""``CacheFile``: the options of a cache file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from aioinformer._core.arguments import check_bool, check_seconds, suggest_keywords
from aioinformer._core.codec.shape import Shape
from aioinformer._core.objects.resources import Resource
from aioinformer.cachefile.file_access import FileAccess


class CacheFile:
    """A file in which informers keep their caches, so that a restart needs no list.

    Pass it to a factory, for all of its informers: ``SharedInformerFactory(client,
    cache=CacheFile("pods.db"))``, or to ``informer(...)`` for one of them. Many informers may share
    a file, but one process alone uses a file at a time. Where a second process, a full disk or a
    corrupt file makes the file unusable, one line of the log and ``health.cache_problem`` say so,
    and the informers go on without the file.

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
        interval: float = 1.0,
        allow_secrets: bool = False,
        version: str = "",
    ) -> None:
        """Name a file. The first informer opens the file, or creates it for this user alone (0600).

        Args:
            path: the path of the file. Its directory must exist and be on a local disk: SQLite's
                locks and write-ahead log don't work on network file systems. A link, or a file
                that belongs to another user, is not used; let no other user write in the directory.
            interval: seconds between two writes. A change that is repeated within them is written
                once.
            allow_secrets: True to store Secrets, too, with their contents. By default an informer
                of Secrets goes on without the file.
            version: a text of the program's own, which is stored with each state: a state of
                another version is not used. Change it when a ``transform=`` returns other results
                because of a function that it calls; a change of its own code is noticed.

        Raises:
            TypeError: ``version`` is no text, or ``allow_secrets`` no bool.
            ValueError: ``interval`` is no positive number of seconds.
        """
        self.path = Path(path)
        check_bool("allow_secrets", allow_secrets)
        check_seconds("interval", interval)
        # A program without a type checker may pass anything.
        if not isinstance(cast("object", version), str):
            raise TypeError(f"version must be text, not {version!r}")
        self.interval = interval
        self.allow_secrets = allow_secrets
        self.version = version
        self._access: FileAccess | None = None

    def access(self) -> FileAccess:
        """Return the access that the informers of this process share. For informers only."""
        if self._access is None:
            self._access = FileAccess(self.path)
        return self._access

    def refusal(self, resource: Resource, shape: Shape[Any]) -> str:
        """Return why objects of this stored form can't be in the file; empty if they can."""
        if shape.model is not None:
            return f"{resource} are not in {self.path}: model= keeps no JSON; use convert="
        if resource.group == "" and resource.plural == "secrets" and not self.allow_secrets:
            return f"Secrets are not in {self.path}: pass allow_secrets=True to store them"
        return ""

    def __repr__(self) -> str:
        return f"<CacheFile {self.path}>"

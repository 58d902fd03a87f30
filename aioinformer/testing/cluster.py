"""A model of an API server's storage: objects, resource versions, pages, watches.

``Cluster`` is sans-I/O: no sockets, no event loop, no clock, and every run with the same seed is
the same. ``ApiServer`` serves one over HTTP, ``ClusterSource`` gives one to informers directly;
both may share a cluster with the test that writes to it:

    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "web-0"}, "spec": {}})
    cluster.merge_patch("pods", "web-0", {"metadata": {"labels": {"app": "shop"}}})

It answers as a kube-apiserver 1.36 does, errors included. It doesn't default, validate or schedule
anything, keeps no managedFields, and needs no Namespace object for a namespace to exist.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from aioinformer._core.resources import Resource
from aioinformer.testing import statuses, writes
from aioinformer.testing.collection import Collection
from aioinformer.testing.encoding import Stored
from aioinformer.testing.openings import WatchOptions, open_watch
from aioinformer.testing.pages import PageOptions, page
from aioinformer.testing.selection import Selection
from aioinformer.testing.storage import Storage
from aioinformer.testing.watches import Schedule, Watch

__all__ = ["Cluster"]

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""Time without a clock: one second a resourceVersion after this."""

WATCH_SECONDS = 1800.0
"""How long a watch lasts if its client doesn't say (``--min-request-timeout``; a real server adds
up to as much again at random)."""

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names end with (apimachinery's ``rand``: no vowels, so no words)."""


class Cluster:
    """Objects, and everything that can be asked about them.

    A ``resource`` is a built-in name in any form (``"pods"``, ``"deploy"``), or a ``Resource``;
    custom ones exist once ``add_resource`` was called. ``namespace=None`` means ``default`` (or
    the body's own) where one object is meant, and all namespaces for ``list`` and ``watch``.
    """

    def __init__(
        self,
        *,
        window: int = 10_000,
        watch_buffer: int = 100_000,
        seed: int = 0,
        clock: Callable[[], dt.datetime] | None = None,
    ) -> None:
        """Make an empty cluster that serves the built-in resources.

        Args:
            window: changes that are remembered for watches and pages from the past.
            watch_buffer: lines that may wait in a watch before it is dropped.
            seed: decides uids and generated names.
            clock: the time for creation and deletion stamps; by default it is ``EPOCH`` plus a
                second a resourceVersion.
        """
        self._storage = Storage(window)
        self._random = Random(seed)
        self._clock = clock or self._count_seconds
        self._buffer = watch_buffer

    @property
    def resource_version(self) -> int:
        """The newest resourceVersion: that of the last write, to any resource."""
        return self._storage.version

    def compact(self, to: int | None = None) -> None:
        """Forget the history up to a resourceVersion; by default all of it.

        Watches that are open go on; watches and pages from before are answered with 410.
        """
        newest = self._storage.version
        self._storage.history.compact(newest if to is None else min(to, newest))

    # -- resources ----------------------------------------------------------------------------

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Everything that is served."""
        return self._storage.resources

    def add_resource(self, resource: Resource) -> None:
        """Serve a resource, as when its CustomResourceDefinition comes; once is enough."""
        self._storage.add(resource)

    def remove_resource(self, resource: str | Resource) -> None:
        """Serve it no longer: its objects are deleted, its watches end (recordings 52 and 53).

        Raises:
            NotFound: it isn't served.
        """
        self._storage.remove(self._storage.find(resource))

    # -- one object ---------------------------------------------------------------------------

    def get(
        self, resource: str | Resource, name: str, *, namespace: str | None = None
    ) -> dict[str, Any]:
        """A copy of an object.

        Raises:
            NotFound: there is none of that name.
        """
        return _copy(self._find(self._storage.find(resource), name, namespace))

    def create(
        self, resource: str | Resource, body: Mapping[str, Any], *, namespace: str | None = None
    ) -> dict[str, Any]:
        """Store a new object; what was stored. ``metadata.generateName`` is understood.

        Raises:
            Conflict: it exists.
            BadRequest, Invalid, ServerFailure: the body can't be created.
        """
        with statuses.during("write"):
            collection = self._storage.find(resource)
            suffix = "".join(self._random.choices(_SUFFIX_LETTERS, k=5))
            uid = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            birth = writes.Birth(uid, suffix, self._clock())
            new = writes.created(collection.encoding, body, birth, namespace=namespace)
            metadata = new["metadata"]
            if _key(collection, metadata["name"], metadata.get("namespace")) in collection.objects:
                raise statuses.already_exists(collection.encoding.resource, metadata["name"])
            return _copy(self._storage.store(collection, None, new))

    def update(
        self, resource: str | Resource, body: Mapping[str, Any], *, namespace: str | None = None
    ) -> dict[str, Any]:
        """Replace an object; what was stored. Nothing is written if nothing changes.

        Raises:
            NotFound: there is none of that name.
            Conflict: the body carries a resourceVersion that isn't the newest, or another uid.
            BadRequest, Invalid: the body isn't acceptable.
        """
        with statuses.during("write"):
            collection = self._storage.find(resource)
            whole = writes.accepted(collection.encoding, body)
            metadata = whole["metadata"]
            place = namespace or metadata.get("namespace")
            stored = self._find(collection, metadata.get("name") or "", place)
            return self._replace(collection, stored, whole)

    def merge_patch(
        self,
        resource: str | Resource,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
    ) -> dict[str, Any]:
        """Change an object by an RFC 7396 merge patch; what was stored.

        Raises:
            NotFound: there is none of that name.
            Conflict: the patch carries a resourceVersion that isn't the newest, or another uid.
        """
        with statuses.during("write"):
            collection = self._storage.find(resource)
            stored = self._find(collection, name, namespace)
            whole = writes.accepted(collection.encoding, writes.merged(stored.body, patch))
            return self._replace(collection, stored, whole)

    def delete(
        self,
        resource: str | Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> dict[str, Any]:
        """Remove an object, or mark it if it has finalizers; its last state.

        Args:
            resource: of what.
            name: which.
            namespace: where.
            uid: delete no other object of that name.
            resource_version: delete no other state of it.

        Raises:
            NotFound: there is none of that name.
            Conflict: it is another object, or in another state.
        """
        with statuses.during("write"):
            collection = self._storage.find(resource)
            stored = self._find(collection, name, namespace)
            writes.check_deletion(collection.encoding, stored, uid, resource_version)
            if not stored.body["metadata"].get("finalizers"):
                return _copy(self._storage.store(collection, stored, None))
            if "deletionTimestamp" in stored.body["metadata"]:
                return _copy(stored)
            return _copy(
                self._storage.store(collection, stored, writes.condemned(stored, self._clock()))
            )

    def _find(self, collection: Collection, name: str, namespace: str | None) -> Stored:
        found = collection.objects.get(_key(collection, name, namespace))
        if found is None:
            raise statuses.object_not_found(collection.encoding.resource, name)
        return found

    def _replace(
        self, collection: Collection, stored: Stored, whole: dict[str, Any]
    ) -> dict[str, Any]:
        new = writes.replaced(collection.encoding, stored, whole)
        if new == stored.body:
            return _copy(stored)
        return _copy(
            self._storage.store(collection, stored, None if writes.is_finished(new) else new)
        )

    def _count_seconds(self) -> dt.datetime:
        return EPOCH + dt.timedelta(seconds=self.resource_version)

    # -- many objects -------------------------------------------------------------------------

    def list(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        match: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> bytes:
        """A list, or one page of it, as the server's JSON.

        Args:
            resource: of what.
            namespace: where; ``None`` for everywhere.
            labels: a label selector.
            fields: a field selector.
            resource_version: "" for the newest state, "0" for any (the limit is ignored then), a
                version for that one or a later one.
            match: ``resourceVersionMatch``: ``Exact`` or ``NotOlderThan``.
            limit: objects a page; 0 for all.
            continue_token: ``metadata.continue`` of the page before.

        Raises:
            BadRequest: a selector or token is wrong.
            Expired: the state that was asked for is forgotten.
            NotFound: the resource isn't served.
            Invalid, ServerFailure: options that exclude each other, or from the future.
        """
        with statuses.during("list"):
            collection = self._storage.find(resource)
            selection = Selection.parse(collection.encoding, namespace, labels, fields)
            options = PageOptions(resource_version, match, limit, continue_token)
            return page(
                collection, self._storage.history, selection, options, current=self.resource_version
            )

    def watch(
        self,
        resource: str | Resource,
        *,
        now: float,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        match: str = "",
        bookmarks: bool = False,
        send_initial_events: bool | None = None,
        timeout: float | None = None,
    ) -> Watch:
        """What changes after a resourceVersion.

        Args:
            resource: of what.
            now: seconds on any clock; the one that ``Watch.take`` will be given.
            namespace: where; ``None`` for everywhere.
            labels: a label selector.
            fields: a field selector.
            resource_version: where to start. "" and "0" start with an ADDED for all there is. One
                that is forgotten is answered by an ERROR event, one from the future by silence.
            match: ``resourceVersionMatch``; ``send_initial_events`` needs ``NotOlderThan``.
            bookmarks: whether the client understands them.
            send_initial_events: start with an ADDED for all there is, then a bookmark that says
                so, if bookmarks are understood (a WatchList).
            timeout: seconds until it ends.

        Raises:
            BadRequest: a selector is wrong.
            NotFound: the resource isn't served.
            Invalid, ServerFailure: options that exclude each other, or a malformed version.
        """
        lasting = WATCH_SECONDS if timeout is None else timeout
        with statuses.during("watch"):
            collection = self._storage.find(resource)
            return open_watch(
                self._storage,
                collection,
                Selection.parse(collection.encoding, namespace, labels, fields),
                WatchOptions(resource_version, match, bookmarks, send_initial_events),
                schedule=Schedule.start(now, lasting, bookmarks=bookmarks),
                buffer=self._buffer,
            )

    def __repr__(self) -> str:
        return repr(self._storage).replace("Storage", "Cluster")


def _key(collection: Collection, name: str, namespace: str | None) -> str:
    resource = collection.encoding.resource
    if namespace and not resource.namespaced:
        raise statuses.resource_not_found()
    return f"{namespace or 'default'}/{name}" if resource.namespaced else name


def _copy(stored: Stored) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(stored.encoding.whole(stored.raw))
    return body

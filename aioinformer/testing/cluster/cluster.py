"""A model of an API server's storage: objects, resource versions, pages, watches.

``Cluster`` is sans-I/O: no sockets, no event loop, no clock, and every run with the same seed is
the same. ``ApiServer`` serves one over HTTP, ``ClusterSource`` gives one to informers directly;
both may share a cluster with the test that writes to it:

    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "web-0"}, "spec": {}})
    cluster.merge_patch("pods", "web-0", {"metadata": {"labels": {"app": "shop"}}})

It answers as a kube-apiserver 1.36 does, errors included. It doesn't default, validate or schedule
anything, keeps managedFields of applied objects only, and needs no Namespace object for a namespace
to exist. What is written here is written whole, as a test wants it; requests (over HTTP, or by a
writer) write a status through its subresource alone, where there is one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from random import Random
from typing import Any

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.cluster.features import Features
from aioinformer.testing.cluster.pages import ListQuery, encode_page
from aioinformer.testing.cluster.registry import Preconditions, Registry
from aioinformer.testing.cluster.selection import Selection
from aioinformer.testing.cluster.storage import Collection, Snapshot, Storage
from aioinformer.testing.cluster.watch_start import WatchQuery, open_watch
from aioinformer.testing.cluster.watches import Watch, WatchSchedule
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.tables import Include, ObjectForm, make_encoder
from aioinformer.testing.writes.patches import MergePatch

__all__ = ["Cluster"]

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""Time without a clock: one second a resourceVersion after this."""

DEFAULT_WATCH_TIMEOUT = 1800.0
"""How long a watch lasts if its client doesn't say (``--min-request-timeout``; a real server adds
up to as much again at random)."""


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
        features: Features | None = None,
    ) -> None:
        """Make an empty cluster that serves the built-in resources.

        Args:
            window: changes that are remembered for watches and pages from the past.
            watch_buffer: lines that may wait in a watch before it is dropped.
            seed: decides uids and generated names.
            clock: the time for creation and deletion stamps; by default it is ``EPOCH`` plus a
                second a resourceVersion.
            features: what it can do, and the version of Kubernetes that it imitates.
        """
        self.features = features or Features()
        self._storage = Storage(window)
        self._clock = clock or (lambda: EPOCH + dt.timedelta(seconds=self.resource_version))
        self.registry = Registry(self._storage, Random(seed), self._clock)
        """Writes as requests make them: with subresources, managers and dry runs."""
        self._watch_buffer = watch_buffer

    @property
    def resource_version(self) -> int:
        """The newest resourceVersion: that of the last write, to any resource."""
        return self._storage.version

    def compact(self, to: int | None = None) -> None:
        """Forget the history up to a resourceVersion; by default all of it.

        Watches that are open go on; watches and pages from before are answered with 410.
        """
        newest = self._storage.version
        self._storage.change_log.compact(newest if to is None else min(to, newest))

    def empty_watch_cache(self) -> None:
        """Forget the past of watches alone, as a restarted server has.

        Watches from before are answered with 410; lists of before aren't touched, and neither
        are the watches that are open.
        """
        self._storage.change_log.empty_watch_cache(self.resource_version)

    def snapshot(self) -> Snapshot:
        """The present state, to ``restore`` later: a backup."""
        return self._storage.snapshot()

    def restore(self, snapshot: Snapshot | None = None) -> None:
        """Go back to an earlier state; without one, to that of a new cluster.

        Objects, resources and the resourceVersion are those of then; versions are given a second
        time. Open watches end, without a word. No history is left.
        """
        self._storage.restore(snapshot or Storage(0).snapshot())

    def expecting(self, version: int, reached: Callable[[], None]) -> AbstractContextManager[None]:
        """Within the context, have ``reached`` called once this resourceVersion is there."""
        return self._storage.expecting(version, reached)

    # -- resources ----------------------------------------------------------------------------

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Everything that is served."""
        return self._storage.resources

    @property
    def with_status(self) -> AbstractSet[Resource]:
        """Those of them that have a status subresource."""
        return self._storage.with_status

    def add_resource(self, resource: Resource, *, status: bool = False) -> None:
        """Serve a resource, as when its CustomResourceDefinition comes; once is enough. ``status``
        gives it the subresource of that name.
        """
        self._storage.add(resource, status=status)

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
        return self.registry.get(resource, name, namespace)

    def create(
        self, resource: str | Resource, body: Mapping[str, Any], *, namespace: str | None = None
    ) -> dict[str, Any]:
        """Store a new object; what was stored. ``metadata.generateName`` is understood.

        Raises:
            Conflict: it exists.
            BadRequest, Invalid, ServerFailure: the body can't be created.
        """
        return self.registry.create(resource, body, namespace)

    def update(
        self, resource: str | Resource, body: Mapping[str, Any], *, namespace: str | None = None
    ) -> dict[str, Any]:
        """Replace an object; what was stored. Nothing is written if nothing changes.

        Raises:
            NotFound: there is none of that name.
            Conflict: the body carries a resourceVersion that isn't the newest, or another uid.
            BadRequest, Invalid: the body isn't acceptable.
        """
        return self.registry.update(resource, body, namespace)

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
        return self.registry.patch(resource, name, MergePatch(patch), namespace)

    def delete(
        self,
        resource: str | Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        graceful: bool = False,
    ) -> dict[str, Any]:
        """Remove an object, or mark it if it has finalizers; its last state.

        Args:
            resource: of what.
            name: which.
            namespace: where.
            uid: delete no other object of that name.
            resource_version: delete no other state of it.
            graceful: mark it first, as a pod's deletion does: a MODIFIED, then the DELETED
                (recording 30).

        Raises:
            NotFound: there is none of that name.
            Conflict: it is another object, or in another state.
        """
        conditions = Preconditions(uid, resource_version, graceful=graceful)
        return self.registry.delete(resource, name, namespace, preconditions=conditions)

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
        shard: str = "",
        form: ObjectForm = "whole",
        include: Include = "Metadata",
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
            shard: a shard selector; ignored without that feature.
            form: whole objects, their metadata, or a table for people.
            include: what of each object a table has beside its cells.

        Raises:
            BadRequest: a selector or token is wrong.
            Expired: the state that was asked for is forgotten.
            NotFound: the resource isn't served.
            Invalid, ServerFailure: options that exclude each other, or from the future.
        """
        with statuses.error_phase("list"):
            collection = self._storage.find(resource)
            return encode_page(
                collection,
                self._storage.change_log,
                self._parse_selection(collection, namespace, labels, fields, shard),
                ListQuery(resource_version, match, limit, continue_token, self.features.watch_list),
                current=self.resource_version,
                encoder=make_encoder(collection.encoding, form, include, self._clock),
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
        shard: str = "",
        form: ObjectForm = "whole",
        include: Include = "Metadata",
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
            shard: a shard selector; ignored without that feature.
            form: whole objects, their metadata, or a table for each event.
            include: what of an object such a table has beside its cells.

        Raises:
            BadRequest: a selector is wrong.
            NotFound: the resource isn't served.
            Invalid, ServerFailure: options that exclude each other, or a malformed version.
        """
        lasting = DEFAULT_WATCH_TIMEOUT if timeout is None else timeout
        with statuses.error_phase("watch"):
            collection = self._storage.find(resource)
            return open_watch(
                self._storage,
                collection,
                self._parse_selection(collection, namespace, labels, fields, shard),
                WatchQuery(
                    resource_version,
                    match,
                    bookmarks,
                    self.features.watch_list,
                    send_initial_events,
                ),
                encoder=make_encoder(collection.encoding, form, include, self._clock),
                schedule=WatchSchedule.start(now, lasting, bookmarks=bookmarks),
                buffer=self._watch_buffer,
            )

    def _parse_selection(
        self, collection: Collection, namespace: str | None, labels: str, fields: str, shard: str
    ) -> Selection:
        shard = shard if self.features.sharding else ""
        return Selection.parse(collection.encoding, namespace, labels, fields, shard)

    def __repr__(self) -> str:
        return repr(self._storage).replace("Storage", "Cluster")

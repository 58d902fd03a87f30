"""A model of an API server's storage: objects, resource versions, pages, watches.

``Cluster`` is sans-I/O: it has no sockets, no event loop and no clock, and every run with the same
seed gives the same result. Only ``settled`` waits, in the event loop of its caller. ``ApiServer``
serves a cluster over HTTP, ``ClusterSource`` serves it to informers directly. Both can share the
cluster with the test that writes objects:

    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "web-0"}, "spec": {}})
    cluster.merge_patch("pods", "web-0", {"metadata": {"labels": {"app": "shop"}}})

The cluster answers as a kube-apiserver 1.36 does, errors included. It neither sets defaults in
built-in types nor validates their content, and it schedules nothing; custom resources are defaulted
and validated by the schema of their CustomResourceDefinition. The cluster collects garbage (see
``Features``), keeps managedFields of applied objects only, and needs no Namespace object for a
namespace to exist. The methods here write whole objects, status included. Requests (over HTTP, or
by a writer) write a status through its subresource alone, if there is one.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from random import Random
from typing import TYPE_CHECKING, Any, Unpack

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.cluster.collection_requests import (
    CollectionRequests,
    ListRequestOptions,
    WatchRequestOptions,
    make_list_query,
    make_watch_query,
)
from aioinformer.testing.cluster.definitions import DefinitionController
from aioinformer.testing.cluster.garbage_collection import GarbageCollector
from aioinformer.testing.cluster.pages import ListQuery
from aioinformer.testing.cluster.registry import Preconditions, Registry
from aioinformer.testing.cluster.server_features import Features
from aioinformer.testing.cluster.storage import FIRST_VERSION, Snapshot, Storage
from aioinformer.testing.cluster.watch_start import WatchQuery
from aioinformer.testing.cluster.watches import Watch
from aioinformer.testing.wire.encoding import plain_json
from aioinformer.testing.wire.selection import SelectorQuery
from aioinformer.testing.wire.served_resources import STATUS, ServedResources, make_served
from aioinformer.testing.writes.patches import MergePatch
from aioinformer.testing.writes.scale import BUILT_IN_SCALE, ScalePaths

if TYPE_CHECKING:
    from aioinformer.testing.cluster.settling import Program

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""The time of version 0 without a ``clock``; each resourceVersion adds one second."""


class Cluster:
    """The objects of an API server, with all operations on them.

    A ``resource`` is a built-in name in any form (``"pods"``, ``"deploy"``), or a ``Resource``.
    Custom resources exist after ``add_resource``. ``namespace=None`` means ``default`` (or the
    body's own namespace) for a single object, and all namespaces for ``list`` and ``watch``.
    """

    def __init__(
        self,
        *,
        window: int = 10_000,
        watch_buffer: int = 100_000,
        seed: int = 0,
        clock: Callable[[], dt.datetime] | None = None,
        features: Features | None = None,
        start: int = FIRST_VERSION,
    ) -> None:
        """Make an empty cluster that serves the built-in resources.

        Args:
            window: the number of changes that are kept for watches and pages from the past.
            watch_buffer: the lines that can wait in a watch; with one more the watch is dropped.
            seed: decides uids and generated names.
            clock: returns the time for creation and deletion stamps. By default that time is
                2026-01-01 and one second for each resourceVersion.
            features: the imitated version of Kubernetes, and its optional features.
            start: the resourceVersion before the first write. A cluster that replaces an earlier
                one starts above its versions, so that a watch from those versions is answered with
                410.
        """
        self.features = features or Features()
        self._storage = Storage(window, start)
        self._clock = clock or (lambda: EPOCH + dt.timedelta(seconds=self.resource_version))
        self.registry = Registry(self._storage, Random(seed), self._clock)
        """Writes as requests make them: with subresources, managers and dry runs."""
        self._definitions = DefinitionController(self._storage, self.registry)
        self._garbage_collector = GarbageCollector(self._storage, self.registry)
        self._storage.observers.append(self._definitions.observe)
        if self.features.garbage_collection:
            self._storage.observers.append(self._garbage_collector.observe)
        self._collections = CollectionRequests(
            self._storage, self.registry, self._definitions, self.features, watch_buffer
        )
        self._programs: list[Program] = []
        self.signing_key = hashlib.sha256(f"aioinformer test cluster {seed}".encode()).digest()
        """The key that signs the tokens of service accounts."""

    @property
    def resource_version(self) -> int:
        """The newest resourceVersion: that of the last write, to any resource."""
        return self._storage.version

    def compact(self, to: int | None = None) -> None:
        """Forget the history up to a resourceVersion; by default all of it.

        Open watches go on. New watches and pages from a forgotten version are answered with 410.
        """
        newest = self._storage.version
        self._storage.change_log.compact(newest if to is None else min(to, newest))

    def empty_watch_cache(self) -> None:
        """Forget the past for watches alone, as a restarted server does.

        New watches from an earlier version are answered with 410. Lists and the open watches are
        not affected.
        """
        self._storage.change_log.empty_watch_cache(self.resource_version)

    def send_bookmarks(self) -> None:
        """Send a bookmark to each open watch that takes them, as etcd's progress notifications."""
        self._storage.request_bookmarks()

    def track(self, program: Program) -> None:
        """Wait for this program in each ``settled()`` that names none."""
        self._programs.append(program)

    async def settled(self, *programs: Program, timeout: float | None = 10.0) -> None:
        """Wait until programs have reacted to everything that this cluster holds.

        A program is settled if at one moment

        - each of its informers has applied the newest resourceVersion of this cluster, over HTTP or
          in memory, and no event is pending for a handler;
        - no key waits for a worker or is being reconciled, and none waits for a retry, except after
          a ``PermanentError``;
        - an operator leads, or another replica does, and all its Events are sent.

        Keys that wait for their time (``requeue_after``) don't count, and neither do async handlers
        that are being called. The state need not last: a requeue, a resync, an election or another
        program may change it.

        Args:
            *programs: ``Operator``s, ``Controller``s, ``SharedInformerFactory``s and informers in
                the caller's event loop; by default those of the fixture ``run_operator``, and of
                ``track``.
            timeout: seconds, by the event loop's time; ``None`` for no limit.

        Raises:
            SyncTimeout: not within that time; the error names what is left to be done.
            NotRunning: a program has ended.
            TypeError: a program is something else.
            UsageError: there is no program to wait for.

        Example::

            from aioinformer.testing import ClusterSource

            async with SharedInformerFactory(ClusterSource(cluster)) as factory:
                nodes = factory.informer("nodes")
                cluster.create("nodes", {"metadata": {"name": "node-1"}})
                await cluster.settled(factory)
                assert nodes.lister.get("node-1") is not None
        """
        # Imported here, since most tests need no operator.
        from aioinformer.testing.cluster.settling import wait_settled

        await wait_settled(self, programs or self._programs, timeout)

    def snapshot(self) -> Snapshot:
        """Return the present state, a backup for ``restore``."""
        return self._storage.snapshot()

    def restore(self, snapshot: Snapshot | None = None) -> None:
        """Go back to an earlier state; without one, to that of a new cluster.

        Versions are given out again, no history is left, and open watches end without a last event.
        """
        self._storage.restore(snapshot or Storage(0).snapshot())
        self._definitions.rebuild()
        self._garbage_collector.rebuild()

    def expecting(self, version: int, reached: Callable[[], None]) -> AbstractContextManager[None]:
        """Return a context in which ``reached`` is called once this resourceVersion is reached."""
        return self._storage.expecting(version, reached)

    def now(self) -> dt.datetime:
        """Return the time of the cluster, with which it stamps objects."""
        return self._clock()

    # -- resources -----------------------------------------------------------------------------

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources whose objects are stored."""
        return self._storage.resources

    @property
    def served(self) -> ServedResources:
        """The resources with their verbs, subresources and categories, as discovery shows them."""
        return self._storage.served

    def add_resource(
        self, resource: Resource, *, status: bool = False, categories: Iterable[str] = ()
    ) -> None:
        """Serve a resource without a schema: objects are stored as they are sent.

        ``categories`` are the groups to which ``kubectl get`` counts it, such as ``all``. Adding a
        resource again has no effect, except for a ``status`` subresource that it hadn't.
        """
        present = self._storage.served.find(resource)
        if present is None or (status and present.subresource(STATUS.name) is None):
            parts = [STATUS] if status else []
            added = make_served(resource, subresources=parts, categories=tuple(categories))
            self._storage.add(added)

    def convert_resource(
        self,
        resource: str | Resource,
        change: Callable[[dict[str, Any]], dict[str, Any]],
        *,
        end_watches: bool = True,
    ) -> None:
        """Serve the stored objects of a resource with other content under the same versions.

        A server does so when the schema of a custom resource gains a default or loses a property,
        when its conversion changes, and when a new release has other defaults. Objects that are
        written later are stored as they are written. ::

            cluster.convert_resource("pods", lambda pod: pod | {"spec": {"size": "XL"}})

        Args:
            resource: the resource.
            change: returns the new body for a copy of an object's body. The metadata stay.
            end_watches: end the open watches, and answer a watch from an earlier version with 410,
                as a server does. False serves the change silently, as a broken server does: only a
                new list shows the difference.

        Raises:
            NotFound: the resource is not served.
        """
        collection = self._storage.find(resource)
        self._storage.convert(collection, change)
        if end_watches:
            self._storage.restart_watches(collection.encoding.resource)

    def remove_resource(self, resource: str | Resource) -> None:
        """Delete a resource's objects, end its watches, serve it no more; ``NotFound`` if not
        served.
        """
        self._storage.remove(self._storage.find(resource))

    # -- one object ----------------------------------------------------------------------------

    def get(
        self, resource: str | Resource, name: str, *, namespace: str | None = None
    ) -> dict[str, Any]:
        """Return a copy of an object; raise ``NotFound`` if no object has this name."""
        return self.registry.get(resource, name, namespace).to_dict()

    def create(
        self, resource: str | Resource, body: Mapping[str, Any], *, namespace: str | None = None
    ) -> dict[str, Any]:
        """Store a new object, and return its stored form. ``metadata.generateName`` works.

        Raises:
            Conflict: an object with this name exists.
            BadRequest, Invalid, ServerFailure: the body can't be created.
        """
        return self.registry.create(resource, plain_json(body), namespace).to_dict()

    def update(
        self, resource: str | Resource, body: Mapping[str, Any], *, namespace: str | None = None
    ) -> dict[str, Any]:
        """Replace an object, and return its stored form.

        Nothing is written if nothing changes. Some resources need a resourceVersion in the body:
        custom resources, Leases, PodDisruptionBudgets and others. Objects of a few resources, such
        as Leases, are created by their first update.

        Raises:
            NotFound: no object has this name.
            Conflict: the body has a resourceVersion that isn't the newest, or another uid.
            BadRequest, Invalid: the body is not valid, or lacks its resourceVersion.
        """
        return self.registry.update(resource, plain_json(body), namespace)[0].to_dict()

    def merge_patch(
        self,
        resource: str | Resource,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
    ) -> dict[str, Any]:
        """Change an object by an RFC 7396 merge patch, and return its stored form.

        Raises:
            NotFound: no object has this name.
            Conflict: the patch has a resourceVersion that isn't the newest, or another uid.
        """
        change = MergePatch(plain_json(patch))
        return self.registry.patch(resource, name, change, namespace).to_dict()

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
        """Remove an object, or mark it for deletion if it has finalizers; return its last state.

        With ``graceful``, the object is marked first, as a pod is: watches see a MODIFIED, then the
        DELETED.

        Raises:
            NotFound: no object has this name.
            Conflict: the object has another uid than ``uid``, or another ``resource_version``.
        """
        conditions = Preconditions(uid, resource_version, graceful=graceful)
        deleted = self.registry.delete(resource, name, namespace, preconditions=conditions)
        return deleted.to_dict()

    # -- stored bodies -------------------------------------------------------------------------

    def find_object(
        self, resource: str | Resource, name: str, *, namespace: str | None = None
    ) -> Mapping[str, Any] | None:
        """Return the stored body of an object, which must not be changed, or ``None``."""
        found = self.registry.find(resource, name, namespace)
        return found.body if found is not None else None

    def objects(
        self, resource: str | Resource, *, namespace: str | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the stored bodies in key order; don't change them. ``NotFound`` if not served."""
        prefix = f"{namespace}/" if namespace else ""
        state = self._storage.find(resource).snapshot_before((), prefix=prefix)
        return (state[key].body for key in state.keys)

    def has_schema(self, resource: Resource) -> bool:
        """Return True if a CustomResourceDefinition gives the resource its schema."""
        return self._definitions.has_schema(resource)

    def unknown_fields(self, resource: Resource, body: dict[str, Any]) -> Sequence[str]:
        """Return the paths of the fields that the resource's schema doesn't name."""
        rules = self._storage.find(resource).rules
        return rules.unknown_fields(body) if rules is not None else ()

    def scale_paths(self, resource: Resource) -> ScalePaths:
        """Return the places of the fields of a ``Scale`` in the objects of a resource."""
        return self._definitions.scale_paths(resource) or BUILT_IN_SCALE

    # -- many objects --------------------------------------------------------------------------

    def list(self, resource: str | Resource, **options: Unpack[ListRequestOptions]) -> bytes:
        """Return a list, or one page of it, as the server's JSON.

        Raises:
            BadRequest: a selector or the continue token is malformed.
            Expired: the requested state is forgotten.
            NotFound: the resource is not served.
            Invalid: options that exclude each other.
            ServerFailure: the resourceVersion is not reached yet, or the shard selector is
                malformed.
        """
        return self.list_page(resource, make_list_query(options))

    def list_page(self, resource: str | Resource, query: ListQuery) -> bytes:
        """Return the page that a query describes. ``list`` documents options and errors."""
        return self._collections.list_page(resource, query)

    def delete_collection(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
    ) -> bytes:
        """Delete all objects that the selectors select; return their states before, as a list.

        An object with finalizers is marked for deletion, as by ``delete``.

        Raises:
            BadRequest: a selector is malformed.
            NotFound: the resource is not served.
        """
        selectors = SelectorQuery(namespace=namespace, labels=labels, fields=fields)
        return self.delete_page(resource, ListQuery(selectors=selectors), Preconditions())

    def delete_page(
        self,
        resource: str | Resource,
        query: ListQuery,
        preconditions: Preconditions,
        *,
        dry_run: bool = False,
    ) -> bytes:
        """Delete the objects of the page that a query describes; return the page.

        Raises:
            Conflict: an object doesn't satisfy the preconditions. Those before it are deleted.
            ServerError: the errors of ``list``.
        """
        return self._collections.delete_page(resource, query, preconditions, dry_run=dry_run)

    def watch(
        self, resource: str | Resource, *, now: float, **options: Unpack[WatchRequestOptions]
    ) -> Watch:
        """Open a watch: the changes after a resourceVersion.

        A forgotten version is answered by an ERROR event. A version that is not reached yet gives
        no events until it is passed. ``now`` is in seconds on any clock, which ``Watch.take``
        expects too.

        Raises:
            BadRequest: a selector is malformed.
            NotFound: the resource is not served.
            Invalid: options that exclude each other.
            ServerFailure: the resourceVersion or the shard selector is malformed.
        """
        return self.open_watch(resource, make_watch_query(options), now=now)

    def open_watch(self, resource: str | Resource, query: WatchQuery, *, now: float) -> Watch:
        """Open the watch that a query describes. ``watch`` documents options and errors."""
        return self._collections.open_watch(resource, query, now=now)

    def __repr__(self) -> str:
        return repr(self._storage).replace("Storage", "Cluster")

"""The reconciler: it creates or changes the Workload that a Foo wants, and writes the Foo's status.

Every run starts from the caches only, compares, and writes the differences. So it doesn't matter
which event started it, how many events were merged into it, or how far the previous run came.
Errors are raised: the controller retries, and counts the failures.
"""

from __future__ import annotations

import logging

import msgspec

from aioinformer import (
    EventRecorder,
    KubeObject,
    ObjectKey,
    ReconcileContext,
    ResourceWriter,
    Result,
    SharedInformer,
    is_controlled_by,
)
from examples.sample_controller.desired import status_of, workload_for
from examples.sample_controller.kinds import Foo, Workload

__all__ = ["FooReconciler", "NameTaken"]

log = logging.getLogger(__name__)

CATCH_UP = 5.0
"""The most seconds until the cache contains an object that was just written."""


class NameTaken(Exception):
    """A Workload with the wanted name exists and isn't controlled by this Foo."""


class FooReconciler:
    """The reconciler that the ``Controller`` calls: ``await reconciler(key, ctx)``."""

    def __init__(
        self,
        foos: SharedInformer,
        workloads: SharedInformer,
        *,
        foo_writer: ResourceWriter,
        workload_writer: ResourceWriter,
        events: EventRecorder,
    ) -> None:
        """Read from the caches, write through the writers, and record Events."""
        self._foos = foos
        self._workloads = workloads
        self._foo_writer = foo_writer
        self._workload_writer = workload_writer
        self._events = events

    async def __call__(self, key: ObjectKey, ctx: ReconcileContext) -> Result | None:
        """Reconcile the Foo of this key."""
        log.debug("%s: %s", key, ctx)
        foo = self._foos.lister.get(key)
        if foo is None or foo.deletion_timestamp is not None:
            return None  # the server's garbage collector deletes its Workload
        wanted = foo.decode(Foo)
        workload = await self._workload(foo, wanted)
        await self._report(foo, wanted, workload.decode(Workload))
        return None

    async def _workload(self, foo: KubeObject, wanted: Foo) -> KubeObject:
        """Return the Foo's Workload, created or changed if needed."""
        found = self._workloads.lister.get(ObjectKey(foo.namespace, wanted.spec.workload_name))
        if found is None:
            return await self._create(foo, wanted)
        if not is_controlled_by(found, foo):
            note = f"Workload {found.name} exists and is not managed by this Foo"
            self._events.record(foo, "Warning", "NameTaken", note, action="Adopt", related=found)
            raise NameTaken(note)
        if found.decode(Workload).spec.replicas != wanted.spec.replicas:
            return await self._scale(foo, wanted, found)
        return found

    async def _create(self, foo: KubeObject, wanted: Foo) -> KubeObject:
        """Create the Workload. If it exists, the cache is behind: ``AlreadyExists`` is raised and
        retried, and by then the cache contains it.
        """
        created = await self._workload_writer.create(workload_for(foo, wanted))
        note = f"Created Workload {created.name}"
        self._events.record(foo, "Normal", "Created", note, action="Create", related=created)
        # The next run of this key must find it in the cache.
        await self._workloads.wait_for(created, timeout=CATCH_UP)
        return created

    async def _scale(self, foo: KubeObject, wanted: Foo, found: KubeObject) -> KubeObject:
        """Change the replicas. The update carries the version that was read: if that is not the
        newest, ``Conflict`` is raised and retried.
        """
        body = found.to_dict()
        body["spec"]["replicas"] = wanted.spec.replicas
        scaled = await self._workload_writer.update(body)
        note = f"Scaled Workload {found.name} to {wanted.spec.replicas} replicas"
        self._events.record(foo, "Normal", "Scaled", note, action="Scale", related=scaled)
        await self._workloads.wait_for(scaled, timeout=CATCH_UP)
        return scaled

    async def _report(self, foo: KubeObject, wanted: Foo, found: Workload) -> None:
        """Write the status if it differs, since an update without a change would still cost a
        request.
        """
        status = status_of(wanted, found)
        if status == wanted.status:
            return
        body = foo.to_dict()
        body["status"] = msgspec.to_builtins(status)
        await self._foo_writer.update_status(body)
        note = f"{status.available_replicas} replicas available"
        self._events.record(foo, "Normal", "Synced", note, action="UpdateStatus")

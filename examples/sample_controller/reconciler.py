"""Brings one Foo into the state that it asks for: its Workload there, its status right.

Every run starts from nothing but the caches, compares, and writes what differs. So it doesn't
matter which event it was called for, how many were merged into one, or how far the run before came.
What fails is raised: the controller tries again, and knows how often it has.
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
"""Seconds that the cache may take to show what was just written."""


class NameTaken(Exception):
    """There is a Workload of the wanted name, and it isn't this Foo's."""


class FooReconciler:
    """``await reconciler(key, ctx)``, as a ``Controller`` does it."""

    def __init__(
        self,
        foos: SharedInformer,
        workloads: SharedInformer,
        *,
        foo_writer: ResourceWriter,
        workload_writer: ResourceWriter,
        events: EventRecorder,
    ) -> None:
        """Read from the caches, write through the writers, and say what was done in events."""
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
            return None  # its Workload goes with it: the server's garbage collector sees to that
        wanted = foo.decode(Foo)
        workload = await self._workload(foo, wanted)
        await self._report(foo, wanted, workload.decode(Workload))
        return None

    async def _workload(self, foo: KubeObject, wanted: Foo) -> KubeObject:
        """The Foo's Workload, created or changed if need be."""
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
        """If it is there already, the cache is behind: that is ``AlreadyExists``, and tried again,
        by when the cache has it.
        """
        created = await self._workload_writer.create(workload_for(foo, wanted))
        note = f"Created Workload {created.name}"
        self._events.record(foo, "Normal", "Created", note, action="Create", related=created)
        # The next run of this key is to see it.
        await self._workloads.wait_for(created, timeout=CATCH_UP)
        return created

    async def _scale(self, foo: KubeObject, wanted: Foo, found: KubeObject) -> KubeObject:
        """The update carries the version that was read: a ``Conflict`` if it was not the newest."""
        body = found.to_dict()
        body["spec"]["replicas"] = wanted.spec.replicas
        scaled = await self._workload_writer.update(body)
        note = f"Scaled Workload {found.name} to {wanted.spec.replicas} replicas"
        self._events.record(foo, "Normal", "Scaled", note, action="Scale", related=scaled)
        await self._workloads.wait_for(scaled, timeout=CATCH_UP)
        return scaled

    async def _report(self, foo: KubeObject, wanted: Foo, found: Workload) -> None:
        """Write the status if it isn't right: an update that changes nothing is a request still."""
        status = status_of(wanted, found)
        if status == wanted.status:
            return
        body = foo.to_dict()
        body["status"] = msgspec.to_builtins(status)
        await self._foo_writer.update_status(body)
        note = f"{status.available_replicas} replicas available"
        self._events.record(foo, "Normal", "Synced", note, action="UpdateStatus")

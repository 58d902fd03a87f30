"""The controller: it keeps a Workload for every Foo, and writes the Foo's status.

Every run starts from the caches only, compares, and writes the differences. So it doesn't matter
which event started it, how many events were merged into it, or how far the previous run came.
Errors are raised: the controller retries, and counts the failures.
"""

from __future__ import annotations

import msgspec

from aioinformer import Client, ObjectKey, Operator, ReconcileContext, is_controlled_by
from examples.sample_controller.kinds import FOOS, WORKLOADS, Foo, FooStatus, Workload
from examples.sample_controller.settings import Settings

__all__ = ["NameTaken", "make_operator"]


class NameTaken(Exception):
    """A Workload with the wanted name exists and isn't controlled by this Foo."""


def make_operator(client: Client, settings: Settings) -> Operator:
    """Return the whole program: of two replicas one leads and reconciles."""
    operator = Operator(client, name="sample-controller", **settings.operator)
    workloads = operator.informers.informer(WORKLOADS)

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        obj = ctx.obj
        if obj is None or obj.deletion_timestamp is not None:
            return  # the server's garbage collector deletes the Workload
        foo = obj.decode(Foo)
        found = workloads.lister.get(ObjectKey(key.namespace, foo.spec.workload_name))
        if found is not None and not is_controlled_by(found, obj):
            note = f"Workload {found.name} exists and is not managed by this Foo"
            operator.events.record(obj, "Warning", "NameTaken", note, action="Adopt")
            raise NameTaken(note)
        replicas = foo.spec.replicas
        if found is None or found.decode(Workload).spec.replicas != replicas:
            reason = "Scaled" if found else "Created"
            head = {"apiVersion": WORKLOADS.api_version, "kind": WORKLOADS.kind}
            name = {"name": foo.spec.workload_name}
            found = await ctx.apply({**head, "metadata": name, "spec": {"replicas": replicas}})
            note = f"Workload {found.name} has to run {replicas} replicas"
            operator.events.record(obj, "Normal", reason, note, action="Apply", related=found)
        available = found.decode(Workload).status.available_replicas
        status = FooStatus(available, observed_generation=foo.metadata.generation)
        if status != foo.status:
            await ctx.patch_status(msgspec.to_builtins(status))
            note = f"{available} replicas available"
            operator.events.record(obj, "Normal", "Synced", note, action="UpdateStatus")

    operator.controller(
        FOOS, reconcile, concurrency=settings.concurrency, timeout=30
    ).owns(WORKLOADS)  # fmt: skip
    return operator

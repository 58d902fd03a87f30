"""``ReconcileContext``: the second argument of a reconciler."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aioinformer._core.cache.query import LabelChoice
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.status_conditions import ConditionStatus
from aioinformer._core.writing.write_requests import EventType
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.writing.resource_writer import ResourceWriter
from aioinformer.controllers.run_writes import Mutate, OperationResult, RunWrites
from aioinformer.controllers.state.queue_items import Priority
from aioinformer.controllers.state.reconcile import Cause, Reason
from aioinformer.errors import UsageError


class ReconcileContext:
    """The reasons for a run, and the writes of the run.

    A reconciler must decide by the state of the cluster alone, since reasons are merged, and
    reasons from before a restart are lost.

    The methods write through the client of the controller. The next run of the same key starts when
    the caches of the controller's informers show these writes, so that a run never decides by a
    state from before the last write of its key. A cache that doesn't show a write within ten
    seconds is a failed run, which is retried with backoff. A write that a healthy watch doesn't
    show for two minutes is forgotten, with a warning. An informer is not waited for if it never
    shows the written object: it reads another cluster than the controller's client and the
    controller's own informer, or other namespaces, or its selectors or shard exclude the object.
    Two clients are of one cluster if they have the same server's URL. No write of a run to its own
    object, also through ``api``, reaches another object that was created under its name since the
    run began: ``Conflict``, or ``Invalid``, is raised. Writes through other writers,
    and writes whose answer was lost, are not waited for.
    """

    __slots__ = ("_writes", "controller", "priority", "reasons", "retries")

    def __init__(
        self,
        *,
        controller: str,
        reasons: tuple[Reason, ...] = (),
        retries: int = 0,
        priority: Priority = Priority.NORMAL,
        writes: RunWrites | None = None,
    ) -> None:
        """Make a context, as a controller does; without ``writes``, it can't write."""
        self.controller: Final[str] = controller
        """The name of the controller."""
        self.reasons: Final[tuple[Reason, ...]] = reasons
        """The events and requests since the last run of this key began, merged into one run."""
        self.retries: Final[int] = retries
        """The number of runs of this key that have failed in a row before this run."""
        self.priority: Final[Priority] = priority
        """``LOW`` if all reasons are initial lists and resyncs."""
        self._writes = writes

    def because(self, *causes: Cause, informer: str = "") -> bool:
        """Return True if a cause is among the reasons, of ``informer`` if one is named."""
        return any(
            reason.cause in causes and informer in ("", reason.informer) for reason in self.reasons
        )

    # -- the own object ------------------------------------------------------------------------

    @property
    def key(self) -> ObjectKey:
        """The key that is reconciled."""
        return self._run_writes.key

    @property
    def obj(self) -> KubeObject | None:
        """The object of the key as the cache stores it now, without ``convert=``; ``None`` if it
        was deleted. For the cleanup of an object whose newest version the cache has rejected, the
        object as the server has it. With ``model=`` the object has a key, a uid and a version, and
        no JSON: reading that raises ``UsageError``.
        """
        return self._run_writes.obj

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """The logger ``aioinformer.reconcile``, which begins each line with the controller and the
        key. Each record has the attributes ``controller`` and ``key``.
        """
        return self._run_writes.log

    def event(
        self,
        event_type: EventType,
        reason: str,
        note: str = "",
        *,
        action: str = "",
        related: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a Kubernetes Event on the own object, as ``EventRecorder.record``.

        Raises:
            NotCached: the object was absent when the run began.
            UsageError: the controller has no recorder; or a thread calls this.

        Example:
            ``ctx.event("Normal", "Available", f"{available} pods serve the page")``
        """
        self._run_writes.event(event_type, reason, note, action=action, related=related)

    # -- writes --------------------------------------------------------------------------------

    def api(self, resource: str | Resource, *, namespace: str | None = None) -> ResourceWriter:
        """Return the reads and writes of any resource, as ``Client.api`` does. The next run of this
        key waits for the writes too.

        Raises:
            UsageError: the controller has no client that writes.
            UnknownResource: no built-in resource has that name.
        """
        return self._run_writes.api(resource, namespace=namespace)

    async def patch_status(self, status: Mapping[str, Any]) -> KubeObject:
        """Change the named fields of the own object's status; send nothing if nothing changes.

        The fields are compared with the newest state that is known: the cached object, or what this
        run has written since. If the informer has ``metadata_only=True`` or a ``transform=``, the
        object is read from the server instead, once in a run.

        The differences are sent as a merge patch (RFC 7386) of the subresource ``status``: ``None``
        removes a field, a list replaces a list. The patch names the resourceVersion. If another
        program has changed the object meanwhile, a patch with a list raises ``Conflict``, and the
        controller retries; any other patch is sent again for the newest version, up to five times.

        Returns:
            The object as the server has stored it, or the cached object if nothing was sent.

        Raises:
            NotCached: the object was deleted.
            UsageError: the informer has a ``model=``, and so no JSON to compare; or there is no
                client that writes.
            ServerError, TransportError: as for ``ResourceWriter``; ``NotFound`` if the resource has
                no status subresource.

        Example:
            ``await ctx.patch_status({"replicas": 3, "conditions": set_condition(...)})``
        """
        return await self._run_writes.patch_status(status)

    async def set_condition(
        self,
        condition_type: str,
        status: bool | ConditionStatus,
        *,
        reason: str,
        message: str = "",
        fields: Mapping[str, Any] | None = None,
    ) -> KubeObject:
        """Set one condition of the own object's status; send nothing if nothing changes.

        The rules are those of ``aioinformer.set_condition``, and the write is ``patch_status``,
        which sends the further ``fields`` of the status too. ``observedGeneration`` is the
        generation of the object that was cached when the run began: a run may have decided by that
        one, even if a newer one is cached.

        Returns:
            The object as the server has stored it, or the cached object if nothing was sent.

        Raises:
            TypeError, ValueError: as for ``aioinformer.set_condition``.
            NotCached, UsageError, ServerError, TransportError: as for ``patch_status``.

        Example:
            ``await ctx.set_condition("Ready", True, reason="Available", fields={"replicas": 3})``
        """
        return await self._run_writes.set_condition(
            condition_type, status, reason=reason, message=message, fields=fields
        )

    async def apply(
        self,
        child: Mapping[str, Any],
        *,
        resource: str | Resource | None = None,
        force: bool = True,
        owned: bool = True,
        block_owner_deletion: bool | None = None,
    ) -> KubeObject:
        """Apply an object that the own object controls (server-side apply), or create it.

        The field manager is the ``Operator``'s name, or ``Controller(field_manager=...)``. Fields
        that an earlier apply had set and this one lacks are removed.

        Nothing is sent if nothing can change: this controller has applied the same before, and the
        cache shows the child in the version that the last apply led to. A request is saved only for
        children whose informer the controller ``owns`` without a filter, since a change that the
        cache doesn't show yet must lead to another run, and has no ``transform=``. A change of the
        child by anyone, also of its status or managedFields, leads to a request. A server that
        serves the same version otherwise (a new default of a CustomResourceDefinition, a new
        admission webhook) does not; a new process sends each apply once.

        Args:
            child: the fields that the controller wants, with ``apiVersion``, ``kind`` and
                ``metadata.name``. The namespace is the own object's by default.
            resource: the child's resource; by default found by ``apiVersion`` and ``kind`` among
                those of the controller's informers and the built-in ones.
            force: as for ``ResourceWriter.apply``. With False, a field that someone has edited is a
                ``Conflict`` at each retry.
            owned: False for an object that the own object doesn't control.
            block_owner_deletion: True if a foreground deletion of the own object waits for the
                child; by default as ``Controller(block_owner_deletion=...)``.

        Returns:
            The object as the server has stored it, or the cached object if nothing was sent.

        Raises:
            NotCached: the own object was deleted.
            UsageError: the child is in another namespace than its owner, in none although its
                resource is namespaced, is cluster-scoped while its owner is not, or is the owner
                itself; or its resource is unknown; or there is no client that writes.
            ServerError, TransportError: as for ``ResourceWriter``; ``Invalid`` if another object
                controls the child.

        Example::

            head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
            await ctx.apply(head | {"data": {"replicas": "3"}})
        """
        adopt = self._run_writes.adoption(block_owner_deletion) if owned else None
        with self._run_writes.names_owner():
            return await self._run_writes.apply(child, adopt, resource=resource, force=force)

    async def create_or_update(
        self,
        obj: Mapping[str, Any],
        mutate: Mutate,
        *,
        resource: str | Resource | None = None,
        owned: bool = True,
        block_owner_deletion: bool | None = None,
    ) -> tuple[OperationResult, KubeObject]:
        """Create an object, or change the existing one: controllerutil's ``CreateOrUpdate``.

        The object is read from the server, changed by ``mutate``, and written only if it differs
        then. An update names the version that was read: if another program has written meanwhile,
        ``Conflict`` is raised, and the controller retries. ``apply`` needs one request instead of
        two; use this for fields that depend on the existing object.

        Args:
            obj: the object to create if none exists, as for ``apply``.
            mutate: a plain function that changes the body (of the existing object, or a copy of
                ``obj``) in place. Name and namespace must stay.
            resource: as for ``apply``.
            owned: as for ``apply``.
            block_owner_deletion: as for ``apply``.

        Raises:
            AlreadyOwned: another object controls the existing object.
            NotCached, UsageError, ServerError, TransportError: as for ``apply``; ``UsageError``
                also if ``mutate`` is async or changes the name.

        Example::

            def resize(body: dict) -> None:
                body["data"] = {"replicas": "3"}

            head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "size"}}
            done, config_map = await ctx.create_or_update(head, resize)
            assert done == "created"  # or "updated", or "unchanged"
        """
        adopt = self._run_writes.adoption(block_owner_deletion) if owned else None
        with self._run_writes.names_owner():
            return await self._run_writes.create_or_update(obj, mutate, adopt, resource=resource)

    async def prune(
        self,
        children: SharedInformer,
        keep: Iterable[ObjectKey | str | Mapping[str, Any]] = (),
        *,
        labels: LabelChoice = None,
    ) -> tuple[ObjectKey, ...]:
        """Delete the objects that the own object controls and no longer wants; return their keys.

        The children are those of the cache, by the owner's uid. Each deletion names the child's
        uid, so that an object that was created again under the same name is not deleted. Children
        that are being deleted already are left alone. All cached children of the namespace are
        looked at, a few at a time; ``labels`` with a ``label_index`` is fast in a large cache.

        Args:
            children: the informer of the children, without ``model=`` and ``convert=``.
            keep: the objects to keep, or their keys or names.
            labels: a label selector of the children to look at; all by default.

        Raises:
            NotCached: the own object was deleted. Its children are the garbage collector's.
            NotSynced: the cache of the children is not complete yet.
            InvalidSelector: ``labels`` don't parse.
            UsageError: the children are no ``KubeObject``s, or there is no client that writes.
            ServerError, TransportError: as for ``ResourceWriter``.

        Example:
            ``await ctx.prune(configmaps, keep=[await ctx.apply(body) for body in wanted])``
        """
        return await self._run_writes.prune(children, keep, labels=labels)

    @property
    def _run_writes(self) -> RunWrites:
        if self._writes is None:
            raise UsageError(
                f"this context of {self.controller} was not made by a controller, so it can't write"
            )
        return self._writes

    def __str__(self) -> str:
        reasons = ", ".join(map(str, self.reasons))
        failures = f", after {self.retries} failures" if self.retries else ""
        return f"{self.controller}: {reasons}{failures}"

    def __repr__(self) -> str:
        return f"<ReconcileContext {self}>"


def writes_of(ctx: ReconcileContext) -> RunWrites:
    """Return the own object and the writes of a run, for the parts of a controller."""
    return ctx._run_writes  # pyright: ignore[reportPrivateUsage]  # in the module of the class

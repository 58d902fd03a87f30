"""The writes of one run of a reconciler: the status of its object, and the objects that it owns.

The owner is the cached object of the key: a child of an object that was deleted meanwhile would be
deleted by the garbage collector, and is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any, Literal, TypeAlias, cast

import msgspec

from aioinformer._core.arguments import MAX_MANAGER_LENGTH
from aioinformer._core.cache.query import LabelChoice
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.object_key import is_older
from aioinformer._core.objects.readonly import is_same_json
from aioinformer._core.objects.resources import BUILT_IN, Resource, resolve_built_in
from aioinformer._core.writing.merge_patches import has_list, reduce_merge_patch
from aioinformer._core.writing.status_conditions import ConditionStatus
from aioinformer._core.writing.write_requests import OWNER_FINALIZERS, EventType
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.reporting.key_logger import KeyLogger
from aioinformer._runtime.writing.resource_writer import CheckedWriter, ResourceWriter
from aioinformer._runtime.writing.set_condition import set_condition
from aioinformer.controllers.key_gate import KeyGate
from aioinformer.controllers.options import ControllerOptions
from aioinformer.controllers.own_writes import OwnWrites
from aioinformer.controllers.reconcile_writer import ReconcileWriter, other_object
from aioinformer.controllers.state.applied_children import hash_body
from aioinformer.controllers.state.owner_references import is_controlled_by, set_owner
from aioinformer.errors import (
    Conflict,
    Forbidden,
    NotCached,
    NotFound,
    UsageError,
    server_error,
)

OperationResult: TypeAlias = Literal["created", "updated", "unchanged"]

Adopt: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Returns the body of a child with the own object as its controller."""

Mutate: TypeAlias = Callable[[dict[str, Any]], object]
"""A plain function that changes the body of an object in place. Its result is ignored."""


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The parts of a controller that the writes of its runs need."""

    options: ControllerOptions
    informer: SharedInformer[Any]
    own_writes: OwnWrites
    gate: KeyGate | None = None
    """Admits the keys that belong to this replica; ``None`` if the objects aren't divided."""

    def __post_init__(self) -> None:
        """Raise a ``UsageError`` if a failure condition can't be written."""
        if self.options.failure_condition is not None:
            self.informer.check_bytes("failure_condition= reads status.conditions in")
            self.writer(self.informer.resource, None)

    @property
    def name(self) -> str:
        """The controller's name."""
        return self.options.name

    @property
    def field_manager(self) -> str:
        """The field manager of the applies."""
        return self.options.field_manager or self.name[:MAX_MANAGER_LENGTH]

    def writer(self, resource: Resource, namespace: str | None) -> ResourceWriter:
        """Return the writer of a resource; raise a ``UsageError`` if there is no client."""
        client = self.options.client or self.informer.client
        if client is None:
            raise UsageError(
                f"the controller {self.name} has no client to write with, since the source of its "
                "informers only lists and watches: pass Controller(client=...), such as the Client "
                "or elector.guarded_client(client)"
            )
        return client.api(resource, namespace=namespace)


class RunWrites:
    """The writes of one run. ``ReconcileContext`` documents the public methods."""

    def __init__(self, target: WriteTarget, key: ObjectKey) -> None:
        self._target = target
        self._key = key
        self._observed = target.informer.stored(key)
        if self._observed is None:
            target.own_writes.applied.forget(key)
        """The cached object when the run began, whose generation the conditions of the run
        describe."""
        self._newest: KubeObject | None = None
        """The last state of the own object that this run wrote."""
        self._unbroken = True
        """True while no other program can have written the own object since the run began."""
        self._read: KubeObject | None = None
        """The own object as it was read from the server."""

    # -- WriteRecorder -------------------------------------------------------------------------

    def record_write(self, resource: Resource, obj: KubeObject) -> None:
        """Note that the server stored ``obj``."""
        self._target.own_writes.record_write(self._key, resource, obj)
        self._target.own_writes.applied.discard(self._key, resource, obj.key)
        # The answer to a write of the subresource ``scale`` is no state of the object.
        if self._is_own(resource) and obj.key == self._key and obj.kind == resource.kind:
            self._newest = obj
            self._unbroken = False  # the writes that keep it True restore it

    def own_state(self, resource: Resource, key: ObjectKey) -> KubeObject | None:
        """Return ``state`` if ``key`` is that of the own object; otherwise ``None``."""
        return self.state if key == self._key and self._is_own(resource) else None

    def _is_own(self, resource: Resource) -> bool:
        own = self._target.informer.resource
        return (resource.group, resource.plural) == (own.group, own.plural)

    def record_deletion(self, resource: Resource, key: ObjectKey, uid: str) -> None:
        """Note that the server accepted a deletion."""
        self._target.own_writes.record_deletion(self._key, resource, key, uid)
        self._target.own_writes.applied.discard(self._key, resource, key)

    # -- the own object ------------------------------------------------------------------------

    @property
    def key(self) -> ObjectKey:
        """The key that is reconciled."""
        return self._key

    @property
    def obj(self) -> KubeObject | None:
        """The cached object of the key; ``None`` if there is none. After ``newest``, the server's
        object, if the cache has rejected that.
        """
        informer = self._target.informer
        rejected = self._read is not None and informer.rejection(self._key) is not None
        return self._read if rejected else informer.stored(self._key)

    async def newest(self) -> KubeObject | None:
        """Return the newest known state of the own object, with its status; ``None`` if there is
        none.

        It is read from the server if the cache doesn't have it: the informer keeps no status, or
        has rejected the newest version. What a write compares with an older or a partial state
        would remove what other programs have written.

        Raises:
            FetchError: the object couldn't be read.
            UsageError: there is no client to read with.
        """
        informer, own = self._target.informer, self._newest
        rejected = informer.rejection(self._key) is not None
        known = self._current()
        if not rejected and (known is None or known is own or informer.keeps_bodies):
            return known
        read = self._read
        if read is None or (known and is_older(read.resource_version, known.resource_version)):
            try:
                read = self._read = await self.own_writer.get(self._key)
            except NotFound:
                return None
        if rejected:
            self._observed = read
        elif known is not None and read.uid != known.uid:  # created again meanwhile
            return None
        return read

    def api(self, resource: str | Resource, *, namespace: str | None = None) -> ResourceWriter:
        """Return a writer whose writes the next run of this key waits for."""
        found = resolve_built_in(resource)
        writer = self._target.writer(found, namespace)
        if self._target.gate is not None:
            writer = CheckedWriter(writer, partial(self._target.gate.check, self._key))
        return ReconcileWriter(writer, self, namespace or "")

    async def patch_status(self, status: Mapping[str, Any]) -> KubeObject:
        """Change the status of the own object; send nothing if nothing changes."""
        informer = self._target.informer
        informer.check_bytes("patch_status() compares the status with")
        current = await self._newest_or_raise()
        patch = reduce_merge_patch(current, {"status": _plain_status(status)})
        if not patch:
            return current
        if has_list(patch):
            # A merge patch replaces a list as a whole. With the version, the server rejects the
            # patch if another program has changed the list since it was read.
            patch["metadata"] = {"resourceVersion": current.resource_version}
        unbroken = has_list(patch) and self._unbroken and self._is_own_state(current)
        written = await self.own_writer.patch(self._key, patch, subresource="status")
        self._unbroken = unbroken
        return written

    def _is_own_state(self, obj: KubeObject) -> bool:
        """Return True for the object of the run's begin, and for the run's own last write."""
        own = self._newest or self._observed
        return own is not None and own.resource_version == obj.resource_version

    @property
    def own_version(self) -> str:
        """The version of the own object after the run's writes, if these alone have changed the
        object since the run began; otherwise empty.
        """
        newest = self._newest
        return "" if newest is None or not self._unbroken else newest.resource_version

    @property
    def own_writer(self) -> ResourceWriter:
        """Reads and writes objects of the reconciled resource."""
        return self.api(self._target.informer.resource)

    async def set_condition(
        self,
        condition_type: str,
        status: bool | ConditionStatus,
        *,
        reason: str,
        message: str = "",
        fields: Mapping[str, Any] | None = None,
    ) -> KubeObject:
        """Set a condition of the own object, and further fields of its status, in one patch."""
        informer = self._target.informer
        informer.check_bytes("set_condition() compares the status with")
        current, observed = await self._newest_or_raise(), self._observed
        found: Mapping[str, Any] = current.get("status") or {}
        generation = None if observed is None else observed["metadata"].get("generation")
        conditions = set_condition(
            found.get("conditions"),
            condition_type,
            status,
            reason=reason,
            message=message,
            observed_generation=generation,
        )
        return await self.patch_status({**(fields or {}), "conditions": conditions})

    # -- Events --------------------------------------------------------------------------------

    def event(
        self,
        event_type: EventType,
        reason: str,
        note: str,
        *,
        action: str,
        related: Mapping[str, Any] | None,
    ) -> None:
        """Record an Event on the own object."""
        recorder = self._target.options.events
        if recorder is None:
            raise UsageError(
                f"the controller {self._target.name} has no recorder for Events: pass "
                "Controller(events=recorder) with an EventRecorder, or use an Operator"
            )
        obj = self.obj or self._newest or self._observed
        if obj is None:
            raise NotCached(self._target.informer.resource, self._key)
        recorder.record(obj, event_type, reason, note, action=action, related=related)

    @property
    def log(self) -> KeyLogger:
        """A logger that names the controller and the key."""
        return KeyLogger(self._target.name, self._key)

    @property
    def state(self) -> KubeObject | None:
        """The newest known state of the own object; ``None`` if the run began without one."""
        own, cached = self._newest or self._observed, self.obj
        if own is None or cached is None or cached.uid != own.uid:
            return own
        return cached if is_older(own.resource_version, cached.resource_version) else own

    def _current(self) -> KubeObject | None:
        """Return the newest known state of the own object; ``None`` if the cache has none. Raise
        ``Conflict`` as ``_owner``.
        """
        if self.obj is None:
            return None
        owner = self._owner()
        return self.state or owner

    async def _newest_or_raise(self) -> KubeObject:
        return self._existing(await self.newest())

    def _owner(self) -> KubeObject:
        """Return the cached object of the key.

        Raises:
            NotCached: there is none.
            Conflict: another program has created it again since the run began.
        """
        own, cached = self._newest or self._observed, self._existing(self.obj)
        if own is None or cached.uid == own.uid:
            return cached
        if self._observed is not None and cached.uid == self._observed.uid:
            return own  # the run has created it again
        raise other_object(self._target.informer.resource, self._key)

    def _existing(self, obj: KubeObject | None) -> KubeObject:
        if obj is None:
            raise NotCached(self._target.informer.resource, self._key)
        return obj

    # -- owned objects -------------------------------------------------------------------------

    def adoption(self, block_owner_deletion: bool | None) -> Adopt:
        """Return a function that makes the own object, as it is then, the controller of a child."""
        blocks = block_owner_deletion
        if blocks is None:
            blocks = self._target.options.block_owner_deletion
        return lambda child: set_owner(child, self._owner(), block_owner_deletion=blocks)

    async def apply(
        self,
        child: Mapping[str, Any],
        adopt: Adopt | None,
        *,
        resource: str | Resource | None,
        force: bool,
    ) -> KubeObject:
        """Apply a child, with this object as its controller if ``adopt`` is given."""
        writer, body = self._child(child, resource, adopt)
        manager, own_writes = self._target.field_manager, self._target.own_writes
        children = own_writes.children_of(writer.resource) if adopt else None
        digest = hash_body(body, field_manager=manager, force=force) if children else None
        if children is None or digest is None:
            return await writer.apply(body, field_manager=manager, force=force)
        cached = children.stored(_key_of(body))
        applied, rewinds = own_writes.applied, children.health.rewinds
        if (
            cached is not None
            and children.rejection(cached.key) is None  # no newer version that isn't cached
            and applied.is_current(self._key, writer.resource, cached, digest, rewinds)
        ):
            return cached
        written = await writer.apply(body, field_manager=manager, force=force)
        applied.record(self._key, writer.resource, written, digest, rewinds)
        return written

    async def create_or_update(
        self,
        obj: Mapping[str, Any],
        mutate: Mutate,
        adopt: Adopt | None,
        *,
        resource: str | Resource | None,
    ) -> tuple[OperationResult, KubeObject]:
        """Create an object, or change the existing one by ``mutate``."""
        writer, body = self._child(obj, resource, adopt)
        key = _key_of(body)
        try:
            # From the server: a cached object may lack parts, which an update would erase.
            found = await writer.get(key)
        except NotFound:
            found = None
        if found is None:
            return "created", await writer.create(_mutated(deepcopy(body), mutate, key))
        current = found.to_dict()
        wanted = _mutated(deepcopy(adopt(current) if adopt else current), mutate, key)
        if is_same_json(current, wanted):
            return "unchanged", found
        return "updated", await writer.update(wanted)

    @contextmanager
    def names_owner(self) -> Generator[None]:
        """Name the owners' resource in the advice of an error, which the client doesn't know."""
        try:
            yield
        except Forbidden as error:
            resource = self._target.informer.resource
            advice = error.advice.replace(OWNER_FINALIZERS, f"{resource}/finalizers")
            if advice == error.advice:
                raise
            phase, target = error.phase, error.target
            raise server_error(error.status, phase=phase, target=target, advice=advice) from None

    async def prune(
        self,
        children: SharedInformer,
        keep: Iterable[ObjectKey | str | Mapping[str, Any]],
        *,
        labels: LabelChoice,
    ) -> tuple[ObjectKey, ...]:
        """Delete the children of this object that are not to be kept."""
        if isinstance(children, str | Resource):
            raise TypeError(
                f"prune() takes the informer of the children, such as "
                f"informers.informer({str(children)!r}), not {children!r}"
            )
        owner = self._owner()
        namespace = owner.namespace or None
        kept = {_kept_key(each, children, namespace) for each in keep}
        writer, deleted = self.api(children.resource), list[ObjectKey]()
        async for child in children.lister.scan(labels=labels, namespace=namespace):
            if not _is_kube_object(child):
                raise UsageError(
                    f"prune needs an informer without model= and convert=, not {children.name}"
                )
            if child.key in kept or not is_controlled_by(child, owner):
                continue
            if child.deletion_timestamp is None and await _delete(writer, child):
                deleted.append(child.key)
        return tuple(deleted)

    def _child(
        self, child: Mapping[str, Any], resource: str | Resource | None, adopt: Adopt | None
    ) -> tuple[ResourceWriter, dict[str, Any]]:
        """Return the writer of a child, and its body with the owner and the owner's namespace."""
        found = self._resource_of(child) if resource is None else resolve_built_in(resource)
        owner = self._owner()
        if adopt and owner.namespace and not found.namespaced:
            raise UsageError(
                f"{found} are cluster-scoped and can't be owned by {owner.kind} {owner.key}, which "
                "is namespaced: no server accepts that owner; pass owned=False"
            )
        body = _copy(child)
        # A child may lack both if resource= is given, and set_owner compares them.
        body.setdefault("apiVersion", found.api_version)
        body.setdefault("kind", found.kind)
        if found.namespaced and owner.namespace:
            body["metadata"].setdefault("namespace", owner.namespace)
        if found.namespaced and not body["metadata"].get("namespace"):
            raise UsageError(
                f"{found} {body['metadata'].get('name', '')}: the namespace is missing. Set "
                f"metadata.namespace, since {owner.kind} {owner.key} is in no namespace"
            )
        return self.api(found), adopt(body) if adopt else body

    def _resource_of(self, child: Mapping[str, Any]) -> Resource:
        """Return the resource of a child's ``apiVersion`` and ``kind``."""
        head = child.get("apiVersion"), child.get("kind")
        for each in (*self._target.own_writes.resources, *BUILT_IN):
            if (each.api_version, each.kind) == head:
                return each
        raise UsageError(
            f"no informer of the controller {self._target.name} and no built-in resource has the "
            f"apiVersion {head[0]!r} and the kind {head[1]!r}{self._suggestion(head)}: "
            "correct them, or pass resource="
        )

    def _suggestion(self, head: tuple[object, object]) -> str:
        """Return the nearest apiVersion and kind as a hint; empty if none is near."""
        from difflib import get_close_matches  # rarely needed

        heads = [
            f"{each.api_version} {each.kind}"
            for each in (*self._target.own_writes.resources, *BUILT_IN)
        ]
        close = get_close_matches(f"{head[0]} {head[1]}", heads, n=1, cutoff=0.75)
        return f" (did you mean {close[0]!r}?)" if close else ""

    def __repr__(self) -> str:
        return f"<RunWrites of {self._target.name}: {self._key}>"


async def _delete(writer: ResourceWriter, child: KubeObject) -> bool:
    """Delete this very object. Return False if it doesn't exist any more."""
    try:
        # The policy is named, since deletions of some resources orphan the dependents by default.
        await writer.delete(child.key, uid=child.uid, propagation="Background")
    except (NotFound, Conflict):  # deleted, or created again under the same name
        return False
    return True


def _plain_status(status: object) -> dict[str, Any]:
    if not isinstance(status, Mapping):
        kind = type(status).__name__  # the value may be a password
        raise TypeError(f"patch_status() takes a mapping of the status, not {kind}")
    fields = dict(cast("Mapping[str, Any]", status))
    plain: dict[str, Any] = msgspec.to_builtins(fields, enc_hook=_to_plain)
    return plain


def _mutated(body: dict[str, Any], mutate: object, key: ObjectKey) -> dict[str, Any]:
    """Return the body that ``mutate`` has changed in place."""
    text = "mutate must be a plain function that changes the object in place"
    if not callable(mutate):
        raise UsageError(f"{text}, not {type(mutate).__name__}")
    result = mutate(body)
    if isawaitable(result):
        close = getattr(result, "close", None)
        if close is not None:
            close()  # a coroutine that is never awaited would be a warning
        raise UsageError(text)
    if _key_of(body) != key:
        raise UsageError(f"mutate must not change the name or the namespace of {key}")
    return body


def _key_of(body: Mapping[str, Any]) -> ObjectKey:
    found = body.get("metadata")
    metadata: Mapping[str, Any] = cast("Any", found) if isinstance(found, Mapping) else {}
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("the object to write needs metadata.name: it identifies the object")
    return ObjectKey(metadata.get("namespace") or "", name)


def _kept_key(kept: object, children: SharedInformer, namespace: str | None) -> ObjectKey:
    """Return the key of an object that ``prune`` keeps."""
    if isinstance(kept, KubeObject):
        return kept.key
    if isinstance(kept, Mapping):
        key = _key_of(cast("Mapping[str, Any]", kept))
        return ObjectKey(key.namespace or namespace or "", key.name)
    if isinstance(kept, ObjectKey | str):
        plain = isinstance(kept, str) and "/" not in kept
        return children.lister.key(kept, namespace=namespace if plain else None)
    raise UsageError(f"keep takes objects, keys and names, not {kept!r}")


def _is_kube_object(child: object) -> bool:
    """Return True for a KubeObject; an informer with convert= has other objects."""
    return isinstance(child, KubeObject) and bool(child.raw)


def _copy(child: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a child, two levels deep."""
    body = child.to_dict() if isinstance(child, KubeObject) else dict(child)
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        raise UsageError("the object to write needs metadata with a name, and it has none")
    return body | {"metadata": dict(cast("Mapping[str, Any]", metadata))}


def _to_plain(value: object) -> object:
    """Convert read-only views of a cached object."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a status can't hold a {type(value).__name__}")

"""The stored forms of objects besides the whole one: models without bytes, and excluded objects.

The queue, the cache and the mailboxes know an object by its key, uid and version, so all stored
forms are ``KubeObject``s. Programs don't see them: a view shows a program the model, and an
excluded object is never delivered.

Code tests for a form by ``type(obj) is ExcludedObject``. There are no subclasses, and
``isinstance`` takes ten times as long with a class that is a ``Mapping``.
"""

from __future__ import annotations

from typing import Any

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer.errors.texts import printable


class _WithoutBytes(KubeObject, frozen=True, eq=False, gc=False):
    """An object that has no bytes, and so stores its uid and version."""

    stored_uid: str = ""
    stored_version: str = ""

    @property
    def uid(self) -> str:
        return self.stored_uid

    @property
    def resource_version(self) -> str:
        return self.stored_version


class ModelObject(_WithoutBytes, frozen=True, eq=False, gc=False):
    """An object that is stored as a model only. ``raw`` is empty.

    It can't be part of a reference cycle (``gc=False``), because the model doesn't refer to it.
    """

    model: Any = None
    size: int = 0
    """Bytes of the JSON that the model was made of, for the limit of the queue."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelObject):
            return NotImplemented
        same = (self.key, self.uid, self.resource_version) == (
            *(other.key, other.uid, other.resource_version),
        )
        return same and bool(self.model == other.model)

    def __hash__(self) -> int:
        return hash((self.key, self.uid, self.resource_version))

    def __repr__(self) -> str:  # without the model, which may contain a secret
        model = type(self.model).__name__
        return printable(f"<{self.kind} {self.key} rv={self.resource_version} as {model}>")


class ExcludedObject(_WithoutBytes, frozen=True, eq=False, gc=False):
    """A version of an object that is not cached, in its place in the order of events.

    With an ``error``, the version was rejected, and the cached version of the object stays. Without
    one, ``transform=`` has dropped the object, and nothing stays.
    """

    error: Exception | None = None

    @classmethod
    def of(cls, obj: KubeObject, error: Exception | None = None) -> ExcludedObject:
        uid, version = obj.uid, obj.resource_version
        return cls(obj.key, b"", obj.resource, stored_uid=uid, stored_version=version, error=error)

    def __repr__(self) -> str:
        how = "dropped" if self.error is None else "rejected"
        return printable(f"<{self.kind} {self.key} rv={self.resource_version} {how}>")


def size_of(obj: KubeObject) -> int:
    """Return the bytes of JSON of ``obj``, or those that its model was made of."""
    return obj.size if type(obj) is ModelObject else len(obj.raw)


class NeedsJson:
    """A function of one object that reads the object's JSON, and so can't be applied to a model.

    An informer with ``convert=`` passes ``field``, ``label_index`` and predicates the
    ``KubeObject``. An informer with ``model=`` keeps no JSON and rejects them.
    """

    __slots__ = ()

    @property
    def needs_bytes(self) -> bool:
        """True if the function reads more than key, uid and version."""
        return True

    def __call__(self, obj: KubeObject) -> Any:
        raise NotImplementedError

"""What the cache holds in place of whole objects: models without bytes, and what was withheld.

The queue, the cache and the mailboxes know an object by its key, uid and version, and never look
inside. So that they need not know either what an informer keeps of its objects, all of it is a
``KubeObject``: a whole one, or one of these two, which have no bytes. No program meets them:
``views`` shows it the model, and what was withheld is never told. Making them is ``shapes``'
business.

Which of them an object is, is asked as ``type(obj) is Withheld``: there are no subclasses, and
``isinstance`` takes ten times as long with a class that is a ``Mapping``.
"""

from __future__ import annotations

from typing import Any

from aioinformer._core.objects.kube_object import KubeObject

__all__ = ["ExcludedObject", "ModelObject", "NeedsJson", "size_of"]


class ModelObject(KubeObject, frozen=True, eq=False, gc=False):
    """An object of which a model is kept, and nothing else. ``raw`` is empty.

    No cycle can lead through it (``gc=False``): the model doesn't know of it.
    """

    model: Any = None
    size: int = 0
    """Bytes of the JSON that it was made of; what the queue measures by."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelObject):
            return NotImplemented
        same = (self.key, self.uid, self.resource_version) == (
            *(other.key, other.uid, other.resource_version),
        )
        return same and bool(self.model == other.model)

    def __hash__(self) -> int:
        return hash((self.key, self.uid, self.resource_version))

    def __repr__(self) -> str:  # without the model, which may have a secret in it
        model = type(self.model).__name__
        return f"<{self.kind} {self.key} rv={self.resource_version} as {model}>"


class ExcludedObject(KubeObject, frozen=True, eq=False, gc=False):
    """A version of an object that is not to be cached, in its place among the others.

    With an ``error`` it was rejected: what is cached of the object stays. Without, ``transform=``
    has dropped it: then nothing stays.
    """

    error: Exception | None = None

    @classmethod
    def of(cls, obj: KubeObject, error: Exception | None = None) -> ExcludedObject:
        """``obj`` is withheld; nothing of its body is kept."""
        return cls(obj.key, obj.uid, obj.resource_version, b"", obj.resource, error=error)

    def __repr__(self) -> str:
        how = "dropped" if self.error is None else "rejected"
        return f"<{self.kind} {self.key} rv={self.resource_version} {how}>"


def size_of(obj: KubeObject) -> int:
    """Bytes of JSON that ``obj`` came as, or that are left of it."""
    return obj.size if type(obj) is ModelObject else len(obj.raw)


class NeedsJson:
    """A function of one object that reads its JSON, and so is no function of a model.

    ``field``, ``label_index`` and predicates are. An informer that converts its objects gives them
    the ``KubeObject``; one that keeps models has nothing to give them, and refuses them.
    """

    __slots__ = ()

    @property
    def needs_bytes(self) -> bool:
        """Whether it looks at more than key, uid and version."""
        return True

    def __call__(self, obj: KubeObject) -> Any:
        """What it finds in ``obj``."""
        raise NotImplementedError

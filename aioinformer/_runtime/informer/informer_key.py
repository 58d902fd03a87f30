"""What makes two requests for an informer mean the same one.

A factory hands out one informer for each identity: the resource, its scope, the selectors, the
shape of its objects. Indexes and listeners are added to it; they are no part of this.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from types import NoneType
from typing import Any, Self, cast

from msgspec import Struct

from aioinformer._core.codec.shape import Shape
from aioinformer._core.objects.resources import Resource, resolve_built_in
from aioinformer._core.selectors.label_parser import LabelMapping
from aioinformer._core.selectors.selectors import FieldSelector, LabelSelector
from aioinformer.errors import UsageError

__all__ = ["InformerKey"]

DEFAULT_SHAPE = Shape.of()


class InformerKey(Struct, frozen=True):
    """One informer among those of a factory."""

    resource: Resource
    namespace: str | None
    labels: str
    fields: str
    managed_fields: bool
    shape: Shape[Any] = DEFAULT_SHAPE

    @classmethod
    def of(
        cls,
        resource: str | Resource,
        *,
        namespace: str | None,
        labels: str | LabelMapping,
        fields: str | Mapping[str, str],
        managed_fields: bool,
        shape: Shape[Any] | None = None,
    ) -> Self:
        """The identity of what was asked for.

        Args:
            resource: a ``Resource``, or the name of a built-in one in any of its forms.
            namespace: the scope; empty or ``None`` for all. Means nothing to a resource that is
                in no namespace.
            labels: a label selector.
            fields: a field selector.
            managed_fields: whether objects keep ``metadata.managedFields``.
            shape: what is made of them; functions are the same if they are equal.

        Raises:
            UnknownResource: no built-in resource has that name.
            InvalidSelector: a selector doesn't parse.
            UsageError: the resource is a coroutine that nobody awaited.
            TypeError: the namespace is a list of them.
        """
        if isinstance(resource, Coroutine):
            resource.close()
            raise UsageError("the resource is a coroutine: write `await client.resource(...)`")
        if not isinstance(cast("object", namespace), str | NoneType):
            raise TypeError(
                f"namespace is one, or empty for all, not {namespace!r}: make an informer for each"
            )
        found = resolve_built_in(resource)
        return cls(
            found,
            (namespace or None) if found.namespaced else None,
            str(LabelSelector.parse(labels)),
            str(FieldSelector.parse(fields)),
            managed_fields,
            shape or DEFAULT_SHAPE,
        )

    @property
    def label(self) -> str:
        """What to call it in metrics: without the selectors, which may name an object."""
        selected = " (selected)" if self.labels or self.fields else ""
        return f"{self._description}{selected}"

    @property
    def _description(self) -> str:
        scope = f"in {self.namespace}" if self.namespace else ""
        return " ".join(filter(None, (str(self.resource), scope, str(self.shape))))

    def __str__(self) -> str:
        selectors = ",".join(filter(None, (self.labels, self.fields)))
        return f"{self._description} where {selectors}" if selectors else self._description

"""The key of an informer: requests with equal keys share one informer.

Indexes and listeners are added to an informer, and are no part of its key.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, cast

from msgspec import Struct

from aioinformer._core.codec.shape import Shape
from aioinformer._core.objects.resources import Resource, resolve_built_in, versioned_name
from aioinformer.errors import UsageError

if TYPE_CHECKING:  # for informers of shards, of several namespaces or with selectors
    from aioinformer._core.selectors.label_parser import LabelMapping
    from aioinformer._core.selectors.parsed_selectors import FieldSelector, LabelSelector
    from aioinformer.namespaces.state.scopes import Namespaces, NamespaceSelection
    from aioinformer.sharding.state.assignment import ShardAssignment
    from aioinformer.sharding.state.shard import Shard

DEFAULT_SHAPE = Shape.of()


class InformerKey(Struct, frozen=True):
    resource: Resource
    namespace: str | None
    labels: str
    fields: str
    managed_fields: bool
    shape: Shape[Any] = DEFAULT_SHAPE
    namespaces: NamespaceSelection | None = None
    """The namespaces, if there are several; ``namespace``, ``labels`` and ``fields`` are empty."""
    shard: Shard | ShardAssignment | None = None

    @classmethod
    def of(
        cls,
        resource: str | Resource,
        *,
        namespace: str | None,
        labels: LabelSelector | str | LabelMapping,
        fields: FieldSelector | str | Mapping[str, str],
        managed_fields: bool,
        shape: Shape[Any] | None = None,
        namespaces: Namespaces | None = None,
        shard: Shard | ShardAssignment | None = None,
    ) -> Self:
        """Return the key of a request. Functions of shapes are compared with ``==``.

        Raises:
            UnknownResource: no built-in resource has that name.
            InvalidSelector: a selector doesn't parse.
            UsageError: the resource is a coroutine that wasn't awaited, or has no namespaces.
            TypeError: the namespace is no text: a list, for example.
        """
        if isinstance(resource, Coroutine):
            resource.close()
            raise UsageError("the resource is a coroutine: write `await client.resource(...)`")
        if not isinstance(cast("object", namespace), str | NoneType):
            raise TypeError(
                f"namespace must be one namespace's name, or empty for all, not {namespace!r}; "
                "for several namespaces pass namespaces=[...]"
            )
        resolved, selection = resolve_built_in(resource), None
        if namespaces is not None:
            if not resolved.namespaced:
                raise UsageError(f"{resolved} are in no namespace: namespaces= can't select them")
            from aioinformer.namespaces.state.scopes import NamespaceSelection  # rarely needed

            selection = NamespaceSelection.parse(namespaces, labels=labels, fields=fields)
            namespace, labels, fields = None, "", ""
        return cls(
            resolved,
            (namespace or None) if resolved.namespaced else None,
            _label_text(labels),
            _field_text(fields),
            managed_fields,
            shape or DEFAULT_SHAPE,
            selection,
            shard,
        )

    @property
    def label(self) -> str:
        """The informer's name in metrics: without the selectors, which may name an object."""
        chosen = self._selectors or self.shard
        selected = " (selected)" if chosen else ""
        return f"{self._description}{selected}"

    @property
    def _description(self) -> str:
        chosen = self.namespace if self.namespaces is None else str(self.namespaces)
        scope = f"in {chosen}" if chosen else ""
        return " ".join(filter(None, (versioned_name(self.resource), scope, str(self.shape))))

    @property
    def _selectors(self) -> str:
        """The selectors as text; of several namespaces, those that all have by default."""
        if self.namespaces is None:
            return ",".join(filter(None, (self.labels, self.fields)))
        default = self.namespaces.default
        return ",".join(filter(None, (default.label_selector, default.field_selector)))

    def __str__(self) -> str:
        shard = ""
        if self.shard is not None:
            from aioinformer.sharding.state.shard import Shard

            chosen = self.shard
            shard = str(chosen) if isinstance(chosen, Shard) else f"shards of {chosen.name}"
        selectors = ",".join(filter(None, (self._selectors, shard)))
        return f"{self._description} where {selectors}" if selectors else self._description


def _label_text(selector: LabelSelector | str | LabelMapping) -> str:
    if selector == "":
        return ""
    from aioinformer._core.selectors.parsed_selectors import LabelSelector

    return str(LabelSelector.parse(selector))


def _field_text(selector: FieldSelector | str | Mapping[str, str]) -> str:
    if selector == "":
        return ""
    from aioinformer._core.selectors.parsed_selectors import FieldSelector

    return str(FieldSelector.parse(selector))

"""Scopes: the namespaces that one informer reads, and what it selects in each of them.

An informer of several namespaces sends its requests to each namespace, so that namespaced Roles
suffice. Requests with equal ``NamespaceSelection`` share one informer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from aioinformer._core.selectors.label_parser import LabelMapping
from aioinformer._core.selectors.parsed_selectors import FieldSelector, LabelSelector
from aioinformer._core.selectors.predicates import ObjectPredicate
from aioinformer.errors import UsageError

MAX_NAMED = 3
"""Namespaces that the name of an informer lists. More are replaced by their number."""


class Scope(Struct, frozen=True, kw_only=True):
    """The selection of an informer in one of its namespaces.

    ::

        informers.informer("pods", namespaces={
            "shop": Scope(labels="app=shop"),
            "legacy": Scope(optional=True),
        })

    Raises:
        InvalidSelector: a selector doesn't parse.
    """

    labels: LabelSelector | str | LabelMapping = ""
    """A label selector; empty for the ``labels=`` of the informer."""
    fields: FieldSelector | str | Mapping[str, str] = ""
    """A field selector; empty for the ``fields=`` of the informer."""
    optional: bool = False
    """True if the informer counts as synced without this namespace as long as the server refuses it
    (401, 403, 404). The informer tries again with backoff all the same."""

    def __post_init__(self) -> None:
        force_setattr(self, "labels", str(LabelSelector.parse(self.labels)))
        force_setattr(self, "fields", str(FieldSelector.parse(self.fields)))

    @property
    def label_selector(self) -> str:
        return str(self.labels)

    @property
    def field_selector(self) -> str:
        return str(self.fields)

    def with_defaults(self, default: Scope) -> Scope:
        if (self.labels or not default.labels) and (self.fields or not default.fields):
            return self
        return Scope(
            labels=self.labels or default.labels,
            fields=self.fields or default.fields,
            optional=self.optional,
        )


Namespaces: TypeAlias = (
    Iterable[str] | Mapping[str, Scope] | ObjectPredicate | Mapping[ObjectPredicate, Scope]
)
"""The namespaces of an informer: their names, a ``Scope`` for each, or a predicate of Namespace
objects such as ``labelled("team=shop")``, which the informer follows. A mapping with a predicate as
its only key has the ``Scope`` of each namespace that matches."""


class NamespaceSelection(Struct, frozen=True):
    """The parsed form of ``namespaces=``."""

    scopes: tuple[tuple[str, Scope], ...]
    """The namespaces at the beginning, sorted by name."""
    predicate: ObjectPredicate | None = None
    """The condition on namespaces to follow; ``None`` if the program names the namespaces."""
    default: Scope = Scope()
    """The selectors of namespaces without any; with a predicate, the scope of each that matches."""

    @classmethod
    def parse(
        cls,
        namespaces: Namespaces,
        *,
        labels: LabelSelector | str | LabelMapping,
        fields: FieldSelector | str | Mapping[str, str],
    ) -> Self:
        """Return the selection of a request; ``labels`` and ``fields`` are defaults.

        Raises:
            InvalidSelector: a selector doesn't parse.
            TypeError: ``namespaces`` is a single name, or holds something else than names.
            UsageError: a name is empty, or a predicate is not the only key of a mapping.
        """
        default = Scope(labels=labels, fields=fields)
        if isinstance(namespaces, ObjectPredicate):
            return cls((), namespaces, default)
        if followed := _find_predicate(namespaces):
            predicate, scope = followed
            return cls((), predicate, check_scope(scope).with_defaults(default))
        names: object = namespaces  # programs without a type checker may pass anything
        if isinstance(names, str) or not hasattr(names, "__iter__"):
            raise TypeError(
                f"namespaces is a list of names, a mapping of names to Scopes or a predicate such "
                f"as labelled('team=shop'), not {names!r}; for one namespace pass namespace="
            )
        scopes: Mapping[str, object]
        if isinstance(namespaces, Mapping):
            scopes = cast("Mapping[str, object]", namespaces)
        else:
            scopes = dict.fromkeys(namespaces, default)
        checked = {
            check_namespace(name): check_scope(scope).with_defaults(default)
            for name, scope in scopes.items()
        }
        return cls(tuple(sorted(checked.items(), key=lambda item: item[0])), None, default)

    def __str__(self) -> str:
        if self.predicate is not None:
            return f"namespaces {self.predicate!r}"
        names = [name for name, _ in self.scopes]
        return ", ".join(names) if 0 < len(names) <= MAX_NAMED else f"{len(names)} namespaces"


def _find_predicate(namespaces: object) -> tuple[ObjectPredicate, object] | None:
    """Return the predicate that is the key of a mapping, and its scope; ``None`` for names.

    Raises:
        UsageError: the mapping has further keys.
    """
    if not isinstance(namespaces, Mapping):
        return None
    scopes = cast("Mapping[object, object]", namespaces)
    for predicate, scope in scopes.items():
        if not isinstance(predicate, ObjectPredicate):
            continue
        if len(scopes) > 1:
            raise UsageError(
                f"namespaces= has {predicate!r} and other keys; an informer follows the namespaces "
                "of one predicate (combine two with |) or reads namespaces by name: make an "
                "informer for each"
            )
        return predicate, scope
    return None


def check_namespace(name: object) -> str:
    """Return the name of a namespace.

    Raises:
        TypeError: ``name`` is no text.
        UsageError: the name is empty, which means all namespaces elsewhere.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a namespace is a text, not {name!r}")
    if not name:
        raise UsageError(
            "a name in namespaces= is empty; to read all namespaces pass namespace=ALL_NAMESPACES"
        )
    return name


def check_scope(scope: object) -> Scope:
    """Return ``scope``; raise ``TypeError`` for anything but a ``Scope``."""
    if not isinstance(scope, Scope):
        raise TypeError(f"a namespace needs a Scope, such as Scope(labels=...), not {scope!r}")
    return scope

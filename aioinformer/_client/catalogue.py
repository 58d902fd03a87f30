"""What a server serves, understood: discovery documents in, resources found by name out.

Sans-I/O: ``discovery`` fetches the documents. Three kinds of them are read: the aggregated one
(``APIGroupDiscoveryList``, recording 02), one group version's (``APIResourceList``, recordings
01 and 03), and the lists of groups that lead to the latter. Subresources are left out: they can't
be listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

import msgspec
from msgspec import Struct

from aioinformer._core.resources import Resource, is_segment
from aioinformer.errors import ProtocolError, UnknownResource

__all__ = [
    "Catalogue",
    "aggregated_resources",
    "group_versions",
    "legacy_groups",
    "legacy_resources",
]

T = TypeVar("T")


# -- documents ---------------------------------------------------------------------------------


class _Kind(Struct):
    kind: str = ""


class _Name(Struct):
    name: str = ""


class _AggregatedResource(Struct, rename="camel"):
    resource: str
    response_kind: _Kind | None = None
    scope: str = "Namespaced"
    singular_resource: str = ""
    short_names: tuple[str, ...] = ()


class _AggregatedVersion(Struct):
    version: str
    resources: tuple[_AggregatedResource, ...] = ()


class _AggregatedGroup(Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    versions: tuple[_AggregatedVersion, ...] = ()


class _AggregatedList(Struct):
    kind: str = ""
    items: tuple[_AggregatedGroup, ...] = ()


class _LegacyResource(Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool
    singular_name: str = ""
    short_names: tuple[str, ...] | None = None


class _LegacyList(Struct, rename="camel"):
    resources: tuple[_LegacyResource, ...] | None = None


class _GroupVersion(Struct, rename="camel"):
    group_version: str


class _Group(Struct, rename="camel"):
    name: str
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion | None = None


class _GroupList(Struct):
    groups: tuple[_Group, ...] = ()


def _decode(document: bytes, model: type[T], path: str) -> T:
    try:
        return msgspec.json.decode(document, type=model)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _nonsense(path, error) from error


def _described(found: Iterator[Resource], path: str) -> tuple[Resource, ...]:
    """All of them, unless one can't be: a resource without a name, for instance."""
    try:
        return tuple(found)
    except ValueError as error:
        raise _nonsense(path, error) from error


def _nonsense(path: str, why: object) -> ProtocolError:
    return ProtocolError(f"{path} is no discovery document: {why}", phase="discovery")


def aggregated_resources(document: bytes, path: str) -> tuple[Resource, ...] | None:
    """The resources of an aggregated document; ``None`` if the server sent the legacy form.

    The server orders groups by priority and each group's versions by preference.

    Raises:
        ProtocolError: not a discovery document. ``path`` names it.
    """
    listed = _decode(document, _AggregatedList, path)
    if listed.kind != "APIGroupDiscoveryList":
        return None
    found = (
        Resource(
            group.metadata.name,
            version.version,
            each.resource,
            each.response_kind.kind if each.response_kind else "",
            namespaced=each.scope == "Namespaced",
            singular=each.singular_resource,
            short_names=each.short_names,
        )
        for group in listed.items
        for version in group.versions
        for each in version.resources
        if "/" not in each.resource
    )
    return _described(found, path)


def legacy_resources(document: bytes, path: str, group_version: str) -> tuple[Resource, ...]:
    """The resources of one group version.

    Raises:
        ProtocolError: not a discovery document.
    """
    group, _, version = group_version.rpartition("/")
    found = (
        Resource(
            group,
            version,
            each.name,
            each.kind,
            namespaced=each.namespaced,
            singular=each.singular_name,
            short_names=each.short_names or (),
        )
        for each in _decode(document, _LegacyList, path).resources or ()
        if "/" not in each.name
    )
    return _described(found, path)


def legacy_groups(document: bytes, path: str) -> Iterator[str]:
    """Every ``group/version`` of a list of groups, each group's preferred version first.

    Raises:
        ProtocolError: not a discovery document.
    """
    for group in _decode(document, _GroupList, path).groups:
        yield from _versions(group, path)


def group_versions(document: bytes, path: str) -> Iterator[str]:
    """Every ``group/version`` of one group, the preferred version first.

    Raises:
        ProtocolError: not a discovery document.
    """
    return _versions(_decode(document, _Group, path), path)


def _versions(group: _Group, path: str) -> Iterator[str]:
    preferred = (group.preferred_version,) if group.preferred_version else ()
    for name in dict.fromkeys(each.group_version for each in (*preferred, *group.versions)):
        if not all(is_segment(part) for part in name.split("/", 1)):
            raise _nonsense(path, f"it has a group version {name!r}")
        yield name


# -- names -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The resources of a server, in its order: core first, preferred versions first."""

    resources: tuple[Resource, ...] = ()
    unread: tuple[str, ...] = ()
    """Group versions that the server names and did not describe: an aggregated API is down."""
    names_groups: bool = True
    """Whether the server has a list of its groups."""

    def find(self, name: str) -> Resource | None:
        """The resource of that name, or ``None``.

        The core group wins; else a plural, singular or kind over somebody's short name.

        Raises:
            UnknownResource: several groups have it. Says how to name each.
        """
        head, _, rest = name.lower().partition(".")
        found = [each for each in self.resources if _called(each, head) and _in(each, rest)]
        by_group = {each.group: each for each in reversed(found)}  # the first version wins
        if len(by_group) < 2 or "" in by_group:
            return by_group.get("") or next(iter(by_group.values()), None)
        named = [each for each in by_group.values() if head not in _short(each)] or found
        if len(named) == 1:
            return named[0]
        choices = " or ".join(sorted({str(each) for each in named}))
        raise UnknownResource(f"several resources are called {name!r}: say {choices}")

    def unknown(self, name: str) -> UnknownResource:
        """The error for a name that is not found, with the nearest ones."""
        near = get_close_matches(name.lower(), set(self._names()), n=3)
        hint = f" (did you mean {' or '.join(near)}?)" if near else ""
        unread = f"; it did not describe {', '.join(self.unread)}" if self.unread else ""
        if not self.names_groups and "." not in name:
            unread += f"; it has no list of its groups, so ask for {name}.GROUP"
        return UnknownResource(f"the server has no resource called {name!r}{hint}{unread}")

    def _names(self) -> Iterable[str]:
        return (called for each in self.resources for called in each.names())

    def __repr__(self) -> str:
        return f"<Catalogue of {len(self.resources)} resources>"


def _short(resource: Resource) -> set[str]:
    plain = {resource.plural, resource.singular, resource.kind.lower()}
    return {name.lower() for name in resource.short_names} - plain


def _called(resource: Resource, head: str) -> bool:
    plain = (resource.plural, resource.singular, resource.kind.lower())
    return head in plain or head in _short(resource)


def _in(resource: Resource, rest: str) -> bool:
    """Whether ``rest`` is empty, or the resource's group, or its version and group."""
    return rest in ("", resource.group, f"{resource.version}.{resource.group}".rstrip("."))

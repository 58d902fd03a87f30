"""Discovery documents decoded into ``ServedResource`` values.

The functions read the aggregated document (``APIGroupDiscoveryList``), that of one group version
(``APIResourceList``), and the lists of groups that lead to the latter. A document of another kind
is an error and never an empty list, because an informer empties its cache when a resource is
removed, and a proxy's ``{}`` must not cause that. Subresources are skipped, because they can't be
listed. So are resources without a kind and verbs: an aggregated document nests each subresource in
a resource, and a server that has the subresource only (KubeVirt's ``virtualmachines/start``, the
metrics of pods) gets such a resource as its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Struct

from aioinformer._core.objects.resources import Resource, is_path_segment
from aioinformer.errors import ProtocolError

T = TypeVar("T")

REQUIRED_VERBS = ("list", "watch")


@dataclass(frozen=True, slots=True)
class ServedResource:
    """A resource and its verbs."""

    resource: Resource
    verbs: frozenset[str] | None = None
    """The supported verbs; ``None`` if the server doesn't list them."""
    categories: tuple[str, ...] = ()
    """The groups of resources that it belongs to, such as ``all`` for ``kubectl get all``."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """The verbs that an informer needs and the resource doesn't support."""
        verbs = self.verbs
        return () if verbs is None else tuple(verb for verb in REQUIRED_VERBS if verb not in verbs)


@dataclass(frozen=True, slots=True)
class AggregatedDocument:
    served: tuple[ServedResource, ...]
    """The resources in the server's order: groups by priority, versions by preference."""
    stale: tuple[str, ...]
    """The ``group/version`` of aggregated APIs that don't answer. Their resources are outdated or
    missing."""


def version_path(group_version: str) -> str:
    """Return the path of the document of ``group/version``, or of the core group's ``version``."""
    return f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"


# -- the form of the documents -----------------------------------------------------------------

# Each list may be ``null``, as Go writes an empty slice.


class _ResponseKind(Struct):
    kind: str = ""


class _GroupName(Struct):
    name: str = ""


class _Subresource(Struct):
    """A subresource, of which nothing is read."""


class _AggregatedResource(Struct, rename="camel"):
    name: str = msgspec.field(name="resource")
    response_kind: _ResponseKind | None = None
    scope: str = "Namespaced"
    singular_name: str = msgspec.field(name="singularResource", default="")
    short_names: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    verbs: frozenset[str] | None = None
    subresources: tuple[_Subresource, ...] | None = None

    @property
    def kind(self) -> str:
        return self.response_kind.kind if self.response_kind else ""

    @property
    def namespaced(self) -> bool:
        return self.scope == "Namespaced"

    @property
    def is_place_of_subresources(self) -> bool:
        """True if the server has no such resource, only subresources of it."""
        return not (self.kind or self.verbs) and bool(self.subresources)


class _AggregatedVersion(Struct):
    version: str
    resources: tuple[_AggregatedResource, ...] | None = None
    freshness: str = ""


class _AggregatedGroup(Struct):
    metadata: _GroupName = msgspec.field(default_factory=_GroupName)
    versions: tuple[_AggregatedVersion, ...] | None = None


class _AggregatedList(Struct):
    kind: str = ""
    items: tuple[_AggregatedGroup, ...] | None = None


class _LegacyResource(Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool
    singular_name: str = ""
    short_names: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    verbs: frozenset[str] | None = None


class _LegacyList(Struct, rename="camel"):
    kind: str = ""
    group_version: str = ""
    resources: tuple[_LegacyResource, ...] | None = None


class _GroupVersion(Struct, rename="camel"):
    group_version: str


class _Group(Struct, rename="camel"):
    name: str
    kind: str = ""
    versions: tuple[_GroupVersion, ...] | None = None
    preferred_version: _GroupVersion | None = None


class _CoreVersions(Struct):
    kind: str = ""
    versions: tuple[str, ...] | None = None


class _GroupList(Struct):
    kind: str = ""
    groups: tuple[_Group, ...] | None = None


# -- parsers -----------------------------------------------------------------------------------


def parse_aggregated_resources(document: bytes, path: str) -> AggregatedDocument | None:
    """Parse an aggregated document; return ``None`` if the document has the legacy form.

    Raises:
        ProtocolError: the document is no discovery document. The message contains ``path``.
    """
    listed = _decode(document, _AggregatedList, path)
    if listed.kind != "APIGroupDiscoveryList":
        return None
    versions = [
        (group.metadata.name, version)
        for group in listed.items or ()
        for version in group.versions or ()
    ]
    found = (
        _to_served(group, version.version, each)
        for group, version in versions
        for each in version.resources or ()
        if "/" not in each.name and not each.is_place_of_subresources
    )
    stale = (
        f"{group}/{version.version}".removeprefix("/")
        for group, version in versions
        if version.freshness == "Stale"
    )
    return AggregatedDocument(_build_resources(found, path), tuple(_check_names(stale, path)))


def parse_legacy_resources(
    document: bytes, path: str, group_version: str
) -> tuple[ServedResource, ...]:
    """Parse the document of one group version; raise ``ProtocolError`` for any other document."""
    group, _, version = group_version.rpartition("/")
    listed = _decode(document, _LegacyList, path)
    _check_kind(listed.kind, "APIResourceList", path)
    if listed.group_version not in ("", group_version):
        raise _invalid_document(path, f"it describes another group version than {group_version}")
    found = (
        _to_served(group, version, each) for each in listed.resources or () if "/" not in each.name
    )
    return _build_resources(found, path)


def _to_served(
    group: str, version: str, found: _AggregatedResource | _LegacyResource
) -> ServedResource:
    resource = Resource(
        group,
        version,
        found.name,
        found.kind,
        namespaced=found.namespaced,
        singular=found.singular_name,
        short_names=found.short_names or (),
    )
    return ServedResource(resource, found.verbs, found.categories or ())


def parse_core_versions(document: bytes, path: str = "/api") -> Iterator[str]:
    """Parse the versions of the core group; raise ``ProtocolError`` for any other document."""
    listed = _decode(document, _CoreVersions, path)
    _check_kind(listed.kind, "APIVersions", path)
    return _check_names(listed.versions or (), path)


def parse_legacy_groups(document: bytes, path: str) -> Iterator[str]:
    """Parse a list of groups into ``group/version`` names, each group's preferred version first.

    Raises:
        ProtocolError: the document is no discovery document.
    """
    listed = _decode(document, _GroupList, path)
    _check_kind(listed.kind, "APIGroupList", path)
    return (each for group in listed.groups or () for each in _group_versions(group, path))


def parse_group_versions(document: bytes, path: str) -> Iterator[str]:
    """Parse the document of one group into ``group/version`` names, the preferred version first.

    Raises:
        ProtocolError: the document is no discovery document.
    """
    group = _decode(document, _Group, path)
    _check_kind(group.kind, "APIGroup", path)
    return _group_versions(group, path)


def _group_versions(group: _Group, path: str) -> Iterator[str]:
    preferred = group.preferred_version
    # Go writes a struct that is not set with empty strings.
    first = (preferred,) if preferred and preferred.group_version else ()
    named = (each.group_version for each in (*first, *(group.versions or ())))
    return _check_names(dict.fromkeys(named), path)


def _check_names(group_versions: Iterable[str], path: str) -> Iterator[str]:
    for name in group_versions:
        if not all(is_path_segment(part) for part in name.split("/", 1)):
            raise _invalid_document(path, "it contains an invalid group version")
        yield name


def _decode(document: bytes, model: type[T], path: str) -> T:
    try:
        return msgspec.json.decode(document, type=model)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _invalid_document(path, error) from error
    except UnicodeDecodeError:
        pass  # not kept as the cause: its repr shows the whole document
    raise _invalid_document(path, "it contains text that is not UTF-8")


def _build_resources(found: Iterator[ServedResource], path: str) -> tuple[ServedResource, ...]:
    try:
        return tuple(found)
    except ValueError as error:
        rule = str(error).partition(", not ")[0]  # the rest quotes the name
    raise _invalid_document(path, rule)


def _check_kind(kind: str, wanted: str, path: str) -> None:
    if kind != wanted:
        raise _invalid_document(path, f"its kind is not {wanted}")


def _invalid_document(path: str, reason: object) -> ProtocolError:
    """Return the error for an invalid document.

    The message quotes nothing of it: a server of another kind may have repeated the request's
    token.
    """
    return ProtocolError(
        f"{path} is not a discovery document: {reason}; is this a Kubernetes API server?",
        phase="discovery",
    )

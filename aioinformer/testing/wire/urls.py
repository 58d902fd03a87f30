"""A URL path as what it names: a collection or an object of a resource."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from aioinformer._core.objects.resources import BUILT_IN, Resource
from aioinformer.testing.wire import statuses

_BUILT_IN_VERSIONS = frozenset(resource.api_version for resource in BUILT_IN)


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """What a request is about."""

    resource: Resource
    namespace: str | None = None
    name: str = ""
    """Empty for the collection."""
    part: Literal["main", "status"] = "main"
    """Which part of the object."""

    @classmethod
    def parse(
        cls, path: str, resources: Iterable[Resource], with_status: Collection[Resource] = ()
    ) -> ResourcePath:
        """The target of a decoded URL path.

        Args:
            path: the path.
            resources: what is served.
            with_status: those of them that have a status subresource.

        Raises:
            NotFound: no such resource; in plain text if its whole group version is unknown.
        """
        api_version, rest = _split_group_version(path)
        served = {one.plural: one for one in resources if one.api_version == api_version}
        if not served:
            raise statuses.page_not_found()
        namespace, rest = _split_namespace(rest)
        plural, name, *deeper = *rest, "", ""
        resource = served.get(plural)
        known = api_version in _BUILT_IN_VERSIONS
        if resource in with_status and deeper[:1] == ["status"] and not any(deeper[1:]):
            return replace(cls.parse(path.rpartition("/status")[0], resources), part="status")
        if resource is None or any(deeper) or _has_wrong_scope(resource, namespace, name):
            if resource is not None and not known and deeper[:1] in (["status"], ["scale"]):
                raise statuses.object_not_found(resource, name)  # it has no such subresource
            raise statuses.resource_not_found() if known else statuses.page_not_found()
        return cls(resource, namespace, name)


def _has_wrong_scope(resource: Resource, namespace: str | None, name: str) -> bool:
    """Whether a namespace is too much, or missing: an object has a path in its own alone."""
    if not resource.namespaced:
        return namespace is not None
    return bool(name) and namespace is None


def _split_group_version(path: str) -> tuple[str, list[str]]:
    """The group version, and the segments after it."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            return version, rest
        case ["apis", group, version, *rest]:
            return f"{group}/{version}", rest
        case _:
            return "", []


def _split_namespace(segments: list[str]) -> tuple[str | None, list[str]]:
    """The namespace, and the segments after it. ``namespaces/web`` alone is an object."""
    match segments:
        case ["namespaces", namespace, plural, *rest]:
            return namespace, [plural, *rest]
        case _:
            return None, segments

"""URL paths as the collection, object or subresource that they name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding

__all__ = ["ResourcePath"]


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """The target of a request."""

    resource: Resource
    namespace: str | None = None
    name: str = ""
    """Empty for the collection."""
    part: Literal["main", "status"] = "main"
    """``status`` for the status subresource."""

    @classmethod
    def parse(
        cls, path: str, resources: Iterable[Resource], with_status: Collection[Resource] = ()
    ) -> ResourcePath:
        """Parse a decoded URL path.

        Args:
            path: the path.
            resources: the resources that are served.
            with_status: those of them that have a status subresource.

        Raises:
            NotFound: no such resource; in plain text if its whole group version is unknown.
        """
        api_version, segments = _split_group_version(path)
        served = {each.plural: each for each in resources if each.api_version == api_version}
        if not served:
            raise statuses.page_not_found()
        namespace, segments = _split_namespace(segments)
        plural, name, *deeper = *segments, "", ""
        resource = served.get(plural)
        if resource in with_status and deeper[:1] == ["status"] and not any(deeper[1:]):
            return replace(cls.parse(path.rpartition("/status")[0], resources), part="status")
        if resource is None or any(deeper) or _has_wrong_scope(resource, namespace, name):
            if resource is not None and Encoding(resource).custom and _is_subresource(deeper):
                raise statuses.object_not_found(resource, name)  # as the real server says it
            raise statuses.not_served(api_version)
        return cls(resource, namespace, name)


def _is_subresource(segments: Sequence[str]) -> bool:
    return segments[0] in ("status", "scale")


def _has_wrong_scope(resource: Resource, namespace: str | None, name: str) -> bool:
    """Return True if the path has a namespace that it must not have, or lacks its namespace."""
    if not resource.namespaced:
        return namespace is not None
    return bool(name) and namespace is None  # without a name: the collection of all namespaces


def _split_group_version(path: str) -> tuple[str, list[str]]:
    """Return the group version, and the segments after it."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            return version, rest
        case ["apis", group, version, *rest]:
            return f"{group}/{version}", rest
        case _:
            return "", []


def _split_namespace(segments: list[str]) -> tuple[str | None, list[str]]:
    """Return the namespace, and the segments after it. ``namespaces/web`` alone is an object."""
    match segments:
        case ["namespaces", namespace, plural, *rest]:
            return namespace, [plural, *rest]
        case _:
            return None, segments

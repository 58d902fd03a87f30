"""URL paths as the collection, object or subresource that they name."""

from __future__ import annotations

from dataclasses import dataclass

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding
from aioinformer.testing.wire.served_resources import ApiResource, ServedResources

MAIN = "main"
"""The part of a path without a subresource."""


@dataclass(frozen=True, slots=True)
class ResourcePath:
    resource: Resource
    namespace: str | None = None
    name: str = ""
    """Empty for the collection."""
    part: str = MAIN
    """A subresource, such as ``status``, or ``main`` for the object itself."""
    watched: bool = False
    """True for the old form of a watch, ``/api/v1/watch/...``, with or without a name."""

    @classmethod
    def parse(cls, path: str, served: ServedResources) -> ResourcePath:
        """Parse a decoded URL path.

        Raises:
            NotFound: no such resource; in plain text if its whole group version is unknown.
        """
        api_version, segments = _split_group_version(path)
        resources = served.of_version(api_version)
        if not resources:
            raise statuses.page_not_found()
        watched = segments[:1] == ["watch"]
        namespace, segments = _split_namespace(segments[1:] if watched else segments)
        plural, name, part, *deeper = *segments, "", "", ""
        found = resources.get(plural)
        if found is None or any(deeper) or _has_wrong_scope(found.resource, namespace, name):
            raise statuses.not_served(api_version)
        if part and (watched or found.subresource(part) is None):
            raise _no_subresource(found, name, part)
        return cls(found.resource, namespace, name, part or MAIN, watched)

    @classmethod
    def guess(cls, path: str) -> ResourcePath | None:
        """Return the target of a path whose resource isn't served; ``None`` if it names none.

        The server decides about access before it looks for the resource.
        """
        api_version, segments = _split_group_version(path)
        namespace, segments = _split_namespace(segments)
        plural, name, part, *_ = *segments, "", "", ""
        group, _, version = api_version.rpartition("/")
        try:
            resource = Resource(group, version, plural, plural)
        except ValueError:
            return None
        return cls(resource, namespace, name, part or MAIN)


def _no_subresource(found: ApiResource, name: str, part: str) -> Exception:
    if Encoding(found.resource).custom and part in ("status", "scale"):
        return statuses.object_not_found(found.resource, name)  # as the real server says it
    return statuses.not_served(found.resource.api_version)


def _has_wrong_scope(resource: Resource, namespace: str | None, name: str) -> bool:
    """Return True if the path has a namespace that it must not have, or lacks its namespace."""
    if not resource.namespaced:
        return namespace is not None
    return bool(name) and namespace is None  # without a name: the collection of all namespaces


def _split_group_version(path: str) -> tuple[str, list[str]]:
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            return version, rest
        case ["apis", group, version, *rest]:
            return f"{group}/{version}", rest
        case _:
            return "", []


def _split_namespace(segments: list[str]) -> tuple[str | None, list[str]]:
    """``namespaces/web`` alone is an object, and ``namespaces/web/status`` is its subresource."""
    match segments:
        case ["namespaces", namespace, plural, *rest] if plural != "status":
            return namespace, [plural, *rest]
        case _:
            return None, segments

"""Discovery documents of a cluster, in both forms.

Clients ask for the aggregated form, one document for everything, by ``Accept``. The legacy form is
one document for each group version. Recordings 01 to 03.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from itertools import groupby

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire.encoding import Encoding, JsonObject

AGGREGATED_CONTENT_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""The content type of the aggregated form."""

VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
"""The verbs of every resource here."""

STATUS_VERBS = ["get", "patch", "update"]
"""The verbs of a status subresource."""


def api_group_discovery_list(
    resources: Iterable[Resource], *, core: bool, with_status: Container[Resource] = ()
) -> JsonObject:
    """Return the aggregated form of the core group (``/api``) or of all others (``/apis``)."""
    wanted = [resource for resource in resources if (resource.group == "") is core]
    items = [_group_discovery(group, served, with_status) for group, served in _by_group(wanted)]
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    return head | {"metadata": _empty_metadata(), "items": items}


def api_versions(address: str) -> JsonObject:
    """Return the legacy form of ``/api``."""
    reachable = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    head: JsonObject = {"kind": "APIVersions", "versions": ["v1"]}
    return head | {"serverAddressByClientCIDRs": reachable}


def api_group_list(resources: Iterable[Resource]) -> JsonObject:
    """Return the legacy form of ``/apis``."""
    named = [resource for resource in resources if resource.group]
    listed = [_group_entry(name, served) for name, served in _by_group(named)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def api_group(resources: Iterable[Resource], name: str) -> JsonObject | None:
    """Return ``/apis/GROUP``, or ``None`` if no resource of the group is served."""
    served = [resource for resource in resources if resource.group == name]
    if not served or not name:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group_entry(name, served)


def api_resource_list(
    resources: Iterable[Resource], api_version: str, with_status: Container[Resource] = ()
) -> JsonObject | None:
    """Return ``/api/v1`` or ``/apis/GROUP/VERSION``; ``None`` if it has no served resource."""
    served = [resource for resource in resources if resource.api_version == api_version]
    if not served:
        return None
    head: JsonObject = {"kind": "APIResourceList"}
    if served[0].group:
        head["apiVersion"] = "v1"  # the core group's document has none (recording 01)
    entries = [
        entry for each in served for entry in _resource_entries(each, status=each in with_status)
    ]
    return head | {"groupVersion": api_version, "resources": entries}


def find_served(resources: Iterable[Resource], wanted: Resource) -> Resource | None:
    """Return a resource in the wanted version, else in the preferred one that is served."""
    found = [
        each for each in resources if (each.group, each.plural) == (wanted.group, wanted.plural)
    ]
    same = [each for each in found if each.version == wanted.version]
    return next(iter(same or sorted(found, key=_version_priority)), None)


def version_info(minor: int) -> JsonObject:
    """Return ``/version`` of Kubernetes 1.``minor``."""
    git = f"v1.{minor}.0"
    return {"major": "1", "minor": str(minor), "gitVersion": git, "platform": "linux/amd64"}


def _by_group(resources: Iterable[Resource]) -> Iterator[tuple[str, list[Resource]]]:
    ordered = sorted(resources, key=lambda resource: resource.group)
    for name, served in groupby(ordered, key=lambda resource: resource.group):
        yield name, list(served)


def _by_version(resources: Iterable[Resource]) -> Iterator[tuple[str, list[Resource]]]:
    """Group resources by version, the preferred version first."""
    versions: dict[str, list[Resource]] = {}
    for resource in sorted(resources, key=_version_priority):
        versions.setdefault(resource.version, []).append(resource)
    yield from versions.items()


_STABILITY = {"": 0, "beta": 1, "alpha": 2}
_VERSION_PATTERN = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def _version_priority(resource: Resource) -> tuple[int, int, int, str]:
    """Return the sort key of a version, in the order of the server's preference.

    The order is v2, v1, v1beta2, v1beta1, v1alpha1, then other versions by name (apimachinery's
    ``CompareKubeAwareVersionStrings``).
    """
    found = _VERSION_PATTERN.fullmatch(resource.version)
    if found is None:
        return len(_STABILITY), 0, 0, resource.version
    major, stability, minor = found.groups(default="")
    return _STABILITY[stability], -int(major), -int(minor or 0), ""


def _group_discovery(
    name: str, resources: list[Resource], with_status: Container[Resource]
) -> JsonObject:
    versions: list[JsonObject] = []
    for version, served in _by_version(resources):
        found = [_resource_discovery(each, status=each in with_status) for each in served]
        versions.append({"version": version, "resources": found, "freshness": "Current"})
    return {"metadata": {"name": name} if name else _empty_metadata(), "versions": versions}


def _resource_discovery(resource: Resource, *, status: bool) -> JsonObject:
    # Built-in types leave out the group and version, which stand above; custom ones repeat them.
    custom = Encoding(resource).custom
    kind = {
        "group": resource.group if custom else "",
        "version": resource.version if custom else "",
        "kind": resource.kind,
    }
    entry: JsonObject = {"resource": resource.plural, "responseKind": kind}
    entry |= {"scope": "Namespaced" if resource.namespaced else "Cluster"}
    entry |= {"singularResource": resource.singular, "verbs": VERBS}
    entry |= _short_names(resource)
    part = {"subresource": "status", "responseKind": kind, "verbs": STATUS_VERBS}
    return entry | ({"subresources": [part]} if status else {})


def _group_entry(name: str, resources: list[Resource]) -> JsonObject:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version, _ in _by_version(resources)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_entries(resource: Resource, *, status: bool) -> Iterator[JsonObject]:
    """Yield the entry of a resource, then that of its status subresource."""
    entry: JsonObject = {"name": resource.plural, "singularName": resource.singular}
    entry |= {"namespaced": resource.namespaced, "kind": resource.kind, "verbs": VERBS}
    yield entry | _short_names(resource)
    if status:
        part = {"name": f"{resource.plural}/status", "singularName": "", "verbs": STATUS_VERBS}
        yield entry | part


def _short_names(resource: Resource) -> JsonObject:
    return {"shortNames": list(resource.short_names)} if resource.short_names else {}


def _empty_metadata() -> JsonObject:
    return {}

"""Discovery documents of a cluster, in both forms.

Clients ask for the aggregated form, one document for everything, by ``Accept``. The legacy form is
one document for each group version.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire.encoding import JsonObject
from aioinformer.testing.wire.served_resources import ApiResource

AGGREGATED_CONTENT_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def api_group_discovery_list(served: Iterable[ApiResource], *, core: bool) -> JsonObject:
    """Return the aggregated form of the core group (``/api``) or of all others (``/apis``)."""
    wanted = [each for each in served if (each.resource.group == "") is core]
    items = [_group_discovery(group, members) for group, members in _by_group(wanted)]
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    return head | {"metadata": _empty_metadata(), "items": items}


def api_versions(address: str) -> JsonObject:
    """Return the legacy form of ``/api``."""
    reachable = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    head: JsonObject = {"kind": "APIVersions", "versions": ["v1"]}
    return head | {"serverAddressByClientCIDRs": reachable}


def api_group_list(served: Iterable[ApiResource]) -> JsonObject:
    """Return the legacy form of ``/apis``."""
    named = [each for each in served if each.resource.group]
    listed = [_group_entry(name, members) for name, members in _by_group(named)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def api_group(served: Iterable[ApiResource], name: str) -> JsonObject | None:
    """Return ``/apis/GROUP``, or ``None`` if no resource of the group is served."""
    members = [each for each in served if each.resource.group == name]
    if not members or not name:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group_entry(name, members)


def api_resource_list(served: Iterable[ApiResource], api_version: str) -> JsonObject | None:
    """Return ``/api/v1`` or ``/apis/GROUP/VERSION``; ``None`` if it has no served resource."""
    members = [each for each in served if each.resource.api_version == api_version]
    if not members:
        return None
    head: JsonObject = {"kind": "APIResourceList"}
    if members[0].resource.group:
        head["apiVersion"] = "v1"  # the core group's document has none
    entries = [entry for each in members for entry in _resource_entries(each)]
    return head | {"groupVersion": api_version, "resources": entries}


def find_served(resources: Iterable[Resource], wanted: Resource) -> Resource | None:
    """Return a resource in the wanted version, else in the preferred one that is served."""
    found = [
        each for each in resources if (each.group, each.plural) == (wanted.group, wanted.plural)
    ]
    same = [each for each in found if each.version == wanted.version]
    return next(iter(same or sorted(found, key=_version_priority)), None)


def version_info(minor: int) -> JsonObject:
    """Return ``/version``; the commit and the build date are not those of a real build."""
    return {
        "major": "1",
        "minor": str(minor),
        "emulationMajor": "1",
        "emulationMinor": str(minor),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(minor - 1),
        "gitVersion": f"v1.{minor}.0",
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26.0",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _by_group(served: Iterable[ApiResource]) -> Iterator[tuple[str, list[ApiResource]]]:
    ordered = sorted(served, key=lambda each: each.resource.group)
    for name, members in groupby(ordered, key=lambda each: each.resource.group):
        yield name, list(members)


def _by_version(served: Iterable[ApiResource]) -> Iterator[tuple[str, list[ApiResource]]]:
    """Group resources by version, the preferred version first."""
    versions: dict[str, list[ApiResource]] = {}
    for each in sorted(served, key=lambda each: _version_priority(each.resource)):
        versions.setdefault(each.resource.version, []).append(each)
    yield from versions.items()


_STABILITY = {"": 0, "beta": 1, "alpha": 2}
_VERSION_PATTERN = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def _version_priority(resource: Resource) -> tuple[int, int, int, str]:
    """Return the sort key: v2, v1, v1beta1, v1alpha1, rest (``CompareKubeAwareVersionStrings``)."""
    found = _VERSION_PATTERN.fullmatch(resource.version)
    if found is None:
        return len(_STABILITY), 0, 0, resource.version
    major, stability, minor = found.groups(default="")
    return _STABILITY[stability], -int(major), -int(minor or 0), ""


def _group_discovery(name: str, members: list[ApiResource]) -> JsonObject:
    versions: list[JsonObject] = []
    for version, served in _by_version(members):
        found = [_resource_discovery(each) for each in served]
        versions.append({"version": version, "resources": found, "freshness": "Current"})
    return {"metadata": {"name": name} if name else _empty_metadata(), "versions": versions}


def _resource_discovery(served: ApiResource) -> JsonObject:
    resource = served.resource
    # Built-in types leave out the group and version, which stand above; custom ones repeat them.
    own = ("", "") if served.built_in else (resource.group, resource.version)
    kind = _kind_entry(*own, resource.kind)
    entry: JsonObject = {"resource": resource.plural, "responseKind": kind}
    entry |= {"scope": "Namespaced" if resource.namespaced else "Cluster"}
    entry |= {"singularResource": resource.singular, "verbs": list(served.verbs)}
    entry |= _names(served)
    parts = [
        {
            "subresource": part.name,
            "responseKind": _kind_entry(*part.kind) if part.kind else kind,
            "verbs": list(part.verbs),
        }
        for part in served.subresources
    ]
    return entry | ({"subresources": parts} if parts else {})


def _kind_entry(group: str, version: str, kind: str) -> JsonObject:
    return {"group": group, "version": version, "kind": kind}


def _group_entry(name: str, members: list[ApiResource]) -> JsonObject:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version, _ in _by_version(members)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_entries(served: ApiResource) -> Iterator[JsonObject]:
    resource = served.resource
    entry: JsonObject = {"name": resource.plural, "singularName": resource.singular}
    entry |= {"namespaced": resource.namespaced}
    whole = entry | {"kind": resource.kind, "verbs": list(served.verbs)} | _names(served)
    if not served.built_in:
        whole["storageVersionHash"] = _hash_storage_version(served)
    yield whole
    for part in served.subresources:
        kind = {"kind": resource.kind}
        if part.kind is not None:
            kind = dict(zip(("group", "version", "kind"), part.kind, strict=True))
        named = {"name": f"{resource.plural}/{part.name}", "singularName": ""}
        yield entry | named | kind | {"verbs": list(part.verbs)}


def _hash_storage_version(served: ApiResource) -> str:
    """Return the hash of the stored version (apiserver's ``StorageVersionHash``)."""
    resource = served.resource
    text = f"{resource.group}/{served.storage_version or resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _names(served: ApiResource) -> JsonObject:
    lists = {"shortNames": served.resource.short_names, "categories": served.categories}
    return {name: list(values) for name, values in lists.items() if values}


def _empty_metadata() -> JsonObject:
    return {}

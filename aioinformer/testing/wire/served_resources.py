"""The resources that a server serves, with their verbs, subresources and categories.

``BUILT_IN_SERVED`` are the built-in resources as a kube-apiserver 1.36 serves them, as far as the
embedded server serves their parts. Each request asks ``ServedResources`` for one by the segments of
a path, so the search is an index, not a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from aioinformer._core.objects.resources import BUILT_IN, Resource

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""The verbs of most resources, in the order of discovery."""
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The verbs of a custom resource; the server writes them in another order."""


@dataclass(frozen=True, slots=True)
class Subresource:
    name: str
    verbs: tuple[str, ...]
    kind: tuple[str, str, str] | None = None
    """Group, version and kind of its body; ``None`` if its body is the whole object."""


STATUS = Subresource("status", ("get", "patch", "update"))
SCALE = Subresource("scale", ("get", "patch", "update"), ("autoscaling", "v1", "Scale"))
EVICTION = Subresource("eviction", ("create",), ("policy", "v1", "Eviction"))
TOKEN = Subresource("token", ("create",), ("authentication.k8s.io", "v1", "TokenRequest"))

_WITH_STATUS = frozenset(
    (
        *("namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods"),
        *("replicationcontrollers", "resourcequotas", "services"),
        *("daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps"),
        *("cronjobs.batch", "jobs.batch", "horizontalpodautoscalers.autoscaling"),
        *("poddisruptionbudgets.policy", "ingresses.networking.k8s.io"),
        *("servicecidrs.networking.k8s.io", "volumeattachments.storage.k8s.io"),
        "certificatesigningrequests.certificates.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "apiservices.apiregistration.k8s.io",
        "resourceclaims.resource.k8s.io",
    )
)
"""The built-in resources with a status subresource (discovery documents of Kubernetes 1.36)."""
_SUBRESOURCES: Mapping[str, Subresource] = {
    "pods": EVICTION,
    "serviceaccounts": TOKEN,
    "replicationcontrollers": SCALE,
    "deployments.apps": SCALE,
    "replicasets.apps": SCALE,
    "statefulsets.apps": SCALE,
}
_ALL = frozenset(
    (
        *("pods", "replicationcontrollers", "services", "daemonsets.apps", "deployments.apps"),
        *("replicasets.apps", "statefulsets.apps", "horizontalpodautoscalers.autoscaling"),
        *("cronjobs.batch", "jobs.batch"),
    )
)
"""The resources of the category ``all``."""
_EXTENSION_GROUPS = frozenset(
    ("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io")
)
"""The groups of the category ``api-extensions``."""
_WITHOUT_DELETE_COLLECTION = frozenset({"namespaces"})


@dataclass(frozen=True, slots=True)
class ApiResource:
    resource: Resource
    subresources: tuple[Subresource, ...] = ()
    """The parts in the order of discovery: alphabetical, but a custom status is the first."""
    categories: tuple[str, ...] = ()
    """The groups of resources for ``kubectl get``, such as ``all``."""
    verbs: tuple[str, ...] = VERBS
    built_in: bool = True
    storage_version: str = ""
    """The version in which objects are stored; empty for the served version."""

    def subresource(self, name: str) -> Subresource | None:
        return next((part for part in self.subresources if part.name == name), None)


def make_served(
    resource: Resource,
    *,
    subresources: Iterable[Subresource] = (),
    categories: tuple[str, ...] = (),
    storage_version: str = "",
) -> ApiResource:
    """Return a custom resource as it is served."""
    return ApiResource(
        resource,
        tuple(subresources),
        categories,
        CUSTOM_VERBS,
        built_in=False,
        storage_version=storage_version,
    )


def _make_built_in(resource: Resource) -> ApiResource:
    name = str(resource)
    parts = [_SUBRESOURCES[name]] if name in _SUBRESOURCES else []
    parts += [STATUS] if name in _WITH_STATUS else []
    categories = ("all",) if name in _ALL else ()
    if resource.group in _EXTENSION_GROUPS:
        categories = ("api-extensions",)
    left_out = ("deletecollection",) if name in _WITHOUT_DELETE_COLLECTION else ()
    verbs = tuple(verb for verb in VERBS if verb not in left_out)
    return ApiResource(resource, tuple(parts), categories, verbs)


def _make_review(group: str, kind: str, *, namespaced: bool = False) -> ApiResource:
    resource = Resource(group, "v1", f"{kind.lower()}s", kind, namespaced=namespaced)
    return ApiResource(resource, verbs=("create",))


REVIEWS = (
    _make_review("authentication.k8s.io", "SelfSubjectReview"),
    _make_review("authentication.k8s.io", "TokenReview"),
    _make_review("authorization.k8s.io", "LocalSubjectAccessReview", namespaced=True),
    _make_review("authorization.k8s.io", "SelfSubjectAccessReview"),
    _make_review("authorization.k8s.io", "SelfSubjectRulesReview"),
    _make_review("authorization.k8s.io", "SubjectAccessReview"),
)
"""The resources of reviews, which are created but not stored."""

BUILT_IN_SERVED = (*(_make_built_in(resource) for resource in BUILT_IN), *REVIEWS)
"""The built-in resources, in the order of ``BUILT_IN``, and the reviews."""


class ServedResources:
    """The resources of a server, by group version and plural name. The set doesn't change."""

    def __init__(self, served: Iterable[ApiResource]) -> None:
        self._served = tuple(served)
        self._by_version: dict[str, dict[str, ApiResource]] = {}
        for each in self._served:
            resource = each.resource
            self._by_version.setdefault(resource.api_version, {})[resource.plural] = each

    def of_version(self, api_version: str) -> Mapping[str, ApiResource]:
        """Return the resources by plural name; empty if there are none."""
        return self._by_version.get(api_version, {})

    def find(self, resource: Resource) -> ApiResource | None:
        """Return a resource by its group, version and plural name, or ``None``."""
        return self.of_version(resource.api_version).get(resource.plural)

    def __iter__(self) -> Iterator[ApiResource]:
        return iter(self._served)

    def __len__(self) -> int:
        return len(self._served)

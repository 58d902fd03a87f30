"""The update strategies of resources: updates without a version, of missing objects, of a status.

The tables are those of Kubernetes 1.37 (``AllowUnconditionalUpdate``, ``AllowCreateOnUpdate`` and
``PrepareForUpdate`` of the strategies in its ``pkg/registry``, of kube-aggregator and of
apiextensions-apiserver).
"""

from __future__ import annotations

from collections.abc import Mapping

from aioinformer.testing.wire.encoding import Encoding

_VERSION_NEEDED = frozenset(
    (
        *("leases.coordination.k8s.io", "poddisruptionbudgets.policy"),
        *("runtimeclasses.node.k8s.io", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io"),
        *("csistoragecapacities.storage.k8s.io", "volumeattachments.storage.k8s.io"),
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        *("customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"),
    )
)
"""The built-in resources whose updates need a resourceVersion."""
_CREATED_ON_UPDATE = frozenset(
    (
        *("endpoints", "events", "events.events.k8s.io", "limitranges", "services"),
        *(
            "clusterrolebindings.rbac.authorization.k8s.io",
            "clusterroles.rbac.authorization.k8s.io",
        ),
        *("rolebindings.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io"),
        *("leases.coordination.k8s.io", "runtimeclasses.node.k8s.io"),
    )
)
_WRITABLE_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_KEPT_BY_STATUS_WRITES: Mapping[str, tuple[str, ...]] = {
    "pods": ("ownerReferences",),
    "deployments.apps": ("labels",),
    "volumeattachments.storage.k8s.io": _WRITABLE_METADATA,
    "servicecidrs.networking.k8s.io": _WRITABLE_METADATA,
    "resourceclaims.resource.k8s.io": _WRITABLE_METADATA,
    "flowschemas.flowcontrol.apiserver.k8s.io": _WRITABLE_METADATA,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _WRITABLE_METADATA,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _WRITABLE_METADATA,
    "apiservices.apiregistration.k8s.io": _WRITABLE_METADATA,
}
"""The metadata that a write of the status leaves as they are."""


def allows_unconditional_update(encoding: Encoding) -> bool:
    """Return True if an update without a resourceVersion replaces the newest state."""
    return not encoding.custom and str(encoding.resource) not in _VERSION_NEEDED


def allows_create_on_update(encoding: Encoding, part: str) -> bool:
    """Return True if an update creates an absent object. An update of a status never does."""
    return part != "status" and str(encoding.resource) in _CREATED_ON_UPDATE


def status_metadata(encoding: Encoding) -> tuple[str, ...]:
    """Return the metadata that a write of the status changes, such as the labels of a Pod."""
    if encoding.custom:
        return ()
    kept = _KEPT_BY_STATUS_WRITES.get(str(encoding.resource), ())
    return tuple(name for name in _WRITABLE_METADATA if name not in kept)

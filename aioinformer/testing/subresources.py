"""Which built-in resources have a status subresource; custom ones say so when they are added.

Where there is one, a request to the object itself leaves the status alone, and a request to the
subresource everything else. Source: the discovery documents of Kubernetes 1.36.
"""

from __future__ import annotations

from aioinformer._core.resources import Resource

__all__ = ["built_in_status"]

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


def built_in_status(resource: Resource) -> bool:
    """Whether it is a built-in one that has it."""
    return str(resource) in _WITH_STATUS

"""Field labels: the fields of each resource by which a selector can select objects.

A server supports few labels: for built-in resources those of Kubernetes 1.37 (the
``AddFieldLabelConversionFunc`` of each group), for custom resources the ``selectableFields`` of
their definition. All other labels are answered with 400.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, StoredObject

_NAME, _NAMESPACE = "metadata.name", "metadata.namespace"
_REFERENCE_FIELDS = (
    *("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"),
)
_FIELD_LABELS: Mapping[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.host",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "events": (
        *(f"involvedObject.{name}" for name in _REFERENCE_FIELDS),
        *("reason", "reportingComponent", "source", "type"),
    ),
    "events.events.k8s.io": (
        *(f"regarding.{name}" for name in _REFERENCE_FIELDS),
        *("reason", "reportingController", "type"),
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver", "spec.pool.name"),
}
"""The labels besides those of the metadata, by resource."""
_LABEL_PATHS: Mapping[str, tuple[str, ...]] = {
    "source": ("source.component", "reportingComponent"),
    "spec.host": ("spec.nodeName",),
    "status.podIPs": (),
}
"""The paths of labels that are not paths themselves; the first value counts. The server accepts
``status.podIPs``, but has no value for the label."""
_BOOLEAN_LABELS = ("spec.unschedulable", "spec.hostNetwork")
_NUMERIC_LABELS = ("status.replicas", "status.successful")


def check_field_label(encoding: Encoding, label: str, defined: Collection[str]) -> None:
    """Raise ``BadRequest`` for a label that neither the resource nor its definition supports."""
    resource = encoding.resource
    own = defined if encoding.custom else _FIELD_LABELS.get(str(resource))
    if own is None and label not in (_NAME, _NAMESPACE):
        raise statuses.bad_request(
            f'"{label}" is not a known field selector: only "{_NAME}", "{_NAMESPACE}"'
        )
    # The check of a resource with labels of its own, and of a custom one, regards the scope.
    if own is None or label == _NAME or (label == _NAMESPACE and resource.namespaced):
        return
    if label not in own:
        named = f" for {resource.api_version}, Kind={resource.kind}"
        where = named if resource.kind == "ResourceSlice" else ""
        raise statuses.bad_request(f"field label not supported{where}: {label}")


def make_field_reader(stored: StoredObject) -> Callable[[str], str]:
    """Return a function from a field label to its value, in the server's text form."""
    body, custom = stored.body, stored.encoding.custom

    def read(label: str) -> str:
        paths = (label,) if custom else _LABEL_PATHS.get(label, (label,))
        value = next((found for path in paths if (found := _get(body, path)) is not None), None)
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is not None:
            return str(value)
        if custom:
            return ""
        return "false" if label in _BOOLEAN_LABELS else "0" if label in _NUMERIC_LABELS else ""

    return read


def _get(body: Mapping[str, Any], path: str) -> Any:
    value: Any = body
    for name in path.split("."):
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value

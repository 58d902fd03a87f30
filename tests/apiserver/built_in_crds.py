"""Built-in resources that the real server of the tests lacks, as custom ones under their own names.

It serves CustomResourceDefinitions and nothing else. A definition in a protected group needs the
annotation that its API was approved, or that it was not: with the latter the server accepts it. So
``coordination.k8s.io/v1`` leases and ``events.k8s.io/v1`` events are there, for electors and
recorders, which can't tell the difference: without the validation that the built-in types have.
A group without a dot (core, apps) can't be defined that way.
"""

from tests.apiserver.admin import Json, Server, install_crd

__all__ = ["EVENTS", "LEASES", "install_events", "install_leases"]

UNAPPROVED = {"api-approved.kubernetes.io": "unapproved, test stand-in"}

TEXT: Json = {"type": "string"}
COUNT: Json = {"type": "integer", "format": "int32"}
MICRO_TIME: Json = {"type": "string", "format": "date-time"}
_REFERENCE_FIELDS = (
    "apiVersion",
    "kind",
    "namespace",
    "name",
    "uid",
    "resourceVersion",
    "fieldPath",
)
REFERENCE: Json = {"type": "object", "properties": dict.fromkeys(_REFERENCE_FIELDS, TEXT)}


def _definition(group: str, kind: str, plural: str, properties: Json, required: list[str]) -> Json:
    schema = {"type": "object", "properties": properties, "required": required}
    version: Json = {"name": "v1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": UNAPPROVED},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


LEASES = _definition(
    "coordination.k8s.io",
    "Lease",
    "leases",
    {
        "spec": {
            "type": "object",
            "properties": {
                "holderIdentity": TEXT,
                "leaseDurationSeconds": COUNT,
                "acquireTime": MICRO_TIME,
                "renewTime": MICRO_TIME,
                "leaseTransitions": COUNT,
                "strategy": TEXT,
                "preferredHolder": TEXT,
            },
        }
    },
    [],
)
"""``leases.coordination.k8s.io``. The server drops what isn't declared, as it does for leases."""

EVENTS = _definition(
    "events.k8s.io",
    "Event",
    "events",
    {
        "eventTime": MICRO_TIME,
        "reportingController": TEXT,
        "reportingInstance": {"type": "string", "maxLength": 128},
        "action": {"type": "string", "maxLength": 128},
        "reason": {"type": "string", "maxLength": 128},
        "note": {"type": "string", "maxLength": 1024},
        "type": {"type": "string", "enum": ["Normal", "Warning"]},
        "regarding": REFERENCE,
        "related": REFERENCE,
        "series": {
            "type": "object",
            "properties": {"count": COUNT, "lastObservedTime": MICRO_TIME},
            "required": ["count", "lastObservedTime"],
        },
    },
    ["eventTime", "reportingController", "reportingInstance", "action", "reason", "type"],
)
"""``events.events.k8s.io``, with what the built-in type insists on."""


async def install_leases(server: Server) -> None:
    """Have it serve leases; returns when they can be listed and discovered."""
    await install_crd(server, LEASES)


async def install_events(server: Server) -> None:
    """Have it serve events; returns when they can be listed and discovered."""
    await install_crd(server, EVENTS)

"""Built-in resources as custom resources, because the real server of the tests lacks built-in ones.

The server serves only CustomResourceDefinitions. A definition in a protected group needs an
annotation about the approval of its API; the server accepts the value "unapproved". In this way
electors and recorders get ``coordination.k8s.io/v1`` leases and ``events.k8s.io/v1`` events,
without the validation of the built-in types. A group without a dot (core, apps) can't be defined.
"""

from tests.apiserver.server.admin import Json, Server, install_crd

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
"""``leases.coordination.k8s.io``. The server drops undeclared fields, as for built-in leases."""

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
"""``events.events.k8s.io`` with the fields that the built-in type requires."""


async def install_leases(server: Server) -> None:
    """Define leases, and wait until they can be listed and discovered."""
    await install_crd(server, LEASES)


async def install_events(server: Server) -> None:
    """Define events, and wait until they can be listed and discovered."""
    await install_crd(server, EVENTS)

"""The wanted state of a Foo, as pure functions."""

from __future__ import annotations

from typing import Any

from aioinformer import KubeObject, owner_reference
from examples.sample_controller.kinds import WORKLOADS, Foo, FooStatus, Workload

__all__ = ["status_of", "workload_for"]


def workload_for(foo: KubeObject, wanted: Foo) -> dict[str, Any]:
    """Return the Workload that a Foo wants.

    For a Deployment, add its selector and its pod template here.
    """
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {
            "name": wanted.spec.workload_name,
            "namespace": foo.namespace,
            "labels": {"app.kubernetes.io/managed-by": "sample-controller"},
            "ownerReferences": [owner_reference(foo)],
        },
        "spec": {"replicas": wanted.spec.replicas},
    }


def status_of(wanted: Foo, found: Workload) -> FooStatus:
    """Return the status that the Foo should have."""
    return FooStatus(
        available_replicas=found.status.available_replicas,
        observed_generation=wanted.metadata.generation,
    )

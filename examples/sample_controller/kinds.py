"""The objects of the controller, with the fields that it reads.

``crds.yaml`` defines them for a server. A struct names only the fields that are read, so that a
server may add fields.
"""

from __future__ import annotations

from msgspec import Struct

from aioinformer import Resource

__all__ = ["FOOS", "WORKLOADS", "Foo", "FooSpec", "FooStatus", "Workload"]

FOOS = Resource("samples.example.com", "v1alpha1", "foos", "Foo")
WORKLOADS = Resource("samples.example.com", "v1alpha1", "workloads", "Workload")


class FooSpec(Struct, frozen=True, rename="camel"):
    """The wanted state of a Foo, written by users."""

    workload_name: str
    """The name of the Workload that the Foo wants."""
    replicas: int = 1


class FooStatus(Struct, frozen=True, rename="camel"):
    """The actual state of a Foo, written by the controller."""

    available_replicas: int = 0
    observed_generation: int = 0
    """The generation of the Foo that this status describes."""


class Metadata(Struct, frozen=True):
    """The part of every object's metadata that is read here."""

    generation: int = 0


class Foo(Struct, frozen=True):
    """A Foo."""

    metadata: Metadata
    spec: FooSpec
    status: FooStatus = FooStatus()


class WorkloadSpec(Struct, frozen=True):
    """The wanted state of a Workload."""

    replicas: int


class WorkloadStatus(Struct, frozen=True, rename="camel"):
    """The actual state of a Workload, written by the program that runs it."""

    available_replicas: int = 0


class Workload(Struct, frozen=True):
    """A Workload."""

    spec: WorkloadSpec
    status: WorkloadStatus = WorkloadStatus()

"""Models of a pod in each form that ``model=`` accepts, and models that reject some pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import attrs
from msgspec import Struct


class Metadata(Struct, frozen=True, gc=False):
    name: str
    labels: dict[str, str] = {}


class Spec(Struct, frozen=True, gc=False):
    nodeName: str  # noqa: N815 - the key in the JSON


class Pod(Struct, frozen=True, gc=False):
    """A pod whose node must be a string."""

    metadata: Metadata
    spec: Spec


@dataclass(frozen=True)
class DataSpec:
    nodeName: str  # noqa: N815 - the key in the JSON


@dataclass(frozen=True)
class DataPod:
    metadata: Metadata
    spec: DataSpec
    kind: str = field(default="unknown")


class PodDict(TypedDict):
    spec: dict[str, str]
    kind: NotRequired[str]


@attrs.frozen
class AttrsPod:
    spec: DataSpec
    apiVersion: str = "unknown"  # noqa: N815 - the key in the JSON


class RaisingModel(Struct):
    """A model whose constructor raises for one node."""

    spec: Spec

    def __post_init__(self) -> None:
        if self.spec.nodeName == "raise":
            raise RuntimeError("not on this node")

"""What each command was asked to do. ``arguments`` makes these of what was typed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from aioinformer._cli.output import Colour

__all__ = [
    "CompletionOptions",
    "DemoOptions",
    "HealthOptions",
    "Options",
    "Shell",
    "WatchOptions",
]

Shell: TypeAlias = Literal["bash", "zsh", "fish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """``aioinformer demo``."""

    seconds: float
    """How long; 0 for until interrupted."""
    objects: int
    """About how many pods there are."""
    seed: int
    """Decides what happens to them."""
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """What a command says of the cluster that it asks."""

    namespace: str = ""
    """Empty for the one that the kubeconfig's context names, else ``default``."""
    everywhere: bool = False
    """All namespaces."""
    kubeconfig: Path | None = None
    context: str | None = None
    colour: Colour = "auto"
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions(ClusterOptions):
    """``aioinformer watch``."""

    resource: str
    name: str = ""
    """Of the one object to watch; empty for all."""
    labels: str = ""
    fields: str = ""
    output: str = "table"
    """``table``, ``wide``, ``json``, ``yaml``, ``name`` or ``fields=PATH,...``."""
    events: bool = False
    """Whether to show the Kubernetes Events of what is watched as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions(ClusterOptions):
    """``aioinformer health``."""

    resources: tuple[str, ...] = ()
    """What to look at; nothing for a usual selection."""
    timeout: float = 10.0
    """Seconds for the first state of each."""
    output: Literal["table", "json"] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionOptions:
    """``aioinformer completion``."""

    program: Shell
    verbose: bool = False


Options: TypeAlias = DemoOptions | WatchOptions | HealthOptions | CompletionOptions

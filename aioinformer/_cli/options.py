"""The options of each command, as the parser of the command line returns them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from aioinformer._cli.terminal.output import Colour

Shell: TypeAlias = Literal["bash", "zsh", "fish"]

DEFAULT_PORT = 8001
"""The port of ``kubectl proxy``, which scripts for an API server without credentials use."""
DEFAULT_OBJECTS = 100
"""Pods of a server that loads no manifests."""
DEFAULT_RATE = 10.0
"""Writes a second: a reader can follow the lines of ``watch``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCommandOptions:
    seconds: float
    """Seconds; 0 for until it is interrupted."""
    objects: int
    """About so many pods."""
    seed: int
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeCommandOptions:
    port: int = DEFAULT_PORT
    """0 for a free one."""
    objects: int = 0
    """About so many pods that change all the time."""
    rate: float = DEFAULT_RATE
    """Writes to these pods a second."""
    seed: int = 0
    kubeconfig: Path | None = None
    """The kubeconfig to write; by default a temporary file, which is deleted at the end."""
    load: tuple[Path, ...] = ()
    """Files of manifests, and folders with such files."""
    features: tuple[tuple[str, int | bool], ...] = ()
    """The fields of ``Features`` that are given, with their values."""
    token: bool = False
    """True to require a random token, which the kubeconfig alone holds."""
    accept_hosts: tuple[str, ...] = ()
    """Names by which clients reach the server, besides those of the loopback."""
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The cluster and the namespace of a command, and the form of its output."""

    namespace: str = ""
    """Empty for the namespace of the kubeconfig's context, else ``default``."""
    everywhere: bool = False
    kubeconfig: Path | None = None
    context: str | None = None
    server: str | None = None
    """The URL of a server without credentials, in the place of a kubeconfig."""
    colour: Colour = "auto"
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCommandOptions(ClusterOptions):
    resource: str
    name: str = ""
    """The name of one object to watch; empty for all objects."""
    labels: str = ""
    fields: str = ""
    output: str = "table"
    """``table``, ``wide``, ``json``, ``yaml``, ``name`` or ``fields=PATH,...``."""
    events: bool = False
    """True to show the Kubernetes Events of the watched objects as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCommandOptions(ClusterOptions):
    resource: str
    name: str
    goal: str
    """``rollout``, ``create``, ``delete``, ``job-complete`` or ``condition=TYPE[=STATUS]``."""
    timeout: float = 30.0
    """Seconds until the command gives up; kubectl's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCommandOptions(ClusterOptions):
    resources: tuple[str, ...] = ()
    """The resources to check; empty for the default selection."""
    timeout: float = 10.0
    """Seconds for the requests, and again for the initial list of each resource."""
    output: Literal["table", "json"] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardsCommandOptions(ClusterOptions):
    group: str
    timeout: float = 10.0
    """Seconds for the request."""
    output: Literal["table", "json"] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionCommandOptions:
    shell: Shell


RunningCommandOptions: TypeAlias = (
    DemoCommandOptions
    | ServeCommandOptions
    | WatchCommandOptions
    | WaitCommandOptions
    | HealthCommandOptions
    | ShardsCommandOptions
)
"""The options of a command that runs in an event loop."""

CommandOptions: TypeAlias = RunningCommandOptions | CompletionCommandOptions

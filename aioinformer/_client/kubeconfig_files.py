"""Kubeconfig files, merged and made fit for kubernetes_asyncio's loader.

kubernetes_asyncio reads and merges them. Here its result is put right where kubectl does
otherwise, before the loader sees it:

    the current context     the first file that sets one wins, not the last
    a context without user  means an anonymous one; the loader fails with a TypeError
    relative paths          are meant from the file that names them; the loader takes a user's
                            certificates from where the cluster's file is
    data in the file        the loader copies it into temporary files that stay until the process
                            ends; ours go when the TLS context is built
    names of parts          the loader's exceptions quote the whole part, tokens included
    OIDC refresh tokens     are hidden from it: it would send them, and the client's secret, over
                            TLS that checks no certificate; a valid id-token is used
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import yaml
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

from aioinformer.errors import ConfigurationError

__all__ = ["KubeconfigFiles"]

LOADER_ERRORS = (
    ConfigException,
    AssertionError,
    AttributeError,
    KeyError,
    OSError,
    TypeError,
    ValueError,
)
"""What the loader raises for a file that doesn't have what it looks for."""

PARTS = {"clusters": "cluster", "contexts": "context", "users": "user"}
"""The lists of a kubeconfig, and what an item of each holds beside its name."""

PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Keys whose values are paths."""


class Loader(Protocol):
    """The part of ``KubeConfigLoader`` that is used. It has no annotations of its own."""

    async def load_and_set(self, client_configuration: object) -> None:
        """Read the active context, running its exec plugin if it has one."""
        ...


ANONYMOUS = "(none)"
"""The user of a context that has none."""


@dataclass(frozen=True, slots=True, repr=False)
class KubeconfigFiles:
    """One configuration, merged of one or more files."""

    where: str
    """The files, for messages."""
    merger: KubeConfigMerger
    """kubernetes_asyncio's, which has read the files."""
    merged: dict[str, Any]

    @classmethod
    def read(cls, paths: list[Path]) -> KubeconfigFiles:
        """Read and merge files that exist. Blocks.

        Raises:
            ConfigurationError: one can't be read, or is no kubeconfig.
        """
        where = ", ".join(str(path) for path in paths)
        try:
            merger = _merge(where, os.pathsep.join(str(path) for path in paths))
            merged: dict[str, Any] = merger.config.value if merger.config else {}
            if not all("name" in node.value for part in PARTS for node in merged[part]):
                raise KeyError("name")
        except OSError as error:
            raise ConfigurationError(f"{where} can't be read: {error.strerror}") from error
        except LOADER_ERRORS as error:
            reason = type(error).__name__  # a KeyError or such, at a place that tells nothing
            raise ConfigurationError(f"{where} is no kubeconfig ({reason})") from error
        return cls(where, merger, merged)

    # -- what is chosen ------------------------------------------------------------------------

    def context(self, wanted: str | None) -> str:
        """The name of the context to use.

        Raises:
            ConfigurationError: there is no such context, or none is current, or the context
                names a cluster or user that isn't there. Lists what there is.
        """
        chosen = wanted or self._current()
        names = list(self._names("contexts"))
        has = f"it has {', '.join(names)}" if names else "it has none at all"
        if not chosen:
            raise ConfigurationError(f"{self.where} has no current context; {has}")
        if chosen not in names:
            raise ConfigurationError(f"{self.where} has no context {chosen!r}; {has}")
        return chosen

    def namespace(self, context: str) -> str:
        """The namespace that a context names; empty if it names none."""
        (chosen,) = [node for node in self._nodes("contexts") if node.value["name"] == context]
        return str(chosen.value["context"].get("namespace") or "")

    def _current(self) -> str:
        files: dict[str, dict[str, Any]] = self.merger.config_files
        named = (str(each.get("current-context") or "") for each in files.values())
        return next(filter(None, named), "")

    def _nodes(self, part: str) -> list[ConfigNode]:
        nodes: list[ConfigNode] = self.merged[part]
        return nodes

    def _names(self, part: str) -> Iterable[str]:
        return (str(node.value["name"]) for node in self._nodes(part))

    # -- what the loader gets ------------------------------------------------------------------

    def loader(self, context: str, temporary: ExitStack) -> Loader:
        """kubernetes_asyncio's loader of one context.

        Args:
            context: its name.
            temporary: closes when the certificates have been read.

        Raises:
            ConfigurationError: the context is incomplete.
        """
        nodes = {part: [self._mended(part, node) for node in self._nodes(part)] for part in PARTS}
        nodes["users"].append(ConfigNode("no user", {"name": ANONYMOUS, "user": {}}))
        (chosen,) = [node for node in nodes["contexts"] if node.value["name"] == context]
        chosen.value["context"].setdefault("user", ANONYMOUS)
        for part in ("clusters", "users"):
            (found,) = self._part_of(chosen, part, nodes[part])
            self._put_data_into_files(found.value[PARTS[part]], temporary)
            if part == "clusters" and "server" not in found.value["cluster"]:
                raise ConfigurationError(f"{self.where}: {found.name} has no server")
        return KubeConfigLoader(
            {**nodes, "current-context": context},
            active_context=context,
            config_base_path="",  # paths are absolute by now
        )

    def _mended(self, part: str, node: ConfigNode) -> ConfigNode:
        """A copy of a part with absolute paths, and under a name that quotes nothing."""
        kind = PARTS[part]
        folder = Path(node.path or ".").absolute().parent
        sent: dict[str, Any] = node.value.get(kind) or {}
        body = {key: value for key, value in sent.items() if value}
        for key in PATHS:
            if key in body:
                body[key] = str(folder / body[key])
        command: str = body.get("exec", {}).get("command", "")
        if os.sep in command:  # like a shell, and client-go: a bare name is looked up in $PATH
            body["exec"] = {**body["exec"], "command": str(folder / command)}
        provider: dict[str, Any] = body.get("auth-provider", {})
        if config := provider.get("config"):
            shown = {key: value for key, value in config.items() if key != "refresh-token"}
            body["auth-provider"] = {**provider, "config": shown}
        return ConfigNode(f"{kind} {node.value['name']!r}", {**node.value, kind: body})

    def _part_of(self, context: ConfigNode, part: str, nodes: list[ConfigNode]) -> list[ConfigNode]:
        wanted = context.value["context"].get(PARTS[part], "")
        found = [node for node in nodes if node.value["name"] == wanted]
        if not found:
            raise ConfigurationError(
                f"{self.where}: {context.name} names {PARTS[part]} {wanted!r}, which is not there"
            )
        return found[:1]

    def _put_data_into_files(self, body: dict[str, Any], temporary: ExitStack) -> None:
        """Replace base64 data by the paths of files of ours, in folders that nobody else reads."""
        for key in PATHS:
            if (data := body.pop(f"{key}-data", None)) is None:
                continue
            try:
                content = base64.b64decode(data, validate=True)
            except ValueError as error:
                raise ConfigurationError(f"{self.where}: {key}-data is not base64") from error
            file = Path(temporary.enter_context(TemporaryDirectory(prefix="aioinformer-")), key)
            file.write_bytes(content)
            body[key] = str(file)

    def __repr__(self) -> str:
        return f"<KubeconfigFiles {self.where}>"


def _merge(where: str, paths: str) -> KubeConfigMerger:
    try:
        return KubeConfigMerger(paths)
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        line = f": see line {mark.line + 1}" if mark else ""
    # Raised out here, with no cause or context: that quotes what it stumbled over, such as half
    # of a password.
    raise ConfigurationError(f"{where} is not valid YAML{line}")

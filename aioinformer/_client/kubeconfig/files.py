"""``KubeconfigFiles``: merged kubeconfig files, and the choice of a context in them.

kubernetes_asyncio reads and merges the files. This module corrects its result where kubectl behaves
differently:

    the current context     the first file that sets one wins, not the last
    a context without user  is anonymous; the loader fails with a TypeError
    relative paths          are relative to the file that contains them; the loader resolves a
                            user's certificates relative to the cluster's file
    names of parts          the loader's exceptions quote the whole part, tokens included
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml
from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigMerger

from aioinformer._client.kubeconfig.context import LOADER_ERRORS, Context
from aioinformer.errors import ConfigurationError

SECTIONS = {"clusters": "cluster", "contexts": "context", "users": "user"}
"""The lists of a kubeconfig, and the key of an item's content in each."""

PATH_KEYS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")

CLUSTER_TEXT_KEYS = (
    "server",
    "tls-server-name",
    "proxy-url",
    "certificate-authority",
    "certificate-authority-data",
)


@dataclass(frozen=True, slots=True, repr=False)
class KubeconfigFiles:
    """One configuration, merged from one or more files."""

    origin: str
    """The files, for messages."""
    merger: KubeConfigMerger
    merged: dict[str, Any]

    @classmethod
    def read(cls, paths: list[Path]) -> KubeconfigFiles:
        """Read and merge existing files. This method blocks.

        Raises:
            ConfigurationError: a file can't be read, or is not a kubeconfig.
        """
        where = ", ".join(str(path) for path in paths)
        try:
            for path in paths:
                _check_is_text(path)
            merger = _merge(where, os.pathsep.join(str(path) for path in paths))
        except OSError as error:
            raise ConfigurationError(f"{where} can't be read: {error.strerror}") from error
        except LOADER_ERRORS as error:  # whose text doesn't name the fault
            text = _find_fault_of_files(paths) or f"{where} is not a kubeconfig"
            raise ConfigurationError(text) from error
        for name, content in merger.config_files.items():
            if (fault := _find_fault(name, content)) is not None:
                raise ConfigurationError(fault)
        merged: dict[str, Any] = merger.config.value if merger.config else {}
        return cls(where, merger, merged)

    # -- the choice of a context ---------------------------------------------------------------

    def choose_context(self, name: str | None) -> str:
        """Return the name of the context to use: ``name``, or the current context.

        Raises:
            ConfigurationError: there is no context of that name, or no current context. The message
                lists the existing contexts.
        """
        chosen = name or self._current_context()
        names = list(self._names("contexts"))
        has = f"it has {', '.join(names)}" if names else "it has no contexts"
        several = len(self.merger.config_files) > 1
        file = "" if several else f" --kubeconfig={shlex.quote(self.origin)}"
        has = f"{has}: see `kubectl config get-contexts{file}`"
        if not chosen:
            raise ConfigurationError(f"{self.origin} has no current context; {has}")
        if chosen not in names:
            raise ConfigurationError(f"{self.origin} has no context {chosen!r}; {has}")
        return chosen

    def _current_context(self) -> str:
        files: dict[str, dict[str, Any]] = self.merger.config_files
        named = (str(each.get("current-context") or "") for each in files.values())
        return next(filter(None, named), "")

    def _nodes(self, section: str) -> list[ConfigNode]:
        nodes: list[ConfigNode] = self.merged[section]
        return nodes

    def _names(self, section: str) -> Iterable[str]:
        return (str(node.value["name"]) for node in self._nodes(section))

    # -- the content of a context --------------------------------------------------------------

    def read_context(self, name: str) -> Context:
        """Return the context of that name; raise ``ConfigurationError`` if it is incomplete."""
        try:
            return self._build_context(name)
        except LOADER_ERRORS as error:  # for example a list instead of a mapping
            text = f"context {name!r} has the wrong form ({type(error).__name__})"
            raise ConfigurationError(f"{self.origin}: {text}") from error

    def _build_context(self, name: str) -> Context:
        (node,) = [each for each in self._nodes("contexts") if each.value["name"] == name]
        context = self._resolve_paths("contexts", node, of=name)
        cluster, user = (
            self._find_referenced_node(context, part) for part in ("clusters", "users")
        )
        if "server" not in cluster.value["cluster"]:
            raise ConfigurationError(f"{self.origin}: {cluster.name} has no server")
        return Context(
            origin=f"{self.origin}: {context.name}",
            cluster=cluster.value["cluster"],
            user=user.value["user"],
            namespace=str(context.value["context"].get("namespace") or ""),
        )

    def _resolve_paths(self, section: str, node: ConfigNode, *, of: str) -> ConfigNode:
        """Return a copy of a part with absolute paths, and with a name that quotes no content.

        Raises:
            ConfigurationError: a part of the context ``of`` is not a mapping.
        """
        kind = SECTIONS[section]
        shown = f"{kind} {node.value['name']!r}"
        folder = Path(node.path or ".").absolute().parent
        sent: dict[str, Any] = node.value.get(kind) or {}
        self._check_mapping(sent, of, shown)
        self._check_mapping(sent.get("exec") or {}, of, f"exec of {shown}")
        body = {key: value for key, value in sent.items() if value}
        if kind == "cluster":
            self._check_cluster(body, of, shown)
        for key in PATH_KEYS:
            if key in body:
                body[key] = str(folder / body[key])
        command: str = body.get("exec", {}).get("command", "")
        if os.sep in command:  # as in client-go and in shells, a bare name is looked up in $PATH
            body["exec"] = {**body["exec"], "command": str(folder / command)}
        return ConfigNode(shown, {**node.value, kind: body})

    def _check_mapping(self, value: object, context: str, part: str) -> None:
        if not isinstance(value, dict):
            raise ConfigurationError(f"{self.origin}: context {context!r}: {part} is no mapping")

    def _check_cluster(self, body: Mapping[str, Any], context: str, part: str) -> None:
        """Check the types of a cluster's values, as kubectl does.

        Python takes each text for true, so that ``insecure-skip-tls-verify: "false"`` would trust
        every server.
        """
        texts: dict[str, tuple[type, str]] = dict.fromkeys(CLUSTER_TEXT_KEYS, (str, "a text"))
        flag = {"insecure-skip-tls-verify": (bool, "true or false, without quotes")}
        for key, (kind, description) in {**texts, **flag}.items():
            if key in body and not isinstance(body[key], kind):
                raise ConfigurationError(
                    f"{self.origin}: context {context!r}: {key} of {part} must be {description}"
                )

    def _find_referenced_node(self, context: ConfigNode, section: str) -> ConfigNode:
        kind = SECTIONS[section]
        if kind == "user" and kind not in context.value["context"]:
            return ConfigNode("no user", {"name": "", "user": {}})
        wanted = context.value["context"].get(kind, "")
        for node in self._nodes(section):
            if node.value["name"] == wanted:
                return self._resolve_paths(section, node, of=context.value["name"])
        text = f"{context.name} names {kind} {wanted!r}, which does not exist"
        raise ConfigurationError(f"{self.origin}: {text}")

    def __repr__(self) -> str:
        return f"<KubeconfigFiles {self.origin}>"


def _check_is_text(path: Path) -> None:
    """Reject a file that can't be a kubeconfig before a parser fails and quotes its content.

    Raises:
        ConfigurationError: the file is empty, or is not text.
        OSError: the file can't be read.
    """
    content = path.read_bytes()
    if not content.strip():
        raise ConfigurationError(f"{path} is empty; put the cluster's kubeconfig there")
    # Editors on Windows write UTF-16, which kubectl can't read either.
    if b"\0" in content or "\ufffd" in content.decode("utf-8", "replace"):
        raise ConfigurationError(
            f"{path} is not UTF-8 text, as a kubeconfig must be; is it the right file?"
        )


def _find_fault_of_files(paths: list[Path]) -> str | None:
    with suppress(yaml.YAMLError):  # of a later file: the loader's error came from an earlier one
        for path in paths:
            if (fault := _find_fault(path, yaml.safe_load(path.read_bytes()))) is not None:
                return fault
    return None


def _find_fault(path: Path | str, content: object) -> str | None:
    """Return the first part of a file's content that has the wrong form, for a message."""
    if not isinstance(content, dict):
        return f"{path} is not a YAML mapping, as a kubeconfig must be; is it the right file?"
    sections = cast("dict[str, object]", content)
    for section in SECTIONS:
        if (fault := _find_fault_of_section(section, sections.get(section))) is not None:
            return f"{path} is not a kubeconfig: {fault}"
    return None


def _find_fault_of_section(section: str, items: object) -> str | None:
    """Return the fault of a list of clusters, contexts or users, without its content."""
    if not items:
        return None
    if not isinstance(items, list):
        return f"{section} must be a list"
    for position, item in enumerate(cast("list[object]", items)):
        place = f"{section}[{position}]"
        if not isinstance(item, dict):
            return f"{place} must be a mapping"
        if "name" not in item:
            return f"{place} has no name"
    return None


def _merge(origin: str, paths: str) -> KubeConfigMerger:
    try:
        return KubeConfigMerger(paths)
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        fault = f": see line {mark.line + 1}" if mark else ""
    except RecursionError:
        fault = ": it is nested too deeply"
    # Raised outside of the handler, so that the error has no cause or context: yaml's error quotes
    # the text at the fault, such as a part of a password.
    raise ConfigurationError(f"{origin} is not valid YAML{fault}")

"""``KubeconfigFiles``: merged kubeconfig files, and the choice of a context in them.

As in kubectl, the first file that has a part of some name, or sets the current context, wins; a
part is not merged with another one; relative paths are relative to the file that contains them; a
context without user is anonymous.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from aioinformer._client.kubeconfig.context import Context
from aioinformer._client.kubeconfig.form import SECTIONS, find_fault
from aioinformer._client.kubeconfig.go_yaml import YamlError, decode_yaml
from aioinformer.errors import ConfigurationError

PATH_KEYS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True, slots=True)
class KubeconfigFiles:
    """One configuration, merged from one or more files."""

    paths: list[Path]
    parts: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(repr=False)
    """The clusters, contexts and users by section and name, with absolute paths."""
    current_context: str
    stamps: list[tuple[int, ...]] = field(repr=False)
    """What changes when a file is written: its time, size and inode."""

    @classmethod
    def read(cls, paths: list[Path]) -> KubeconfigFiles:
        """Read and merge existing files. This method blocks.

        Raises:
            ConfigurationError: a file is not a kubeconfig.
            OSError: a file can't be read.
        """
        stamps = _stat_files(paths)
        parts: dict[str, dict[str, Mapping[str, Any]]] = {section: {} for section in SECTIONS}
        current = ""
        for path, config in zip(paths, [_read_file(path) for path in paths], strict=True):
            current = current or config.get("current-context") or ""
            for section, kind in SECTIONS.items():
                for item in config.get(section) or ():
                    body = _resolve_paths(item.get(kind) or {}, path)
                    parts[section].setdefault(item["name"], body)
        return cls(paths, parts, current, stamps)

    @property
    def origin(self) -> str:
        """The files, for messages."""
        return ", ".join(map(str, self.paths))

    def have_changed(self) -> bool:
        """Return True if a file was written since; raise ``OSError`` if one can't be found."""
        return _stat_files(self.paths) != self.stamps

    @property
    def are_empty(self) -> bool:
        return not any(self.parts.values())

    @property
    def choose_no_cluster(self) -> bool:
        """True if client-go would use a pod's service account instead of these files."""
        context = self.parts["contexts"].get(self.current_context)
        if context is None:
            return not self.current_context
        return context.get("cluster") not in self.parts["clusters"]

    # -- the choice of a context ---------------------------------------------------------------

    def choose_context(self, name: str | None) -> str:
        """Return the name of the context to use: ``name``, or the current context.

        Raises:
            ConfigurationError: there is no context of that name, or no current context. The message
                lists the existing contexts.
        """
        if self.are_empty:
            raise ConfigurationError(
                f"{self.origin} is empty: it has no clusters, contexts or users; put the cluster's "
                f"kubeconfig there"
            )
        chosen = name or self.current_context
        names = self.parts["contexts"]
        has = f"it has {', '.join(names)}" if names else "it has no contexts"
        file = "" if len(self.paths) > 1 else f" --kubeconfig={shlex.quote(self.origin)}"
        has = f"{has}: see `kubectl config get-contexts{file}`"
        if not chosen:
            raise ConfigurationError(f"{self.origin} has no current context; {has}")
        if chosen not in names:
            raise ConfigurationError(f"{self.origin} has no context {chosen!r}; {has}")
        return chosen

    def read_context(self, name: str) -> Context:
        """Return the context of that name; raise ``ConfigurationError`` if it is incomplete."""
        origin = f"{self.origin}: context {name!r}"
        context = self.parts["contexts"][name]
        cluster = self._find(context, "clusters", origin)
        if "server" not in cluster:
            where = f"{self.origin}: cluster {context.get('cluster', '')!r}"
            raise ConfigurationError(f"{where} has no server")
        user: Mapping[str, Any] = {}
        if "user" in context:
            user = self._find(context, "users", origin)
        return Context(origin, cluster, user, context.get("namespace", ""))

    def _find(self, context: Mapping[str, Any], section: str, origin: str) -> Mapping[str, Any]:
        kind = SECTIONS[section]
        wanted = context.get(kind, "")
        if (found := self.parts[section].get(wanted)) is None:
            raise ConfigurationError(f"{origin} names {kind} {wanted!r}, which does not exist")
        return found


def _stat_files(paths: list[Path]) -> list[tuple[int, ...]]:
    found = [path.stat() for path in paths]
    return [(each.st_mtime_ns, each.st_size, each.st_ino) for each in found]


def _read_file(path: Path) -> dict[str, Any]:
    """Return the content of a file, in which each field has its type."""
    try:
        content = decode_yaml(path.read_bytes())
    except YamlError as error:
        fault = (
            f" is not valid YAML: {error.place}"
            if error.place
            else " is not UTF-8 text, as a kubeconfig must be; is it the right file?"
        )
    else:
        fault = find_fault(content) if content is not None else ""
        if not fault:
            return cast("dict[str, Any]", content or {})
        content = None  # which the traceback's frames would show
    # Raised outside of the handler, so that the error has no cause or context with parts of the
    # file, such as a password.
    raise ConfigurationError(f"{path}{fault}")


def _resolve_paths(body: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the fields of a part that are set, with absolute paths."""
    found = {key: value for key, value in body.items() if value}
    folder = file.absolute().parent
    for key in PATH_KEYS:
        if key in found:
            found[key] = str(folder / found[key])
    command: str = found.get("exec", {}).get("command") or ""
    if os.sep in command:  # as in client-go and in shells, a bare name is looked up in $PATH
        found["exec"] = {**found["exec"], "command": str(folder / command)}
    return found

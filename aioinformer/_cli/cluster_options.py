"""Which namespace a command is about, as kubectl chooses it.

Where kubeconfig files are, and what their contexts are called.

For a shell that wants to complete a line and for people: nothing here reads a credential into
anything but a word for its kind. Which cluster is asked, and how, is ``_client``'s to find out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml

from aioinformer import ALL_NAMESPACES, Client
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from aioinformer._client.kubeconfig.context import Context

__all__ = [
    "NamedContext",
    "check_namespace",
    "choose_namespace",
    "credential_kind",
    "kubeconfig_paths",
    "read_contexts",
]


NAMESPACED_RESOURCE = find_built_in("pods")
"""Something that has namespaces, whose names are all under the same rule."""
DEFAULT_NAMESPACE = "default"
"""The namespace if nobody names one."""


def choose_namespace(client: Client, asked: str, *, everywhere: bool) -> str:
    """The namespace, ``ALL_NAMESPACES`` if that is asked for.

    Args:
        client: an open one; its context may name a namespace.
        asked: what was given for ``--namespace``; empty for nothing.
        everywhere: whether ``--all-namespaces`` was given.

    Raises:
        UsageError: it can't be that of one.
    """
    if everywhere:
        return ALL_NAMESPACES
    return (
        check_namespace(asked, "--namespace")
        or check_namespace(client.namespace, "the namespace of the context")
        or DEFAULT_NAMESPACE
    )


def check_namespace(name: str, option: str) -> str:
    """The name of a namespace, if it can be one.

    Raises:
        UsageError: it can't be.
    """
    try:
        NAMESPACED_RESOURCE.path(name)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    return name


@dataclass(frozen=True, slots=True)
class NamedContext:
    """A context by its name, and the namespace that it names."""

    name: str
    namespace: str = ""


def kubeconfig_paths(chosen: Path | None, environment: Mapping[str, str]) -> list[Path]:
    """The files that there are, as kubectl chooses them."""
    named = str(chosen) if chosen is not None else environment.get("KUBECONFIG", "")
    texts = (named or "~/.kube/config").split(os.pathsep)
    home = environment.get("HOME", "~")
    paths = [Path(home + text[1:] if text.startswith("~/") else text) for text in texts if text]
    return [path for path in paths if path.is_file()]


def read_contexts(paths: Iterable[Path]) -> Iterator[NamedContext]:
    """The contexts of kubeconfig files. One that is none has no contexts."""
    for path in paths:
        try:
            read: object = yaml.safe_load(path.read_bytes())
        except (OSError, ValueError, RecursionError, yaml.YAMLError):
            continue  # there is nothing to suggest; whoever uses the file is told what is wrong
        for each in _sequence(_mapping(read).get("contexts")):
            context = _mapping(each)
            if isinstance(name := context.get("name"), str):
                namespace = _mapping(context.get("context")).get("namespace")
                yield NamedContext(name, namespace if isinstance(namespace, str) else "")


def credential_kind(context: Context) -> str:
    """How a context's user shows who it is, in words, and not with what."""
    user = context.user
    if context.has_plugin:
        section = _mapping(user.get("exec"))
        kind = f"exec plugin {Path(str(section.get('command') or '?')).name}"
    elif context.token_file is not None:
        kind = "token file"
    elif "auth-provider" in user:
        kind = "id-token of an auth-provider"
    elif "token" in user:
        kind = "token"
    elif "username" in user:
        kind = "user and password"
    else:
        kind = ""
    pair = "client-certificate" in user or "client-certificate-data" in user
    shown = " and ".join(each for each in (kind, "client certificate" if pair else "") if each)
    acting = ", impersonates somebody" if context.impersonation_headers else ""
    return (shown or "none (anonymous)") + acting


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []

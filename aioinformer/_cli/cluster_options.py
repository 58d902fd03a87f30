"""Server, kubeconfig, context and namespace options: the client, defaults, names to suggest.

The namespace is chosen as kubectl chooses it. A credential is described by its kind alone, so that
no secret reaches an output.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from aioinformer import ALL_NAMESPACES, Client
from aioinformer._cli.options import ClusterOptions
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from aioinformer._client.kubeconfig.context import Context

NAMESPACED_RESOURCE = find_built_in("pods")
"""Any namespaced resource: all have the same rule for names of namespaces."""
DEFAULT_NAMESPACE = "default"


def connect(options: ClusterOptions) -> Client:
    """Return the client, not entered yet; ``UsageError`` without a cluster or with a bad URL."""
    if options.server is None:
        return Client.connect(kubeconfig=options.kubeconfig, context=options.context)
    try:
        return Client(options.server)
    except ConfigurationError as error:
        raise ConfigurationError(f"--server: {error}") from error


def choose_namespace(client: Client, asked: str, *, everywhere: bool) -> str:
    """Return the namespace of a command, ``ALL_NAMESPACES`` for all; ``UsageError`` if not valid.

    ``asked`` is the value of ``--namespace``, or empty; ``client`` is open.
    """
    if everywhere:
        return ALL_NAMESPACES
    return (
        check_namespace(asked, "--namespace")
        or check_namespace(client.namespace, "the namespace of the context")
        or DEFAULT_NAMESPACE
    )


def check_namespace(name: str, option: str) -> str:
    """Return ``name``; raise ``UsageError`` with its origin ``option`` if it isn't valid."""
    try:
        NAMESPACED_RESOURCE.path(name)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    return name


@dataclass(frozen=True, slots=True)
class NamedContext:
    name: str
    namespace: str = ""


def kubeconfig_paths(chosen: Path | None, environment: Mapping[str, str]) -> list[Path]:
    """Return the existing kubeconfig files, in the order in which kubectl reads them."""
    named = str(chosen) if chosen is not None else environment.get("KUBECONFIG", "")
    texts = (named or "~/.kube/config").split(os.pathsep)
    home = environment.get("HOME", "~")
    paths = [Path(home + text[1:] if text.startswith("~/") else text) for text in texts if text]
    return [path for path in paths if os.path.isfile(path)]  # noqa: PTH113 - never raises


def read_contexts(paths: Iterable[Path]) -> Iterator[NamedContext]:
    """Yield the contexts of kubeconfig files; a file that can't be read has none."""
    from aioinformer._client.kubeconfig.go_yaml import decode_yaml

    for path in paths:
        try:
            content = decode_yaml(path.read_bytes())
        except (OSError, ValueError):
            continue  # no names to suggest; a command that uses the file reports the error
        for each in _sequence(_mapping(content).get("contexts")):
            context = _mapping(each)
            if isinstance(name := context.get("name"), str):
                namespace = _mapping(context.get("context")).get("namespace")
                yield NamedContext(name, namespace if isinstance(namespace, str) else "")


def credential_kind(context: Context) -> str:
    user = context.user
    if context.has_plugin:
        kind = f"exec plugin {Path(user['exec'].get('command') or '?').name}"
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
    headers = dict(context.impersonation_headers)
    impersonation = f", impersonates {headers['Impersonate-User']}" if headers else ""
    return (shown or "none (anonymous)") + impersonation


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []

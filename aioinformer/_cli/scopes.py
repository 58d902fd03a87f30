"""Which namespace a command is about, as kubectl chooses it."""

from __future__ import annotations

from aioinformer import ALL_NAMESPACES, Client
from aioinformer._core.resources import find_built_in
from aioinformer.errors import UsageError

__all__ = ["namespace_of", "scope_of"]

PODS = find_built_in("pods")
"""Something that has namespaces, whose names are all under the same rule."""
DEFAULT = "default"
"""The namespace if nobody names one."""


def scope_of(client: Client, asked: str, *, everywhere: bool) -> str:
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
        namespace_of(asked, "--namespace")
        or namespace_of(client.namespace, "the namespace of the context")
        or DEFAULT
    )


def namespace_of(name: str, whose: str) -> str:
    """The name of a namespace, if it can be one.

    Raises:
        UsageError: it can't be.
    """
    try:
        PODS.path(name)
    except ValueError as error:
        raise UsageError(f"{whose}: {error}") from error
    return name

"""Kubeconfig files for the tests, with helpers to load them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from aioinformer._client.auth.credentials import Credentials
from aioinformer._client.kubeconfig.kubeconfig import Kubeconfig
from aioinformer.errors import ConfigurationError

CANARY = "canary-7c21"
NO_POD: Mapping[str, str] = {}


def encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def make_kubeconfig(
    *,
    cluster: Mapping[str, Any] | None = None,
    user: Mapping[str, Any] | None = None,
    name: str = "main",
) -> dict[str, Any]:
    """Return a kubeconfig with one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": "http://10.0.0.1", **(cluster or {})}}],
        "users": [{"name": name, "user": dict(user or {})}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }


def write_kubeconfig(folder: Path, content: Mapping[str, Any] | str, name: str = "config") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(dict(content)))
    return path


async def load_credentials(path: Path, context: str | None = None) -> Credentials:
    return await Kubeconfig(path, context, environment=NO_POD).load()


async def load_error(source: Kubeconfig) -> str:
    with pytest.raises(ConfigurationError) as caught:
        await source.load()
    return str(caught.value)


def error_chain_text(error: BaseException | None) -> str:
    """Return the text and repr of an error and of its causes."""
    if error is None:
        return ""
    return f"{error} {error!r}\n" + error_chain_text(error.__cause__ or error.__context__)

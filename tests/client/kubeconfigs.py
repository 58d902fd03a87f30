"""Kubeconfig files for the tests, with helpers to load them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import ConfigurationError
from tests.client.servers import http_server

CANARY = "canary-7c21"


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


def connect(path: Path | None = None, context: str | None = None) -> Client:
    return Client.connect(kubeconfig=path, context=context, send_credentials_unencrypted=True)


async def load_error(path: Path | None = None, context: str | None = None) -> str:
    """Return the error with which a client can't be entered; it shows no secret."""
    with pytest.raises(ConfigurationError) as caught:
        await connect(path, context).__aenter__()
    assert CANARY not in error_chain_text(caught.value)
    return str(caught.value)


async def load_server(path: Path | None = None, context: str | None = None) -> str:
    """Return the server of an entered client."""
    async with connect(path, context) as client:
        return client.server


async def load_header(folder: Path, user: Mapping[str, Any]) -> str:
    """Return the ``Authorization`` header of a user's requests."""
    async with http_server(answer_authorization) as server:
        content = make_kubeconfig(cluster={"server": server}, user=user)
        async with connect(write_kubeconfig(folder, content)) as client:
            return (await client.get_raw("/")).decode()


async def answer_authorization(request: web.Request) -> web.Response:
    return web.Response(text=request.headers.get("Authorization", ""))


def error_chain_text(error: BaseException | None) -> str:
    """Return the text and repr of an error and of its causes."""
    if error is None:
        return ""
    return f"{error} {error!r}\n" + error_chain_text(error.__cause__ or error.__context__)

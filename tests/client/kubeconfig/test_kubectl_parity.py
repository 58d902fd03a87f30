"""Each kubeconfig file does what it does for kubectl, with the differences that the table names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import ConfigurationError
from tests.client.kubeconfig.kubectl_cases import ASKS, CASES, POD, REFUSED, Case
from tests.client.servers import http_server


async def read(files: str) -> str:
    """Return what a client sends, or how the file is refused."""
    try:
        async with Client.connect() as client:
            return (await client.get_raw("/")).decode()
    except ConfigurationError as error:
        names_a_file = any(path in str(error) for path in files.split(os.pathsep))
        return REFUSED if names_a_file else str(error)


async def show(request: web.Request) -> web.Response:
    sent = sorted(f"{name}={value}" for name, value in request.headers.items() if "Imp" in name)
    header = request.headers.get("Authorization")
    text = " ".join([request.path.rstrip("/"), *filter(None, [header]), *sent])
    return web.Response(text=ASKS if text == "/one" else text)


@pytest.mark.parametrize("case", CASES, ids=[each.name for each in CASES])
async def test_a_kubeconfig_does_what_it_does_for_kubectl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    async with http_server(show) as server:
        # Without TLS, no certificates of the system have to be read.
        files = case.write(tmp_path, server.partition("://")[2], scheme="http")
        monkeypatch.setenv("KUBECONFIG", files)

        expected = case.ours or case.kubectl
        assert await read(files) == (REFUSED if expected == POD else expected)  # this is not a pod

"""kubectl sends with each kubeconfig file what the table of the default tests says."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from tests.client.conftest import Certificates
from tests.client.kubeconfig.kubectl_cases import ASKS, CASES, POD, REFUSED
from tests.client.servers import http_server

DEFAULT_SERVER = "localhost:8080"
"""The server of a kubectl that has found none."""
AT_ONCE = 4


def certificates() -> Certificates:
    authority = trustme.CA()
    return Certificates(authority, *[authority.issue_cert("127.0.0.1")] * 2)


async def answer(request: web.Request) -> web.Response:
    """Return what the request says of its sender."""
    impersonated = sorted(
        f"{name}={value}"
        for name, value in request.headers.items()
        if name.startswith("Impersonate-")
    )
    header = request.headers.get("Authorization", "")
    return web.Response(text=" ".join([request.path, *filter(None, [header]), *impersonated]))


def write_files(folder: Path, server: str) -> list[tuple[Path, str]]:
    """Write the files of each case to a folder; return each folder and ``$KUBECONFIG``."""
    folders = [folder / f"{number}" for number, _ in enumerate(CASES)]
    for each in folders:
        each.mkdir()
    return [(each, case.write(each, server)) for each, case in zip(folders, CASES, strict=True)]


async def run_kubectl(binary: Path, home: Path, kubeconfig: str) -> str:
    environment = {"HOME": str(home), "KUBECONFIG": kubeconfig}
    process = await asyncio.create_subprocess_exec(
        *(binary, "kubectl", "get", "--raw", "/"),
        env={**environment, "PATH": os.environ["PATH"]},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    sent, fault = await process.communicate()
    if process.returncode == 0:
        path, *others = sent.decode().split(" ")
        return " ".join([path.rstrip("/"), *others])
    if DEFAULT_SERVER in fault.decode():
        return POD
    return ASKS if fault == b"error: EOF\n" else REFUSED


@pytest.mark.clients
async def test_kubectl_sends_with_each_kubeconfig_what_the_table_says(
    go_binary: Path, tmp_path: Path
) -> None:
    running = asyncio.Semaphore(AT_ONCE)

    async def sent(home: Path, kubeconfig: str) -> str:
        async with running:
            return await run_kubectl(go_binary, home, kubeconfig)

    async with http_server(answer, tls=certificates().server_context()) as url:
        files = write_files(tmp_path, url.removeprefix("https://"))
        found = await asyncio.gather(*(sent(*each) for each in files))

    names = [each.name for each in CASES]
    assert dict(zip(names, found, strict=True)) == {each.name: each.kubectl for each in CASES}

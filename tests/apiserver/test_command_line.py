"""``aioinformer watch`` against the real API server."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.apiserver.process import Admin, ApiServerProcess
from tests.cli.processes import environment, started

pytestmark = pytest.mark.apiserver


@pytest.mark.parametrize("name", ["widgets", "wd"])
async def test_it_prints_what_another_client_does_within_a_second(
    name: str, api_server: ApiServerProcess, admin: Admin, tmp_path: Path
) -> None:
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "first"},
        "spec": {"colour": "red"},
    }
    await admin.create(widget)
    argv = ("watch", name, "--kubeconfig", str(api_server.kubeconfig))
    async with started(*argv, env=environment(tmp_path)) as run:
        header, first = await run.line(), await run.line()
        await admin.merge_patch("first", {"spec": {"colour": "blue"}})
        async with asyncio.timeout(1):
            second = await run.line()
        await admin.delete("first")
        async with asyncio.timeout(1):
            third = await run.line()
        run.process.send_signal(signal.SIGINT)
        code, out, err = await run.end()

    assert header.split()[:2] == ["EVENT", "NAME"]
    assert first.split()[:2] == ["ADDED", "first"]
    assert second.split()[:2] == ["MODIFIED", "first"]
    assert third.split()[:2] == ["DELETED", "first"]
    assert (code, out, err) == (130, "", "")

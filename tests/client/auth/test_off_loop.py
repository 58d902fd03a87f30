"""Work in a thread of its own: its end, its error, and what becomes of it when nobody waits."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from contextvars import ContextVar
from pathlib import Path

import pytest

from aioinformer import Client
from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer.errors import AlreadyExists, ConfigurationError, ConnectionFailed
from aioinformer.testing import ApiServer, Cluster
from tests.client.kubeconfigs import CANARY, make_kubeconfig, write_kubeconfig
from tests.client.transports import client_of, read_error

HANGS = """
import asyncio, sys
from aioinformer._client.auth.off_loop import run_in_thread

async def main():
    try:
        async with asyncio.timeout(0.05):
            await run_in_thread(lambda: open(sys.argv[1]).read())
    except TimeoutError:
        print("gave up")

asyncio.run(main())
"""


async def test_the_result_or_the_exception_reaches_the_caller() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    assert await run_in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(fail)


async def test_the_function_runs_in_a_daemon_thread_with_the_context_of_the_caller() -> None:
    variable = ContextVar("variable", default="outside")
    variable.set("inside")

    thread, value = await run_in_thread(lambda: (threading.current_thread(), variable.get()))

    assert thread is not threading.main_thread()
    assert thread.daemon
    assert value == "inside"


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_a_machine_without_a_free_thread_is_an_error_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Callers that read files or the network expect ``OSError``."""
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(BlockingIOError, match="no thread can be started"):
        await run_in_thread(lambda: 7)
    async with client_of("http://kubernetes.example") as client:
        error = await read_error(client)
    assert type(error) is ConnectionFailed
    assert str(error) == (
        "kubernetes.example:80: the name can't be looked up: no thread can be started, because "
        "this program or the machine has reached its limit"
    )


@pytest.mark.parametrize("server", ["https://10.0.0.1", None])
async def test_a_client_that_can_not_read_files_without_a_free_thread_says_so(
    server: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig())
    client = Client(server) if server else Client.connect(kubeconfig=path)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(ConfigurationError, match="can't be read: no thread can be started"):
        await client.__aenter__()
    assert client.state == "closed"


async def test_the_error_of_a_large_secret_is_redacted_without_a_free_thread() -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"key": CANARY * 8000}}
    async with ApiServer(Cluster()) as server, Client(server.url) as client:
        secrets = client.api("secrets", namespace="default")
        await secrets.create(secret)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(AlreadyExists):
                await secrets.create(secret)


async def test_the_number_of_concurrent_threads_has_no_limit() -> None:
    """A pool whose threads all hang would let nobody through."""
    everybody = threading.Barrier(50)

    places = await asyncio.gather(*(run_in_thread(everybody.wait) for _ in range(50)))

    assert sorted(places) == list(range(50))


async def test_a_cancelled_call_goes_on_in_its_thread() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def blocking() -> None:
        go_on.wait()
        ended.set()

    waiting = asyncio.create_task(run_in_thread(blocking))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go_on.set()
    assert await run_in_thread(lambda: ended.wait(30))
    await asyncio.sleep(0.001)  # what comes of it is dropped without a word


def test_a_thread_that_ends_after_the_loop_is_ignored() -> None:
    began, go_on, thread = threading.Event(), threading.Event(), list[threading.Thread]()

    def blocking() -> None:
        thread.append(threading.current_thread())
        began.set()
        go_on.wait()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await run_in_thread(blocking)
        await run_in_thread(began.wait)

    asyncio.run(give_up())
    go_on.set()
    thread[0].join(30)
    assert not thread[0].is_alive()


@pytest.mark.skipif(sys.platform == "win32", reason="makes a FIFO")
def test_a_file_that_hangs_does_not_keep_the_program_from_ending(tmp_path: Path) -> None:
    hanging = tmp_path / "fifo"
    os.mkfifo(hanging)

    done = subprocess.run(
        [sys.executable, "-c", HANGS, str(hanging)],
        check=True,
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert done.stdout == "gave up\n"

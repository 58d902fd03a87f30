"""The operator as a process: signals and exit codes."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from aioinformer import Operator
from aioinformer.errors import UsageError
from aioinformer.operator.process import EXIT_FAILED, EXIT_STOPPED, EXIT_USAGE
from aioinformer.testing import ApiServer, Cluster, ClusterSource
from tests.operator.operators import succeed
from tests.processes import send_signal, start_process

ROOT = Path(__file__).parent.parent.parent
LEASE = "default/program"


@pytest.fixture
async def server() -> AsyncGenerator[ApiServer]:
    cluster = Cluster()
    cluster.create("configmaps", {"metadata": {"name": "a"}})
    async with ApiServer(cluster) as server:
        yield server


@asynccontextmanager
async def program(
    url: str, *arguments: str, module: str = "tests.operator.program"
) -> AsyncGenerator[Process]:
    """Run the program; kill it at the end if it still runs."""
    process = await start_process(
        sys.executable,
        *("-m", module, url, *arguments),
        stdout=PIPE,
        stderr=PIPE,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            send_signal(process, signal.SIGKILL)
        await process.communicate()


async def reads(stream: asyncio.StreamReader | None, text: str) -> None:
    """Wait until the process writes a line with this text."""
    assert stream is not None
    lines = list[str]()
    async with asyncio.timeout(30):
        while line := (await stream.readline()).decode():
            lines.append(line)
            if text in line:
                return
    raise AssertionError(f"the program ended without {text!r}: {''.join(lines)}")


async def ends(process: Process) -> int:
    async with asyncio.timeout(30):
        return await process.wait()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.clients)]
)
async def test_a_leader_finishes_its_run_and_releases_the_lease(
    server: ApiServer, number: signal.Signals
) -> None:
    async with program(server.url, "--lease", LEASE, "--seconds", "1") as process:
        await reads(process.stdout, "began default/a")
        send_signal(process, number)
        await reads(process.stdout, "ended default/a")
        assert await ends(process) == EXIT_STOPPED
    lease = server.cluster.get("leases", "program", namespace="default")
    assert lease["spec"]["holderIdentity"] == ""


@pytest.mark.clients
async def test_the_shards_of_a_replica_that_a_signal_ends_are_taken_over(server: ApiServer) -> None:
    member = "tests.operator.member"
    async with program(server.url, "one", "1", module=member) as one:
        await reads(one.stdout, "began default/a")
        async with program(server.url, "two", "0", module=member) as two:
            await reads(two.stderr, "group program: two begins with")
            for number in range(20):  # one at least is of each replica's shards
                server.cluster.create("configmaps", {"metadata": {"name": f"b{number}"}})
            await reads(one.stdout, "began default/b")
            await reads(two.stdout, "began default/b")
            send_signal(one, signal.SIGTERM)
            await reads(two.stderr, "group program: two begins with")
            assert await ends(one) == EXIT_STOPPED
            await reads(two.stdout, "began default/")
            send_signal(two, signal.SIGTERM)
            assert await ends(two) == EXIT_STOPPED
    for name in ("one", "two"):
        lease = server.cluster.get("leases", f"program.{name}", namespace="default")
        assert lease["spec"]["holderIdentity"] == ""


@pytest.mark.clients
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_replica_that_waits_for_the_lease(
    server: ApiServer, number: signal.Signals
) -> None:
    async with program(server.url, "--lease", LEASE) as leader:
        await reads(leader.stdout, "began default/a")
        async with program(server.url, "--lease", LEASE) as waiting:
            await reads(waiting.stderr, "the leader of default/program is")
            send_signal(waiting, number)
            assert await ends(waiting) == EXIT_STOPPED
        assert leader.returncode is None


@pytest.mark.clients
async def test_the_second_signal_ends_the_process_at_once(server: ApiServer) -> None:
    async with program(server.url, "--seconds", "600", "--grace", "600") as process:
        await reads(process.stdout, "began default/a")
        send_signal(process, signal.SIGTERM)
        await reads(process.stderr, "SIGTERM received; a second signal ends the process at once")
        send_signal(process, signal.SIGINT)
        assert await ends(process) == -signal.SIGINT


@pytest.mark.clients
async def test_runs_that_do_not_finish_are_a_failure(server: ApiServer) -> None:
    async with program(server.url, "--seconds", "600", "--grace", "0.1") as process:
        await reads(process.stdout, "began default/a")
        send_signal(process, signal.SIGTERM)
        await reads(process.stderr, "ShutdownIncomplete: still running 0.1 s after")
        assert await ends(process) == EXIT_FAILED


@pytest.mark.clients
async def test_a_resource_that_the_server_does_not_serve_is_a_usage_error(
    server: ApiServer,
) -> None:
    async with program(server.url, "--resource", "wombats.example.com") as process:
        await reads(process.stderr, "UnknownResource")
        assert await ends(process) == EXIT_USAGE


@pytest.mark.clients
async def test_a_port_that_is_in_use_is_a_usage_error(server: ApiServer) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:  # noqa: S104 - as the operator listens
        port = taken.getsockname()[1]
        async with program(server.url, "--port", str(port)) as process:
            await reads(process.stderr, f"the operator can't listen on port {port}")
            assert await ends(process) == EXIT_USAGE


@pytest.mark.clients
async def test_the_operator_requests_a_name_of_an_unreachable_server_until_a_signal() -> None:
    async with program("http://127.0.0.1:9", "--resource", "foos.example.com") as process:
        for seconds in (1, 2):
            await reads(
                process.stderr,
                "can't ask the server for the resource of foos.example.com, next attempt in "
                f"{seconds} s: ConnectionFailed",
            )
        send_signal(process, signal.SIGTERM)
        assert await ends(process) == EXIT_STOPPED


def test_main_is_rejected_outside_of_the_main_thread() -> None:
    errors = list[BaseException]()

    def run() -> None:
        operator = Operator(ClusterSource(Cluster()), name="it")
        operator.controller("configmaps", succeed)
        try:
            operator.main()
        except UsageError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "in the main thread only" in str(errors[0])

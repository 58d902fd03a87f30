"""Programs that are run: output, floods, deadlines, cancellation."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aioinformer._client.auth.exec_plugin import (
    MAX_OUTPUT_BYTES,
    MAX_STDERR_BYTES,
    ExecPlugin,
    parse_exec_section,
    run_process,
)
from aioinformer.errors import FetchError
from tests.client.fake_exec_plugin import V1, FakePlugin, in_seconds
from tests.client.kubeconfigs import CANARY

LONG = 30.0


async def shell(script: str, seconds: float = LONG) -> tuple[int, bytes, bytes]:
    outcome = await run_process(("/bin/sh", "-c", script), os.environ, seconds)
    return outcome.exit_code, bytes(outcome.stdout), bytes(outcome.stderr)


async def test_a_run_returns_the_exit_code_the_output_and_the_diagnostics() -> None:
    assert await shell("echo out; echo err >&2; exit 3") == (3, b"out\n", b"err\n")


async def test_a_program_has_no_input() -> None:
    assert await shell("cat; echo done") == (0, b"done\n", b"")


async def test_a_megabyte_of_diagnostics_before_the_output_is_no_deadlock() -> None:
    code, output, complaint = await shell("head -c 1048576 /dev/zero >&2; echo out; echo end >&2")

    assert (code, output) == (0, b"out\n")
    assert len(complaint) == MAX_STDERR_BYTES
    assert complaint.endswith(b"\0end\n")


async def test_endless_output_is_cut_off_in_memory() -> None:
    _, output, _ = await shell(f"head -c {3 * MAX_OUTPUT_BYTES} /dev/zero")

    assert len(output) == MAX_OUTPUT_BYTES + 1


async def test_a_program_that_does_not_exist_raises_file_not_found() -> None:
    with pytest.raises(FileNotFoundError):
        await run_process(("/no/such/program",), os.environ, LONG)


def alive(pid: int) -> bool:
    """Return True if a process runs and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def written(path: Path) -> str:
    """Return the text that a program has written to a file so far."""
    return path.read_text() if path.exists() else ""


async def pid_in(path: Path) -> int:
    """Wait for the process id in a file and return it."""
    while not (line := written(path)).endswith("\n"):  # noqa: ASYNC110  # a file has no event
        await asyncio.sleep(0.001)
    return int(line)


async def ended(pid: int) -> None:
    """Wait for the end of a process that was killed."""
    while alive(pid):  # noqa: ASYNC110  # a process that is no child has no event
        await asyncio.sleep(0.001)


HANGING = "sleep 60 & echo $! > {}; wait"
"""A program that hangs in another one: killing the shell alone would leave that running."""


async def test_a_program_that_hangs_is_killed_at_its_deadline_with_all_it_started(
    tmp_path: Path,
) -> None:
    began = time.monotonic()

    with pytest.raises(TimeoutError):
        await shell(HANGING.format(tmp_path / "pid"), 2)

    assert time.monotonic() - began < 30
    await ended(await pid_in(tmp_path / "pid"))


async def test_a_cancellation_kills_the_program_with_all_it_started(tmp_path: Path) -> None:
    running = asyncio.create_task(shell(HANGING.format(tmp_path / "pid")))
    pid = await pid_in(tmp_path / "pid")
    assert alive(pid)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await ended(pid)


async def test_a_run_does_not_wait_for_the_background_processes_of_a_program(
    tmp_path: Path,
) -> None:
    """It holds the pipes: waiting for their end would take a minute."""
    began = time.monotonic()

    script = f"(setsid sleep 60 & echo $! > {tmp_path / 'pid'}); echo out"
    assert (await shell(script))[:2] == (0, b"out\n")

    assert time.monotonic() - began < 30
    os.kill(await pid_in(tmp_path / "pid"), 9)


async def test_a_run_does_not_block_the_loop(tmp_path: Path) -> None:
    end = tmp_path / "end"
    running = asyncio.create_task(shell(f"until [ -e {end} ]; do sleep 0.01; done; echo out"))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not running.done()
    end.touch()

    assert await running == (0, b"out\n", b"")


# -- runs of a plugin --------------------------------------------------------------------------


def made(fake: FakePlugin, seconds: float = 60) -> ExecPlugin:
    return ExecPlugin(parse_exec_section(fake.user()["exec"], {}), "here", timeout=seconds)


async def failure(plugin: ExecPlugin) -> str:
    with pytest.raises(FetchError) as caught:
        await plugin()
    assert caught.value.phase == "credentials"
    return str(caught.value)


@contextmanager
def no_free_descriptor() -> Generator[None]:
    """Leave this process no file descriptor."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(("life", "fresh"), [(100, 80), (3600, 3480)])
async def test_the_plugin_is_run_again_before_its_token_expires(
    tmp_path: Path, life: float, fresh: float
) -> None:
    fake = FakePlugin(tmp_path)
    fake.set_status(token="abc", expirationTimestamp=in_seconds(life))

    grant = await made(fake)()

    assert grant.valid_for == pytest.approx(life, abs=5)
    assert grant.fresh_for == pytest.approx(fresh, abs=5)


PROGRAM_WITHOUT_DESCRIPTORS = """
import asyncio, sys
from pathlib import Path
from tests.client.auth.test_exec_plugin_process import FakePlugin, failure, made, no_free_descriptor

async def main():
    plugin = made(FakePlugin(Path(sys.argv[1])))
    with no_free_descriptor():
        message = await failure(plugin)
    print(message)

asyncio.run(main())
"""


def test_the_error_for_a_plugin_without_a_free_descriptor_names_the_limit(tmp_path: Path) -> None:
    """In a process of its own: threads of the test runner may need a descriptor, too."""
    command = [sys.executable, "-c", PROGRAM_WITHOUT_DESCRIPTORS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert done.stdout == (
        f"here: the exec plugin '{FakePlugin(tmp_path).path}' can't be run: Too many open files: "
        "this program or the machine has reached a limit (`ulimit -a`); the plugin is run again in "
        "10 s or later\n"
    ), done.stderr


async def test_the_error_for_a_plugin_that_is_killed_names_the_timeout(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script("sleep 60")

    assert (await failure(made(fake, 0.1))).endswith("did not end in 0.1 s, and was killed")


async def test_a_run_that_failed_is_not_repeated_at_once(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script("exit 1")
    plugin = made(fake)

    assert await failure(plugin) == await failure(plugin)
    assert fake.runs == 1


def test_no_repr_shows_a_secret() -> None:
    section = {
        "apiVersion": V1,
        "command": "x",
        "args": ["--token", CANARY],
        "env": [{"name": "TOKEN", "value": CANARY}],
    }

    assert CANARY not in repr(ExecPlugin(parse_exec_section(section, {}), "here"))

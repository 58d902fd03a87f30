"""A command line whose commands run in this process, and servers in threads beside it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

import pytest
from anyio.from_thread import start_blocking_portal

from aioinformer.testing import ApiServerThread
from tests.cli.commands import CommandLine
from tests.client.accelerated_time import AcceleratedLoop

T = TypeVar("T")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test with the fixture ``cli`` beside its commands."""
    cli = pyfuncitem.funcargs.get("cli")
    if not isinstance(cli, CommandLine):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    cli.run_test(lambda: pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Return the command line of a user without a cluster."""
    for name in ("KUBECONFIG", "NO_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    return CommandLine()


@pytest.fixture
def server(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ApiServerThread]:
    """Serve an empty cluster with the real time, which ``$KUBECONFIG`` names."""
    with ApiServerThread(token="secret-1") as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "config")))
        yield server


@pytest.fixture
def _fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands wait for a tenth of the time; the server has its own clock."""
    if "server" in request.fixturenames:
        request.getfixturevalue("server")  # has its loop before
    monkeypatch.setattr(asyncio.events, "new_event_loop", lambda: AcceleratedLoop(10))


class Enter(Protocol):
    def __call__(self, context: AbstractAsyncContextManager[T], /) -> T: ...


@pytest.fixture
def enter() -> Iterator[Enter]:
    """Return a function that enters an asynchronous context in a thread, until the test ends."""
    with start_blocking_portal() as portal, ExitStack() as stack:

        def enter(context: AbstractAsyncContextManager[T]) -> T:
            return stack.enter_context(portal.wrap_async_context_manager(context))

        yield enter

"""Fixtures for tests against a real API server: the binary, and one server per test."""

import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.apiserver.server.server_process import (
    WIDGET_CRD,
    AdminClient,
    ApiServerProcess,
    BuildFailed,
    BuildUnavailable,
    build,
    install_crd,
)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the server before the first test, because a build may exceed the time of a test."""
    wanted = any(item.get_closest_marker("apiserver") for item in session.items)
    if wanted and not session.config.getoption("collectonly"):
        # The fixture raises the same error again, in the test that uses it.
        with contextlib.suppress(BuildUnavailable, BuildFailed):
            build()


@pytest.fixture(scope="session")
def apiserver_binary() -> Path:
    try:
        return build()
    except BuildUnavailable as reason:
        pytest.skip(str(reason))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def data_with_widgets(
    apiserver_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the data directory of a server that has only the widgets' definition.

    A server delays creations for two seconds after the creation of a definition. Tests copy this
    directory, so that only one of them has this delay.
    """
    server = ApiServerProcess(apiserver_binary, tmp_path_factory.mktemp("widgets"))
    await server.start()
    try:
        await install_crd(server, WIDGET_CRD)
    finally:
        await server.kill()
    return server.data_dir


@pytest.fixture
async def api_server(
    apiserver_binary: Path, data_with_widgets: Path, tmp_path: Path
) -> AsyncIterator[ApiServerProcess]:
    """Run a server with widgets for one test."""
    data = tmp_path / "apiserver"
    shutil.copytree(data_with_widgets, data, ignore=shutil.ignore_patterns("*.log"))
    server = ApiServerProcess(apiserver_binary, data)
    await server.start()
    try:
        yield server
    finally:
        # Not stop(): the data is not needed any more, and a graceful shutdown takes a second.
        # pytest keeps the directory for a while: the log may be useful, the large store is not.
        await server.kill()
        shutil.rmtree(data / "etcd")


@pytest.fixture
async def admin(api_server: ApiServerProcess) -> AsyncIterator[AdminClient]:
    """Return a client for widgets that is independent of the library."""
    async with AdminClient(api_server) as client:
        yield client

"""The choice of a server from files, contexts or a pod's mount, and the errors without one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aioinformer import Client, Timeouts
from aioinformer.errors import ConfigurationError
from tests.client.kubeconfigs import (
    CANARY,
    answer_authorization,
    connect,
    encode_base64,
    error_chain_text,
    load_error,
    load_server,
    make_kubeconfig,
    write_kubeconfig,
)
from tests.client.servers import http_server

TWO = {"server": "http://10.0.0.2"}

# -- which file --------------------------------------------------------------------------------


async def test_a_path_wins_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"server": "http://named"}))
    monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, make_kubeconfig(), "other")))

    assert await load_server(named) == "http://named"


async def test_the_environment_may_list_files_of_which_some_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_kubeconfig(tmp_path, make_kubeconfig(name="first"), "first")
    second = write_kubeconfig(tmp_path, make_kubeconfig(name="second", cluster=TWO), "second")
    listed = os.pathsep.join([str(tmp_path / "missing"), str(first), "", str(second)])
    monkeypatch.setenv("KUBECONFIG", listed)

    assert await load_server() == "http://10.0.0.1"
    assert await load_server(context="second") == "http://10.0.0.2"
    assert await load_error(context="third") == (
        f"{first}, {second} has no context 'third'; it has first, second: see "
        "`kubectl config get-contexts`"
    )


@pytest.mark.clients
def test_the_environment_is_read_when_it_is_needed_and_home_is_the_default(tmp_path: Path) -> None:
    folder = tmp_path / ".kube"
    folder.mkdir()
    write_kubeconfig(folder, make_kubeconfig(cluster={"server": "http://home"}))
    named = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"server": "http://named"}), "named")
    program = f"""
import asyncio, os
from aioinformer import Client
async def main():
    async with Client.connect() as client:
        print(client.server)
    os.environ["KUBECONFIG"] = {str(named)!r}
    async with Client.connect() as client:
        print(client.server)
asyncio.run(main())
"""
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["http://home", "http://named"]
    assert done.stderr == ""


async def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing"

    message = await load_error(missing)

    assert message.startswith(f"kubeconfig {missing} does not exist: is the path right?")


async def test_the_error_without_a_configuration_names_every_place_that_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing"
    monkeypatch.setenv("KUBECONFIG", str(missing))

    assert await load_error() == (
        f"no cluster is configured: $KUBECONFIG names no file that exists ({missing}), and this "
        f"is not a pod; put your cluster's kubeconfig into ~/.kube/config, or name its file in "
        f"$KUBECONFIG"
    )
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (await load_error()).startswith(
        f"no cluster is configured: $KUBECONFIG is not set, {tmp_path}/.kube/config does not "
        f"exist, and this is not a pod"
    )
    monkeypatch.delenv("HOME")
    assert "~/.kube/config does not exist" in await load_error()


async def test_a_path_may_begin_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_kubeconfig(tmp_path, make_kubeconfig())
    monkeypatch.setenv("HOME", str(tmp_path))

    assert await load_server(Path("~/config")) == "http://10.0.0.1"


# -- which context -----------------------------------------------------------------------------


async def test_a_context_is_chosen_by_name(tmp_path: Path) -> None:
    both = make_kubeconfig(name="one")
    for part, items in make_kubeconfig(name="two", cluster=TWO).items():
        if isinstance(items, list):
            both[part] += items
    path = write_kubeconfig(tmp_path, both)

    assert await load_server(path) == "http://10.0.0.1"
    assert await load_server(path, "two") == "http://10.0.0.2"


async def test_the_default_namespace_is_that_of_the_chosen_context(tmp_path: Path) -> None:
    content = make_kubeconfig()
    content["contexts"][0]["context"]["namespace"] = "web"
    content["contexts"].append({"name": "bare", "context": {"cluster": "main", "user": "main"}})
    path = write_kubeconfig(tmp_path, content)

    async with connect(path) as main, connect(path, "bare") as bare:
        assert (main.namespace, bare.namespace) == ("web", "")


async def test_the_first_file_that_has_a_user_wins_without_a_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubectl's rules have it: what a second file adds to the same user is not taken."""
    async with http_server(answer_authorization) as server:
        first = make_kubeconfig(cluster={"server": server}, user={"username": "me"})
        second = make_kubeconfig(user={"password": "pw", "token": CANARY})
        paths = write_kubeconfig(tmp_path, first, "a"), write_kubeconfig(tmp_path, second, "b")
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, paths)))
        async with connect() as client:
            assert await client.get_raw("/") == b"Basic bWU6"  # me and no password


async def test_without_a_current_context_one_must_be_chosen(tmp_path: Path) -> None:
    content = make_kubeconfig()
    del content["current-context"]
    path = write_kubeconfig(tmp_path, content)

    assert await load_error(path) == (
        f"{path} has no current context; it has main: see `kubectl config get-contexts "
        f"--kubeconfig={path}`"
    )
    assert await load_server(path, "main") == "http://10.0.0.1"


@pytest.mark.parametrize("part", ["cluster", "user"])
async def test_a_context_that_names_an_unknown_cluster_or_user_is_an_error(
    tmp_path: Path, part: str
) -> None:
    content = make_kubeconfig()
    content["contexts"][0]["context"][part] = "nobody"
    path = write_kubeconfig(tmp_path, content)

    assert await load_error(path) == (
        f"{path}: context 'main' names {part} 'nobody', which does not exist"
    )


async def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    async with http_server(answer_authorization) as server:
        content = make_kubeconfig(cluster={"server": server}, user={"token": CANARY})
        del content["contexts"][0]["context"]["user"]
        async with connect(write_kubeconfig(tmp_path, content)) as client:
            assert await client.get_raw("/") == b""


# -- what is wrong with a file -----------------------------------------------------------------


async def test_the_second_of_two_files_is_named_if_it_has_the_wrong_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = write_kubeconfig(tmp_path, make_kubeconfig())
    bad = tmp_path / "bad"
    bad.write_text("clusters: [x]")
    monkeypatch.setenv("KUBECONFIG", f"{good}{os.pathsep}{bad}")

    assert await load_error() == f"{bad} is not a kubeconfig: clusters[0] must be a mapping"


async def test_a_cluster_without_a_server_is_no_cluster(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"server": ""}))

    assert await load_error(path) == f"{path}: cluster 'main' has no server"
    path = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"server": "10.0.0.1"}))
    assert (await load_error(path)).startswith(f"{path}: context 'main': a server is")


async def test_the_error_for_an_incomplete_user_shows_no_secret_of_it(tmp_path: Path) -> None:
    user = {"password": CANARY, "auth-provider": {"name": "oidc", "config": {"id-token": None}}}
    client = connect(write_kubeconfig(tmp_path, make_kubeconfig(user=user)))

    with pytest.raises(ConfigurationError, match="context 'main'") as caught:
        await client.__aenter__()

    assert CANARY not in error_chain_text(caught.value)


@pytest.mark.parametrize("key", ["certificate-authority", "client-certificate", "client-key"])
async def test_data_that_is_not_base64_is_named(tmp_path: Path, key: str) -> None:
    content = make_kubeconfig(cluster={"server": "https://10.0.0.1"})
    owner = content["clusters"][0]["cluster"] if "auth" in key else content["users"][0]["user"]
    owner[f"{key}-data"] = "-----BEGIN"
    path = write_kubeconfig(tmp_path, content)

    assert await load_error(path) == (
        f"{path}: context 'main': a certificate or its key can't be used: {key}-data is not base64"
    )


async def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    cluster = {
        "server": "https://10.0.0.1",
        "certificate-authority-data": encode_base64(b"nonsense"),
    }
    path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster))

    assert "a certificate or its key can't be used" in await load_error(path)


# -- a file system that hangs ------------------------------------------------------------------


@contextmanager
def hanging(path: Path) -> Generator[Path]:
    """Create a FIFO without a writer, so that opening it blocks until the end of the test."""
    os.mkfifo(path)
    try:
        yield path
    finally:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


async def read_in_time(path: Path, seconds: float, context: str | None = None) -> str:
    """Return the error of a client with this timeout to connect."""
    timeouts = Timeouts(connect=seconds)
    with pytest.raises(ConfigurationError) as caught:
        await Client.connect(kubeconfig=path, context=context, timeouts=timeouts).__aenter__()
    return str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="makes a FIFO")
@pytest.mark.parametrize("context", [None, "prod"])
async def test_a_kubeconfig_that_can_not_be_read_within_the_timeout_to_connect_is_named(
    tmp_path: Path, context: str | None
) -> None:
    with hanging(tmp_path / "config") as path:
        message = await read_in_time(path, 0.02, context)

    where = f"{path}: context 'prod'" if context else f"{path}"
    assert message.startswith(
        f"{where}: the files were not read in 0.02 s: does the file system hang"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="makes a FIFO")
@pytest.mark.parametrize("key", ["tokenFile", "client-key"])
async def test_a_file_that_a_kubeconfig_names_is_read_with_a_timeout(
    tmp_path: Path, key: str
) -> None:
    with hanging(tmp_path / "secret") as secret:
        user = {"client-certificate": __file__, "client-key": __file__, key: str(secret)}
        path = write_kubeconfig(
            tmp_path, make_kubeconfig(cluster={"server": "https://10.0.0.1"}, user=user)
        )
        message = await read_in_time(path, 1)

    assert message.startswith(f"{path}: context 'main': the files were not read in 1 s")

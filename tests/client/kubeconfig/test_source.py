"""The choice of a server from files, contexts or a pod's mount, and the errors without one."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from aioinformer._client.client import Client
from aioinformer._client.http.request import Timeouts
from aioinformer._client.kubeconfig.kubeconfig import Kubeconfig
from aioinformer.errors import ConfigurationError
from tests.client.conftest import Certificates
from tests.client.kubeconfigs import (
    CANARY,
    NO_POD,
    encode_base64,
    error_chain_text,
    load_credentials,
    load_error,
    make_kubeconfig,
    write_kubeconfig,
)

# -- which file --------------------------------------------------------------------------------


async def test_a_path_wins_over_the_environment(tmp_path: Path) -> None:
    named = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"server": "http://named"}))
    other = write_kubeconfig(tmp_path, make_kubeconfig(), "other")

    source = Kubeconfig(named, environment={"KUBECONFIG": str(other)})

    assert str((await source.load()).server) == "http://named"


async def test_the_environment_may_list_files_of_which_some_are_missing(tmp_path: Path) -> None:
    first = write_kubeconfig(tmp_path, make_kubeconfig(name="first"), "first")
    second = write_kubeconfig(tmp_path, make_kubeconfig(name="second"), "second")
    listed = os.pathsep.join([str(tmp_path / "missing"), str(first), "", str(second)])
    source = Kubeconfig(environment={"KUBECONFIG": listed})

    assert str((await source.load()).server) == "http://10.0.0.1"
    assert str((await replace(source, context="second").load()).server) == "http://10.0.0.1"
    assert await load_error(replace(source, context="third")) == (
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
from aioinformer._client.client import Client
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

    message = await load_error(Kubeconfig(missing))

    assert message.startswith(f"kubeconfig {missing} does not exist: is the path right?")


async def test_the_error_without_a_configuration_names_every_place_that_was_searched(
    tmp_path: Path,
) -> None:
    missing, mount = tmp_path / "missing", tmp_path / "mount"
    source = Kubeconfig(environment={"KUBECONFIG": str(missing)}, mount=mount)

    assert await load_error(source) == (
        f"no cluster is configured: $KUBECONFIG names no file that exists ({missing}), and this "
        f"is not a pod; put your cluster's kubeconfig into ~/.kube/config, or name its file in "
        f"$KUBECONFIG"
    )
    at_home = replace(source, environment={"HOME": str(tmp_path)})
    assert (await load_error(at_home)).startswith(
        f"no cluster is configured: $KUBECONFIG is not set, {tmp_path}/.kube/config does not "
        f"exist, and this is not a pod"
    )
    homeless = replace(source, environment=NO_POD)
    assert "~/.kube/config does not exist" in await load_error(homeless)


async def test_a_path_may_begin_with_a_tilde(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path, make_kubeconfig())

    credentials = await Kubeconfig("~/config", environment={"HOME": str(tmp_path)}).load()

    assert str(credentials.server) == "http://10.0.0.1"


async def test_a_context_is_not_silently_ignored_in_a_pod(tmp_path: Path) -> None:
    source = Kubeconfig(None, "staging", {"KUBECONFIG": str(tmp_path / "missing")}, tmp_path)

    assert (await load_error(source)).startswith("there is no context 'staging': $KUBECONFIG names")


# -- which context -----------------------------------------------------------------------------


async def test_a_context_is_chosen_by_name(tmp_path: Path) -> None:
    both = make_kubeconfig(name="one")
    for part, items in make_kubeconfig(name="two", cluster={"server": "http://two"}).items():
        if isinstance(items, list):
            both[part] += items
    path = write_kubeconfig(tmp_path, both)

    assert str((await load_credentials(path)).server) == "http://10.0.0.1"
    assert str((await load_credentials(path, "two")).server) == "http://two"


async def test_the_default_namespace_is_that_of_the_chosen_context(tmp_path: Path) -> None:
    content = make_kubeconfig()
    content["contexts"][0]["context"]["namespace"] = "web"
    content["contexts"].append({"name": "bare", "context": {"cluster": "main", "user": "main"}})
    path = write_kubeconfig(tmp_path, content)

    assert (await load_credentials(path)).namespace == "web"
    assert (await load_credentials(path, "bare")).namespace == ""


async def test_the_first_file_that_has_a_user_wins_without_a_merge(tmp_path: Path) -> None:
    """As kubectl's rules have it: what a second file adds to the same user is not taken."""
    first = write_kubeconfig(tmp_path, make_kubeconfig(user={"username": "me"}), "a")
    second = write_kubeconfig(
        tmp_path, make_kubeconfig(user={"password": "pw", "token": CANARY}), "b"
    )
    source = Kubeconfig(environment={"KUBECONFIG": f"{first}{os.pathsep}{second}"})

    assert await (await source.load()).authorization.header() == "Basic bWU6"  # me and no password


async def test_without_a_current_context_one_must_be_chosen(tmp_path: Path) -> None:
    content = make_kubeconfig()
    del content["current-context"]
    path = write_kubeconfig(tmp_path, content)

    assert await load_error(Kubeconfig(path)) == (
        f"{path} has no current context; it has main: see `kubectl config get-contexts "
        f"--kubeconfig={path}`"
    )
    assert str((await load_credentials(path, "main")).server) == "http://10.0.0.1"


@pytest.mark.parametrize("part", ["cluster", "user"])
async def test_a_context_that_names_an_unknown_cluster_or_user_is_an_error(
    tmp_path: Path, part: str
) -> None:
    content = make_kubeconfig()
    content["contexts"][0]["context"][part] = "nobody"
    path = write_kubeconfig(tmp_path, content)

    assert await load_error(Kubeconfig(path)) == (
        f"{path}: context 'main' names {part} 'nobody', which does not exist"
    )


async def test_a_context_without_a_user_is_anonymous(
    tmp_path: Path, certificates: Certificates
) -> None:
    authority = certificates.write_authority(tmp_path)
    content = make_kubeconfig(
        cluster={"server": "https://10.0.0.1", "certificate-authority": str(authority)}
    )
    del content["contexts"][0]["context"]["user"]

    credentials = await load_credentials(write_kubeconfig(tmp_path, content))

    assert await credentials.authorization.header() == ""


# -- what is wrong with a file -----------------------------------------------------------------


async def test_the_second_of_two_files_is_named_if_it_has_the_wrong_form(tmp_path: Path) -> None:
    good = write_kubeconfig(tmp_path, make_kubeconfig())
    bad = tmp_path / "bad"
    bad.write_text("clusters: [x]")

    said = await load_error(Kubeconfig(environment={"KUBECONFIG": f"{good}{os.pathsep}{bad}"}))

    assert said == f"{bad} is not a kubeconfig: clusters[0] must be a mapping"


async def test_a_cluster_without_a_server_is_no_cluster(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"server": ""}))

    assert await load_error(Kubeconfig(path)) == f"{path}: cluster 'main' has no server"
    path = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"server": "10.0.0.1"}))
    assert (await load_error(Kubeconfig(path))).startswith(f"{path}: context 'main': a server is")


async def test_the_error_for_an_incomplete_user_shows_no_secret_of_it(tmp_path: Path) -> None:
    user = {"password": CANARY, "auth-provider": {"name": "oidc", "config": {"id-token": None}}}
    source = Kubeconfig(write_kubeconfig(tmp_path, make_kubeconfig(user=user)))

    with pytest.raises(ConfigurationError, match="context 'main'") as caught:
        await source.load()

    assert CANARY not in error_chain_text(caught.value)


@pytest.mark.parametrize("key", ["certificate-authority", "client-certificate", "client-key"])
async def test_data_that_is_not_base64_is_named(tmp_path: Path, key: str) -> None:
    content = make_kubeconfig(cluster={"server": "https://10.0.0.1"})
    owner = content["clusters"][0]["cluster"] if "auth" in key else content["users"][0]["user"]
    owner[f"{key}-data"] = "-----BEGIN"
    path = write_kubeconfig(tmp_path, content)

    assert await load_error(Kubeconfig(path)) == (
        f"{path}: context 'main': a certificate or its key can't be used: {key}-data is not base64"
    )


async def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    cluster = {
        "server": "https://10.0.0.1",
        "certificate-authority-data": encode_base64(b"nonsense"),
    }
    path = write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster))

    assert "a certificate or its key can't be used" in await load_error(Kubeconfig(path))


# -- a pod -------------------------------------------------------------------------------------


def mounted(folder: Path, certificates: Certificates, token: str = f"{CANARY}\n") -> Kubeconfig:
    certificates.write_authority(folder)
    (folder / "token").write_text(token)
    environment = {
        "KUBECONFIG": str(folder / "missing"),
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    return Kubeconfig(environment=environment, mount=folder)


async def test_a_pod_uses_its_service_account(tmp_path: Path, certificates: Certificates) -> None:
    credentials = await mounted(tmp_path, certificates).load()

    assert str(credentials.server) == "https://[fd00::1]"
    assert credentials.namespace == ""
    assert await credentials.authorization.header() == f"Bearer {CANARY}"
    assert credentials.tls is not None


async def test_a_pod_without_the_clusters_certificate_trusts_the_authorities_of_the_system(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    source = mounted(tmp_path, certificates)
    (tmp_path / "ca.crt").unlink()

    tls = (await source.load()).tls

    assert tls is not None
    context = await tls.context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert caplog.messages == [
        f"{tmp_path}/ca.crt does not exist: the server's certificate is checked against the "
        "system's trusted authorities"
    ]
    certificates.write_authority(tmp_path)
    trusted = await tls.context(failed=context)
    assert len(trusted.get_ca_certs()) == 1
    (tmp_path / "ca.crt").unlink()
    assert await tls.context(failed=trusted) is trusted


async def test_a_pod_has_the_proxy_of_its_environment(
    tmp_path: Path, certificates: Certificates
) -> None:
    source = mounted(tmp_path, certificates)
    environment = {**source.environment, "HTTPS_PROXY": "http://proxy.example:3128"}

    proxy = (await replace(source, environment=environment).load()).proxy
    assert proxy is not None
    assert str(proxy.url) == "http://proxy.example:3128"
    environment["NO_PROXY"] = "fd00::/8"
    assert (await replace(source, environment=environment).load()).proxy is None


async def test_no_repr_of_the_service_account_shows_a_secret(
    tmp_path: Path, certificates: Certificates
) -> None:
    source = mounted(tmp_path, certificates)
    credentials = await source.load()
    await credentials.authorization.header()

    environment = {"SECRET": CANARY}
    shown = f"{source!r} {credentials!r} {credentials.authorization!r}"
    assert CANARY not in shown + repr(replace(source, environment=environment))


# -- a file system that hangs ------------------------------------------------------------------


@contextmanager
def hanging(path: Path) -> Generator[Path]:
    """Create a FIFO without a writer, so that opening it blocks until the end of the test."""
    os.mkfifo(path)
    try:
        yield path
    finally:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


@pytest.mark.skipif(sys.platform == "win32", reason="makes a FIFO")
@pytest.mark.parametrize("context", [None, "prod"])
async def test_a_kubeconfig_that_can_not_be_read_in_time_is_named(
    tmp_path: Path, context: str | None
) -> None:
    with hanging(tmp_path / "config") as path:
        message = await load_error(Kubeconfig(path, context, environment=NO_POD, timeout=0.02))

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
        message = await load_error(Kubeconfig(path, environment=NO_POD, timeout=1))

    assert message.startswith(f"{path}: context 'main': the files were not read in 1 s")


@pytest.mark.skipif(sys.platform == "win32", reason="makes a FIFO")
async def test_the_connect_timeout_of_a_client_limits_the_reading_of_the_kubeconfig(
    tmp_path: Path,
) -> None:
    with hanging(tmp_path / "config") as path:
        client = Client.connect(kubeconfig=path, timeouts=Timeouts(connect=0.02))
        with pytest.raises(ConfigurationError, match=r"not read in 0\.02 s"):
            await client.__aenter__()

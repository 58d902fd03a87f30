"""The credentials of a pod's service account."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from aioinformer import Client, Timeouts
from aioinformer._client.kubeconfig.in_cluster import InClusterConfig, MountedAuthority
from aioinformer._client.kubeconfig.kubeconfig import Kubeconfig
from aioinformer.errors import ConfigurationError, ConnectionFailed, Unauthorized
from tests.client.accelerated_time import in_accelerated_time
from tests.client.auth_servers import AuthenticatingServer, replace_certificate
from tests.client.conftest import Certificates
from tests.client.kubeconfig.kubectl_cases import CASES, Case
from tests.client.kubeconfig.kubectl_cases import POD as SERVICE_ACCOUNT
from tests.client.kubeconfigs import CANARY, error_chain_text, write_kubeconfig
from tests.client.servers import http_server
from tests.client.transports import PODS, error_texts, read, read_error, watching

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
TRIED = "nothing is at ~/.kube/config"


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    """Return the mounted files of a service account."""
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "ca.crt").write_bytes(trustme.CA().cert_pem.bytes())
    (tmp_path / "namespace").write_text("web\n")
    return tmp_path


def error_of(mount: Path, environment: Mapping[str, str]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        InClusterConfig(mount, environment).read_credentials(TRIED)
    return error_chain_text(caught.value)


def test_the_endpoint_the_namespace_and_the_origin_are_those_of_the_pod(mount: Path) -> None:
    found = InClusterConfig(mount, POD).read_credentials(TRIED)

    assert str(found.server).rstrip("/") == "https://10.0.0.1"
    assert (found.namespace, found.origin) == ("web", str(mount))


def test_the_namespace_of_the_downward_api_precedes_the_mounted_one(mount: Path) -> None:
    given = InClusterConfig(mount, POD | {"POD_NAMESPACE": "shop"}).read_credentials(TRIED)
    (mount / "namespace").unlink()
    missing = InClusterConfig(mount, POD).read_credentials(TRIED)

    assert (given.namespace, missing.namespace) == ("shop", "")


def test_the_error_outside_of_a_pod_says_where_to_put_a_kubeconfig(tmp_path: Path) -> None:
    text = error_of(tmp_path, {})

    assert text.startswith(f"no cluster is configured: {TRIED}, and this is not a pod; put your")
    assert "KUBERNETES_SERVICE" not in text


@pytest.mark.parametrize("name", POD)
def test_the_error_of_a_pod_without_its_endpoint_says_what_is_missing(
    mount: Path, name: str
) -> None:
    assert "Service host/port is not set; is the service account mounted?" in error_of(
        mount, POD | {name: ""}
    )


def test_the_error_of_an_unusable_token_says_what_is_wrong_and_not_what_the_file_holds(
    mount: Path,
) -> None:
    token = mount / "token"
    token.write_bytes(b"hunter2 \xff")
    damaged = error_of(mount, POD)
    token.write_text(" \n")
    empty = error_of(mount, POD)
    token.unlink()
    missing = error_of(mount, POD)

    assert "the token is not text" in damaged
    assert "hunter2" not in damaged
    assert "Service token file is empty" in empty
    assert "Service token file does not exist" in missing


def test_the_environment_which_may_hold_secrets_is_not_shown(mount: Path) -> None:
    assert "hunter2" not in repr(InClusterConfig(mount, POD | {"PASSWORD": "hunter2"}))


def test_a_missing_authority_means_those_of_the_system_and_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = MountedAuthority(tmp_path / "ca.crt")

    first, second = authority.read_material(), authority.read_material()

    assert first == second
    (message,) = caplog.messages
    assert message.startswith(f"{tmp_path / 'ca.crt'} does not exist: the server's certificate is")


async def load_error(source: Kubeconfig) -> str:
    with pytest.raises(ConfigurationError) as caught:
        await source.load()
    return str(caught.value)


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


async def test_a_context_is_not_silently_ignored_in_a_pod(tmp_path: Path) -> None:
    source = Kubeconfig(None, "staging", {"KUBECONFIG": str(tmp_path / "missing")}, tmp_path)

    assert (await load_error(source)).startswith("there is no context 'staging': $KUBECONFIG names")


@asynccontextmanager
async def client_in_a_pod(
    folder: Path, certificates: Certificates
) -> AsyncGenerator[tuple[AuthenticatingServer, ssl.SSLContext, Client]]:
    """Run a server that accepts the token of a pod, and a client in the pod."""
    guard, tls = AuthenticatingServer("Bearer one"), certificates.server_context()
    certificates.write_authority(folder)
    (folder / "token").write_text("one\n")
    async with http_server(guard.handle, tls=tls) as server:
        address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1"}
        address["KUBERNETES_SERVICE_PORT"] = server.rpartition(":")[2]
        environment = {"KUBECONFIG": str(folder / "missing"), **address}
        source = Kubeconfig(environment=environment, mount=folder)
        async with Client.of(source, timeouts=Timeouts(connect=1000, read=1000)) as client:
            yield guard, tls, client


@in_accelerated_time
async def test_the_token_of_a_pod_is_read_again_when_it_was_rejected(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with client_in_a_pod(tmp_path, certificates) as (guard, _, client):
        assert await read(client) == b"Bearer one"
        guard.accepted = {"Bearer two"}
        (tmp_path / "token").write_text("two\n")
        assert await read(client) == b"Bearer two"
        guard.accepted = {f"Bearer {CANARY}"}
        error = await read_error(client)
        assert type(error) is Unauthorized
        (tmp_path / "token").write_text(f"{CANARY}\n")
        assert await client.lister_watcher(PODS).wait_for_credentials(600)
        assert await read(client) == f"Bearer {CANARY}".encode()
        shown = [*error_texts(error), repr(client), caplog.text]
    assert guard.identities[:3] == ["Bearer one", "Bearer one", "Bearer two"]
    assert not any(CANARY in text for text in shown)


async def test_an_authority_of_a_pod_that_was_replaced_is_trusted_by_the_request_that_failed(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with (
        client_in_a_pod(tmp_path, certificates) as (guard, tls, client),
        watching(client) as body,
    ):
        assert await anext(body) == b"one"
        other = trustme.CA()
        replace_certificate(tls, other.issue_cert("127.0.0.1"))
        assert type(await read_error(client)) is ConnectionFailed
        (tmp_path / "ca.crt").write_bytes(other.cert_pem.bytes())
        assert await read(client) == b"Bearer one"
        guard.continue_watches.set()
        assert [chunk async for chunk in body] == [b"two"]


# -- files in a pod ------------------------------------------------------------------------------


@pytest.fixture
def pod(tmp_path: Path) -> Kubeconfig:
    """Return a source in a pod whose ``$KUBECONFIG`` names a file."""
    (tmp_path / "token").write_text("pod")
    return Kubeconfig(environment={"KUBECONFIG": str(tmp_path / "config"), **POD}, mount=tmp_path)


@pytest.mark.parametrize(
    "case", [each for each in CASES if (each.ours or each.kubectl) == SERVICE_ACCOUNT], ids=str
)
async def test_files_that_choose_no_cluster_for_kubectl_leave_the_service_account(
    tmp_path: Path, pod: Kubeconfig, case: Case
) -> None:
    environment = {**pod.environment, "KUBECONFIG": case.write(tmp_path)}
    credentials = await replace(pod, environment=environment).load()

    assert await credentials.authorization.header() == "Bearer pod"


async def test_files_without_a_cluster_do_not_hide_the_service_account_and_this_is_logged(
    tmp_path: Path, pod: Kubeconfig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = write_kubeconfig(tmp_path, "")

    credentials = await pod.load()

    assert await credentials.authorization.header() == "Bearer pod"
    assert f"{path}: no cluster is chosen, a pod's service account is used" in caplog.messages


@pytest.mark.parametrize("device", [os.devnull, ""])
async def test_a_device_or_no_file_is_no_kubeconfig(
    tmp_path: Path, pod: Kubeconfig, device: str
) -> None:
    environment = {**pod.environment, "KUBECONFIG": device, "HOME": str(tmp_path)}
    source = Kubeconfig(environment=environment, mount=pod.mount)

    assert await (await source.load()).authorization.header() == "Bearer pod"


async def test_a_file_or_context_that_the_program_names_is_not_replaced_by_the_service_account(
    tmp_path: Path, pod: Kubeconfig
) -> None:
    path = write_kubeconfig(tmp_path, "")
    named = Kubeconfig(path, environment=pod.environment, mount=pod.mount)
    chosen = Kubeconfig(context="main", environment=pod.environment, mount=pod.mount)
    text = "is empty: it has no clusters, contexts or users; put the cluster's kubeconfig there"

    assert await load_error(named) == await load_error(chosen) == f"{path} {text}"


async def test_a_service_account_that_may_not_be_read_is_named(forbidden: Path) -> None:
    source = Kubeconfig(environment={"HOME": "/missing", **POD}, mount=forbidden)

    assert f"{forbidden}/token: Permission denied" in await load_error(source)

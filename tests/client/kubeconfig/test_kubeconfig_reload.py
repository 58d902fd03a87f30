"""Kubeconfigs that are rewritten while a client uses them, and the input of their plugins."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aioinformer.errors import FetchError, Unauthorized
from tests.client.auth_servers import AuthenticatingServer
from tests.client.conftest import Certificates
from tests.client.fake_exec_plugin import FakePlugin, in_seconds
from tests.client.kubeconfigs import (
    CANARY,
    answer_authorization,
    connect,
    encode_base64,
    error_chain_text,
    load_error,
    load_header,
    make_kubeconfig,
    write_kubeconfig,
)
from tests.client.servers import http_server

# -- read again --------------------------------------------------------------------------------


async def refused(folder: Path, *, user: Any, after: Any = None, **changes: Any) -> str:
    """Return the error after the file was rewritten, or removed, and the user was rejected."""
    async with http_server(AuthenticatingServer().handle) as server:
        here = {"server": server}
        path = write_kubeconfig(folder, make_kubeconfig(cluster=here, user=user))
        async with connect(path) as client:
            path.unlink()
            if after or changes:
                rewritten: dict[str, Any] = {"cluster": here, "user": after, **changes}
                write_kubeconfig(folder, make_kubeconfig(**rewritten))
            with pytest.raises(FetchError) as caught:
                await client.get_raw("/")
    assert caught.value.phase == "credentials"
    assert CANARY not in error_chain_text(caught.value)
    return str(caught.value)


async def test_a_token_is_never_sent_to_another_server(tmp_path: Path) -> None:
    text = await refused(
        tmp_path,
        user={"token": CANARY},
        after={"token": "other"},
        cluster={"server": "http://10.9.9.9"},
    )

    assert text == (
        f"{tmp_path}/config: context 'main': names another server than when it was first read"
    )


async def test_a_switched_context_does_not_move_a_client(tmp_path: Path) -> None:
    guard = AuthenticatingServer()
    async with http_server(guard.handle) as server:
        here = {"server": server}
        both = make_kubeconfig(cluster=here, user={"token": "one"})
        for part, items in make_kubeconfig(cluster=here, name="two", user={"token": "2"}).items():
            if isinstance(items, list):
                both[part] += items
        async with connect(write_kubeconfig(tmp_path, both)) as client:
            write_kubeconfig(tmp_path, {**both, "current-context": "two"})
            with pytest.raises(Unauthorized):
                await client.get_raw("/")
    assert guard.identities == ["Bearer one"]


async def test_a_context_that_was_removed_is_an_error(tmp_path: Path) -> None:
    text = await refused(tmp_path, user={"token": CANARY}, name="other")

    assert text.startswith(f"{tmp_path}/config has no context 'main'; it has other: see ")


async def test_the_error_for_an_expired_id_token_states_that_it_is_not_renewed(
    tmp_path: Path,
) -> None:
    def user(expires: int) -> dict[str, Any]:
        claims = encode_base64(f'{{"exp": {expires}}}'.encode()).rstrip("=")
        config = {"id-token": f"head.{claims}.{CANARY}"}
        return {"auth-provider": {"name": "oidc", "config": config}}

    text = await refused(tmp_path, user=user(2**32), after=user(1_700_000_000))

    assert "its id-token expired at 2023-11-14 22:13:20 UTC and is not renewed here" in text


async def test_a_removed_kubeconfig_is_named(tmp_path: Path) -> None:
    text = await refused(tmp_path, user={"token": CANARY})

    assert text.endswith("config: No such file or directory")


# -- what kubectl doesn't take, or takes otherwise ---------------------------------------------


@pytest.mark.parametrize("name", ["gcp", "azure"])
async def test_removed_auth_providers_are_an_error(tmp_path: Path, name: str) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(user={"auth-provider": {"name": name}}))

    assert await load_error(path) == (
        f"{path}: context 'main': Kubernetes 1.26 removed the auth-provider {name!r}; use the "
        f"exec plugin of your cloud"
    )


async def test_the_error_for_an_oidc_provider_without_a_token_names_the_id_token(
    tmp_path: Path,
) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(user={"auth-provider": {"name": "oidc"}}))

    assert (await load_error(path)).endswith("its oidc auth-provider has no id-token")


async def test_a_token_takes_precedence_over_a_plugin(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)

    assert await load_header(tmp_path, {"token": "word", **fake.user()}) == "Bearer word"
    assert fake.runs == 0


async def test_a_certificate_without_a_key_is_an_error(tmp_path: Path) -> None:
    content = make_kubeconfig(
        cluster={"server": "https://10.0.0.1"},
        user={"client-certificate-data": encode_base64(b"x")},
    )

    assert (await load_error(write_kubeconfig(tmp_path, content))).endswith(
        "client-certificate and client-key must both be set"
    )


# -- plugins -----------------------------------------------------------------------------------


async def test_a_plugin_gets_the_cluster_in_the_form_of_kubectl(
    tmp_path: Path, certificates: Certificates
) -> None:
    certificates.write_authority(tmp_path)
    fake = FakePlugin(tmp_path)
    fake.set_status(token="abc")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {
        "server": "https://10.0.0.1",
        "certificate-authority": "ca.crt",
        "tls-server-name": "kubernetes.example",
        "extensions": [extension],
    }
    user = fake.user(provideClusterInfo=True)

    async with connect(write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster, user=user))):
        pass

    assert fake.last_exec_info["spec"]["cluster"] == {
        "server": "https://10.0.0.1",
        "tls-server-name": "kubernetes.example",
        "certificate-authority-data": encode_base64(certificates.authority_pem),
        "config": {"audience": "x"},
    }


async def test_a_plugin_is_run_once_for_all_requests_until_its_token_expires(
    tmp_path: Path,
) -> None:
    fake = FakePlugin(tmp_path)
    fake.set_status(token="one", expirationTimestamp=in_seconds(0.5))
    async with http_server(answer_authorization) as server:
        content = make_kubeconfig(cluster={"server": server}, user=fake.user())
        async with connect(write_kubeconfig(tmp_path, content)) as client:
            fake.set_status(token="two")
            await asyncio.sleep(0.6)

            headers = await asyncio.gather(*(client.get_raw("/") for _ in range(10)))

    assert headers == [b"Bearer two"] * 10
    assert fake.runs == 2


async def test_a_load_that_is_cancelled_kills_its_plugin(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script("exec sleep 60")
    path = write_kubeconfig(tmp_path, make_kubeconfig(user=fake.user()))
    loading = asyncio.create_task(connect(path).__aenter__())
    while not fake.runs:  # noqa: ASYNC110  # a program has no event
        await asyncio.sleep(0.001)

    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading  # a process left behind would fail the test


async def test_a_plugin_that_fails_at_the_first_load_is_a_configuration_error(
    tmp_path: Path,
) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script("echo not logged in >&2; exit 1")
    path = write_kubeconfig(tmp_path, make_kubeconfig(user=fake.user()))

    assert (await load_error(path)).endswith("failed with code 1: not logged in")

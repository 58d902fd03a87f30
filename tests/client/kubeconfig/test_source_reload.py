"""Kubeconfigs that are rewritten while a client uses them, and the input of their plugins."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aioinformer._client.kubeconfig.kubeconfig import Kubeconfig
from aioinformer.errors import ConfigurationError, FetchError
from tests.client.conftest import Certificates
from tests.client.fake_exec_plugin import FakePlugin, in_seconds
from tests.client.kubeconfigs import (
    CANARY,
    encode_base64,
    error_chain_text,
    load_credentials,
    load_error,
    make_kubeconfig,
    write_kubeconfig,
)

# -- read again --------------------------------------------------------------------------------


async def refused(folder: Path, *, before: Any, after: Any) -> str:
    """Return the error after a token was rejected and the file was rewritten."""
    credentials = await load_credentials(write_kubeconfig(folder, before))
    header = await credentials.authorization.header()
    write_kubeconfig(folder, after)
    with pytest.raises(FetchError) as caught:
        await credentials.authorization.header(rejected=header)
    assert caught.value.phase == "credentials"
    assert CANARY not in error_chain_text(caught.value)
    return str(caught.value)


async def test_a_token_is_never_sent_to_another_server(tmp_path: Path) -> None:
    text = await refused(
        tmp_path,
        before=make_kubeconfig(user={"token": CANARY}),
        after=make_kubeconfig(cluster={"server": "http://10.9.9.9"}, user={"token": "other"}),
    )

    assert text == (
        f"{tmp_path}/config: context 'main': names another server than when it was first read"
    )


async def test_a_switched_context_does_not_move_a_client(tmp_path: Path) -> None:
    both = make_kubeconfig(user={"token": "one"})
    for part, items in make_kubeconfig(name="two", user={"token": "two"}).items():
        if isinstance(items, list):
            both[part] += items
    credentials = await load_credentials(write_kubeconfig(tmp_path, both))
    write_kubeconfig(tmp_path, {**both, "current-context": "two"})

    assert await credentials.authorization.header(rejected="Bearer one") == "Bearer one"


async def test_a_context_that_was_removed_is_an_error(tmp_path: Path) -> None:
    text = await refused(
        tmp_path,
        before=make_kubeconfig(user={"token": CANARY}),
        after=make_kubeconfig(name="other"),
    )

    assert text.startswith(f"{tmp_path}/config has no context 'main'; it has other: see ")


async def test_the_error_for_an_expired_id_token_states_that_it_is_not_renewed(
    tmp_path: Path,
) -> None:
    def user(expires: int) -> dict[str, Any]:
        claims = encode_base64(f'{{"exp": {expires}}}'.encode()).rstrip("=")
        config = {"id-token": f"head.{claims}.{CANARY}"}
        return {"auth-provider": {"name": "oidc", "config": config}}

    text = await refused(
        tmp_path,
        before=make_kubeconfig(user=user(2**32)),
        after=make_kubeconfig(user=user(1_700_000_000)),
    )

    assert "its id-token expired at 2023-11-14 22:13:20 UTC and is not renewed here" in text


async def test_a_removed_kubeconfig_is_named(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(user={"token": CANARY}))
    credentials = await load_credentials(path)
    path.rename(tmp_path / "elsewhere")

    with pytest.raises(FetchError, match=r"config: No such file or directory$"):
        await credentials.authorization.header(rejected=f"Bearer {CANARY}")


# -- what kubectl doesn't take, or takes otherwise ---------------------------------------------


@pytest.mark.parametrize("name", ["gcp", "azure"])
async def test_removed_auth_providers_are_an_error(tmp_path: Path, name: str) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(user={"auth-provider": {"name": name}}))

    assert await load_error(Kubeconfig(path)) == (
        f"{path}: context 'main': Kubernetes 1.26 removed the auth-provider {name!r}; use the "
        f"exec plugin of your cloud"
    )


async def test_the_error_for_an_oidc_provider_without_a_token_names_the_id_token(
    tmp_path: Path,
) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(user={"auth-provider": {"name": "oidc"}}))

    assert (await load_error(Kubeconfig(path))).endswith("its oidc auth-provider has no id-token")


async def test_a_token_takes_precedence_over_a_plugin(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    path = write_kubeconfig(tmp_path, make_kubeconfig(user={"token": "word", **fake.user()}))

    assert await (await load_credentials(path)).authorization.header() == "Bearer word"
    assert fake.runs == 0


async def test_a_certificate_without_a_key_is_an_error(tmp_path: Path) -> None:
    content = make_kubeconfig(
        cluster={"server": "https://10.0.0.1"},
        user={"client-certificate-data": encode_base64(b"x")},
    )

    assert (await load_error(Kubeconfig(write_kubeconfig(tmp_path, content)))).endswith(
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

    await load_credentials(write_kubeconfig(tmp_path, make_kubeconfig(cluster=cluster, user=user)))

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
    credentials = await load_credentials(
        write_kubeconfig(tmp_path, make_kubeconfig(user=fake.user()))
    )
    fake.set_status(token="two")
    await asyncio.sleep(0.6)

    headers = await asyncio.gather(*(credentials.authorization.header() for _ in range(10)))

    assert headers == ["Bearer two"] * 10
    assert fake.runs == 2


async def test_a_load_that_is_cancelled_kills_its_plugin(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    fake.write_script("exec sleep 60")
    loading = asyncio.create_task(
        load_credentials(write_kubeconfig(tmp_path, make_kubeconfig(user=fake.user())))
    )
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

    with pytest.raises(ConfigurationError, match=r"failed with code 1: not logged in$"):
        await load_credentials(write_kubeconfig(tmp_path, make_kubeconfig(user=fake.user())))

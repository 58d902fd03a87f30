"""Kubeconfigs that are rewritten while a client uses them, and what plugins are told of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aioinformer._client.kubeconfig.source import Kubeconfig
from aioinformer.errors import ConfigurationError, FetchError
from tests.client.conftest import Certificates
from tests.client.kubeconfigs import (
    CANARY,
    chain_of_errors,
    document,
    encoded,
    load,
    refusal,
    written,
)
from tests.client.plugins import FakePlugin, in_seconds

# -- read again --------------------------------------------------------------------------------


async def refused(folder: Path, *, before: Any, after: Any) -> str:
    """What is said when a token was refused and the file has been rewritten."""
    credentials = await load(written(folder, before))
    header = await credentials.authorization.header()
    written(folder, after)
    with pytest.raises(FetchError) as caught:
        await credentials.authorization.header(refused=header)
    assert caught.value.phase == "credentials"
    assert CANARY not in chain_of_errors(caught.value)
    return str(caught.value)


async def test_a_token_is_never_sent_to_another_server(tmp_path: Path) -> None:
    said = await refused(
        tmp_path,
        before=document(user={"token": CANARY}),
        after=document(cluster={"server": "http://10.9.9.9"}, user={"token": "other"}),
    )

    assert said == (
        f"{tmp_path}/config: context 'main': names another server than when it was first read"
    )


async def test_a_switched_context_does_not_move_a_client(tmp_path: Path) -> None:
    both = document(user={"token": "one"})
    for part, items in document(name="two", user={"token": "two"}).items():
        if isinstance(items, list):
            both[part] += items
    credentials = await load(written(tmp_path, both))
    written(tmp_path, {**both, "current-context": "two"})

    assert await credentials.authorization.header(refused="Bearer one") == "Bearer one"


async def test_a_context_that_was_removed_is_missed(tmp_path: Path) -> None:
    said = await refused(
        tmp_path, before=document(user={"token": CANARY}), after=document(name="other")
    )

    assert said.startswith(f"{tmp_path}/config has no context 'main'; it has other: see ")


async def test_an_id_token_that_has_expired_meanwhile_says_what_to_do(tmp_path: Path) -> None:
    def user(expires: int) -> dict[str, Any]:
        claims = encoded(f'{{"exp": {expires}}}'.encode()).rstrip("=")
        config = {"id-token": f"head.{claims}.{CANARY}"}
        return {"auth-provider": {"name": "oidc", "config": config}}

    said = await refused(
        tmp_path, before=document(user=user(2**32)), after=document(user=user(1_700_000_000))
    )

    assert "its id-token expired at 2023-11-14 22:13:20 UTC and is not renewed here" in said


@pytest.mark.parametrize(
    "user",
    [
        [CANARY],
        {"exec": CANARY},
        {"exec": {"command": [CANARY]}},
        {"auth-provider": CANARY},
        {"client-certificate": {CANARY: 1}},
        {"token": {CANARY: 1}},
    ],
    ids=["a list", "exec", "command", "provider", "certificate", "token"],
)
async def test_a_user_that_is_no_user_is_a_wrong_configuration(tmp_path: Path, user: Any) -> None:
    content = document(cluster={"server": "https://10.0.0.1"})
    content["users"][0]["user"] = user

    with pytest.raises(ConfigurationError, match="context 'main'") as caught:
        await load(written(tmp_path, content))

    assert CANARY not in chain_of_errors(caught.value)


async def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, document(user={"token": CANARY}))
    credentials = await load(path)
    path.rename(tmp_path / "elsewhere")

    with pytest.raises(FetchError, match=r"config: No such file or directory$"):
        await credentials.authorization.header(refused=f"Bearer {CANARY}")


# -- what kubectl doesn't take, or takes otherwise ---------------------------------------------


@pytest.mark.parametrize("name", ["gcp", "azure"])
async def test_auth_providers_that_kubernetes_removed_are_not_taken_for_anonymous(
    tmp_path: Path, name: str
) -> None:
    path = written(tmp_path, document(user={"auth-provider": {"name": name}}))

    assert await refusal(Kubeconfig(path)) == (
        f"{path}: context 'main': the auth-provider {name!r} was removed from Kubernetes in 1.26; "
        f"use the exec plugin of your cloud"
    )


async def test_an_oidc_provider_without_a_token_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, document(user={"auth-provider": {"name": "oidc"}}))

    assert (await refusal(Kubeconfig(path))).endswith("its oidc auth-provider has no id-token")


async def test_a_token_file_goes_before_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("file")
    path = written(tmp_path, document(user={"token": "word", "tokenFile": "token"}))

    assert await (await load(path)).authorization.header() == "Bearer file"


async def test_a_token_goes_before_a_plugin(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    path = written(tmp_path, document(user={"token": "word", **fake.user()}))

    assert await (await load(path)).authorization.header() == "Bearer word"
    assert fake.runs == 0


async def test_a_certificate_without_a_key_is_refused(tmp_path: Path) -> None:
    content = document(
        cluster={"server": "https://10.0.0.1"}, user={"client-certificate-data": encoded(b"x")}
    )

    assert (await refusal(Kubeconfig(written(tmp_path, content)))).endswith(
        "client-certificate and client-key are not there both"
    )


# -- plugins -----------------------------------------------------------------------------------


async def test_a_plugin_is_told_of_the_cluster_as_kubectl_tells_it(
    tmp_path: Path, certificates: Certificates
) -> None:
    certificates.write_authority(tmp_path)
    fake = FakePlugin(tmp_path)
    fake.yields(token="abc")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {
        "server": "https://10.0.0.1",
        "certificate-authority": "ca.crt",
        "tls-server-name": "kubernetes.example",
        "extensions": [extension],
    }
    user = fake.user(provideClusterInfo=True)

    await load(written(tmp_path, document(cluster=cluster, user=user)))

    assert fake.told["spec"]["cluster"] == {
        "server": "https://10.0.0.1",
        "tls-server-name": "kubernetes.example",
        "certificate-authority-data": encoded(certificates.authority_pem),
        "config": {"audience": "x"},
    }


async def test_a_plugin_is_run_once_for_all_requests_until_what_it_yielded_ends(
    tmp_path: Path,
) -> None:
    fake = FakePlugin(tmp_path)
    fake.yields(token="one", expirationTimestamp=in_seconds(0.05))
    credentials = await load(written(tmp_path, document(user=fake.user())))
    fake.yields(token="two")
    await asyncio.sleep(0.06)

    headers = await asyncio.gather(*(credentials.authorization.header() for _ in range(10)))

    assert headers == ["Bearer two"] * 10
    assert fake.runs == 2


async def test_a_load_that_is_cancelled_kills_its_plugin(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    fake.script("exec sleep 60")
    loading = asyncio.create_task(load(written(tmp_path, document(user=fake.user()))))
    while not fake.runs:  # noqa: ASYNC110  # a program has no event
        await asyncio.sleep(0.001)

    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading  # a process left behind would fail the test


async def test_a_plugin_that_fails_at_first_is_a_wrong_configuration(tmp_path: Path) -> None:
    fake = FakePlugin(tmp_path)
    fake.script("echo not logged in >&2; exit 1")

    with pytest.raises(ConfigurationError, match=r"failed with code 1: not logged in$"):
        await load(written(tmp_path, document(user=fake.user())))

"""The library's errors for common mistakes: a typed exception with a helpful message."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from aioinformer import Client, LabelSelector, ListRequest, Timeouts
from aioinformer.errors import (
    Forbidden,
    InformerError,
    InvalidSelector,
    RequestTimedOut,
)
from tests.client.conftest import Certificates
from tests.client.failure_setups import CANARY, FailureContext, FailureSetup
from tests.client.kubeconfigs import load_error
from tests.client.servers import http_server, tcp_server
from tests.client.transports import error_texts, wait_closed
from tests.client.user_errors import USER_ERRORS, UserError

ANY = USER_ERRORS[0]


async def listing(
    mistake: UserError, situation: FailureContext, timeouts: Timeouts | None = None
) -> None:
    """List, as a program would."""
    file, context = situation.file, mistake.context
    async with Client.connect(kubeconfig=file, context=context, timeouts=timeouts) as client:
        resource = await client.resource(mistake.resource)
        reader = client.lister_watcher(resource, namespace="web", fields=mistake.fields)
        async with reader.list(ListRequest()):
            pytest.fail("it works")


@pytest.mark.parametrize("mistake", USER_ERRORS, ids=str)
async def test_a_beginners_mistake_is_explained(
    mistake: UserError, tmp_path: Path, certificates: Certificates
) -> None:
    async with mistake.setup(FailureSetup(tmp_path, certificates)) as situation:
        with pytest.raises(InformerError) as caught:
            await listing(mistake, situation)

    error = caught.value
    assert str(error) == mistake.expected_text(situation)
    assert type(error) is mistake.error
    assert not any(CANARY in text for text in error_texts(error))


async def test_a_host_that_does_not_answer_is_explained(
    tmp_path: Path, certificates: Certificates
) -> None:
    """A firewall that drops packets looks like a handshake that never goes on."""
    async with tcp_server(silent) as address:
        file = FailureSetup(tmp_path, certificates).kubeconfig(f"https://{address}")
        with pytest.raises(RequestTimedOut) as caught:
            await listing(ANY, FailureContext(file), Timeouts(connect=1.0))

    assert str(caught.value) == (
        f"{address}: no connection in the time allowed; is the host up, and does a firewall, or a "
        f"VPN that is off, keep this machine from it? ({file}: context 'main')"
    )


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await wait_closed(reader)


async def test_no_kubeconfig_at_all_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert await load_error() == (
        f"no cluster is configured: $KUBECONFIG is not set, {tmp_path}/.kube/config does not "
        "exist, and this is not a pod; put your cluster's kubeconfig into ~/.kube/config, or name "
        "its file in $KUBECONFIG"
    )


async def test_a_context_without_any_kubeconfig_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert await load_error(context="mars") == (
        f"there is no context 'mars': $KUBECONFIG is not set, {tmp_path}/.kube/config does not "
        "exist; put your cluster's kubeconfig into ~/.kube/config, or name its file in $KUBECONFIG"
    )


def test_a_selector_with_a_mistake_is_explained() -> None:
    with pytest.raises(InvalidSelector) as caught:
        LabelSelector.parse("app in (shop")
    assert str(caught.value).splitlines() == [
        "unable to parse requirement: found '', expected: ',' or ')'",
        "    app in (shop",
        "                ^ at the end",
    ]


async def test_a_403_without_a_hint_names_the_configuration(
    tmp_path: Path, certificates: Certificates
) -> None:
    async def refuse(request: web.Request) -> web.Response:
        body = {"kind": "Status", "code": 403, "message": "not by this proxy"}  # no reason
        return web.json_response(body, status=403)

    async with http_server(refuse) as url:
        path = FailureSetup(tmp_path, certificates).kubeconfig(url)
        async with Client.connect(kubeconfig=path) as client:
            with pytest.raises(Forbidden) as caught:
                await client.get_raw("/api/v1/pods")
    assert str(caught.value).endswith(f"403: not by this proxy; ({path}: context 'main')")

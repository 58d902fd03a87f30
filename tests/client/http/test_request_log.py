"""The log of requests at level DEBUG."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pytest

from aioinformer import Client, SharedInformerFactory
from aioinformer.errors import ConnectionFailed, NotFound
from aioinformer.testing import ApiServer, Cluster
from tests.client.kubeconfigs import CANARY

LOGGER = "aioinformer.requests"
LINE = re.compile(
    r"(GET|POST|PUT|PATCH|DELETE) (/\S*) \((\w+)\): "
    r"(status (\d+), (\d+ bytes,|open)|no response \(\w+\)) after (\d+\.\d{3}) s"
)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [each.getMessage() for each in caplog.records if each.name == LOGGER]


async def use(server: str) -> None:
    """Send requests of each kind, with a secret in each part that may have one."""
    secret = {"metadata": {"name": "s"}, "stringData": {"key": CANARY}}
    async with Client(server, token=CANARY, headers={"X-Key": CANARY}) as client:
        await client.api("secrets", namespace="default").create(secret)
        async with SharedInformerFactory(client) as factory:
            await factory.informer("secrets", labels=f"x!={CANARY}").wait_synced(30)
        with pytest.raises(NotFound):
            await client.get_raw("/nothing", {"token": CANARY})


async def test_each_request_is_logged_with_its_status_size_and_seconds_and_no_secret(
    caplog: pytest.LogCaptureFixture, lines: Callable[[], list[str]]
) -> None:
    caplog.set_level(logging.DEBUG, logger=LOGGER)
    async with ApiServer(Cluster()) as server:
        await use(server.url)
    found = [LINE.fullmatch(each) for each in lines()]
    assert None not in found, lines()
    shown = [(each[1], each[2], each[3], each[4].split()[-1]) for each in found if each]
    assert shown == [
        ("POST", "/api/v1/namespaces/default/secrets", "write", "bytes,"),
        ("GET", "/api/v1/secrets", "watch", "open"),
        ("GET", "/api/v1/secrets", "watch", "bytes,"),
        ("GET", "/nothing", "list", "bytes,"),
    ]
    assert [each[5] for each in found if each] == ["201", "200", "200", "404"]
    assert CANARY not in caplog.text
    assert all(each.isprintable() for each in lines())


async def test_a_request_without_a_response_is_logged(
    caplog: pytest.LogCaptureFixture, lines: Callable[[], list[str]]
) -> None:
    caplog.set_level(logging.DEBUG, logger=LOGGER)
    async with Client("http://127.0.0.1:1") as client:
        with pytest.raises(ConnectionFailed):
            await client.get_raw("/a\nb")
    (line,) = lines()
    assert line.startswith("GET /a%0Ab (list): no response (ConnectionFailed) after 0.")


async def test_no_request_is_logged_at_level_info(
    caplog: pytest.LogCaptureFixture, lines: Callable[[], list[str]]
) -> None:
    caplog.set_level(logging.INFO, logger="aioinformer")
    async with ApiServer(Cluster()) as server:
        await use(server.url)
    assert lines() == []

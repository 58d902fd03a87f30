"""Tokens in files that somebody else rewrites."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import pytest
from aiohttp import web

from aioinformer import BackoffPolicy, Client, SharedInformerFactory
from aioinformer._client.auth.token_file import MAX_TOKEN_BYTES, TokenFile, bearer_header
from aioinformer._client.auth.token_refresh import TokenGrant
from aioinformer.errors import FetchError
from tests.client.kubeconfigs import (
    CANARY,
    error_chain_text,
    make_kubeconfig,
    write_kubeconfig,
)
from tests.client.servers import http_server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "token"


def put(path: Path, content: str | bytes) -> None:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def remove(path: Path) -> None:
    path.unlink()


async def test_a_token_is_used_for_a_minute(path: Path) -> None:
    put(path, "abc\n")

    assert await TokenFile(path, "here")() == TokenGrant("Bearer abc", valid_for=60)


async def test_an_unreadable_file_is_logged_once_and_the_last_token_stays_in_use(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = TokenFile(path, "here")
    put(path, CANARY)
    await source()

    remove(path)

    for _ in range(2):
        assert await source() == TokenGrant(f"Bearer {CANARY}", valid_for=10)
    assert caplog.messages == [
        f"here: the token file {path} can't be used: No such file or directory; "
        "the last token stays in use"
    ]
    assert CANARY not in repr(source)


async def test_the_given_token_is_used_until_the_file_can_be_read(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = TokenFile(path, "here", f"Bearer {CANARY}")

    assert await source() == TokenGrant(f"Bearer {CANARY}", valid_for=10)
    assert caplog.messages == [
        f"here: the token file {path} can't be used: No such file or directory; "
        "the last token stays in use"
    ]
    assert CANARY not in repr(source)

    put(path, "abc")
    caplog.set_level(logging.INFO)
    for _ in range(2):
        assert (await source()).header == "Bearer abc"
    assert caplog.messages[1:] == [
        f"here: the token file {path} can be used again, 0.0 s after the first warning"
    ]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "No such file or directory"),
        (b" \n", "it is empty"),
        (f"{CANARY}\nX-Evil: 1".encode(), "it contains a space, newline or control character"),
        (CANARY.encode() + b"\xff", "it contains a space, newline or control character"),
    ],
    ids=["missing", "empty", "two lines", "no text"],
)
async def test_the_error_for_an_unusable_token_file_names_the_fault_but_not_the_content(
    path: Path, content: bytes | None, text: str
) -> None:
    if content is not None:
        put(path, content)

    with pytest.raises(FetchError) as caught:
        await TokenFile(path, "here")()

    assert str(caught.value) == f"here: the token file {path} can't be used: {text}"
    assert caught.value.phase == "credentials"
    assert CANARY not in error_chain_text(caught.value)


def test_a_bearer_token_is_one_word() -> None:
    assert bearer_header(b"\n abc \r\n") == "Bearer abc"


@pytest.mark.parametrize("too_many", [0, 1])
async def test_a_token_file_is_read_up_to_a_limit(path: Path, too_many: int) -> None:
    put(path, "a" * (MAX_TOKEN_BYTES + too_many))
    token = TokenFile(path, "here")

    if too_many:
        with pytest.raises(FetchError, match="can't be used: it is longer than 1048576 bytes"):
            await token()
    else:
        assert len((await token()).header) == len("Bearer ") + MAX_TOKEN_BYTES


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such device")
async def test_a_device_is_read_up_to_the_limit_and_is_an_error() -> None:
    with pytest.raises(FetchError, match="/dev/zero can't be used: it is longer than"):
        await TokenFile(Path("/dev/zero"), "here")()


async def test_a_token_file_that_changes_ends_the_wait_after_a_401(tmp_path: Path) -> None:
    """The kubelet or a person replaces a token that was revoked; the wait may be half a minute."""
    token = tmp_path / "token"
    token.write_text("revoked")

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] != "Bearer valid":
            return web.json_response({"kind": "Status", "code": 401}, status=401)
        if "watch" in request.query:
            await asyncio.Event().wait()
        return web.json_response(
            {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}
        )

    slow = BackoffPolicy(initial=30.0, maximum=30.0)
    async with http_server(answer) as url:
        content = make_kubeconfig(cluster={"server": url}, user={"tokenFile": "token"})
        path = write_kubeconfig(tmp_path, content)
        async with (
            Client.connect(kubeconfig=path) as client,
            SharedInformerFactory(client, backoff=slow) as informers,
        ):
            pods = informers.informer("pods", watch_list=False)
            async with asyncio.timeout(10.0):
                while pods.health.retry_in is None:  # noqa: ASYNC110 - health has no event
                    await asyncio.sleep(0.01)
            assert pods.health.retry_in > 20.0
            token.write_text("valid")
            await pods.wait_synced(5.0)

"""The names of a program in requests: the User-Agent and the field manager."""

from __future__ import annotations

import re
import sys

import pytest
from aiohttp import web

from aioinformer import Client
from tests.client.servers import http_server


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["/srv/app/shop.py", "--verbose"], "shop"),
        (["/usr/lib/python3/site-packages/shop/__main__.py"], "shop"),
        (["/usr/local/bin/shop-operator"], "shop-operator"),
        (["my shop (2).py"], "my-shop-2"),
        (["-c"], "python"),
        ([""], "python"),
        ([], "python"),
    ],
)
async def test_the_name_of_a_program_comes_from_its_command_line(
    arguments: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The User-Agent has the form of client-go's, and names the manager of an apply."""
    monkeypatch.setattr(sys, "argv", arguments)

    *_, (user_agent, query), _ = await requests_of()

    pattern = rf"{re.escape(name)}/\S+ \(\w+/\w+\) aioinformer/[\w.+-]+"
    assert re.fullmatch(pattern, user_agent)
    assert query["fieldManager"] == name


async def requests_of(
    user_agent: str | None = None, field_manager: str | None = None
) -> list[tuple[str, dict[str, str]]]:
    """Return the User-Agent and the query of a read, a creation, an update, a patch, an apply."""
    seen: list[tuple[str, dict[str, str]]] = []
    pod = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "namespace": "web"}}

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers["User-Agent"], dict(request.query)))
        return web.json_response({"kind": "Pod", "apiVersion": "v1", **pod})

    async with (
        http_server(answer) as url,
        Client(url, user_agent=user_agent, field_manager=field_manager) as client,
    ):
        pods = client.api("pods", namespace="web")
        await pods.get("a")
        await pods.create(pod)
        await pods.update(pod)
        await pods.patch("a", {"metadata": {"labels": {"x": "y"}}})
        await pods.apply(pod)
        await pods.apply(pod, field_manager="own")
    return seen


async def test_by_default_the_program_is_named_and_the_server_derives_the_manager() -> None:
    seen = await requests_of()

    (user_agent,) = {each for each, _ in seen}
    program = user_agent.partition("/")[0]
    assert program not in ("", "aioinformer")
    assert [query.get("fieldManager") for _, query in seen] == [None] * 4 + [program, "own"]


async def test_a_program_can_choose_its_names() -> None:
    seen = await requests_of("shop/1.2", "shop-operator")

    assert {each for each, _ in seen} == {"shop/1.2"}
    managers = [query.get("fieldManager") for _, query in seen]
    assert managers == [None] + ["shop-operator"] * 4 + ["own"]


@pytest.mark.parametrize("text", ["", " ", "a\nb", "a" * 600])
def test_a_name_that_no_server_accepts_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="user_agent must be 1 to 512 printable characters"):
        Client("https://10.0.0.1", user_agent=text)
    with pytest.raises(ValueError, match="field_manager must be 1 to 128 printable characters"):
        Client.connect(field_manager=text)


def test_a_user_agent_is_ascii() -> None:
    with pytest.raises(ValueError, match="user_agent must be ASCII text"):
        Client("https://10.0.0.1", user_agent="Bäckerei/1")

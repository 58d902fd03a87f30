"""``aioinformer shards``: the table, JSON, and the exit code."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aioinformer import Client, ShardGroup
from aioinformer._cli.shards.command import format_group
from aioinformer._cli.shards.report import GroupReport, MemberReport
from aioinformer._cli.terminal.style import render
from aioinformer.testing import ApiServer, Cluster
from tests.cli.processes import environment, started_cli


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(Cluster()) as server:
        yield server


async def shown(*argv: str, home: Path) -> tuple[int, str, str]:
    async with started_cli("shards", *argv, env=environment(home)) as run:
        return await run.wait()


def test_the_report_of_a_group_is_shown_as_a_table() -> None:
    members = (
        MemberReport(
            identity="shop-0", state="member", renewed=1.2, held=3, assigned=3, shards="0-1,7"
        ),
        MemberReport(
            identity="shop-1", state="absent", renewed=None, held=0, assigned=5, shards=""
        ),
    )
    report = GroupReport(
        group="shop",
        namespace="web",
        count=8,
        by="uid",
        epoch=4,
        leader="shop-0",
        unclaimed="2-6",
        contested="7",
        members=members,
    )
    assert "\n".join(render(line, colour=False).rstrip() for line in format_group(report)) == (
        "group      web/shop, 8 shards by uid\n"
        "epoch      4, assigned by shop-0\n"
        "unclaimed  2-6\n"
        "contested  7\n"
        "\n"
        "MEMBER   STATE    RENEWED   HELD   ASSIGNED   SHARDS\n"
        "shop-0   member   1 s ago   3      3          0-1,7\n"
        "shop-1   absent   -         0      5          -"
    )


@pytest.mark.clients
async def test_the_members_of_a_running_group_are_shown(server: ApiServer, tmp_path: Path) -> None:
    async with (
        Client(server.url) as client,
        ShardGroup(client, "shop", namespace="web", identity="shop-0") as group,
    ):
        await group.wait_member(timeout=10)
        argv = ("shop", "-n", "web", "--server", server.url)
        code, out, err = await shown(*argv, home=tmp_path)
        assert (code, err) == (0, "")
        assert out.splitlines()[0] == "group      web/shop, 64 shards by uid"
        assert out.splitlines()[-1].split()[:2] == ["shop-0", "member"]
        assert out.splitlines()[-1].split()[-3:] == ["64", "64", "0-63"]

        code, out, _ = await shown(*argv, "-o", "json", home=tmp_path)
        document = json.loads(out)
        assert (code, document["ok"], document["unclaimed"]) == (0, True, "")
        assert document["members"][0]["shards"] == "0-63"

    code, out, _ = await shown(*argv, home=tmp_path)
    assert code == 1  # the member has left
    assert "unclaimed  0-63" in out


@pytest.mark.clients
async def test_a_group_that_does_not_exist_is_an_error(server: ApiServer, tmp_path: Path) -> None:
    code, out, err = await shown("shop", "-n", "web", "--server", server.url, home=tmp_path)

    assert (code, out) == (1, "")
    assert "no group shop in namespace web" in err

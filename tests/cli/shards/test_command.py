"""``aioinformer shards``: the members of a group, from its Leases, and the exit code."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from aioinformer import Client, ShardGroup
from aioinformer.testing import ApiServerThread
from tests.cli.commands import CommandLine, poll
from tests.cli.conftest import Enter

FIRST = "0-1,4,6-8,10-12,14-15,17-19,22,25,27-32,36,39-40,43-46,48,51,53,55-56,58-62"
SECOND = "2-3,5,9,13,16,20-21,23-24,26,33-35,37-38,41-42,47,49-50,52,54,57,63"
"""The shares of two members called ``shop-0`` and ``shop-1``, as those write them."""


def create_lease(
    server: ApiServerThread, name: str, annotations: dict[str, str], **spec: Any
) -> None:
    metadata = {
        "name": name,
        "namespace": "web",
        "labels": {"aioinformer/shard-group": "shop"},
        "annotations": {f"aioinformer/{key}": value for key, value in annotations.items()},
    }
    server.cluster.create("leases", {"metadata": metadata, "spec": spec})


def create_group(
    server: ApiServerThread, members: str = '["shop-0","shop-1"]', layout: str = "64/uid"
) -> None:
    annotations = {"shard-epoch": "4", "shard-layout": layout, "shard-members": members}
    create_lease(server, "shop", annotations, holderIdentity="shop-0")


def create_member(
    server: ApiServerThread,
    identity: str,
    held: str,
    *,
    renewed: str = "",
    leaving: bool = False,
    released: bool = False,
) -> None:
    annotations = {"shard-layout": "64/uid", "shards-held": held, "shard-write": "w/2"}
    create_lease(
        server,
        f"shop.{identity}",
        annotations | {"shard-leaving": str(leaving).lower()},
        holderIdentity="" if released else identity,
        leaseDurationSeconds=15,
        renewTime=renewed or dt.datetime.now(dt.UTC).isoformat(),
    )


class Shown:
    """The report of the group ``shop`` as JSON."""

    def __init__(self, cli: CommandLine) -> None:
        code, out, err = cli.run("shards", "shop", "-n", "web", "-o", "json")
        self.whole: dict[str, Any] = json.loads(out)
        assert err == ""
        assert code == 1 - self.whole["ok"]
        self.states = {each["identity"]: each["state"] for each in self.whole["members"]}


def test_the_report_of_a_group_is_shown_as_a_table(
    server: ApiServerThread, cli: CommandLine
) -> None:
    create_group(server)
    create_member(server, "shop-0", FIRST)
    create_member(server, "shop-2", "0-1", leaving=True)
    code, out, err = cli.run("shards", "shop", "-n", "web")

    assert (code, err) == (1, "")
    assert out.replace("1 s ago", "0 s ago") == (
        "group      web/shop, 64 shards by uid\n"
        "epoch      4, assigned by shop-0\n"
        f"unclaimed  {SECOND}\n"
        "contested  0-1\n"
        "\n"
        "MEMBER   STATE     RENEWED   HELD   ASSIGNED   SHARDS\n"
        f"shop-0   member    0 s ago   39     39         {FIRST}\n"
        "shop-1   absent    -         0      25         -\n"
        "shop-2   leaving   0 s ago   2      0          0-1\n"
    )


def test_a_group_whose_shards_all_have_an_owner_is_ok(
    server: ApiServerThread, cli: CommandLine
) -> None:
    create_group(server)
    create_member(server, "shop-0", FIRST)
    create_member(server, "shop-1", SECOND)
    shown = Shown(cli)

    assert shown.whole["ok"]
    assert shown.states == {"shop-0": "member", "shop-1": "member"}
    assert sum(each["held"] for each in shown.whole["members"]) == 64
    assert sum(each["assigned"] for each in shown.whole["members"]) == 64


def test_the_shards_of_an_expired_member_are_unclaimed(
    server: ApiServerThread, cli: CommandLine
) -> None:
    create_group(server)
    create_member(server, "shop-0", FIRST)
    create_member(server, "shop-1", SECOND, renewed="2026-01-01T11:00:00.000000Z")
    shown = Shown(cli)

    assert (shown.whole["ok"], shown.whole["unclaimed"]) == (False, SECOND)
    assert shown.states == {"shop-0": "member", "shop-1": "expired"}


def test_a_released_lease_is_ignored_and_a_malformed_time_gives_no_age(
    server: ApiServerThread, cli: CommandLine
) -> None:
    create_group(server, '["shop-0"]')
    create_member(server, "shop-0", "0-63", renewed="yesterday")
    create_member(server, "shop-1", "", released=True)

    assert [(each["identity"], each["renewed"]) for each in Shown(cli).whole["members"]] == [
        ("shop-0", None)
    ]


@pytest.mark.parametrize("layout", ["many/uid", "99999999999/uid", "1000000/namespace"])
def test_a_layout_that_no_group_can_have_has_no_shards(
    layout: str, server: ApiServerThread, cli: CommandLine
) -> None:
    create_group(server, '["shop-0"]', layout)
    assert Shown(cli).whole["count"] == 0


def test_the_members_of_a_running_group_are_shown(
    server: ApiServerThread, cli: CommandLine, enter: Enter
) -> None:
    client = enter(Client(server.url, token="secret-1"))
    enter(group := ShardGroup(client, "shop", namespace="web", identity="shop-0"))
    poll(lambda: len(group.held) == 64)
    shown = Shown(cli)

    assert (shown.whole["ok"], shown.states) == (True, {"shop-0": "member"})
    assert shown.whole["members"][0]["shards"] == "0-63"


def test_a_group_that_does_not_exist_is_an_error(server: ApiServerThread, cli: CommandLine) -> None:
    said = "aioinformer: no group shop in namespace web\n"
    assert cli.run("shards", "shop", "-n", "web") == (1, "", said)


def test_a_server_that_does_not_answer_is_an_error(
    server: ApiServerThread, cli: CommandLine
) -> None:
    server.faults.stall(resource="leases")
    said = "aioinformer: the Leases were not listed within 0.2 s\n"
    assert cli.run("shards", "shop", "--timeout", "0.2") == (1, "", said)


def test_what_is_right_is_not_rejected(cli: CommandLine) -> None:
    """Without a cluster, which is what is missing then."""
    code, out, err = cli.run("shards", "shop", "-n", "web", "-o", "json", "--context", "mars")
    assert (code, out) == (2, "")
    assert err.startswith(
        ("aioinformer: no cluster is configured: ", "aioinformer: there is no context ")
    )

"""The text of a group's health, which readiness probes and logs show."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.errors import ConnectionFailed
from aioinformer.shardgroup.health import GroupHealth


def health(**fields: Any) -> GroupHealth:
    """Return the health of a member that works on what it is assigned."""
    shards = frozenset({0, 1, 2})
    usual: dict[str, Any] = {
        "state": "member",
        "held": shards,
        "stopping": frozenset(),
        "assigned": shards,
        "unclaimed": frozenset(),
        "members": ("a", "b"),
        "epoch": 4,
        "leader": "b",
        "users": {},
        "error": None,
        "renewed": 1.0,
        "expires_in": 9.0,
    }
    return GroupHealth(**usual | fields)


BEGIN, MEMBERS = "member, 3 of 3 assigned shards held, ", "2 members in epoch 4, leader: "


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, f"{BEGIN}{MEMBERS}b"),
        (
            {"held": (), "stopping": frozenset({5, 6, 9}), "unclaimed": frozenset({7})},
            f"member, 0 of 3 assigned shards held, {MEMBERS}b, stopping: 5-6,9, unclaimed: 7",
        ),
        (
            {"error": ConnectionFailed("refused")},
            f"{BEGIN}{MEMBERS}b, last error: ConnectionFailed: refused",
        ),
        ({"leader": ""}, f"{BEGIN}{MEMBERS}none"),
        # Another program with access to the Leases chooses that text.
        ({"leader": "b\nERROR all shards lost"}, f"{BEGIN}{MEMBERS}b ERROR all shards lost"),
    ],
)
def test_the_text_names_the_shards_the_leader_and_the_last_error_in_one_line(
    fields: dict[str, Any], text: str
) -> None:
    assert str(health(**fields)) == text

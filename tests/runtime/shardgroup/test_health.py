"""The text of a group's health, which readiness probes and logs show."""

from __future__ import annotations

from typing import Any

from aioinformer._runtime.shardgroup.health import GroupHealth
from aioinformer.errors import ConnectionFailed


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


def test_the_text_of_a_settled_member_has_its_shards_the_epoch_and_the_leader() -> None:
    assert str(health()) == "member, 3 of 3 assigned shards held, 2 members in epoch 4, leader: b"


def test_the_text_names_the_shards_that_move_and_those_without_an_owner() -> None:
    text = str(health(held=frozenset(), stopping=frozenset({5, 6, 9}), unclaimed=frozenset({7})))

    assert "0 of 3 assigned shards held" in text
    assert text.endswith("leader: b, stopping: 5-6,9, unclaimed: 7")


def test_the_text_has_the_last_error_of_a_request() -> None:
    text = str(health(state="joining", error=ConnectionFailed("refused")))

    assert text.startswith("joining, ")
    assert text.endswith(", last error: ConnectionFailed: refused")


def test_the_identity_of_the_leader_can_not_forge_a_line_of_the_log() -> None:
    """Another program with access to the Leases chooses that text."""
    assert "\n" not in str(health(leader="b\nERROR all shards lost"))
    assert str(health(leader="")).endswith("leader: none")

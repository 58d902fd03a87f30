"""Rendezvous hashing: shares, and moves at a change of the members."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from aioinformer.shardgroup.state.rendezvous import shard_owners

NAMES = st.sets(st.text("abcdef-0123456789", min_size=1, max_size=12), min_size=1, max_size=12)


@given(NAMES, st.text("xyz", min_size=1, max_size=5), st.sampled_from([1, 8, 64, 256]))
def test_a_member_that_joins_receives_its_share_and_nothing_else_moves(
    members: set[str], newcomer: str, count: int
) -> None:
    before, after = shard_owners(members, count), shard_owners({*members, newcomer}, count)

    assert len(after) == count
    assert all(new in (old, newcomer) for old, new in zip(before, after, strict=True))


@given(NAMES)
def test_every_shard_has_an_owner_of_the_members_in_any_order(members: set[str]) -> None:
    owners = shard_owners(sorted(members, reverse=True), 64)

    assert set(owners) <= members
    assert owners == shard_owners(sorted(members), 64)


def test_shards_are_spread_evenly() -> None:
    owners = Counter(shard_owners([f"replica-{number}" for number in range(8)], 1024))

    assert min(owners.values()) > 0.75 * 1024 / 8
    assert max(owners.values()) < 1.25 * 1024 / 8


def test_the_assignment_is_the_same_in_every_version_of_the_library() -> None:
    # Replicas of two versions work together during a rollout.
    assert "".join(shard_owners(["a", "b", "c"], 12)) == "bbabbbaccbca"


def test_without_members_no_shard_has_an_owner() -> None:
    assert shard_owners([], 2) == ("", "")

"""The watch lines of changing pods: each is what an API server would send after the one before."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from benchmarks.load.changes import FIRST_VERSION, random_changes, rollouts
from benchmarks.load.workloads import make_pods

PODS = list(make_pods(60))
LINES = 500
STEPS = ["ADDED", *["MODIFIED"] * 5]
"""The events of a new pod; those of the old one follow."""


def events(lines: Iterator[bytes]) -> list[tuple[str, dict[str, Any]]]:
    """Return the first changes by their type and object."""
    found = [json.loads(line) for line in islice(lines, LINES)]
    return [(each["type"], each["object"]) for each in found]


@pytest.mark.parametrize(
    "lines",
    [random_changes(PODS), rollouts(PODS, 1), rollouts(PODS, 7)],
    ids=lambda each: each.__name__,
)
def test_the_changes_lead_from_the_list_to_a_state_of_as_many_pods(lines: Iterator[bytes]) -> None:
    cached = {pod["metadata"]["uid"]: pod for pod in map(json.loads, PODS)}
    for number, (kind, pod) in enumerate(events(lines)):
        uid = pod["metadata"]["uid"]
        assert pod["metadata"]["resourceVersion"] == str(FIRST_VERSION + number)
        assert (uid in cached) == (kind != "ADDED")
        cached[uid] = pod
        if kind == "DELETED":
            del cached[uid]
    assert len(PODS) <= len(cached) <= len(PODS) + 7
    names = {(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in cached.values()}
    assert len(names) == len(cached)


def test_each_random_change_is_of_another_pod() -> None:
    pods = Counter(pod["metadata"]["uid"] for _, pod in events(random_changes(PODS)))
    assert len(pods) == len(PODS)
    assert max(pods.values()) < 4 * LINES / len(PODS)


def test_a_pod_of_a_rollout_starts_before_the_pod_that_it_replaces_ends() -> None:
    found = events(rollouts(PODS, 1))[:9]
    assert [kind for kind, _ in found] == [*STEPS, "MODIFIED", "MODIFIED", "DELETED"]
    new, old = [pod for _, pod in found[:6]], [pod for _, pod in found[6:]]
    assert len({pod["metadata"]["uid"] for pod in new}) == 1
    assert [pod["status"]["phase"] for pod in new] == ["Pending"] * 4 + ["Running"] * 2
    assert ["nodeName" in pod["spec"] for pod in new] == [False] + [True] * 5
    assert all("deletionTimestamp" in pod["metadata"] for pod in old)
    owners = [pod["metadata"]["ownerReferences"] for _, pod in found]
    assert owners == [owners[0]] * 9


def test_pods_that_are_replaced_at_the_same_time_change_in_turn() -> None:
    uids = [pod["metadata"]["uid"] for _, pod in events(rollouts(PODS, 5))]
    assert len(set(uids[:5])) == 5
    assert uids[:5] == uids[5:10] == uids[25:30]
    assert set(uids[30:35]).isdisjoint(uids[:5])

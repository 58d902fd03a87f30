"""The watch lines of changing pods: each is what an API server would send after the one before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from benchmarks.load.changes import FIRST_VERSION, random_changes, rollouts
from benchmarks.load.workloads import make_pods

PODS = list(make_pods(60))
LINES = 500


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

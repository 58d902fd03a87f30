"""The cache of decoded bodies: the number of objects that hold one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_body import (
    MAX_DECODED,
    DecodedBody,
    ObjectBody,
)
from tests.core.builders import pod


def body(obj: KubeObject) -> dict[str, Any] | None:
    """Return the decoded body of ``obj``; ``None`` if it isn't decoded."""
    state: ObjectBody = msgspec.structs.asdict(obj)["_body"]
    return state.content


def decoded(obj: KubeObject, content: dict[str, Any]) -> DecodedBody:
    """Return the state of ``obj`` with this decoded body."""
    return DecodedBody(content, msgspec.structs.asdict(obj)["_body"])


def test_a_part_of_a_body_stays_valid_after_the_body_was_closed() -> None:
    """A reader may hold a part of a body that the reads of other threads push out of the cache."""
    obj = pod("web-0", node="node-7")
    spec = obj["spec"]
    for number in range(MAX_DECODED):
        assert pod(f"other-{number}")["spec"]

    assert body(obj) is None
    assert spec == {"nodeName": "node-7"}


@pytest.fixture(name="_frequent_switches")
def frequent_thread_switches() -> Iterator[None]:
    """Switch threads every 10 microseconds, so that they interrupt each other within a step."""
    default = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(default)


@pytest.mark.usefixtures("_frequent_switches")
def test_threads_that_open_the_same_objects_read_them_all_and_leave_few_open() -> None:
    many = [pod(f"web-{number}", node=f"node-{number}") for number in range(3 * MAX_DECODED)]

    def read(start: int) -> bool:
        turned = many[start:] + many[:start]
        return all(
            obj["spec"]["nodeName"] == f"node-{obj.name.removeprefix('web-')}"
            for _ in range(10)
            for obj in turned
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(0, len(many), len(many) // 4)))
    # An object that two threads decode at once takes two places, so there may be fewer bodies.
    assert sum(body(obj) is not None for obj in many) <= MAX_DECODED

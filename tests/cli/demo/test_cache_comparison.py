"""A cache compared with what its server has."""

from __future__ import annotations

import msgspec

from aioinformer import KubeObject
from aioinformer._cli.demo.cache_comparison import compare_cache
from tests.cli.pods import pod


def served(*pods: KubeObject) -> bytes:
    items = [msgspec.json.decode(each.raw) for each in pods]
    return msgspec.json.encode({"kind": "PodList", "items": items})


A, B = pod("a", spec={"x": 1}), pod("b")
DELIVERED = {A.key: "7", B.key: "7"}


def test_the_verdict_of_an_equal_cache_contains_the_number_of_objects() -> None:
    verdict = compare_cache(served(A, B), [B, A], DELIVERED)

    assert verdict.equal
    assert str(verdict) == (
        "cache equals the server: 2 objects, every body; the handler received the same"
    )


def test_a_watch_event_carries_a_type_that_an_item_does_not() -> None:
    typed = pod("a", spec={"x": 1}, kind="Pod", apiVersion="v1")

    assert compare_cache(served(A), [typed], {A.key: "7"}).equal


def test_missing_surplus_and_changed_objects_are_named() -> None:
    changed, surplus = pod("a", spec={"x": 2}), pod("c")
    verdict = compare_cache(served(A, B), [changed, surplus], DELIVERED)

    assert not verdict.equal
    assert str(verdict) == "cache DIFFERS from the server: shop/a, shop/b, shop/c"


def test_many_differences_are_counted() -> None:
    verdict = compare_cache(served(*(pod(f"p{number}") for number in range(9))), [], {})

    assert str(verdict).startswith(
        "cache DIFFERS from the server: shop/p0, shop/p1, shop/p2 and 6 more; the handler"
    )


def test_an_object_that_a_handler_received_differently_is_named() -> None:
    verdict = compare_cache(served(A, B), [A, B], {A.key: "6", B.key: "7"})

    assert not verdict.equal
    assert str(verdict) == "the handler received something ELSE: shop/a"

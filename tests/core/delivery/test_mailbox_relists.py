"""Relists of several scopes, and what is left when a mailbox is cleared."""

from __future__ import annotations

from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.objects.kube_object import Added, Event, KubeObject, Updated
from tests.core.builders import pod

A1, A2, A3 = (pod("a", rv=rv) for rv in "123")
B1 = pod("b", rv="4")


def mailbox(limit: int = 4) -> Mailbox:
    return Mailbox(limit=limit, holds=lambda _: True)


def drain(box: Mailbox) -> list[Event]:
    events: list[Event] = []
    while (event := box.pop()) is not None:
        events.append(event)
    return events


def test_the_scopes_of_all_pending_relists_are_known() -> None:
    box = mailbox()
    box.put_relist([[Updated(A1, A2)]], scope="web")
    box.put_relist([[Added(B1)]], scope="shop")
    assert (box.has_relist_of("web"), box.has_relist_of("shop")) == (True, True)
    assert not box.has_relist_of("jobs")
    drain(box)
    assert (box.has_relist_of("web"), box.has_relist_of("shop")) == (False, False)


def test_the_scope_of_a_relist_that_was_delivered_is_free_while_another_is_pending() -> None:
    box = mailbox()
    box.put_relist([[Updated(A1, A2)]], scope="web")
    drain(box)
    box.put_relist([[Added(B1)]], scope="shop")
    assert (box.has_relist_of("web"), box.has_relist_of("shop")) == (False, True)


def test_events_without_a_time_are_those_of_the_beginning() -> None:
    live, joined, relisted = mailbox(), mailbox(), mailbox()
    live.put([Added(A1)])
    joined.replay([A1])
    relisted.put_relist([[Added(A1, True)]], initial=True)
    assert (live.oldest, joined.oldest, relisted.oldest) == (0.0, 0.0, 0.0)


def test_a_first_state_that_is_cleared_is_freed_in_steps() -> None:
    box = mailbox()
    objects: list[KubeObject] = [pod(f"p{number}") for number in range(500)]
    box.put_relist([[Added(obj, True)] for obj in objects], initial=True)
    steps = sum(1 for _ in box.clear())
    assert steps > 1
    assert (box.pop(), box.empty) == (None, True)


def test_the_number_of_merged_events_outlives_a_clearing() -> None:
    box = mailbox(limit=1)
    box.put([Added(A1)])
    box.put([Updated(A1, A2)])
    box.put([Updated(A2, A3)])
    merged = box.merged
    assert merged > 0
    list(box.clear())
    assert (box.merged, box.pending) == (merged, 0)

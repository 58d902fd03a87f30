"""Marks in a mailbox: a consumer passes a mark when it asks for the event behind it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.delivery.overflow import Overflow
from aioinformer._core.objects.kube_object import Added, Event, KubeObject, ObjectKey
from tests.core.builders import pod


def mailbox(limit: int = 100) -> Mailbox:
    return Mailbox(limit=limit, overflow=Overflow.COALESCE, holds=lambda _: True)


def test_a_mark_is_passed_by_the_request_for_the_next_event() -> None:
    box = mailbox()
    box.put([Added(pod("a")), Added(pod("b"))])
    box.mark()
    assert (box.pending, box.state_pending, box.empty) == (2, False, False)
    box.pop()
    box.pop()
    assert box.marks_pending == 1, "b is being handled"
    assert box.pop() is None
    assert box.marks_pending == 0
    assert box.empty


def test_a_mark_waits_for_the_initial_state() -> None:
    box = mailbox()
    box.replay([pod("a")])
    box.mark()
    assert box.pop() == Added(pod("a"), initial=True)
    assert box.marks_pending == 1
    assert box.pop() is None
    assert box.marks_pending == 0


def test_a_discarded_mark_is_never_passed() -> None:
    box = mailbox()
    box.put([Added(pod("a"))])
    box.mark()
    list(box.clear())
    assert box.pop() is None
    assert box.marks_pending == 1


def test_a_mark_is_no_pending_relist() -> None:
    box = mailbox()
    box.put_relist([[Added(pod("a"))]])
    box.pop()
    box.pop()
    box.mark()
    assert not box.relist_pending


@given(
    st.lists(
        st.one_of(st.sampled_from("abc"), st.sampled_from(["mark", "pop", "merge"])), max_size=60
    )
)
def test_a_passed_mark_proves_that_each_earlier_state_or_a_later_one_was_delivered(
    steps: list[str],
) -> None:
    box, newest, version = mailbox(limit=2), dict[ObjectKey, KubeObject](), 0
    marked: dict[ObjectKey, KubeObject] | None = None
    delivered: dict[ObjectKey, int] = {}

    def pop() -> Event | None:
        event = box.pop()
        if event is not None:
            delivered[event.obj.key] = int(event.obj.resource_version)
        return event

    def check() -> None:
        if marked is not None and not box.marks_pending:
            for key, obj in marked.items():
                assert delivered.get(key, 0) >= int(obj.resource_version)

    for step in steps:
        if step == "mark":
            if not box.marks_pending:
                marked = dict(newest)
                box.mark()
        elif step == "pop":
            pop()
        elif step == "merge":
            box.merge_oldest(2)
        else:
            version += 1
            obj = pod(step, rv=str(version))
            newest[obj.key] = obj
            box.put([Added(obj)])
            while box.needs_merge:
                box.merge_oldest(64)
        check()
    while pop() is not None or not box.empty:
        check()
    assert box.marks_pending == 0
    check()


def test_a_borrower_of_batches_passes_a_mark_when_it_borrows_the_batch_behind_it() -> None:
    box = mailbox()
    for name in "ab":
        box.put([Added(pod(name))])
        box.mark()
    seen = [(box.marks_pending, len(list(box.borrow_batch() or ()))) for _ in range(3)]
    assert seen == [(2, 1), (2, 1), (1, 0)]
    assert box.marks_pending == 0

"""What one listener has yet to hear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._core.mailbox import LIMIT, Mailbox
from aioinformer._core.objects import Added, Deleted, Event, KubeObject, ObjectKey, Updated
from tests.core import strategies
from tests.core.builders import pod


def always(_: KubeObject) -> bool:
    """Whether the cache has it: yes."""
    return True


def never(_: KubeObject) -> bool:
    """Whether the cache has it: no."""
    return False


def mailbox(*, limit: int = 4, holds: Callable[[KubeObject], bool] = always) -> Mailbox:
    """A mailbox of a listener that nothing ever left the cache of."""
    return Mailbox(limit=limit, holds=holds)


def drained(box: Mailbox) -> list[Event]:
    """Everything that can be popped."""
    events: list[Event] = []
    while (event := box.pop()) is not None:
        events.append(event)
    return events


A1, A2, A3 = (pod("a", rv=rv) for rv in "123")
B1 = pod("b", rv="4")
REBORN = pod("a", rv="9", uid="another")

# -- live events ---------------------------------------------------------------------------------


def test_events_are_popped_in_the_order_they_came() -> None:
    box = mailbox()
    events: list[Event] = [Added(A1), Updated(A1, A2), Deleted(A2)]
    box.extend(events[:2])
    box.extend(events[2:])

    assert [box.pop(), box.pop(), box.pop(), box.pop()] == [*events, None]
    assert box.delivered == 3


def test_room_is_what_is_left_of_the_limit() -> None:
    box = mailbox(limit=3)
    assert (box.room, box.pending) == (3, 0)
    box.extend([Added(A1), Added(B1)])
    assert (box.room, box.pending) == (1, 2)
    box.pop()
    assert (box.room, box.pending) == (2, 1)


def test_nothing_is_refused_beyond_the_limit() -> None:
    """Who fills looks at the room first; a re-created object is two events where one had room."""
    box = mailbox(limit=1)
    box.extend([Deleted(A1), Added(REBORN)])

    assert box.room == -1
    assert len(drained(box)) == 2


def test_a_mailbox_is_drained_when_half_of_it_is_free() -> None:
    """Waking the pump for each single event would cost more than the event."""
    box = mailbox(limit=4)
    box.extend([Added(A1), Updated(A1, A2), Updated(A2, A3), Deleted(A3)])
    seen: list[tuple[int, bool]] = []
    while box.pop():
        seen.append((box.room, box.drained))

    assert seen == [(1, False), (2, True), (3, True), (4, True)]


def test_a_mailbox_for_one_event_is_drained_when_it_is_empty() -> None:
    box = mailbox(limit=1)
    box.extend([Added(A1)])
    assert not box.drained
    box.pop()
    assert box.drained


def test_the_limit_is_client_gos_first_buffer_by_default() -> None:
    assert Mailbox(holds=always).limit == LIMIT == 1024


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_at_least_one(limit: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1, not {limit}"):
        mailbox(limit=limit)


def test_an_overflow_rule_that_nobody_knows_is_refused() -> None:
    rule: Any = "drop"

    with pytest.raises(ValueError, match="'drop'"):
        Mailbox(overflow=rule, holds=always)


# -- the state that a listener finds -------------------------------------------------------------


def test_a_late_listener_is_told_of_each_object_as_initial() -> None:
    box = mailbox()
    box.replay([A1, B1])

    assert drained(box) == [Added(A1, initial=True), Added(B1, initial=True)]


def test_live_events_come_behind_the_state_that_was_found() -> None:
    box = mailbox()
    box.replay([A1, B1])
    box.extend([Updated(A1, A2)])

    assert drained(box) == [Added(A1, True), Added(B1, True), Updated(A1, A2)]


def test_the_state_that_was_found_does_not_count_against_the_limit() -> None:
    box = mailbox(limit=1)
    box.replay([A1, B1])
    box.tell([Deleted(A1, "vanished")])
    box.resync([B1])

    assert (box.room, box.pending, box.drained) == (1, 0, True)
    assert len(drained(box)) == 4
    assert box.room == 1


def test_the_shared_state_is_not_copied() -> None:
    """100,000 objects and ten listeners are one sequence."""
    asked: list[str] = []

    def holds(obj: KubeObject) -> bool:
        asked.append(obj.name)
        return True

    box = mailbox(holds=holds)
    box.replay([A1, B1])
    assert asked == []
    box.pop()
    assert asked == ["a"]


def test_what_went_meanwhile_is_not_told_of_nor_is_what_happened_to_it() -> None:
    box = mailbox(holds=never)
    box.replay([A1])
    box.extend([Updated(A1, A2), Deleted(A2), Added(B1)])

    assert drained(box) == [Added(B1)]
    assert box.delivered == 1
    assert (box.room, box.pending) == (4, 0), "what is dropped makes room"


def test_what_was_re_created_meanwhile_is_told_of_as_new() -> None:
    box = mailbox(holds=lambda obj: obj.uid == "another")
    box.replay([A1])
    box.extend([Updated(A1, A2), Deleted(A2), Added(REBORN), Updated(REBORN, REBORN)])

    assert drained(box) == [Added(REBORN), Updated(REBORN, REBORN)]


def test_what_left_a_selector_and_came_back_is_told_of_again() -> None:
    """The same uid: only up to its first deletion is what happened to it dropped."""
    box = mailbox(holds=never)
    box.replay([A1])
    box.extend([Deleted(A1), Added(A2), Deleted(A3)])

    assert drained(box) == [Added(A2), Deleted(A3)]


def test_what_goes_after_it_was_told_of_is_told_to_have_gone() -> None:
    gone: set[str] = set()
    box = mailbox(holds=lambda obj: obj.name not in gone)
    box.replay([A1, B1])
    assert box.pop() == Added(A1, True)
    gone.update("ab")
    box.extend([Deleted(A1), Deleted(B1)])

    assert drained(box) == [Deleted(A1)]


def test_what_a_relist_no_longer_had_is_dropped_too() -> None:
    box = mailbox(holds=lambda obj: obj.name != "a")
    box.replay([A1, B1])
    box.tell([Deleted(A1, "vanished"), Updated(B1, B1)])

    assert drained(box) == [Added(B1, True), Updated(B1, B1)]


def test_a_resync_of_what_went_meanwhile_is_dropped_too() -> None:
    box = mailbox(holds=lambda obj: obj.name != "a")
    box.replay([A1, B1])
    box.resync([A1, B1])
    box.extend([Deleted(A1)])

    assert drained(box) == [Added(B1, True), Updated(B1, B1, resync=True)]


def test_the_first_state_is_what_an_early_listener_finds() -> None:
    box = mailbox(holds=lambda obj: obj.name != "a")
    box.tell([Added(A1, True), Added(B1, True)], initial=True)
    box.extend([Deleted(A1)])

    assert drained(box) == [Added(B1, True)]
    assert box.synced


# -- relists and resyncs -------------------------------------------------------------------------


def test_the_diff_of_a_relist_is_told_as_it_is() -> None:
    box = mailbox()
    diff: list[Event] = [Deleted(B1, "vanished"), Updated(A1, A2), Added(B1)]
    box.tell(diff)

    assert drained(box) == diff
    assert not box.synced, "this is not what the listener found"


def test_a_resync_tells_each_object_as_its_own_update() -> None:
    box = mailbox()
    box.resync([A1, B1])

    events = drained(box)
    assert events == [Updated(A1, A1, resync=True), Updated(B1, B1, resync=True)]
    assert all(isinstance(event, Updated) and event.old is event.new for event in events)


def test_a_resync_is_not_queued_behind_one_that_is_still_to_be_told() -> None:
    """A handler that hangs would hold one more list of objects a period (simulation, seed 24)."""
    box = mailbox()
    for _ in range(3):
        box.resync([A1, B1])
    assert box.pop() == Updated(A1, A1, resync=True)
    box.resync([A2, B1])

    assert drained(box) == [Updated(B1, B1, resync=True)]
    box.resync([A2])
    assert drained(box) == [Updated(A2, A2, resync=True)]
    box.resync([A2])
    box.clear()
    box.resync([A3])
    assert drained(box) == [Updated(A3, A3, resync=True)]


def test_nothing_overtakes() -> None:
    box = mailbox()
    box.replay([A1])
    box.extend([Updated(A1, A2)])
    box.tell([Updated(A2, A3)])
    box.extend([Added(B1)])
    box.resync([A3])
    box.extend([Deleted(A3)])

    assert drained(box) == [
        Added(A1, True),
        Updated(A1, A2),
        Updated(A2, A3),
        Added(B1),
        Updated(A3, A3, True),
        Deleted(A3),
    ]


# -- synced --------------------------------------------------------------------------------------


def test_a_listener_is_synced_once_it_asks_for_more_behind_the_state_it_found() -> None:
    """Asking says that the event before was dealt with: the handler returned."""
    box = mailbox()
    box.replay([A1, B1])
    for _ in range(2):
        box.pop()
        assert not box.synced
    assert box.pop() is None
    assert box.synced


def test_a_live_event_behind_the_state_shows_that_it_is_synced() -> None:
    box = mailbox()
    box.replay([A1])
    box.extend([Updated(A1, A2)])
    box.pop()
    assert not box.synced
    assert box.pop() == Updated(A1, A2)
    assert box.synced


def test_a_listener_that_found_nothing_is_synced_when_it_asks() -> None:
    box = mailbox()
    box.replay([])
    assert not box.synced
    assert box.pop() is None
    assert box.synced


def test_a_state_that_went_as_a_whole_syncs_too() -> None:
    box = mailbox(holds=never)
    box.replay([A1, B1])

    assert box.pop() is None
    assert box.synced


def test_a_listener_that_was_told_nothing_is_not_synced() -> None:
    box = mailbox()
    box.extend([Added(A1)])
    drained(box)

    assert not box.synced


def test_once_synced_is_always_synced() -> None:
    box = mailbox()
    box.replay([])
    box.pop()
    box.replay([A1])
    box.tell([Added(B1)])

    assert box.synced


# -- the rest ------------------------------------------------------------------------------------


def test_clearing_drops_everything_that_is_pending() -> None:
    box = mailbox(holds=never)
    box.replay([A1])
    box.extend([Added(B1)])
    box.pop()
    box.extend([Deleted(B1)])
    box.clear()

    assert (box.pop(), box.pending, box.empty, box.synced) == (None, 0, True, True)
    box.extend([Added(A1)])
    assert box.pop() == Added(A1), "nothing is held against it any more"


def test_a_mailbox_is_empty_when_nothing_is_pending_live_or_not() -> None:
    box, seen = mailbox(), list[bool]()
    seen.append(box.empty)
    box.resync([A1])
    seen.append(box.empty)
    drained(box)
    seen.append(box.empty)
    box.extend([Added(B1)])
    seen.append(box.empty)

    assert seen == [True, False, True, False]


def test_the_repr_shows_how_full_it_is() -> None:
    box = mailbox()
    box.extend([Added(A1)])

    assert repr(box) == "<Mailbox pending=1/4 block synced=False>"


# -- against a list ------------------------------------------------------------------------------


@dataclass
class Pending:
    """One thing to hear of."""

    event: Event | None
    """None is the mark behind what the listener found."""
    live: bool = False
    found: bool = False
    """Whether it is part of what the listener found."""
    dropped: bool = False


@dataclass
class World:
    """A cache, and one listener's mailbox as a plain list."""

    cache: dict[ObjectKey, KubeObject] = field(default_factory=dict[ObjectKey, KubeObject])
    queue: list[Pending] = field(default_factory=list[Pending])
    synced: bool = False
    delivered: int = 0

    def holds(self, obj: KubeObject) -> bool:
        held = self.cache.get(obj.key)
        return held is not None and held.uid == obj.uid

    def change(self, obj: KubeObject, *, gone: bool) -> list[Event]:
        """What the listener hears when ``obj`` comes, changes or goes."""
        old = self.cache.pop(obj.key, None)
        if gone:
            return [] if old is None else [Deleted(old)]
        self.cache[obj.key] = obj
        if old is None:
            return [Added(obj)]
        return [Updated(old, obj)] if old.uid == obj.uid else [Deleted(old), Added(obj)]

    @property
    def resyncing(self) -> bool:
        """Whether some of a resync is still to be told."""
        events = (pending.event for pending in self.queue)
        return any(isinstance(event, Updated) and event.resync for event in events)

    def pop(self) -> Event | None:
        """The next event; what went takes what happened to it along."""
        while self.queue:
            head = self.queue.pop(0)
            if head.event is None:
                self.synced = True
            elif head.found and not self.holds(head.event.obj):
                self.drop_all_of(head.event.obj)
            elif not head.dropped:
                self.delivered += 1
                return head.event
        return None

    def drop_all_of(self, obj: KubeObject) -> None:
        """Up to its deletion."""
        for pending in self.queue:
            event = pending.event
            if event and not pending.found and (event.obj.key, event.obj.uid) == (obj.key, obj.uid):
                pending.dropped = True
                if isinstance(event, Deleted):
                    return


OPERATIONS = st.one_of(
    st.tuples(st.sampled_from(["put", "put", "take"]), strategies.few_names, strategies.few_uids),
    st.tuples(st.sampled_from(["pop", "resync", "vanish"]), st.integers(1, 4), st.just("")),
)


@given(
    st.sets(strategies.few_names),
    st.booleans(),
    st.integers(1, 5),
    st.lists(OPERATIONS, max_size=40),
)
@settings(deadline=None, max_examples=300)
def test_a_mailbox_behaves_like_a_list(
    found: set[str], early: bool, limit: int, operations: list[tuple[str, str | int, str]]
) -> None:
    world = World()
    box = Mailbox(limit=limit, holds=world.holds)
    for name in sorted(found):
        world.change(pod(name, rv="0", uid="1"), gone=False)
    first = [Added(obj, initial=True) for obj in world.cache.values()]
    if early:
        box.tell(first, initial=True)
    else:
        box.replay(list(world.cache.values()))
    world.queue += [Pending(event, found=True) for event in first] + [Pending(None)]

    for number, (what, which, uid) in enumerate(operations, start=1):
        if isinstance(which, str):
            events = world.change(pod(which, rv=str(number), uid=uid), gone=what == "take")
            box.extend(events)
            world.queue += [Pending(event, live=True) for event in events]
        elif what == "pop":
            for _ in range(which):
                assert box.pop() == world.pop()
        elif what == "resync":
            box.resync(list(world.cache.values()))
            if not world.resyncing:
                world.queue += [Pending(Updated(o, o, resync=True)) for o in world.cache.values()]
        else:
            goners = list(world.cache.values())[:which]
            diff: list[Event] = [e for obj in goners for e in world.change(obj, gone=True)]
            box.tell(diff)
            world.queue += [Pending(event) for event in diff]
        assert box.synced == world.synced
        assert box.delivered == world.delivered
        assert box.pending == sum(pending.live for pending in world.queue)
        assert box.room == limit - box.pending
    while (event := world.pop()) is not None:
        assert box.pop() == event
    assert box.pop() is None
    assert box.synced
    assert box.empty

"""The log of changes: followers reach the leader's state by a way that the leader's cache took."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import Added, Deleted, Event, KubeObject, Updated
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cachefile.change_log import (
    ENTRIES_KEPT,
    TRIM_STEP,
    EntryKind,
    LogEntry,
    LogRecord,
    LogSequence,
    choose_read,
    make_delta,
    make_entries,
)
from aioinformer._core.objects.deltas import Delta
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._core.objects.stored import ExcludedObject
from tests.core.builders import pod

State = dict[ObjectKey, KubeObject]
Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 3)),
        st.tuples(st.just("delete"), st.integers(0, 3)),
        st.tuples(st.just("write"), st.just(0)),
        st.tuples(st.just("relist"), st.integers(0, 3)),
        st.tuples(st.just("follow"), st.integers(0, 1)),
    ),
    max_size=60,
)


class Log:
    """A file: the stored state, and the log behind it."""

    def __init__(self, keep: int) -> None:
        self.state: State = {}
        self.entries: dict[int, LogEntry] = {}
        self.floor = 0
        self.sequence = LogSequence(keep=keep)

    def write(self, state: State, record: LogRecord) -> None:
        self.state = dict(state)
        if record.needs_state(""):
            (self.floor,) = self.sequence.take(1)
        else:
            entries = [entry for batch in record.batches for entry in make_entries(batch)]
            self.entries.update(zip(self.sequence.take(len(entries)), entries, strict=True))
        if removed := self.sequence.trim():
            self.entries = {
                number: each for number, each in self.entries.items() if number > removed
            }
            self.floor = max(self.floor, removed)


class Follower:
    """A cache that follows the log, and the position among the leader's states."""

    def __init__(self) -> None:
        self.indexer = Indexer()
        self.position: int | None = None
        self.age = 0

    @property
    def state(self) -> State:
        return dict(self.indexer.state.objects)

    def advance(self, states: list[State]) -> None:
        """Check that this state was the leader's, at no earlier moment than the last one."""
        assert self.state in states[self.age :], "a past state, and not before the last one"
        self.age = states.index(self.state, self.age)

    def follow(self, log: Log, states: list[State]) -> None:
        head = log.sequence.head
        if choose_read(self.position, log.floor, head) == "state":
            self.indexer.state.objects.clear()
            self.indexer.state.objects.update(log.state)
            self.advance(states)
        else:
            for number in range((self.position or 0) + 1, head + 1):
                if number in log.entries:
                    self.indexer.apply(make_delta(log.entries[number]), [])
                    self.advance(states)
        self.position = head
        assert self.state == log.state


@given(steps=STEPS, keep=st.integers(1, 6), limit=st.integers(1, 8))
def test_followers_pass_only_states_of_the_leader_in_order(
    steps: list[Step], keep: int, limit: int
) -> None:
    log, record, followers = Log(keep), LogRecord(limit), [Follower(), Follower()]
    state: State = {}
    states: list[State] = [{}]
    for version, (kind, number) in enumerate(steps, 1):
        key = ObjectKey("web", f"p{number}")
        events: list[Event] = []
        if kind == "put":
            new = pod(key.name, rv=str(version), uid="1")
            events = [Updated(state[key], new)] if key in state else [Added(new)]
            state[key] = new
        elif kind == "delete" and key in state:
            events = [Deleted(state.pop(key))]
        elif kind == "relist":
            new = pod(key.name, rv=str(version), uid="1")
            state = {key: new}
            record.record_list("")
        elif kind == "write":
            log.write(state, record)
            record = LogRecord(limit)
        elif kind == "follow":
            followers[number].follow(log, states)
        if events:
            record.record(events)
        states.append(dict(state))
    log.write(state, record)
    for each in followers:
        each.follow(log, states)
        assert each.state == state


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([Updated(pod("a"), pod("a", rv="2"))], "updated"),
        ([Deleted(pod("a", rv="2"), "deleted")], "deleted"),
        ([Deleted(pod("a"), "vanished")], "vanished"),
        ([Deleted(pod("a"), "dropped")], "dropped"),
        ([Deleted(pod("a"), "vanished"), Added(pod("a", uid="new"))], "vanished added"),
    ],
)
def test_a_follower_receives_the_events_of_the_leader(events: list[Event], expected: str) -> None:
    indexer, received = Indexer(), list[Event]()
    indexer.state.put(pod("a"), None)
    for entry in make_entries(events):
        indexer.apply(make_delta(entry), received)
    words = [
        each.reason if isinstance(each, Deleted) else type(each).__name__.lower()
        for each in received
    ]
    assert " ".join(words) == expected


def test_a_record_over_its_limit_keeps_no_change_and_requests_the_state() -> None:
    record = LogRecord(limit=2)
    record.record([Added(pod("a")), Added(pod("b"))])
    assert not record.needs_state("")
    record.record([Added(pod("c"))])
    record.record([Added(pod("d"))])
    assert record.needs_state("")
    assert record.batches == []


def test_a_position_of_another_log_reads_the_state() -> None:
    assert choose_read(None, 0, 9) == "state"
    assert choose_read(10, 0, 9) == "state"
    assert choose_read(4, 5, 9) == "state"
    assert choose_read(5, 5, 9) == "changes"


def test_a_record_counts_changes_and_names_the_scopes_of_relists() -> None:
    record = LogRecord()
    record.record([Added(pod("a")), Added(pod("b"))])
    record.record([Added(pod("c"))])
    record.record_list("web")
    assert (len(record), repr(record)) == (3, "<LogRecord changes=3 relisted=1>")
    assert [len(batch) for batch in record.batches] == [2, 1]
    assert (record.needs_state("web"), record.needs_state("shop")) == (True, False)
    record.require_state()
    assert (record.needs_state("shop"), record.batches) == (True, [])


def test_a_record_holds_as_many_changes_as_a_log_keeps() -> None:
    record, events = LogRecord(), [Added(pod("a"))] * ENTRIES_KEPT
    record.record(events)
    assert not record.needs_state("")
    record.record(events[:1])
    assert record.needs_state("")


def test_a_log_is_continued_behind_its_last_entry() -> None:
    sequence = LogSequence(head=7, oldest=3)
    assert repr(sequence) == "<LogSequence 3..7>"
    assert list(sequence.take(2)) == [8, 9]
    assert list(sequence.take(0)) == []
    assert (sequence.head, sequence.trim()) == (9, 0)
    assert list(LogSequence().take(1)) == [1]


def test_a_log_is_trimmed_in_steps_to_its_stated_number_of_entries() -> None:
    sequence = LogSequence()
    assert sequence.oldest == 1
    sequence.take(ENTRIES_KEPT + TRIM_STEP)
    assert sequence.trim() == 0
    sequence.take(1)
    assert sequence.trim() == TRIM_STEP + 1
    assert sequence.head - sequence.oldest + 1 == ENTRIES_KEPT
    assert sequence.trim() == 0


def test_a_short_log_is_trimmed_when_it_is_twice_as_long() -> None:
    sequence = LogSequence(keep=3)
    assert [len(sequence.take(1)) and sequence.trim() for _ in range(9)] == [
        0, 0, 0, 0, 0, 0, 4, 0, 0
    ]  # fmt: skip


def test_an_entry_is_one_change_of_the_queue() -> None:
    obj = pod("a", rv="2")
    assert make_delta(LogEntry("stored", obj)) == Delta("Updated", obj)
    assert make_delta(LogEntry("deleted", obj)) == Delta("Deleted", obj)
    removals: list[tuple[EntryKind, str]] = [("dropped", obj.uid), ("vanished", "")]
    for kind, uid in removals:
        delta = make_delta(LogEntry(kind, obj))
        assert delta.kind == "Updated"
        assert isinstance(delta.obj, ExcludedObject)
        assert (delta.obj.key, delta.obj.uid, delta.obj.raw) == (obj.key, uid, b"")

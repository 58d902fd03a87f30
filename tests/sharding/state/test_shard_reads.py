"""The requests that read the shards of a member: the tables row by row, and random histories."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aioinformer.sharding.state.shard_reads import (
    CATCH_UP_SECONDS,
    GAIN_ACTIONS,
    LAST_LOSS_ACTIONS,
    LOSS_ACTIONS,
    STATE_USES,
    GainedRead,
    LossAction,
    MainRead,
    ReadStep,
    ShardReads,
    StateAge,
    StateUse,
)

NONE, STATE, WATCH = MainRead.NONE, MainRead.STATE, MainRead.WATCH
NO_GAIN, LIST, RESTORE = GainedRead.NONE, GainedRead.LIST, GainedRead.RESTORE

WATCHED, GAINING = frozenset({0, 1}), frozenset({2, 3})
"""The shards of the requests that ``reads_of`` begins."""


def shards(text: str) -> frozenset[int]:
    return frozenset(map(int, text))


def reads_of(main: MainRead, gained: GainedRead) -> ShardReads:
    """Return the machine while these requests are under way, after a first state."""
    reads = ShardReads()
    reads.open(frozenset(), assigned_once=True)
    if main is not NONE:
        reads.gain(WATCHED)
        reads.main_began()
        reads.observe(reads_state=main is STATE and gained is NO_GAIN, has_unread=False)
    if gained is not NO_GAIN:
        stored = GAINING if gained is RESTORE else frozenset[int]()
        reads.observe(reads_state=False, has_unread=False, restorable=stored)
        reads.gain(GAINING)
        reads.observe(reads_state=main is STATE, has_unread=False)  # the version has expired
    assert (reads.main, reads.gained) == (main, gained)
    return reads


def sets_of(reads: ShardReads) -> str:
    """Return the watched, the gained and the waiting shards as text."""
    sets = (reads.watched, reads.gaining, reads.waiting)
    return " ".join("".join(map(str, sorted(each))) or "-" for each in sets)


# -- the rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """The requests under way, an event, and the requests and sets that follow."""

    main: MainRead
    gained: GainedRead
    event: str
    """The shards of the event."""
    then: ReadStep
    sets: str
    """The watched, the gained and the waiting shards."""

    def __str__(self) -> str:
        return f"{self.main.name}-{self.gained.name}-{self.event}"


GAINS = [  # 4 can be restored, 5 can't
    Row(NONE, NO_GAIN, "45", ReadStep(None, RESTORE), "- 4 5"),
    Row(NONE, NO_GAIN, "5", ReadStep(STATE, NO_GAIN), "5 - -"),
    Row(NONE, RESTORE, "45", ReadStep(), "- 23 45"),
    Row(NONE, RESTORE, "5", ReadStep(), "- 23 5"),
    Row(STATE, NO_GAIN, "45", ReadStep(STATE, NO_GAIN), "0145 - -"),
    Row(STATE, NO_GAIN, "5", ReadStep(STATE, NO_GAIN), "015 - -"),
    Row(STATE, LIST, "45", ReadStep(STATE, NO_GAIN), "012345 - -"),
    Row(STATE, LIST, "5", ReadStep(STATE, NO_GAIN), "01235 - -"),
    Row(STATE, RESTORE, "45", ReadStep(STATE, NO_GAIN), "012345 - -"),
    Row(STATE, RESTORE, "5", ReadStep(STATE, NO_GAIN), "01235 - -"),
    Row(WATCH, NO_GAIN, "45", ReadStep(None, RESTORE), "01 4 5"),
    Row(WATCH, NO_GAIN, "5", ReadStep(None, LIST), "01 5 -"),
    Row(WATCH, LIST, "45", ReadStep(None, LIST), "01 2345 -"),
    Row(WATCH, LIST, "5", ReadStep(None, LIST), "01 235 -"),
    Row(WATCH, RESTORE, "45", ReadStep(), "01 23 45"),
    Row(WATCH, RESTORE, "5", ReadStep(), "01 23 5"),
]


@pytest.mark.parametrize("row", GAINS, ids=str)
def test_shards_that_move_in_are_read_by_the_request_of_the_row(row: Row) -> None:
    reads = reads_of(row.main, row.gained)
    reads.observe(reads_state=row.main is STATE, has_unread=False, restorable=frozenset({4}))
    assert reads.gain(shards(row.event)) == row.then
    assert sets_of(reads) == row.sets


def test_each_row_for_shards_that_move_in_is_tested() -> None:
    assert {(each.main, each.gained) for each in GAINS} == set(GAIN_ACTIONS)


def loss(main: MainRead | None, gained: GainedRead | None, kept: str, empty: str = "") -> ReadStep:
    """Return the step after a loss, with the shards whose objects stay."""
    return ReadStep(main, gained, shards(kept), is_empty=bool(empty))


LOSSES = [
    # Watched shards are left.
    Row(STATE, NO_GAIN, "0", loss(STATE, NO_GAIN, "1"), "1 - -"),
    Row(STATE, LIST, "0", loss(STATE, NO_GAIN, "1"), "123 - -"),
    Row(STATE, LIST, "23", loss(STATE, NO_GAIN, "01"), "01 - -"),
    Row(STATE, RESTORE, "2", loss(STATE, NO_GAIN, "01"), "013 - -"),
    Row(WATCH, NO_GAIN, "0", loss(None, None, "1"), "1 - -"),
    Row(WATCH, LIST, "0", loss(None, None, "1"), "1 23 -"),
    Row(WATCH, LIST, "02", loss(None, LIST, "1"), "1 3 -"),
    Row(WATCH, LIST, "23", loss(None, NO_GAIN, "01"), "01 - -"),
    Row(WATCH, RESTORE, "0", loss(None, None, "1"), "1 23 -"),
    Row(WATCH, RESTORE, "2", loss(None, RESTORE, "01"), "01 3 -"),
    Row(WATCH, RESTORE, "23", loss(None, NO_GAIN, "01"), "01 - -"),
    # No watched shard is left.
    Row(NONE, NO_GAIN, "7", loss(NONE, None, "", "empty"), "- - -"),
    Row(NONE, RESTORE, "2", loss(NONE, RESTORE, ""), "- 3 -"),
    Row(NONE, RESTORE, "23", loss(NONE, NO_GAIN, "", "empty"), "- - -"),
    Row(STATE, NO_GAIN, "01", loss(NONE, None, "", "empty"), "- - -"),
    Row(STATE, LIST, "01", loss(STATE, NO_GAIN, ""), "23 - -"),
    Row(STATE, LIST, "0123", loss(NONE, NO_GAIN, "", "empty"), "- - -"),
    Row(STATE, RESTORE, "012", loss(STATE, NO_GAIN, ""), "3 - -"),
    Row(WATCH, NO_GAIN, "01", loss(NONE, None, "", "empty"), "- - -"),
    Row(WATCH, LIST, "012", loss(STATE, NO_GAIN, ""), "3 - -"),
    Row(WATCH, LIST, "0123", loss(NONE, NO_GAIN, "", "empty"), "- - -"),
    Row(WATCH, RESTORE, "01", loss(NONE, None, ""), "- 23 -"),
    Row(WATCH, RESTORE, "013", loss(NONE, RESTORE, ""), "- 2 -"),
]


@pytest.mark.parametrize("row", LOSSES, ids=str)
def test_the_shards_that_are_left_are_read_by_the_request_of_the_row(row: Row) -> None:
    reads = reads_of(row.main, row.gained)
    assert reads.lose(shards(row.event)) == row.then
    assert sets_of(reads) == row.sets


def test_each_row_for_shards_that_move_away_is_tested() -> None:
    left = [(row, row.main is not NONE and WATCHED - shards(row.event)) for row in LOSSES]
    assert {row.main for row, watched in left if watched} == set(LOSS_ACTIONS)
    last = {
        (row.main, row.gained if GAINING - shards(row.event) else NO_GAIN)
        for row, watched in left
        if not watched
    }
    assert last == set(LAST_LOSS_ACTIONS)


@pytest.mark.parametrize("age", StateAge, ids=lambda age: age.name)
@pytest.mark.parametrize("gained", [LIST, RESTORE], ids=lambda gained: gained.name)
@pytest.mark.parametrize("main", MainRead, ids=lambda main: main.name)
def test_the_state_of_gained_shards_is_used_as_the_row_says(
    main: MainRead, gained: GainedRead, age: StateAge
) -> None:
    if (main, gained) == (NONE, LIST):
        return  # a list is made beside a watch
    reads = reads_of(main, gained)
    step = reads.receive(age, now=100.0)
    match step.use:
        case StateUse.REPLACE:
            assert main is NONE
            assert step == ReadStep(WATCH, NO_GAIN, use=step.use)
            assert sets_of(reads) == "23 - -"
        case StateUse.EXTEND:
            assert (main, age) == (WATCH, StateAge.CURRENT)
            assert step == ReadStep(WATCH, NO_GAIN, use=step.use)
            assert sets_of(reads) == "0123 - -"
        case StateUse.AWAIT_NEXT:
            assert (main, age) == (WATCH, StateAge.BEHIND)
            assert step == ReadStep(use=step.use, deadline=100.0 + CATCH_UP_SECONDS)
            assert sets_of(reads) == "01 23 -"
        case _:
            assert step == ReadStep(STATE, NO_GAIN, use=StateUse.DISCARD)
            assert sets_of(reads) == "0123 - -"
            assert reads.unread == GAINING
    assert step.use is STATE_USES[main][age]


# -- the beginning -------------------------------------------------------------------------------


def test_nothing_is_read_before_the_cache_file_is_open() -> None:
    reads = ShardReads()
    events = [
        reads.gain(WATCHED),
        reads.lose(WATCHED),
        reads.publish_empty(),
        reads.open(frozenset(), assigned_once=False),
    ]
    assert events == [ReadStep()] * 4
    assert sets_of(reads) == "- - -"


def test_a_member_without_shards_is_complete_once_it_knows_its_first_assignment() -> None:
    assert ShardReads().open(frozenset(), assigned_once=True) == ReadStep(is_empty=True)
    reads = ShardReads()
    reads.open(frozenset(), assigned_once=False)
    assert reads.publish_empty() == ReadStep(is_empty=True)


@pytest.mark.parametrize("stored", ["", "0", "01"], ids=["nothing", "a part", "all"])
def test_the_first_state_is_restored_only_if_the_file_has_all_of_it(stored: str) -> None:
    reads = ShardReads()
    reads.observe(reads_state=True, has_unread=False, restorable=shards(stored))
    step = reads.open(WATCHED, assigned_once=True)
    if stored == "01":
        assert step == ReadStep(None, RESTORE)
        assert sets_of(reads) == "- 01 -"
    else:
        assert step == ReadStep(STATE, NO_GAIN)
        assert (sets_of(reads), reads.unread) == ("01 - -", WATCHED)


@pytest.mark.parametrize("first", ["listed", "restored"])
def test_a_part_of_the_shards_may_be_restored_after_the_first_state(first: str) -> None:
    reads = ShardReads()
    stored = WATCHED if first == "restored" else frozenset[int]()
    reads.observe(reads_state=True, has_unread=False, restorable=stored)
    reads.open(WATCHED, assigned_once=True)
    if first == "restored":
        reads.receive(StateAge.UNKNOWN, now=0.0)
    reads.main_began()
    reads.observe(reads_state=False, has_unread=False, restorable=shards("4"))
    assert reads.gain(shards("45")) == ReadStep(None, RESTORE)
    assert sets_of(reads) == "01 4 5"


@pytest.mark.parametrize("stored", ["", "4"], ids=["none", "some"])
def test_shards_that_wait_are_read_once_the_others_are_restored(stored: str) -> None:
    reads = reads_of(WATCH, RESTORE)
    reads.gain(shards("45"))
    reads.observe(reads_state=False, has_unread=False, restorable=shards(stored))
    step = reads.receive(StateAge.CURRENT, now=0.0)
    assert step == ReadStep(WATCH, RESTORE if stored else LIST, use=StateUse.EXTEND)
    assert sets_of(reads) == ("0123 4 5" if stored else "0123 45 -")


def test_shards_that_wait_are_listed_when_those_that_are_restored_move_away() -> None:
    reads = reads_of(WATCH, RESTORE)
    reads.gain(shards("45"))
    assert reads.lose(shards("234")) == loss(None, LIST, "01")
    assert sets_of(reads) == "01 5 -"


# -- the reflector -------------------------------------------------------------------------------


def test_a_request_counts_as_decided_until_the_reflector_begins_it() -> None:
    reads = reads_of(STATE, NO_GAIN)
    reads.gain(shards("2"))
    reads.observe(reads_state=False, has_unread=True)  # the reflector's former request
    assert (reads.main, reads.unread) == (STATE, shards("2"))
    reads.main_began()
    reads.observe(reads_state=False, has_unread=False)
    assert (reads.main, reads.unread) == (WATCH, frozenset())


def test_a_reflector_without_shards_makes_no_request_in_any_state() -> None:
    reads = reads_of(WATCH, NO_GAIN)
    reads.lose(WATCHED)
    reads.main_began()
    reads.observe(reads_state=True, has_unread=False)
    assert reads.main is NONE


def test_a_lost_shard_is_unread_no_longer() -> None:
    reads = ShardReads()
    reads.open(WATCHED, assigned_once=True)
    reads.observe(reads_state=True, has_unread=True)
    reads.lose(shards("0"))
    assert reads.unread == shards("1")


# -- a restored state that is older than the watch -----------------------------------------------


def test_the_seconds_to_catch_up_begin_with_the_first_state_that_is_older() -> None:
    reads = reads_of(WATCH, RESTORE)
    assert reads.receive(StateAge.BEHIND, now=1.0).deadline == 1.0 + CATCH_UP_SECONDS
    assert reads.receive(StateAge.BEHIND, now=2.0) == ReadStep(use=StateUse.AWAIT_NEXT)
    reads.lose(shards("2"))  # the restoring begins anew, and so do the seconds
    assert reads.receive(StateAge.BEHIND, now=3.0).deadline == 3.0 + CATCH_UP_SECONDS


def test_the_whole_state_is_read_when_the_seconds_to_catch_up_have_passed() -> None:
    reads = reads_of(WATCH, RESTORE)
    reads.gain(shards("4"))
    reads.receive(StateAge.BEHIND, now=1.0)
    assert reads.expire() == ReadStep(STATE, NO_GAIN)
    assert (sets_of(reads), reads.unread) == ("01234 - -", shards("234"))


def test_the_machine_shows_its_requests() -> None:
    reads = reads_of(WATCH, RESTORE)
    reads.gain(shards("4"))
    assert repr(reads) == "<ShardReads WATCH of 2, RESTORE of 2, 1 waiting>"


# -- histories -----------------------------------------------------------------------------------

SHARDS = frozenset(range(6))
SUBSETS = st.frozensets(st.sampled_from(sorted(SHARDS)))


class Histories(RuleBasedStateMachine):
    """The requests beside a cache of whole shards that their answers fill."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = ShardReads()
        self.held: frozenset[int] = frozenset()
        self.stored: frozenset[int] = frozenset()
        self.opened = False
        self.shown: frozenset[int] = frozenset()
        """The shards whose objects are in the cache."""
        self.synced = False
        self.main, self.gained = NONE, NO_GAIN
        """The requests under way."""
        self.begun = False
        self.reads_state = False
        self.unread = False
        self.timer: float | None = None
        self.now = 0.0

    def observe(self) -> None:
        self.reads.observe(
            reads_state=self.reads_state, has_unread=self.unread, restorable=self.stored & self.held
        )

    def make(self, step: ReadStep) -> None:
        """Make the requests of a step, as ``ShardReader`` does."""
        if step.gained is not None:
            self.gained, self.timer = step.gained, None
        if step.main is not None:
            self.main, self.begun = step.main, False
        if step.retained is not None:
            self.shown &= step.retained
        if step.is_empty:
            self.shown, self.synced = frozenset(), True
        if step.main in (STATE, WATCH):
            self.stored -= self.reads.watched
        if step.retained is not None or step.main is STATE:
            self.unread = bool(self.reads.unread)
        if step.deadline is not None:
            assert self.timer is None, "the seconds begin once"
            self.timer = step.deadline

    @precondition(lambda self: not self.opened)
    @rule(stored=SUBSETS, assigned_once=st.booleans())
    def open(self, stored: frozenset[int], *, assigned_once: bool) -> None:
        self.opened, self.stored = True, stored
        self.observe()
        self.make(self.reads.open(self.held, assigned_once=assigned_once))

    @rule(gained=SUBSETS)
    def gain(self, gained: frozenset[int]) -> None:
        gained -= self.held
        self.held |= gained
        self.observe()
        self.make(self.reads.gain(gained))

    @precondition(lambda self: self.held)
    @rule(lost=SUBSETS)
    def lose(self, lost: frozenset[int]) -> None:
        lost &= self.held
        if lost:
            self.held -= lost
            self.observe()
            self.make(self.reads.lose(lost))

    @precondition(lambda self: self.main is not NONE and not self.begun)
    @rule()
    def begin(self) -> None:
        self.begun, self.reads_state = True, self.main is STATE
        self.reads.main_began()
        self.observe()

    @precondition(lambda self: self.main is not NONE and self.begun)
    @rule(completes=st.booleans())
    def answer(self, *, completes: bool) -> None:
        """Complete the state, or let the version of a watch expire."""
        if completes and self.reads_state:
            self.shown, self.synced = self.reads.watched, True
            self.reads_state = self.unread = False
        else:
            self.reads_state = True
        self.observe()

    @precondition(lambda self: self.gained is not NO_GAIN)
    @rule(age=st.sampled_from(StateAge))
    def receive(self, age: StateAge) -> None:
        gaining, watched = self.reads.gaining, self.reads.watched
        self.observe()
        step = self.reads.receive(age, self.now)
        if step.use is StateUse.REPLACE:
            assert not watched
            self.shown, self.synced, self.unread = gaining, True, False
        elif step.use is StateUse.EXTEND:
            assert self.shown == watched, "the watch can be resumed for these"
            self.shown |= gaining
        self.make(step)

    @precondition(lambda self: self.timer is not None)
    @rule()
    def expire(self) -> None:
        assert self.timer is not None
        self.now, self.timer = self.timer, None
        self.observe()
        self.make(self.reads.expire())

    @invariant()
    def each_held_shard_is_in_one_set(self) -> None:
        sets = [self.reads.watched, self.reads.gaining, self.reads.waiting]
        assert sorted(shard for each in sets for shard in each) == sorted(
            self.held if self.opened else ()
        )

    @invariant()
    def each_request_has_shards_and_each_shard_a_request(self) -> None:
        reads = self.reads
        assert bool(reads.watched) == (self.main is not NONE) == (reads.main is not NONE)
        assert bool(reads.gaining) == (self.gained is not NO_GAIN)
        assert reads.gained is self.gained
        assert not reads.waiting or self.gained is RESTORE
        assert (reads.main, reads.gained) in GAIN_ACTIONS

    @invariant()
    def the_cache_shows_the_watched_shards_whose_state_was_read(self) -> None:
        assert self.shown == self.reads.watched - self.reads.unread

    @invariant()
    def an_informer_with_a_watch_is_synced(self) -> None:
        if self.reads.main is WATCH or self.reads.gained is LIST:
            assert self.synced

    def teardown(self) -> None:
        """Answer all requests: the cache shows the shards that are held, and one watch is left."""
        if not self.opened:
            self.open(frozenset(), assigned_once=True)
        for _ in range(4 * len(SHARDS)):
            if self.main is not NONE and not self.begun:
                self.begin()
            elif self.main is not NONE and self.reads_state:
                self.answer(completes=True)
            elif self.gained is not NO_GAIN:
                self.receive(StateAge.CURRENT)
        assert self.shown == self.held
        assert self.gained is NO_GAIN
        assert self.reads.main is (WATCH if self.held else NONE)


TestHistories = Histories.TestCase


def test_an_action_for_lost_shards_exists_for_each_pair_of_requests() -> None:
    assert set(LAST_LOSS_ACTIONS) == set(GAIN_ACTIONS)
    assert set(LOSS_ACTIONS.values()) | set(LAST_LOSS_ACTIONS.values()) == set(LossAction)

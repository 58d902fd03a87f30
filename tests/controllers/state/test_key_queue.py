"""The state of a work queue: keys that wait, that are processed, and that are delayed."""

from __future__ import annotations

import threading
import tracemalloc
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aioinformer.controllers.state.key_queue import NORMAL_PER_LOW, KeyQueue
from aioinformer.controllers.state.queue_items import Priority
from aioinformer.errors import UsageError

LOW, NORMAL = Priority.LOW, Priority.NORMAL


def filled(*keys: str, priority: Priority = NORMAL) -> KeyQueue[str]:
    queue = KeyQueue[str]()
    for key in keys:
        assert queue.add(key, 0.0, priority)
    return queue


def emptied(queue: KeyQueue[str], now: float = 0.0) -> list[str]:
    """Everything that is handed out, each key done before the next."""
    keys: list[str] = []
    while queue.waiting:
        keys.append(queue.take(now))
        queue.done(keys[-1], now)
    return keys


# -- one run for many adds -----------------------------------------------------------------------


def test_nothing_can_be_taken_from_an_empty_queue() -> None:
    with pytest.raises(IndexError):
        KeyQueue[str]().take(0.0)


@pytest.mark.parametrize(
    ("known", "state"), [([], "is not in"), (["a"], "still waits in")], ids=["unknown", "waits"]
)
def test_a_key_that_is_not_worked_on_can_not_be_done(known: list[str], state: str) -> None:
    queue = filled(*known)
    with pytest.raises(
        UsageError, match=f"'a' is not being processed: it {state} the work queue; call done"
    ):
        queue.done("a", 0.0)
    assert emptied(queue) == known


def test_a_key_is_done_once() -> None:
    queue = filled("a")
    queue.take(0.0)
    queue.done("a", 0.0)
    with pytest.raises(UsageError, match="'a' is not being processed"):
        queue.done("a", 0.0)


# -- two lines -----------------------------------------------------------------------------------


def test_the_next_run_of_a_key_has_the_highest_priority_that_it_was_added_with() -> None:
    queue = filled("a")
    queue.take(0.0)
    queue.add("a", 0.0, LOW)
    assert queue.priority("a") is NORMAL  # that of the run under way
    queue.add("b", 0.0, LOW)
    queue.done("a", 0.0)
    assert queue.priority("a") is LOW
    assert emptied(queue) == ["b", "a"]

    queue.add("a", 0.0, LOW)
    queue.take(0.0)
    queue.add("a", 0.0, LOW)
    queue.add("a", 0.0, NORMAL)
    queue.add("a", 0.0, LOW)
    queue.add("b", 0.0, LOW)
    queue.done("a", 0.0)
    assert emptied(queue) == ["a", "b"]


def test_a_low_priority_key_is_handed_out_after_nine_normal_ones() -> None:
    """controller-runtime's queue lets it wait for ever while normal ones keep coming."""
    queue = filled("low-1", "low-2", priority=LOW)
    order: list[str] = []
    for number in range(2 * NORMAL_PER_LOW + 2):
        queue.add(f"n{number}", 0.0)
        order.append(queue.take(0.0))
    assert [order.index("low-1"), order.index("low-2")] == [NORMAL_PER_LOW, 2 * NORMAL_PER_LOW + 1]


# -- delays --------------------------------------------------------------------------------------


# -- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("priority", Priority)
def test_dropped_waiting_keys_are_freed_in_steps(priority: Priority) -> None:
    queue = filled(*(f"k{number}" for number in range(10)), priority=priority)
    queue.shut_down(drop=True)
    assert [queue.free(4) for _ in range(3)] == [True, True, False]


def test_a_rerun_that_was_requested_before_the_shutdown_is_still_handed_out() -> None:
    queue = filled("a")
    queue.take(0.0)
    queue.add("a", 0.0)
    queue.shut_down()
    assert not queue.finished  # it will be handed out again
    queue.done("a", 0.0)
    assert emptied(queue) == ["a"]
    assert queue.finished


def test_a_queue_is_finished_before_it_is_idle() -> None:
    queue = filled("a")
    queue.take(0.0)
    queue.shut_down()
    assert (queue.finished, queue.idle) == (True, False)
    queue.done("a", 0.0)
    assert queue.idle


# -- numbers -------------------------------------------------------------------------------------


def test_the_statistics_have_the_waiting_and_processing_times_of_keys() -> None:
    queue = KeyQueue[str]()
    queue.add("a", 1.0)
    queue.add("a", 2.0)  # waits since its first add
    queue.add("b", 2.0, LOW)
    queue.add("c", 4.0)
    queue.take(5.0)
    queue.done("a", 5.5)
    queue.take(6.0)

    found = queue.statistics(10.0)

    assert (found.depth, found.normal, found.low, found.processing) == (1, 0, 1, 1)
    assert (found.waited_mean, found.waited_max) == (3.0, 4.0)
    assert found.waiting_longest == 8.0
    assert (found.done, found.worked_mean, found.worked_max) == (1, 0.5, 0.5)
    assert (found.running_longest, found.unfinished_seconds) == (4.0, 4.0)
    assert (found.adds, found.merged, found.retries, found.dropped) == (3, 1, 0, 0)


def test_the_mean_of_the_runs_counts_all_of_them() -> None:
    queue = filled("a", "b")
    queue.take(0.0)
    queue.done("a", 1.0)
    queue.take(1.0)
    queue.done("b", 4.0)

    found = queue.statistics(9.0)

    assert (found.done, found.worked_mean, found.worked_max) == (2, 2.0, 3.0)
    assert (found.waited_mean, found.waited_max) == (0.5, 1.0)
    assert (found.running_longest, found.unfinished_seconds) == (0.0, 0.0)


def test_a_rerun_waits_from_the_end_of_the_run_before_it() -> None:
    queue = filled("a")
    queue.take(0.0)
    queue.add("a", 1.0)
    queue.done("a", 5.0)
    queue.take(7.0)
    assert queue.statistics(7.0).waited_max == 6.0


def test_thousands_of_processed_keys_leave_no_memory_allocated() -> None:
    queue = KeyQueue[int]()
    tracemalloc.start()
    for key in range(20_000):
        queue.add(key, 0.0, Priority(key % 2))
        queue.add_at(key, 1.0)
    full, _ = tracemalloc.get_traced_memory()
    queue.collect_ready(1.0, 20_000)
    while queue.waiting:
        queue.done(queue.take(0.0), 0.0)
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert full > 4_000_000
    assert left < 200_000  # the interpreter keeps 2,000 of the tuples


def test_numbers_can_be_read_in_a_thread_while_the_queue_is_used() -> None:
    queue, end = KeyQueue[str](), threading.Event()
    failures: list[BaseException] = []

    def look() -> None:
        while not end.is_set():
            try:
                queue.statistics(1.0)
            except Exception as error:
                failures.append(error)
                raise

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(20_000):
        queue.add(f"k{number % 7}", 0.0, Priority(number % 2))
        queue.done(queue.take(0.0), 0.0)
    end.set()
    thread.join()
    assert not failures


# -- against a model -----------------------------------------------------------------------------


@dataclass
class Model:
    """The same in lists, with no thought for speed."""

    now: float = 0.0
    lines: dict[Priority, list[str]] = field(default_factory=lambda: {LOW: [], NORMAL: []})
    working: dict[str, Priority | None] = field(default_factory=dict[str, Priority | None])
    delayed: dict[str, tuple[float, int, Priority]] = field(
        default_factory=dict[str, tuple[float, int, Priority]]
    )
    passed: int = 0
    delays: int = 0
    closed: bool = False

    def add(self, key: str, priority: Priority) -> None:
        if key in self.working:
            again = self.working[key]
            self.working[key] = priority if again is None else max(again, priority)
        elif key in self.lines[NORMAL]:
            pass
        elif key in self.lines[LOW]:
            if priority is NORMAL:
                self.lines[LOW].remove(key)
                self.lines[NORMAL].append(key)
        else:
            self.lines[priority].append(key)

    def delay(self, key: str, ready: float, priority: Priority) -> None:
        self.delays += 1
        known = self.delayed.get(key)
        if known is None or ready < known[0]:
            higher = priority if known is None else max(priority, known[2])
            self.delayed[key] = ready, self.delays, higher
        else:
            self.delayed[key] = *known[:2], max(priority, known[2])

    def collect(self) -> None:
        for key, (ready, _, priority) in sorted(self.delayed.items(), key=lambda each: each[1][:2]):
            if ready <= self.now:
                del self.delayed[key]
                self.add(key, priority)

    def take(self) -> str:
        low, normal = self.lines[LOW], self.lines[NORMAL]
        if low and normal and self.passed < NORMAL_PER_LOW:
            self.passed += 1
            key = normal.pop(0)
        elif low:
            self.passed = 0
            key = low.pop(0)
        else:
            key = normal.pop(0)
        assert key not in self.working
        self.working[key] = None
        return key

    def done(self, key: str) -> None:
        again = self.working.pop(key)
        if again is not None:
            self.lines[again].append(key)

    def drop(self) -> None:
        self.closed = True
        self.delayed.clear()
        for line in self.lines.values():
            line.clear()
        self.working = dict.fromkeys(self.working)

    @property
    def waiting(self) -> int:
        return sum(map(len, self.lines.values()))


KEYS = st.sampled_from([f"k{number}" for number in range(6)])
PRIORITIES = st.sampled_from(Priority)


class Machine(RuleBasedStateMachine):
    """Everything that may happen to a queue, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = KeyQueue[str]()
        self.model = Model()

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: str, priority: Priority) -> None:
        assert self.queue.add(key, self.model.now, priority) is not self.model.closed
        if not self.model.closed:
            self.model.add(key, priority)

    @rule(key=KEYS, delay=st.integers(1, 8), priority=PRIORITIES)
    def add_after(self, key: str, delay: int, priority: Priority) -> None:
        ready = self.model.now + delay
        assert self.queue.add_at(key, ready, priority) is not self.model.closed
        if not self.model.closed:
            self.model.delay(key, ready, priority)

    @rule(seconds=st.integers(1, 5))
    def pass_time(self, seconds: int) -> None:
        self.model.now += seconds
        self.model.collect()
        while (due := self.queue.delays.next_due) is not None and due <= self.model.now:
            self.queue.collect_ready(self.model.now, 2)

    @precondition(lambda self: self.model.waiting)
    @rule()
    def take(self) -> None:
        assert self.queue.take(self.model.now) == self.model.take()

    @precondition(lambda self: self.model.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.working)))
        again = self.queue.done(key, self.model.now).rerun
        assert (again and again.priority) == self.model.working[key]
        self.model.done(key)

    @rule(key=KEYS)
    def done_of_nothing(self, key: str) -> None:
        if key not in self.model.working:
            with pytest.raises(UsageError):
                self.queue.done(key, self.model.now)

    @precondition(lambda self: self.model.now > 10)
    @rule()
    def shut_down(self) -> None:
        self.queue.shut_down()
        self.model.closed = True
        self.model.delayed.clear()

    @precondition(lambda self: self.model.now > 20)
    @rule()
    def drop(self) -> None:
        self.queue.shut_down(drop=True)
        self.model.drop()
        while self.queue.free(2):
            pass

    @invariant()
    def all_is_as_in_the_model(self) -> None:
        queue, model = self.queue, self.model
        found = queue.statistics(model.now)
        assert (found.low, found.normal) == tuple(len(line) for line in model.lines.values())
        assert len(queue) == queue.waiting == found.depth
        assert (found.processing, found.delayed) == (len(model.working), len(model.delayed))
        assert queue.delays.next_due == min(
            (each[0] for each in model.delayed.values()), default=None
        )
        reruns = sum(again is not None for again in model.working.values())
        assert queue.reruns == reruns
        assert queue.finished == (model.closed and not model.waiting and not reruns)
        assert queue.idle == (not model.waiting and not model.working)


TestAnyHistory = Machine.TestCase
TestAnyHistory.settings = settings(stateful_step_count=50)


@pytest.mark.client_go(130)
def test_many_adds_while_a_key_is_worked_on_are_exactly_one_run_more() -> None:
    queue = filled("a")
    queue.take(0.0)
    for _ in range(100):
        queue.add("a", 0.0)
    assert queue.waiting == 0  # not while it is worked on

    assert queue.done("a", 0.0).rerun is not None

    assert emptied(queue) == ["a"]
    assert (queue.adds, queue.merged) == (2, 99)


def test_a_queue_that_is_shut_down_hands_out_what_it_has_and_takes_nothing() -> None:
    queue = filled("a", "b")
    queue.add_at("later", 1.0)
    queue.shut_down()
    assert not queue.add("c", 0.0)
    assert not queue.add("a", 0.0)
    assert not queue.add_at("d", 1.0)
    assert not queue.finished
    assert emptied(queue) == ["a", "b"]
    assert (queue.finished, queue.idle, queue.dropped) == (True, True, 4)


def test_waiting_keys_can_be_dropped_without_being_processed() -> None:
    queue = filled("a", "b", "c", "c")
    queue.add("low", 0.0, LOW)
    queue.add_at("later", 1.0)
    queue.take(0.0)
    queue.add("a", 0.0)
    queue.shut_down()
    queue.shut_down(drop=True)
    queue.shut_down(drop=True)

    assert (queue.waiting, queue.reruns, queue.dropped) == (0, 0, 5)
    assert (queue.finished, queue.idle) == (True, False)
    assert queue.priority("b") is None
    assert queue.done("a", 0.0).rerun is None
    found = queue.statistics(9.0)
    assert (found.done, found.depth, found.processing, found.waiting_longest) == (1, 0, 0, 0)
    assert queue.idle


def test_an_unused_queue_has_numbers_too() -> None:
    found = KeyQueue[str]().statistics(3.0)
    assert (found.depth, found.waited_mean, found.worked_mean, found.waiting_longest) == (
        0,
        0,
        0,
        0,
    )
    assert (found.running_longest, found.unfinished_seconds) == (0, 0)

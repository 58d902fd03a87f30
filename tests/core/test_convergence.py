"""The core as a whole: state machine, queue, cache and mailboxes against a small server model.

Hypothesis interleaves changes on the server, the ends of requests, and the progress of the queue,
of a staged state and of each listener. At every moment the cache must equal a past state of the
server. After all work is done, the cache and the result of each listener's events must equal the
server's present state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.cache.indexer import Indexer, StagedReplacement
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.reflector_requests import ListRequest
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._core.listwatch.transitions import TRANSITIONS, Phase
from aioinformer._core.objects.deltas import Bookmark, Delta, DeltaKind, QueueEntry, Replaced
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
)
from tests.core import strategies
from tests.core.builders import delta, pod

Versions: TypeAlias = dict[str, tuple[str, str]]
"""The uid and resourceVersion of each object, by name."""


def versions(objects: Mapping[ObjectKey, KubeObject]) -> Versions:
    """Return uid and version of each object by name."""
    return {obj.name: (obj.uid, obj.resource_version) for obj in objects.values()}


def node_of(obj: KubeObject) -> str:
    """Return the index value of an object."""
    node: str = obj["spec"]["nodeName"]
    return node


# -- the server ----------------------------------------------------------------------------------


@dataclass
class Server:
    """A collection with its whole history, of which it may serve only the newest part."""

    objects: dict[ObjectKey, KubeObject] = field(default_factory=dict[ObjectKey, KubeObject])
    rv: int = 100
    oldest: int = 100
    """The first version from which a watch is served."""
    log: list[Delta] = field(default_factory=list[Delta])
    past: dict[int, list[KubeObject]] = field(default_factory=dict[int, list[KubeObject]])
    """The state at each version."""
    unseen: dict[str, str] = field(default_factory=dict[str, str])
    """Uids of objects that a label keeps out of the collection, by name."""
    uids: int = 0

    def __post_init__(self) -> None:
        self.past[self.rv] = []

    def put(self, name: str, node: str) -> None:
        """Create an object, change it, or have it match the selector again."""
        key = ObjectKey("web", name)
        held = self.objects.get(key)
        self._commit("Updated" if held else "Added", name, self._uid(name, held), node)

    def take(self, name: str, *, by_label: bool) -> None:
        """Delete an object, or have it match the selector no more."""
        held = self.objects.get(ObjectKey("web", name))
        if held is not None:
            if by_label:
                self.unseen[name] = held.uid
            self._commit("Deleted", name, held.uid, node_of(held))

    def _uid(self, name: str, held: KubeObject | None) -> str:
        if held is not None:
            return held.uid
        self.uids += 1
        return self.unseen.pop(name, f"uid-{self.uids}")

    def _commit(self, kind: DeltaKind, name: str, uid: str, node: str) -> None:
        self.rv += 1
        obj = pod(name, rv=str(self.rv), uid=uid, node=node)
        self.log.append(delta(kind, obj))
        if kind == "Deleted":
            del self.objects[obj.key]
        else:
            self.objects[obj.key] = obj
        self.past[self.rv] = list(self.objects.values())

    def after(self, rv: int) -> list[Delta]:
        """Return the events after a version."""
        return self.log[rv - 100 :]


# -- a listener ----------------------------------------------------------------------------------


@dataclass
class Listener:
    """One listener's view of the objects, which checks the order of events."""

    box: Mailbox
    indexer: Indexer
    held: dict[ObjectKey, KubeObject] = field(default_factory=dict[ObjectKey, KubeObject])
    initial: set[tuple[ObjectKey, str]] = field(default_factory=set[tuple[ObjectKey, str]])

    def read(self) -> bool:
        """Take one event; whether there was one."""
        event = self.box.pop()
        if event is None:
            return False
        self._receive(event)
        return True

    def _receive(self, event: Event) -> None:
        match event:
            case Added(obj, initial):
                assert obj.key not in self.held
                self.held[obj.key] = obj
                if initial:
                    self._receive_initial(obj)
            case Updated(old, new, resync):
                assert self.held[new.key] is old, "old is the object of the event before"
                assert old.uid == new.uid, "an update never crosses uids"
                assert resync == (old is new)
                self.held[new.key] = new
            case Deleted(obj):
                assert self.held.pop(obj.key).uid == obj.uid

    def _receive_initial(self, obj: KubeObject) -> None:
        assert self.indexer.holds(obj), "cached at the time of its delivery"
        assert (obj.key, obj.uid) not in self.initial, "delivered once"
        assert not self.box.synced
        self.initial.add((obj.key, obj.uid))


FAILURES = sorted(
    {outcome for rules in TRANSITIONS.values() for outcome in rules}
    - {Outcome.MORE, Outcome.COMPLETE, Outcome.ENDED, Outcome.SILENT_WATCH},
    key=lambda outcome: outcome.name,
)

CHANGES = st.tuples(
    st.sampled_from(["n1", "n2", "re-create", "delete", "hide"]), strategies.few_names
)
"""Actions: an object is put on a node, re-created, deleted, or excluded from the collection by a
label."""

LIMIT = 3
"""Live events in a mailbox: few, so that a slow listener stops the pump."""


class Convergence(RuleBasedStateMachine):
    """A reflector, a pump and their listeners, each a step at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.indexer = Indexer({"node": node_of})
        # Without ``known`` keys: the cache doesn't contain a staged state yet.
        self.fifo = DeltaFIFO()
        self.listeners: list[Listener] = []
        self.listed: list[KubeObject] = []
        self.staging: StagedReplacement | None = None
        self.freeing: StagedReplacement | None = None
        self.popped = 0
        self.applied = 0
        self.now = 0.0

    @initialize(page_size=st.sampled_from([0, 1, 2]), cached=st.booleans())
    def begin(self, *, page_size: int, cached: bool) -> None:
        """Start with a server that has a cache, which ignores the limit, or has none."""
        self.list_watch_state = ListWatchState(page_size=page_size)
        self.server_caches = cached

    # -- the server --------------------------------------------------------------------------------

    @rule(changes=st.lists(CHANGES, min_size=1, max_size=5))
    def the_server_changes(self, changes: list[tuple[str, str]]) -> None:
        for what, name in changes:
            if what in ("delete", "hide", "re-create"):
                self.server.take(name, by_label=what == "hide")
            if what in ("n1", "n2", "re-create"):
                self.server.put(name, "n1" if what == "re-create" else what)

    @rule(most=st.booleans())
    def the_server_forgets(self, *, most: bool) -> None:
        keeps = 0 if most else (self.server.rv - self.server.oldest) // 2
        self.server.oldest = self.server.rv - keeps

    # -- the reflector -----------------------------------------------------------------------------

    @precondition(lambda self: self.list_watch_state.phase is not Phase.WATCH)
    @rule(behind=st.integers(0, 8), size=st.integers(1, 3))
    def a_page_comes(self, behind: int, size: int) -> None:
        self._answer_list(max(self._no_older_than, self.server.rv - behind), size)

    @precondition(lambda self: self.list_watch_state.phase is Phase.WATCH)
    @rule(count=st.integers(1, 6))
    def events_come(self, count: int) -> None:
        self._deliver(count)

    @precondition(lambda self: self.list_watch_state.phase is Phase.WATCH)
    @rule()
    def a_bookmark_comes(self) -> None:
        """Send a bookmark after all changes before its version, as a server does."""
        if int(self.list_watch_state.resource_version) >= self.server.oldest:
            self._deliver(1000)
            self.fifo.bookmark(str(self.server.rv))
            self.list_watch_state.record_watch_data(
                str(self.server.rv), now=self.now, bookmark=True
            )

    @rule(outcome=st.sampled_from([Outcome.ENDED, *FAILURES]))
    def a_request_ends(self, outcome: Outcome) -> None:
        if outcome in TRANSITIONS[self.list_watch_state.phase]:
            self._advance(outcome)

    @property
    def _no_older_than(self) -> int:
        """The oldest state that may answer the list: any for "0", the newest for none."""
        assert isinstance(self.list_watch_state.request, ListRequest)
        asked = self.list_watch_state.request.resource_version
        return {"": self.server.rv, "0": 100}.get(asked) or int(asked)

    def _answer_list(self, rv: int, size: int) -> None:
        request = self.list_watch_state.request
        assert isinstance(request, ListRequest)
        if request.freshness_check:
            self._advance(self.list_watch_state.finish_page(str(self.server.rv), "").outcome)
            return
        start = 0
        if request.continue_token:
            rv, start = (int(part) for part in request.continue_token.split(":"))
            if rv < self.server.oldest:
                self._advance(Outcome.EXPIRED)
                return
        objects = self.server.past[rv]
        cuts = request.limit and not (self.server_caches and request.resource_version)
        end = start + size if cuts else len(objects)
        self.listed += objects[start:end]
        token = f"{rv}:{end}" if end < len(objects) else ""
        outcome = self.list_watch_state.finish_page(str(rv), token).outcome
        if outcome is Outcome.COMPLETE:
            assert len({obj.key for obj in self.listed}) == len(self.listed) == len(objects)
            self.fifo.replace(tuple(self.listed), str(rv))
        self._advance(outcome)

    def _deliver(self, count: int) -> None:
        rv = int(self.list_watch_state.resource_version)
        if rv < self.server.oldest:
            self._advance(Outcome.EXPIRED)
            return
        for change in self.server.after(rv)[:count]:
            self.fifo.push(change)
            self.list_watch_state.record_watch_data(change.obj.resource_version, now=self.now)

    def _advance(self, outcome: Outcome) -> None:
        step = self.list_watch_state.advance(outcome, now=self.now, jitter=0.5)
        self.now += step.delay + 0.1
        if not (isinstance(step.request, ListRequest) and step.request.continue_token):
            self.listed.clear()

    # -- the pump ----------------------------------------------------------------------------------

    @rule(count=st.integers(1, 10))
    def pump(self, count: int) -> None:
        self._pump(count)

    @precondition(lambda self: self.staging or self.freeing)
    @rule(size=st.integers(1, 6))
    def stage(self, size: int) -> None:
        self._stage(size)
        if self.freeing and self.freeing.step(size):
            self.freeing = None

    @rule()
    def resync(self) -> None:
        self.fifo.resync()

    def _pump(self, count: int) -> None:
        for _ in range(count):
            if self.staging or any(each.box.free <= 0 for each in self.listeners):
                return
            if (entry := self.fifo.pop()) is not None:
                self._apply(entry)

    def _apply(self, entry: QueueEntry) -> None:
        if isinstance(entry, Delta):
            self.popped = int(entry.obj.resource_version)
            events: list[Event] = []
            assert self.indexer.apply(entry, events) is None
            for listener in self.listeners:
                listener.box.put(events)
        elif isinstance(entry, Bookmark):
            self.popped = int(entry.resource_version)
            self.indexer.bookmark(entry)
        elif isinstance(entry, Replaced):
            self.popped = int(entry.resource_version)
            self.staging = self.indexer.replace(entry)
        else:
            objects = list(self.indexer.state.objects.values())
            for listener in self.listeners:
                listener.box.resync(objects, self._is_current)

    def _is_current(self, obj: KubeObject) -> bool:
        return self.indexer.state.objects.get(obj.key) is obj

    def _stage(self, size: int) -> None:
        if any(each.box.relist_pending for each in self.listeners):
            return
        if self.staging and self.staging.step(size):
            events = self.staging.commit()
            for listener in self.listeners:
                listener.box.put_relist(events.chunks, initial=self.staging.initial)
            self.freeing, self.staging = self.staging, None

    # -- listeners ---------------------------------------------------------------------------------

    @precondition(lambda self: len(self.listeners) < 4)
    @rule()
    def join(self) -> None:
        box = Mailbox(limit=LIMIT, overflow="block", holds=self.indexer.holds)
        if self.indexer.state.synced:
            box.replay(list(self.indexer.state.objects.values()))
        self.listeners.append(Listener(box, self.indexer))

    @precondition(lambda self: self.listeners)
    @rule(which=st.integers(0, 3), count=st.integers(1, 8))
    def read(self, which: int, count: int) -> None:
        listener = self.listeners[which % len(self.listeners)]
        for _ in range(count):
            listener.read()

    # -- in every moment ---------------------------------------------------------------------------

    @invariant()
    def the_cache_is_a_true_past_state(self) -> None:
        state = self.indexer.state
        if state.synced:
            then = self.server.past[int(state.resource_version)]
            assert versions(state.objects) == versions({obj.key: obj for obj in then})

    @invariant()
    def the_applied_version_never_goes_back_nor_overtakes(self) -> None:
        applied = int(self.indexer.state.resource_version or 0)
        assert self.applied <= applied <= self.popped
        self.applied = applied

    @invariant()
    def indexes_are_what_a_new_index_would_be(self) -> None:
        again: dict[str, set[ObjectKey]] = {}
        for key, obj in self.indexer.state.objects.items():
            again.setdefault(node_of(obj), set()).add(key)
        buckets = self.indexer.state.indexes["node"].buckets
        assert {value: set(bucket) for value, bucket in buckets.items()} == again

    @invariant()
    def no_mailbox_holds_more_than_its_limit(self) -> None:
        assert all(each.box.pending <= LIMIT for each in self.listeners)

    # -- at last -----------------------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "list_watch_state"):
            return
        for _ in range(200):
            if self._at_rest:
                break
            self._run_on()
        assert self._at_rest, f"still busy: {self.list_watch_state} {self.fifo}"
        assert self.fifo.synced
        assert versions(self.indexer.state.objects) == versions(self.server.objects)
        assert self.indexer.state.resource_version == str(self.server.rv)
        for listener in self.listeners:
            self._has_heard_it_all(listener)

    @property
    def _at_rest(self) -> bool:
        return (
            self.list_watch_state.resource_version == str(self.server.rv)
            and self.list_watch_state.phase is Phase.WATCH
            and not (self.fifo or self.staging)
            and all(each.box.empty for each in self.listeners)
        )

    def _run_on(self) -> None:
        """All of them do what they can."""
        if self.list_watch_state.phase is Phase.WATCH:
            self._deliver(1000)
        else:
            self._answer_list(self.server.rv, 1000)
        self._stage(1000)
        self._pump(1000)
        for listener in self.listeners:
            while listener.read():
                pass

    def _has_heard_it_all(self, listener: Listener) -> None:
        assert listener.box.synced
        assert listener.held.keys() == self.indexer.state.objects.keys()
        for key, obj in self.indexer.state.objects.items():
            assert listener.held[key] is obj


@pytest.mark.client_go(109)
@pytest.mark.timeout(600)  # a failure is worth the time that shrinking it takes
def test_the_cache_and_its_listeners_end_at_the_state_of_the_server() -> None:
    run_state_machine_as_test(Convergence, settings=settings(stateful_step_count=60))

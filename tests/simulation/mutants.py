"""Informers, networks and mailboxes with one planted bug each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count, islice
from typing import Any

from aioinformer import Added, BackoffPolicy, Event, Handler, KubeObject, Updated
from aioinformer._core.cache.store import Index, IndexValues
from aioinformer._core.codec.watch_decoder import InitialList, WatchBatch, WatchDecoder
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.listwatch.requests import AnyRequest, WatchRequest
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._core.listwatch.transitions import NextRequest, Phase
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.informer.informer import SharedInformer
from aioinformer._runtime.informer.options import InformerOptions
from aioinformer._runtime.informer.pipeline import InformerPipeline
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.error_hook import Problem
from aioinformer._runtime.reporting.health import ReflectorStatus
from aioinformer.testing.faults.effects import RewriteLine
from tests.simulation.listener_mutants import await_handler
from tests.simulation.listeners import HandlerRaised, SimulatedListener
from tests.simulation.probes import indexer_of, reflector_of, replace_attribute

# -- the server --------------------------------------------------------------------------------


def dropping_events(_: str) -> RewriteLine:
    """Return a function that drops every fortieth event."""
    numbers = count(1)
    return lambda line: [] if b"BOOKMARK" not in line and next(numbers) % 40 == 0 else [line]


def repeating_events(_: str) -> RewriteLine:
    """Return a function that sends an old modification again, after newer ones."""
    sent: list[bytes] = []

    def rewrite(line: bytes) -> list[bytes]:
        if b'"MODIFIED"' in line:
            sent.append(line)
        if len(sent) < 30:
            return [line]
        again = sent[0]
        sent.clear()
        return [line, again]

    return rewrite


# -- mailboxes ---------------------------------------------------------------------------------


class DropsOnOverflow(Mailbox):
    """Drops the events for which the limit has no room."""

    def put(self, events: Sequence[Event], at: float = 0.0) -> bool:
        return super().put(events[: max(0, self.limit // 2 - self.pending)], at)


class OverfillsMailbox(Mailbox):
    """Shows more free room than there is."""

    @property
    def free(self) -> int:
        return super().free + 5


class ForgetsAReplay(Mailbox):
    """Leaves out the first object of a replay."""

    def replay(self, objects: Iterable[KubeObject], at: float = 0.0, *, full: bool = True) -> None:
        super().replay(islice(objects, 1, None), at, full=full)


class RepeatsAReplay(Mailbox):
    """Delivers one object of a replay twice."""

    def replay(self, objects: Iterable[KubeObject], at: float = 0.0, *, full: bool = True) -> None:
        found = list(objects)
        super().replay([*found, *found[:1]], at, full=full)


class DeliversUnchanged(Mailbox):
    """Delivers objects that a list has confirmed unchanged."""

    def put_relist(
        self,
        batches: Sequence[Sequence[Event]],
        at: float = 0.0,
        *,
        initial: bool = False,
        scope: str | None = None,
    ) -> None:
        events = chain.from_iterable(batches)
        changed = [event.obj for event in events if not initial and isinstance(event, Added)]
        again = [[Updated(obj, obj) for obj in changed]] if changed else []
        super().put_relist([*batches, *again], at, initial=initial, scope=scope)


class SyncedEarly(Mailbox):
    """Is synced when the last initial object is delivered, not when it was handled."""

    def pop(self) -> Event | None:
        event = super().pop()
        self.synced = self.synced or event is not None
        return event


class QueuesEveryResync(Mailbox):
    """Queues a resync behind another one."""

    def resync(self, objects: Iterable[KubeObject], current: Callable[[KubeObject], bool]) -> bool:
        self.put_relist([[Updated(obj, obj, resync=True) for obj in objects]])
        return True


# -- informers ---------------------------------------------------------------------------------


class LossyIndex(Index):
    """Leaves out every seventh object."""

    def move(self, obj: KubeObject, old: IndexValues, new: IndexValues) -> None:
        lost = new and sum(obj.name.encode()) % 7 == 0
        super().move(obj, old, () if lost else new)

    def empty_copy(self) -> LossyIndex:
        return LossyIndex(self.name, self.function)


def lose_index_entries(pipeline: InformerPipeline) -> None:
    """Give an informer a lossy index."""
    state = indexer_of(pipeline).state
    state.indexes = {
        name: LossyIndex(name, index.function) for name, index in state.indexes.items()
    }


def synced_from_the_start(pipeline: InformerPipeline) -> None:
    """Let an informer be synced from the start."""
    indexer_of(pipeline).state.synced = True


class LeavesATask(SharedInformer):
    """Has a task that does not end with the informer."""

    async def run(self, **options: Any) -> None:
        self.stray = asyncio.create_task(asyncio.sleep(1e7), name="stray")
        await super().run(**options)


class BusyWaits(SharedInformer):
    """Polls for the end in a loop that never waits."""

    async def wait_synced(self, timeout: float | None = None) -> None:
        for _ in count():
            await asyncio.sleep(0)


class NeverWakes(SharedInformer):
    """Waits for an event that is never set."""

    async def wait_synced(self, timeout: float | None = None) -> None:
        await super().wait_synced(timeout)
        await asyncio.Event().wait()


class HidesErrors(SharedInformer):
    """Suppresses the errors of handlers."""

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        assert isinstance(handler, SimulatedListener)

        async def quiet(event: Event) -> None:
            try:
                await await_handler(handler, event)
            except HandlerRaised:
                return

        quiet.__qualname__ = handler.spec.name
        return super().add_handler(quiet, **options)


class SerializesHandlers(SharedInformer):
    """Calls one handler after the other, as if all shared a task."""

    def __init__(self, source: ListerWatcher, **options: Any) -> None:
        super().__init__(source, **options)
        self._turn = asyncio.Lock()

    def add_handler(self, handler: Handler, **options: Any) -> Registration:
        assert isinstance(handler, SimulatedListener)

        async def in_turn(event: Event) -> None:
            async with self._turn:
                await await_handler(handler, event)

        in_turn.__qualname__ = handler.spec.name
        return super().add_handler(in_turn, **options)


class ErrorlessStatus(ReflectorStatus):
    """Forgets errors."""

    def record_error(self, error: Exception) -> None:
        self.error = None


def hide_failures(pipeline: InformerPipeline) -> None:
    """Show no errors in an informer's health."""
    pipeline.reporter.status = ErrorlessStatus()


def skip_idle_timeout_problems(pipeline: InformerPipeline) -> None:
    """Don't call the error hook at an idle timeout."""
    hook = pipeline.reporter._on_error  # pyright: ignore[reportPrivateUsage]

    def call_at_others(problem: Problem) -> None:
        if problem.cause != "idle_timeout" and hook is not None:
            hook(problem)

    replace_attribute(pipeline.reporter, "_on_error", call_at_others)


# -- what to ask for next ----------------------------------------------------------------------


HASTY = InformerOptions(backoff=BackoffPolicy(initial=0.01, maximum=0.01))
"""Sends the next request at once."""

FORGETFUL = InformerOptions(backoff=BackoffPolicy(reset_after=1e-9))
"""Takes every failure for the first one."""

NO_IDLE_TIMEOUT = InformerOptions(liveness=LivenessPolicy(idle_factor=0))
"""Has no idle timeout."""

NO_WATCHLIST_TIMEOUT = InformerOptions(
    liveness=LivenessPolicy(initial_silence=1e6, initial_total=1e6)
)
"""Waits for the end bookmark of a WatchList without a limit."""


def with_state_machine(machine: type[ListWatchState]) -> Callable[[InformerPipeline], None]:
    """Return a function that gives an informer such a state machine."""

    def plant(pipeline: InformerPipeline) -> None:
        reflector_of(pipeline)._state.__class__ = machine  # pyright: ignore[reportPrivateUsage]

    return plant


class ForgetfulServerProfile(ServerProfile):
    """Doesn't remember that WatchLists failed."""

    def record_watchlist_failure(self, now: float, seconds: float) -> None:
        return


class SkipsFreshnessCheck(ListWatchState):
    """Resumes a silent watch without a freshness check."""

    def _build_request(self, next_request: NextRequest, now: float, jitter: float) -> AnyRequest:
        return super()._build_request(
            NextRequest.WATCH if next_request is NextRequest.FRESHNESS_CHECK else next_request,
            now,
            jitter,
        )


class MissesRewinds(ListWatchState):
    """Doesn't notice that a state is older than the one before."""

    def _goes_back(self, resource_version: str) -> bool:
        return self.phase is Phase.FRESHNESS_CHECK and super()._goes_back(resource_version)


# -- reading -----------------------------------------------------------------------------------


def with_reflector(reflector: type[Reflector]) -> Callable[[InformerPipeline], None]:
    """Return a function that gives an informer such a reflector."""

    def plant(pipeline: InformerPipeline) -> None:
        reflector_of(pipeline).__class__ = reflector

    return plant


def compare_by_version(pipeline: InformerPipeline) -> None:
    """Take equal versions for equal objects."""

    def find_same_version(obj: KubeObject) -> KubeObject:
        cached = pipeline.indexer.state.objects.get(obj.key)
        if cached is None or cached.uid != obj.uid:
            return obj
        return cached if cached.resource_version == obj.resource_version else obj

    replace_attribute(reflector_of(pipeline), "_find_cached", find_same_version)


class SkipsTransformOfLists(Reflector):
    """Transforms the events of watches alone."""

    def _page_collector(self, page: list[KubeObject]) -> Callable[[Iterable[KubeObject]], None]:
        return lambda objects: page.extend(map(self._find_cached, objects))


class WithWatchDecoder(Reflector):
    """Reads watches with a decoder of its own."""

    decoder: type[WatchDecoder] = WatchDecoder

    def make_initial_list(self, request: WatchRequest) -> InitialList | None:
        return InitialList(self._find_cached) if request.initial else None

    def _make_watch_decoder(self, request: WatchRequest) -> WatchDecoder:
        initial = self.make_initial_list(request)
        return self.decoder(self._source.resource, initial=initial, converter=self._converter)


class KeepsPartialInitialList(WithWatchDecoder):
    """Keeps the objects of a WatchList that broke off."""

    _partial: InitialList | None = None

    def make_initial_list(self, request: WatchRequest) -> InitialList | None:
        if self._state.phase is not Phase.WATCHLIST:
            return None
        self._partial = self._partial or InitialList(self._find_cached)
        return self._partial


class VersionOfTheLastObject(WatchDecoder):
    """Takes the version of the last object for that of the state."""

    def feed(self, data: bytes) -> WatchBatch:
        batch = super().feed(data)
        if batch.initial_list is not None and (objects := batch.initial_list.objects()):
            batch.initial_list.resource_version = objects[-1].resource_version
        return batch


class ResumesFromTheLastObject(WithWatchDecoder):
    """Resumes from the last object of an initial state."""

    decoder = VersionOfTheLastObject


class AnyBookmarkCompletesList(WatchDecoder):
    """Takes any annotated bookmark for the end of the initial state."""

    def feed(self, data: bytes) -> WatchBatch:
        return super().feed(
            data.replace(b'initial-events-end":"false"', b'initial-events-end":"true"')
        )


class AcceptsAnyEndBookmark(WithWatchDecoder):
    """Ends an initial state too early."""

    decoder = AnyBookmarkCompletesList

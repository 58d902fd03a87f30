"""The planted bugs of servers, caches, reports and requests: the name of each says what."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from aioinformer import BackoffPolicy, KubeObject, LivenessPolicy, SharedInformer
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.store import Index
from aioinformer._core.codec.initial_list import InitialList
from aioinformer._core.codec.watch_decoder import WatchDecoder
from aioinformer._core.listwatch.backoff import Backoff
from aioinformer._core.listwatch.page_sequence import PageSequence
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._core.listwatch.transitions import NextRequest, Phase
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.reflector_status import ReflectorStatus
from aioinformer._runtime.reporting.reporter import InformerReporter
from tests.simulation.bugs.planted_bug import Original, other_options, planted_bug, planted_bugs
from tests.simulation.network import Network

# -- the server --------------------------------------------------------------------------------


@planted_bug(Network, "make_faults", promises={1, 3})
def an_event_is_lost(make: Original, network: Network, name: str) -> Any:
    """Drop every fortieth event of each informer."""
    faults, numbers = make(network, name), count(1)

    def rewrite(line: bytes) -> list[bytes]:
        return [] if b"BOOKMARK" not in line and next(numbers) % 40 == 0 else [line]

    faults.rewrite_events(rewrite)
    return faults


@planted_bug(Network, "make_faults", promises={2, 3})
def an_event_comes_again(make: Original, network: Network, name: str) -> Any:
    """Send an old modification again, after newer ones."""
    faults, sent = make(network, name), list[bytes]()

    def rewrite(line: bytes) -> list[bytes]:
        if b'"MODIFIED"' in line:
            sent.append(line)
        if len(sent) < 30:
            return [line]
        again = sent[0]
        sent.clear()
        return [line, again]

    faults.rewrite_events(rewrite)
    return faults


# -- the cache ---------------------------------------------------------------------------------


@planted_bug(Indexer, "__init__", promises={6})
def an_informer_is_synced_early(
    init: Original, indexer: Indexer, *args: Any, **options: Any
) -> Any:
    init(indexer, *args, **options)
    indexer.state.synced = True


@planted_bug(Index, "move", promises={3})
def an_index_loses_entries(move: Original, index: Index, obj: KubeObject, *values: Any) -> Any:
    """Leave out every seventh object."""
    old, new = values
    lost = new and sum(obj.name.encode()) % 7 == 0
    return move(index, obj, old, () if lost else new)


@planted_bug(Indexer, "deduplicate", promises={1, 2, 3})
def versions_are_compared_and_not_contents(_: Original, indexer: Indexer, obj: KubeObject) -> Any:
    cached = indexer.state.objects.get(obj.key)
    if cached is None or cached.uid != obj.uid:
        return obj
    return cached if cached.resource_version == obj.resource_version else obj


# -- reports -----------------------------------------------------------------------------------


@planted_bug(ReflectorStatus, "record_error", promises={10})
def failures_are_not_shown(_: Original, status: ReflectorStatus, error: Exception) -> Any:
    status.error = None


@planted_bug(InformerReporter, "_call_hook", promises={10})
def the_error_hook_is_not_called(
    call: Original, reporter: InformerReporter, phase: str, cause: str, *args: Any
) -> Any:
    """Don't call the error hook at an idle timeout."""
    if cause != "idle_timeout":
        call(reporter, phase, cause, *args)


# -- requests ----------------------------------------------------------------------------------


there_is_no_backoff = other_options(
    "there is no backoff",
    SharedInformer,
    "__init__",
    {11},
    backoff=BackoffPolicy(initial=0.01, maximum=0.01),
)


a_storm_is_many_first_times = other_options(
    "a storm is many first times",
    SharedInformer,
    "__init__",
    {11},
    backoff=BackoffPolicy(reset_after=1e-9),
)


an_idle_timer_never_fires = other_options(
    "an idle timer never fires",
    SharedInformer,
    "__init__",
    {1, 9},
    liveness=LivenessPolicy(idle_factor=0),
)


an_end_mark_is_waited_for = other_options(
    "an end mark is waited for",
    SharedInformer,
    "__init__",
    (),
    liveness=LivenessPolicy(initial_idle=1e6, initial_total=1e6),
)


@planted_bug(ServerProfile, "record_watchlist_failure", promises={9, 11})
def a_fallback_is_not_remembered(_: Original, profile: ServerProfile, *args: Any) -> Any:
    return


@planted_bug(ListWatchState, "_build_request", promises={1, 2, 3})
def a_silent_watch_is_only_taken_up_again(
    build: Original, state: ListWatchState, following: NextRequest, *args: Any
) -> Any:
    skipped = following is NextRequest.FRESHNESS_CHECK
    return build(state, NextRequest.WATCH if skipped else following, *args)


@planted_bug(ListWatchState, "_goes_back", promises={1, 2, 3})
def a_rewind_is_not_announced(goes_back: Original, state: ListWatchState, version: str) -> Any:
    return state.phase is Phase.FRESHNESS_CHECK and goes_back(state, version)


@planted_bug(ListWatchState, "_build_request")
def a_watch_follows_refused_connections(
    build: Original, state: Any, following: NextRequest, *args: Any
) -> Any:
    """Watch without a check of the server's version, although the server may be a restored one."""
    skipped = following is NextRequest.FRESHNESS_CHECK and state._unreachable_since is not None
    return build(state, NextRequest.WATCH if skipped else following, *args)


@planted_bug(Backoff, "record_answer")
def an_outage_outlasts_its_end(_: Original, backoff: Backoff, *unreachable: float) -> Any:
    """Wait after the first answer as long as while the server could not be reached."""


@an_outage_outlasts_its_end.also(Backoff, "can_skip")
def _(_: Original, backoff: Backoff, now: float) -> Any:
    return backoff.is_first(now)


@planted_bug(ServerProfile, "record_end_mark")
def an_end_mark_is_no_bookmark(_: Original, profile: ServerProfile) -> Any:
    """Assume no interval of bookmarks before two of them have arrived."""


@planted_bug(PageSequence, "_find_fault")
def pages_have_no_bound(_: Original, pages: PageSequence, token: int) -> Any:
    return ""


# -- answers -----------------------------------------------------------------------------------


@planted_bug(Reflector, "_page_collector", promises={1, 2, 3})
def lists_are_not_transformed(_: Original, reflector: Any, page: list[KubeObject]) -> Any:
    def collect(objects: Iterable[KubeObject]) -> None:
        page.extend(map(reflector._deduplicate, objects))

    return collect


_PARTIAL = WeakKeyDictionary[Any, InitialList]()
"""The objects that the WatchLists of each reflector have shown."""


@planted_bug(Reflector, "_make_watch_decoder", promises={1, 2, 3})
def a_partial_state_is_kept(make: Original, reflector: Any, request: Any) -> Any:
    """Keep the objects of a WatchList that broke off."""
    decoder = make(reflector, request)
    if request.initial:
        decoder._initial = _PARTIAL.setdefault(reflector, decoder._initial)
    return decoder


@planted_bug(WatchDecoder, "feed", promises={1, 2, 3, 10})
def an_initial_addition_is_resumed_from(feed: Original, decoder: WatchDecoder, data: bytes) -> Any:
    """Take the version of the last object for that of the state."""
    batch = feed(decoder, data)
    if batch.initial_list is not None and (objects := batch.initial_list.objects()):
        batch.initial_list.resource_version = objects[-1].resource_version
    return batch


@planted_bug(WatchDecoder, "feed", promises={1, 2, 3, 6, 9, 10})
def any_bookmark_ends_an_initial_state(feed: Original, decoder: WatchDecoder, data: bytes) -> Any:
    return feed(
        decoder, data.replace(b'initial-events-end":"false"', b'initial-events-end":"true"')
    )


BUGS = [each for each in planted_bugs(globals()) if each.promises]
"""The bugs that the drawn histories find. The others need a history of their own."""

"""WatchLists, silence, and servers that go back in time, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from aioinformer import (
    Deleted,
    Delta,
    DeltaQueue,
    Event,
    ListRequest,
    LivenessPolicy,
    Problem,
    Reflector,
    Replaced,
    Resource,
    SharedInformer,
    WatchRequest,
)
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer.errors import (
    FetchError,
    ServerFailure,
    ServerRewound,
    Status,
)
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation.loop import run
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import (
    PODS,
    ScriptedListerWatcher,
    ScriptedResponse,
    added,
    body,
    bookmark,
    deleted,
    error_event,
    error_response,
    initial_events_end,
    list_response,
    modified,
    scripted_lister_watcher,
    watch_response,
)

T = TypeVar("T")

MINUTE = 60.0


def in_virtual_time(main: Callable[[], Coroutine[None, None, T]]) -> T:
    return run(main(), seed=0)


@dataclass(slots=True)
class Watched:
    """A reflector that runs, and all that can be seen of it."""

    source: ScriptedListerWatcher
    queue: DeltaQueue = field(default_factory=DeltaQueue)
    problems: list[Problem] = field(default_factory=list[Problem])
    profile: ServerProfile = field(default_factory=ServerProfile)

    @asynccontextmanager
    async def runs(self, liveness: LivenessPolicy | None = None) -> AsyncGenerator[Reflector]:
        reflector = Reflector(
            self.source,
            self.queue,
            liveness=liveness,
            profile=self.profile,
            reporter=InformerReporter("pods", on_error=self.problems.append),
        )
        async with running_in_background(reflector.run()):
            yield reflector

    def popped(self) -> list[str]:
        """Pop the queued entries, in short."""
        found: list[str] = []
        while (entry := self.queue.pop()) is not None:
            match entry:
                case Replaced(objects, version):
                    names = ",".join(sorted(obj.name for obj in objects))
                    found.append(f"state {version}: {names}")
                case Delta(kind, obj):
                    found.append(f"{kind} {obj.name} {obj.resource_version}")
                case _:
                    pass
        return found

    def asked(self) -> list[str]:
        """Return the requests, in short."""
        return [_in_short(request) for request in self.source.requests]

    @property
    def causes(self) -> list[str]:
        return [f"{problem.phase} {problem.cause}" for problem in self.problems]


def _in_short(request: ListRequest | WatchRequest) -> str:
    return f"{request.verb} {request.resource_version}".strip()


def streaming(*answers: ScriptedResponse) -> Watched:
    """Return a source that supports WatchLists."""
    return Watched(scripted_lister_watcher(*answers, watch_lists=True))


def quiet(*chunks: bytes) -> ScriptedResponse:
    """Return a stream that has these chunks and no end."""
    return watch_response(*chunks, never_ends=True)


# -- WatchLists ----------------------------------------------------------------------------------


@pytest.mark.client_go(10, 40)
def test_a_watch_list_delivers_the_state_and_continues_as_the_watch() -> None:
    async def main() -> None:
        watched = streaming(quiet(added("a", 3), initial_events_end(5), modified("a", 6)))
        async with watched.runs() as reflector:
            await asyncio.sleep(1)
            assert watched.asked() == ["watchlist"]
            assert watched.popped() == ["state 5: a", "Updated a 6"]
            assert reflector.resource_version == "6"
            assert (reflector.status.state, reflector.strategy) == ("watching", "watchlist")

    in_virtual_time(main)


@dataclass(slots=True, eq=False)
class Dripping(ScriptedListerWatcher):
    """Sends a space a second instead of a list, the first time."""

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        if self.requests:
            async with ScriptedListerWatcher.list(self, request) as chunks:
                yield chunks
        else:
            self.requests.append(request)
            async with aclosing(self._spaces()) as spaces:
                yield spaces

    async def _spaces(self) -> AsyncGenerator[bytes]:
        while True:
            await asyncio.sleep(1)
            yield b" "


def test_a_list_that_never_ends_is_cancelled_at_a_deadline() -> None:
    async def main() -> None:
        watched = Watched(
            Dripping(scripted_lister_watcher(list_response(version="10"), quiet()).responses)
        )
        async with watched.runs():
            await asyncio.sleep(10 * MINUTE + 5)
            assert watched.asked() == ["list 0", "list 0", "watch 10"]
            assert watched.causes == ["list connection_lost"]
            assert "did not end within 600 s" in str(watched.problems[0].error)

    in_virtual_time(main)


# -- silence -------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Bookmarking(ScriptedListerWatcher):
    """A server that sends a bookmark a minute; its streams fall silent after so many seconds."""

    silent_after: float = float("inf")
    version: int = 10

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        self.requests.append(request)
        self.open_responses += 1
        try:
            async with aclosing(self._bookmarks()) as bookmarks:
                yield bookmarks
        finally:
            self.open_responses -= 1

    async def _bookmarks(self) -> AsyncGenerator[bytes]:
        began = asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(MINUTE)
            if asyncio.get_running_loop().time() - began > self.silent_after:
                await asyncio.get_running_loop().create_future()
            self.version += 1
            yield bookmark(self.version)


def bookmarking(*answers: ScriptedResponse, silent_after: float = float("inf")) -> Watched:
    source = Bookmarking(scripted_lister_watcher(*answers).responses, silent_after=silent_after)
    return Watched(source)


def test_a_watch_with_a_bookmark_every_minute_is_not_replaced() -> None:
    async def main() -> None:
        watched = bookmarking(list_response(version="10"))
        async with watched.runs() as reflector:
            await asyncio.sleep(5.5 * MINUTE)
            assert watched.asked() == ["list 0", "watch 10"]
            fresh = reflector.status.fresh
            assert fresh is not None
            assert fresh < MINUTE

    in_virtual_time(main)


def test_an_initial_list_is_replaced_after_the_configured_idle_timeout() -> None:
    async def main() -> None:
        watched = streaming(quiet(added("a", 3)), list_response(body("a", 3), version="10"))
        async with watched.runs(LivenessPolicy(initial_idle=2)):
            await asyncio.sleep(2.5)
            assert watched.asked() == ["watchlist", "list 0", "watch 10"]

    in_virtual_time(main)


def test_a_failed_freshness_check_is_not_repeated_and_the_watch_is_resumed() -> None:
    async def main() -> None:
        watched = bookmarking(
            list_response(version="10"),
            error_response(500, "InternalError"),
            silent_after=1.5 * MINUTE,
        )
        async with watched.runs():
            await asyncio.sleep(MINUTE + 85)
            assert watched.asked() == ["list 0", "watch 10", "freshness_check", "watch 11"]

    in_virtual_time(main)


# -- a server that goes back in time -------------------------------------------------------------


def test_a_version_that_remains_too_large_leads_to_a_list_of_the_restored_state() -> None:
    async def main() -> None:
        too_large = error_response(504, "Timeout", "Too large resource version: 10, current: 7")
        watched = streaming(
            watch_response(
                initial_events_end(10), deleted("a", 12), error_event(500, "InternalError")
            ),
            too_large,
            quiet(added("a", 3), initial_events_end(7)),
        )
        async with watched.runs():
            await asyncio.sleep(10)
            assert watched.asked() == ["watchlist", "watchlist 12", "watchlist"]
            assert watched.popped() == ["state 10: ", "Deleted a 12", "state 7: a"]

    in_virtual_time(main)


def test_the_error_of_a_rewind_names_the_resource() -> None:
    error = ServerRewound(str(Resource("", "v1", "pods", "Pod")), "7")
    assert "pods" in str(error)
    assert error.resource_version == "7"
    assert PODS.plural == "pods"


# -- a resource that comes and goes --------------------------------------------------------------

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
WIDGETS_V2 = Resource("example.com", "v2", "widgets", "Widget")


@asynccontextmanager
async def widgets_of(
    cluster: Cluster, delivered: list[Event], problems: list[Problem]
) -> AsyncGenerator[SharedInformer]:
    source = ClusterSource(cluster).lister_watcher(WIDGETS)
    informer = SharedInformer(source, on_error=problems.append)
    informer.add_handler(delivered.append)
    async with running_in_background(informer.run()):
        yield informer


def with_widgets(*names: str) -> Cluster:
    cluster = Cluster()
    cluster.add_resource(WIDGETS)
    for name in names:
        cluster.create(WIDGETS, {"metadata": {"name": name}})
    return cluster


def test_a_resource_that_is_missing_at_the_start_is_waited_for() -> None:
    async def main() -> None:
        cluster, delivered = Cluster(), list[Event]()
        async with widgets_of(cluster, delivered, []) as informer:
            await asyncio.sleep(2 * MINUTE)
            assert not informer.synced, "an empty cache must not pass for a synced one"
            assert informer.health.state == "absent"
            assert str(informer.health).startswith("waiting for the resource for")
            cluster.add_resource(WIDGETS)
            cluster.create(WIDGETS, {"metadata": {"name": "a"}})
            await informer.wait_synced(timeout=2 * MINUTE)
            await asyncio.sleep(1)
            assert [event.obj.name for event in delivered] == ["a"]

    in_virtual_time(main)


def test_a_resource_that_is_deleted_empties_the_cache_and_comes_back_by_itself() -> None:
    async def main() -> None:
        cluster, delivered = with_widgets("a", "b"), list[Event]()
        async with widgets_of(cluster, delivered, []) as informer:
            await informer.wait_synced(timeout=30)
            cluster.remove_resource(WIDGETS)
            await asyncio.sleep(MINUTE)
            assert len(informer.lister) == 0
            assert str(informer.health).startswith("waiting for the resource for")
            assert informer.synced
            cluster.add_resource(WIDGETS)
            cluster.create(WIDGETS, {"metadata": {"name": "c"}})
            await asyncio.sleep(2 * MINUTE)
            assert [obj.name for obj in informer.lister.list()] == ["c"]
            assert informer.health.state == "watching"

    in_virtual_time(main)


def test_a_resource_that_404_and_discovery_report_as_removed_empties_the_cache() -> None:
    """The watch broke before the deletions came."""

    async def main() -> None:
        cluster, delivered = with_widgets("a"), list[Event]()
        source = ClusterSource(cluster)
        informer = SharedInformer(source.lister_watcher(WIDGETS))
        informer.add_handler(delivered.append)
        async with running_in_background(informer.run()):
            await informer.wait_synced(timeout=30)
            with source.faults.reset(verb="watch"):
                cluster.remove_resource(WIDGETS)
                await asyncio.sleep(0.1)
            await asyncio.sleep(MINUTE)
            match delivered[-1]:
                case Deleted(obj, reason):
                    assert (obj.name, reason) == ("a", "resource_gone")
                case _:
                    pytest.fail(f"delivered: {delivered}")
            assert len(informer.lister) == 0

    in_virtual_time(main)


@pytest.mark.parametrize("code", [401, 403, 404, 500, 503])
def test_a_404_does_not_empty_the_cache_while_discovery_lists_the_resource(code: int) -> None:
    """A 404 may come from a replica that lags behind, or from something in between."""

    async def main() -> None:
        cluster, delivered = with_widgets("a"), list[Event]()
        source = ClusterSource(cluster)
        informer = SharedInformer(source.lister_watcher(WIDGETS))
        informer.add_handler(delivered.append)
        async with running_in_background(informer.run()):
            await informer.wait_synced(timeout=30)
            with (
                source.faults.status(code, verb="watch"),
                source.faults.status(code, verb="list"),
            ):
                with source.faults.reset(verb="watch", times=1):
                    await asyncio.sleep(5 * MINUTE)
                assert [obj.name for obj in informer.lister.list()] == ["a"]
                assert informer.health.error is not None
            await asyncio.sleep(2 * MINUTE)
            assert informer.health.state == "watching"
            assert [type(event).__name__ for event in delivered] == ["Added"]

    in_virtual_time(main)


def test_a_404_does_not_empty_the_cache_while_discovery_fails() -> None:
    async def main() -> None:
        cluster = with_widgets("a")
        source = ClusterSource(cluster)
        informer = SharedInformer(source.lister_watcher(WIDGETS))
        async with running_in_background(informer.run()):
            await informer.wait_synced(timeout=30)
            with (
                source.faults.status(404, verb="watch"),
                source.faults.status(404, verb="list"),
                source.faults.status(503, verb="get"),
                source.faults.reset(verb="watch", times=1),
            ):
                await asyncio.sleep(10 * MINUTE)
                assert len(informer.lister) == 1

    in_virtual_time(main)


def test_a_resource_that_is_served_in_another_version_only_is_read_in_that_one() -> None:
    async def main() -> None:
        cluster, problems = with_widgets("a"), list[Problem]()
        async with widgets_of(cluster, [], problems) as informer:
            await informer.wait_synced(timeout=30)
            cluster.remove_resource(WIDGETS)
            cluster.add_resource(WIDGETS_V2)
            cluster.create(WIDGETS_V2, {"metadata": {"name": "b"}})
            await asyncio.sleep(MINUTE)
            assert [obj.name for obj in informer.lister.list()] == ["b"]
            assert informer.lister.list()[0].api_version == "example.com/v2"
            assert "discovery api_version_changed" in [
                f"{each.phase} {each.cause}" for each in problems
            ]

    in_virtual_time(main)


@dataclass(slots=True, eq=False)
class Located(ScriptedListerWatcher):
    """Knows how to look whether its resource is served; what it finds is scripted too."""

    found: list[Resource | FetchError | None] = field(
        default_factory=list[Resource | FetchError | None]
    )

    async def discover(self) -> Resource | None:
        await asyncio.sleep(0)
        found = self.found.pop(0)
        if isinstance(found, FetchError):
            raise found
        return found

    def with_resource(self, resource: Resource) -> Located:
        raise NotImplementedError


def test_a_404_before_a_successful_list_does_not_confirm_a_later_404() -> None:
    """Else one late 404 of a replica that lags behind would empty the cache."""

    async def main() -> None:
        missing = error_response(404, "NotFound")
        answers = scripted_lister_watcher(
            list_response(body("a", 3), version="10"),
            watch_response(error_event(404, "NotFound")),
            missing,
            list_response(body("a", 3), version="11"),
            watch_response(error_event(404, "NotFound")),
            missing,
            missing,
        ).responses
        unknown = ServerFailure(Status(503))
        source = Located(answers, found=[None, unknown, None, *[PODS] * 3])
        watched = Watched(source)
        async with watched.runs():
            await asyncio.sleep(2 * MINUTE)
            assert len(source.found) <= 3, "it has looked three times at least"
            assert [entry for entry in watched.popped() if entry.startswith("state")] == [
                "state 10: a",
                "state 11: a",
            ]

    in_virtual_time(main)


def test_a_watch_list_makes_room_for_others_once_its_initial_list_is_complete() -> None:
    async def main() -> None:
        released: list[float] = []

        @dataclass(slots=True, eq=False)
        class Sharing(ScriptedListerWatcher):
            def release_list_slot(self) -> None:
                released.append(asyncio.get_running_loop().time())

        answers = scripted_lister_watcher(quiet(added("a", 3), initial_events_end(5))).responses
        async with Watched(Sharing(answers, watch_lists=True)).runs():
            await asyncio.sleep(1)
            assert len(released) == 1
            await asyncio.sleep(MINUTE)
        assert len(released) == 1

    in_virtual_time(main)

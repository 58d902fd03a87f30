"""Events of a controller, sent in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from threading import Thread
from typing import Any

import msgspec
import pytest

from aioinformer import EventRecorder, KubeObject, Problem
from aioinformer._core.objects.resources import find_built_in
from aioinformer._core.writing.write_requests import EventType
from aioinformer.errors import Forbidden, NotRunning, UsageError
from aioinformer.eventrecorder.event_recorder import MAX_ATTEMPTS, MAX_QUEUED
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation.loop import run

EVENTS = find_built_in("events.events.k8s.io")
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "web", "uid": "u"},
}
NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}


class Stage:
    """A cluster, a recorder of it, and the problems that its error hook received."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.source = ClusterSource(self.cluster)
        self.faults = self.source.faults
        self.problems: list[Problem] = []

    def recorder(self, **options: Any) -> EventRecorder:
        events = self.source.api(EVENTS)
        options = {"controller": "example.com/foo", "on_error": self.problems.append, **options}
        return EventRecorder(events, **options)

    @property
    def events(self) -> dict[str, Mapping[str, Any]]:
        """By reason."""
        names = _names(self.cluster)
        found = [self.cluster.get(EVENTS, name, namespace=where) for where, name in names]
        return {event["reason"]: event for event in found}


def _names(cluster: Cluster) -> list[tuple[str, str]]:
    items = msgspec.json.decode(cluster.list(EVENTS))["items"]
    return [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items]


def staged(act: Callable[[Stage], Awaitable[None]]) -> Stage:
    stage = Stage()

    async def main() -> None:
        await act(stage)

    run(main(), seed=0)
    return stage


# -- what is sent ------------------------------------------------------------------------------


def test_an_event_is_sent_in_the_background() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder(instance="foo-1") as recorder:
            recorder.record(POD, "Normal", "Created", "made it", action="Create", related=NODE)
            assert not stage.events, "record returns at once"
            await asyncio.sleep(1)
            (event,) = stage.events.values()
            assert event["regarding"]["name"] == "web-0"
            assert event["related"]["kind"] == "Node"
            assert (event["note"], event["action"]) == ("made it", "Create")
            assert event["reportingController"] == "example.com/foo"
            assert event["reportingInstance"] == "foo-1"
            assert recorder.statistics().sent == 1

    assert not staged(act).problems


def test_events_of_cluster_scoped_objects_go_to_the_default_namespace() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            recorder.record(NODE, "Normal", "Seen")

    assert staged(act).events["Seen"]["metadata"]["namespace"] == "default"


def test_repeated_events_become_a_series_whose_count_is_sent_at_the_end() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            for _ in range(10):
                recorder.record(POD, "Warning", "Failed", "again")
                await asyncio.sleep(1)
            assert stage.events["Failed"]["series"]["count"] == 2, "then it is only counted"
        assert stage.events["Failed"]["series"]["count"] == 10
        assert recorder.statistics().sent == 3

    assert not staged(act).problems


def test_the_count_of_an_inactive_series_is_sent_while_the_recorder_runs() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            for _ in range(5):
                recorder.record(POD, "Warning", "Failed", "again")
                await asyncio.sleep(1)
            await asyncio.sleep(450)
            assert stage.events["Failed"]["series"]["count"] == 5

    assert not staged(act).problems


def test_the_recorder_refreshes_the_count_of_a_series_that_is_recorded_every_few_seconds() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            for _ in range(200):  # 50 s apart: there is no minute without a record
                recorder.record(POD, "Warning", "Failed", "again")
                await asyncio.sleep(50)
            assert recorder.statistics().sent == 2 + 5, "the count of each half hour"
            assert stage.events["Failed"]["series"]["count"] > 150

    assert not staged(act).problems


def test_the_recorder_sends_the_count_of_an_inactive_series_while_others_are_recorded() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            for _ in range(5):
                recorder.record(POD, "Warning", "Failed", "again")
                await asyncio.sleep(1)
            for _ in range(45):
                recorder.record(NODE, "Normal", "Seen")
                await asyncio.sleep(10)
            assert stage.events["Failed"]["series"]["count"] == 5

    assert not staged(act).problems


def test_records_before_entering_are_sent_after_entering() -> None:
    async def act(stage: Stage) -> None:
        (recorder := stage.recorder()).record(POD, "Normal", "Early")
        async with recorder:
            pass

    assert staged(act).events.keys() == {"Early"}


# -- trouble -----------------------------------------------------------------------------------


def test_the_recorder_sends_events_after_an_outage_of_the_server() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            fault = stage.faults.refuse()
            for reason in ("One", "Two", "Two"):
                recorder.record(POD, "Normal", reason)
            await asyncio.sleep(30)
            assert not stage.events
            fault.end()
            await asyncio.sleep(30)
            assert stage.events["Two"]["series"]["count"] == 2, "created with what was counted"
            assert recorder.statistics().failed == 0

    assert not staged(act).problems


def test_an_absurd_retry_after_does_not_end_the_recorder() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            stage.faults.status(503, retry_after=2**31 - 1, times=1)
            recorder.record(POD, "Normal", "Created")
            await asyncio.sleep(310)
            assert recorder.statistics().sent == 1

    assert not staged(act).problems


def test_an_event_whose_answer_was_lost_is_created_only_once() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            stage.faults.reset(verb="create", times=1, after=0)
            recorder.record(POD, "Normal", "Created")
            await asyncio.sleep(30)
            assert len(_names(stage.cluster)) == 1
            assert recorder.statistics().sent == 1

    assert not staged(act).problems


def test_the_recorder_creates_an_expired_event_of_a_series_again() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            recorder.record(POD, "Normal", "Seen")
            await asyncio.sleep(1)
            ((where, name),) = _names(stage.cluster)
            stage.cluster.delete(EVENTS, name, namespace=where)
            recorder.record(POD, "Normal", "Seen")
            await asyncio.sleep(1)
            assert _names(stage.cluster) == [(where, name)]
            assert stage.events["Seen"]["series"]["count"] == 2

    assert not staged(act).problems


def test_a_rejected_event_is_counted_logged_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            stage.faults.forbid(verb="create")
            recorder.record(POD, "Normal", "Created")
            await asyncio.sleep(1)
            assert recorder.statistics().failed == 1

    stage = staged(act)
    (problem,) = stage.problems
    assert isinstance(problem.error, Forbidden)
    assert (problem.informer, problem.phase) == ("example.com/foo", "event")
    beginning = "events of example.com/foo: Normal Created of Pod web/web-0 was not sent: "
    assert beginning in caplog.text


def test_the_recorder_limits_the_attempts_to_send_an_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            fault = stage.faults.status(503)
            recorder.record(POD, "Normal", "Created")
            await asyncio.sleep(200)
            assert fault.hits == MAX_ATTEMPTS
            assert recorder.statistics().failed == 1

    assert len(staged(act).problems) == 1


def test_events_beyond_the_queue_limit_are_dropped_and_counted() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            stage.faults.refuse()
            for n in range(MAX_QUEUED + 10):
                name = {"metadata": {"name": f"p{n}", "namespace": "web"}}
                recorder.record({**POD, **name}, "Normal", "Created")
            assert recorder.statistics().dropped == 10
            assert recorder.statistics().queued == MAX_QUEUED
        assert recorder.statistics().dropped == MAX_QUEUED + 10, "what is left when it ends"

    staged(act)


def test_too_many_events_of_one_object_are_filtered() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            for n in range(30):
                recorder.record(POD, "Normal", f"Reason{n}")
        assert recorder.statistics().filtered == 5
        assert len(stage.events) == 25

    assert not staged(act).problems


@pytest.mark.parametrize(("obj", "kind"), [({}, "Normal"), (POD, "Error")])
def test_a_record_that_can_not_be_an_event_is_reported_and_not_raised(
    obj: dict[str, Any], kind: EventType
) -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            recorder.record(obj, kind, "Created")
            assert recorder.statistics().dropped == 1

    (problem,) = staged(act).problems
    assert isinstance(problem.error, UsageError)


@pytest.mark.parametrize("mistake", [{"obj": None}, {"related": 5}, {"note": None}, {"action": []}])
def test_a_record_of_wrong_types_is_reported_and_not_raised(mistake: dict[str, Any]) -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            call: dict[str, Any] = {"obj": POD, "event_type": "Normal", "reason": "Seen", **mistake}
            recorder.record(**call)
            await asyncio.sleep(1)
            assert recorder.statistics().dropped == 1
            recorder.record(POD, "Normal", "Seen", "it goes on")
        assert stage.events["Seen"]["note"] == "it goes on"

    assert [problem.cause for problem in staged(act).problems] == ["dropped"]


def test_a_record_after_the_end_is_reported_and_not_raised() -> None:
    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            pass
        recorder.record(POD, "Normal", "Late")

    (problem,) = staged(act).problems
    assert isinstance(problem.error, NotRunning)


def test_an_exception_in_the_error_hook_does_not_affect_the_recorder(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def hook(problem: Problem) -> None:
        raise RuntimeError("oh")

    async def act(stage: Stage) -> None:
        async with stage.recorder(on_error=hook) as recorder:
            recorder.record({}, "Normal", "Created")
            recorder.record(POD, "Normal", "Created")

    assert staged(act).events.keys() == {"Created"}
    assert "the error hook raised" in caplog.text


def test_the_recorder_survives_an_unexpected_exception_of_its_writer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Odd:
        """A ``ResourceWriter`` of another library."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def create(self, obj: Mapping[str, Any]) -> KubeObject:
            if obj["reason"] == "Odd":
                raise RuntimeError("oh")
            created: KubeObject = await self.inner.create(obj)
            return created

    async def act(stage: Stage) -> None:
        odd: Any = Odd(stage.source.api(EVENTS))
        async with EventRecorder(odd, controller="foo") as recorder:
            recorder.record(POD, "Normal", "Odd")
            recorder.record(POD, "Normal", "Fine")

    assert staged(act).events.keys() == {"Fine"}
    assert "RuntimeError" in caplog.text


# -- its end -----------------------------------------------------------------------------------


def test_the_end_of_a_recorder_waits_at_most_its_timeout(caplog: pytest.LogCaptureFixture) -> None:
    async def act(stage: Stage) -> None:
        loop = asyncio.get_running_loop()
        async with stage.recorder(shutdown_timeout=2.0) as recorder:
            stage.faults.stall()
            recorder.record(POD, "Normal", "Created")
            started = loop.time()
        assert 1.9 < loop.time() - started < 2.5
        assert recorder.statistics().dropped == 1

    with caplog.at_level(logging.WARNING):
        staged(act)
    assert "events of example.com/foo: ended with 1 event unsent" in caplog.messages


def test_the_bodys_exception_passes_through() -> None:
    async def body(stage: Stage) -> None:
        async with stage.recorder() as recorder:
            recorder.record(POD, "Normal", "Created")
            raise KeyError("mine")

    async def act(stage: Stage) -> None:
        with pytest.raises(KeyError):
            await body(stage)

    assert staged(act).events.keys() == {"Created"}


def test_a_recorder_belongs_to_one_event_loop() -> None:
    raised: list[Exception] = []

    async def act(stage: Stage) -> None:
        async with stage.recorder() as recorder:

            def elsewhere() -> None:
                try:
                    recorder.record(POD, "Normal", "Created")
                except UsageError as error:
                    raised.append(error)

            thread = Thread(target=elsewhere)
            thread.start()
            thread.join()

    staged(act)
    assert len(raised) == 1


def test_a_recorder_needs_a_name_and_a_hook_that_can_be_called() -> None:
    stage = Stage()
    with pytest.raises(UsageError, match="name of its controller"):
        stage.recorder(controller="")
    with pytest.raises(TypeError, match="on_error"):
        stage.recorder(on_error=3)
    assert repr(stage.recorder()) == "<EventRecorder of example.com/foo new queued=0>"

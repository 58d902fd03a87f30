"""The health of an informer."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from aioinformer import Health
from aioinformer._runtime.reporting.health import InformerState, ScopeHealth
from aioinformer._runtime.reporting.reflector_status import ReflectorStatus
from aioinformer.errors import ConnectionFailed


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def condition(clock: Clock) -> ReflectorStatus:
    condition = ReflectorStatus()
    condition.start(clock)
    return condition


def test_a_reflector_that_has_not_started_is_new() -> None:
    condition = ReflectorStatus()

    assert (condition.state, condition.error, condition.retry_in) == ("new", None, None)
    assert condition.since == 0


def test_an_error_is_kept_until_it_is_cleared(condition: ReflectorStatus) -> None:
    error = ConnectionFailed("refused", phase="list")
    condition.set_state("listing")
    condition.record_error(error)
    condition.schedule_retry(1)
    condition.set_state("listing")
    assert condition.error is error

    condition.clear_error()
    assert condition.error is None


def test_an_informer_waits_no_longer_once_a_request_has_succeeded(
    condition: ReflectorStatus,
) -> None:
    """A freshness check that succeeds is followed by a watch at once, which may take a while."""
    condition.record_error(ConnectionFailed("refused"))
    condition.schedule_retry(5)
    condition.clear_error()

    assert (condition.state, condition.error, condition.retry_in) == ("listing", None, None)


def test_a_polling_informer_polls_again_after_a_failed_list(
    condition: ReflectorStatus,
) -> None:
    refusal = condition.watch_refusal = ConnectionFailed("watches are refused")
    condition.record_error(ConnectionFailed("refused"))
    condition.schedule_retry(5)
    condition.clear_error()

    assert (condition.state, condition.error) == ("polling", refusal)


def test_the_repr_of_a_condition_shows_the_error(condition: ReflectorStatus) -> None:
    condition.record_error(ConnectionFailed("refused"))

    assert repr(condition) == "<ReflectorStatus new error=ConnectionFailed('refused')>"


SOUND = Health(
    state="watching",
    since=12.34,
    error=None,
    retry_in=None,
    synced=True,
    resource_version="7",
    objects=3,
    rejected=(),
    blocked_by=(),
)


def test_the_text_of_a_healthy_informer_is_its_state() -> None:
    assert str(SOUND) == "watching for 12.3 s"


def test_the_text_of_a_failing_informer_has_its_error_and_the_next_attempt() -> None:
    sick = replace(SOUND, state="waiting", error=ConnectionFailed("refused"), retry_in=1.26)

    assert str(sick) == "waiting for 12.3 s, next attempt in 1.3 s, last error: refused"


def scope_health(namespace: str) -> ScopeHealth:
    return ScopeHealth(
        namespace=namespace,
        optional=False,
        state="watching",
        since=1.0,
        error=None,
        retry_in=None,
        synced=True,
        resource_version="7",
        fresh=1.0,
        strategy="list",
        rewinds=0,
    )


def test_a_number_of_namespaces_has_the_right_plural() -> None:
    one, two = scope_health("web"), scope_health("shop")

    assert "1 of 1 namespace is watched" in str(replace(SOUND, scopes=(one,)))
    assert "2 of 2 namespaces are watched" in str(replace(SOUND, scopes=(one, two)))


def test_handlers_that_blocked_the_event_loop_are_named() -> None:
    blocking = replace(SOUND, blocking_calls=2, blocking_handlers=("audit of pods",))

    assert str(blocking) == "watching for 12.3 s, 2 calls of audit of pods held the event loop"


def test_an_informer_that_rejected_every_object_is_not_ok() -> None:
    useless = replace(SOUND, objects=0, rejections=5)

    assert (SOUND.ok, useless.ok, useless.rejects_all) == (True, False, True)
    assert str(useless) == "watching for 12.3 s, 5 objects rejected: none is cached"
    assert replace(SOUND, rejections=5).ok
    assert replace(SOUND, objects=0).ok


@pytest.mark.parametrize("state", ["stopped", "failed"])
def test_an_informer_that_has_ended_is_not_ok(state: InformerState) -> None:
    assert not replace(SOUND, state=state).ok
    assert replace(SOUND, state="waiting").ok
    assert not replace(SOUND, synced=False).ok


def test_the_text_of_a_blocked_informer_names_the_blocking_listeners() -> None:
    assert str(replace(SOUND, blocked_by=("a", "b"))) == "watching for 12.3 s, blocked by a, b"


PROGRAM_WITHOUT_DESCRIPTORS = """
import asyncio, os, resource
from aioinformer import SharedInformerFactory
from aioinformer.testing import Cluster, ClusterSource

async def main():
    cluster, problems = Cluster(), asyncio.Queue()
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source) as informers:
        pods = informers.informer("pods", on_error=problems.put_nowait)

        async def fail(event):
            raise RuntimeError("the disk is full")

        registration = pods.add_handler(fail)
        await informers.wait_synced(30)
        lowest = os.dup(0)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, lowest))
        print(pods.health.state, pods, registration.statistics().delivered)
        cluster.create("pods", {"metadata": {"name": "a"}}, namespace="web")
        print(await problems.get())
        source.faults.refuse()
        source.faults.reset()
        print(await problems.get())
    print(repr(pods.health.error))

asyncio.run(main())
"""


def test_reports_need_no_file_descriptor() -> None:
    """What reports a failure is loaded before the program has used up its descriptors."""
    command = [sys.executable, "-c", PROGRAM_WITHOUT_DESCRIPTORS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "watching",
        "pods:",
        "pods:",
        "ConnectionFailed('the",
    ]
    assert "Too many open files" not in done.stderr

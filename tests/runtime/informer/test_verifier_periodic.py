"""Periodic comparisons of a cache with the server, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from aioinformer import Problem, SharedInformer, SharedInformerFactory, Verification
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.informer.verifier import JITTER, MIN_PERIOD, PeriodicVerifier
from aioinformer.errors import CacheDiffers, NotSynced, Status, server_error
from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import run
from tests.runtime.informers import cluster_with_pods, running_in_background
from tests.runtime.scripted_source import (
    PODS,
    ScriptedResponse,
    body,
    error_response,
    list_response,
    scripted_lister_watcher,
    watch_response,
)

HOUR = 3600.0
RIGHT = Verification("7", 1)


def proved(
    period: float, answer: Callable[[], Verification], seconds: float
) -> tuple[list[float], list[tuple[str, Exception]]]:
    """Return when a cache was compared in that time, and the reported failures."""
    at: list[float] = []
    reported: list[tuple[str, Exception]] = []

    async def verify() -> Verification:
        at.append(asyncio.get_running_loop().time())
        return answer()

    async def main() -> None:
        proofs = PeriodicVerifier(
            period, verify, lambda cause, error: reported.append((cause, error))
        )
        async with running_in_background(proofs.run()):
            await asyncio.sleep(seconds)

    run(main(), seed=0)
    return at, reported


def raises(error: Exception) -> Callable[[], Verification]:
    def answer() -> Verification:
        raise error

    return answer


def test_a_cache_is_verified_once_a_period_with_jitter() -> None:
    at, reported = proved(HOUR, lambda: RIGHT, 20 * HOUR)

    assert not reported
    gaps = [later - earlier for earlier, later in zip([0.0, *at], at, strict=False)]
    assert all(HOUR * (1 - JITTER) <= gap <= HOUR * (1 + JITTER) for gap in gaps)
    assert len(set(gaps)) == len(gaps) >= 16


def test_a_period_below_a_minute_is_raised_to_a_minute() -> None:
    assert len(proved(0.001, lambda: RIGHT, 10 * MIN_PERIOD)[0]) <= 12


@pytest.mark.parametrize("period", [-1.0, float("nan")])
def test_an_invalid_period_is_rejected(period: float) -> None:
    with pytest.raises(ValueError, match="verify_every"):
        SharedInformer(scripted_lister_watcher(), verify_every=period)


def test_the_error_names_the_objects_that_differ() -> None:
    wrong = Verification("7", 2, {ObjectKey("web", "a"): "missing"})
    _, reported = proved(HOUR, lambda: wrong, 1.5 * HOUR)

    ((cause, error),) = reported
    assert cause == "differs"
    assert isinstance(error, CacheDiffers)
    assert error.differences == {"web/a": "missing"}
    assert "differs in 1 of 2 objects at resourceVersion 7: web/a (missing)" in str(error)


def test_a_failed_verification_is_repeated_one_period_later() -> None:
    refusal = server_error(Status(403, "Forbidden", "no"))
    at, reported = proved(HOUR, raises(refusal), 5 * HOUR)

    assert len(at) == len(reported) <= 6
    assert set(reported) == {("access_denied", refusal)}


def test_a_verification_before_the_initial_list_is_not_reported() -> None:
    assert proved(HOUR, raises(NotSynced("nothing yet")), 3 * HOUR)[1] == []


# -- in an informer ----------------------------------------------------------------------------


def watched(*answers: ScriptedResponse) -> tuple[SharedInformer, list[Problem]]:
    problems: list[Problem] = []
    source = scripted_lister_watcher(
        list_response(body("a", 3)), watch_response(never_ends=True), *answers
    )
    informer = SharedInformer(
        source, verify_every=MIN_PERIOD, on_error=problems.append, watch_list=False
    )
    return informer, problems


async def _for(seconds: float, informer: SharedInformer) -> None:
    async with running_in_background(informer.run()):
        await asyncio.sleep(seconds)


def test_a_wrong_cache_is_reported_logged_and_repaired(caplog: pytest.LogCaptureFixture) -> None:
    informer, problems = watched(list_response(body("a", 4)))

    with caplog.at_level(logging.ERROR, "aioinformer"):
        run(_for(1.3 * MIN_PERIOD, informer), seed=0)

    (problem,) = problems
    assert (problem.phase, problem.cause) == ("verify", "differs")
    assert isinstance(problem.error, CacheDiffers)
    assert (informer.health.differences, informer.health.repaired) == (0, 1)
    assert informer.health.verified is None
    assert "1 object repaired after verifications" in str(informer.health)
    assert informer.lister["web/a"].resource_version == "4"
    assert "pods: verifying: CacheDiffers: the cache differs in 1 of 1" in caplog.text


def test_health_shows_the_time_since_the_last_successful_verification() -> None:
    informer, problems = watched(list_response(body("a", 3)))

    run(_for(1.3 * MIN_PERIOD, informer), seed=0)

    assert not problems
    verified = informer.health.verified
    assert verified is not None
    assert verified <= MIN_PERIOD
    assert informer.health.differences == 0


def test_a_denied_verification_is_reported_and_the_watch_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    informer, problems = watched(error_response(403, "Forbidden"))

    run(_for(1.3 * MIN_PERIOD, informer), seed=0)

    assert [problem.phase for problem in problems] == ["verify"]
    assert informer.health.differences == 0
    assert "WARNING" in caplog.text


async def test_health_shows_a_verification_that_the_program_started() -> None:
    informer = SharedInformer(ClusterSource(cluster_with_pods("a")).lister_watcher(PODS))
    async with running_in_background(informer.run()):
        await informer.wait_synced(timeout=30)
        assert informer.health.verified is None
        assert await informer.verify()
        assert informer.health.verified is not None


def test_a_factory_verifies_all_of_its_informers() -> None:
    asked: list[str] = []

    async def main() -> None:
        async with SharedInformerFactory(ClusterSource(Cluster()), verify_every=HOUR) as informers:
            both = [informers.informer("pods"), informers.informer("services")]
            await informers.wait_synced(timeout=30)
            await asyncio.sleep(1.5 * HOUR)
            asked.extend(each.name for each in both if each.health.verified is not None)

    run(main(), seed=0)

    assert asked == ["pods", "services"]

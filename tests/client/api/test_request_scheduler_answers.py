"""The wait of one informer for an answer of the server to another informer of the client."""

from __future__ import annotations

import asyncio

from aioinformer import WatchRequest
from aioinformer._client.api.request_scheduler import RequestScheduler
from aioinformer._runtime.reflector.lister_watcher import SharesAnswers
from aioinformer.errors import ConnectionFailed, FetchError, Status, server_error
from aioinformer.testing import Cluster, ClusterSource
from tests.promises.function_lister_watcher import loop_time, run_simulated
from tests.runtime.scripted_source import PODS

WATCH = WatchRequest("10", 300)


def waited(*answers: FetchError | None, timeout: float = 10.0) -> tuple[bool, float]:
    """Return the result of a wait, and its seconds. A request ends with an answer every second."""

    async def scenario() -> tuple[bool, float]:
        scheduler, began = RequestScheduler(), loop_time()
        lane = scheduler.create_lane()
        waiting = asyncio.create_task(scheduler.create_lane().wait_for_answer(timeout))
        for answer in answers:
            await asyncio.sleep(1.0)
            try:
                async with lane.acquire(WATCH):
                    if answer is not None:
                        raise answer
                    lane.record_response()
            except FetchError:
                pass
        return await waiting, loop_time() - began

    return run_simulated(scenario)


def test_an_answer_of_any_kind_ends_the_wait() -> None:
    assert waited(None) == (True, 1.0)
    assert waited(server_error(Status(410, "Expired"))) == (True, 1.0)
    assert waited(server_error(Status(503, "ServiceUnavailable"))) == (True, 1.0)


def test_a_failed_connection_does_not_end_the_wait() -> None:
    refused = ConnectionFailed("refused")

    assert waited(refused, None) == (True, 2.0)
    assert waited(refused, refused, timeout=5.0) == (False, 5.0)


def test_an_answer_before_the_wait_does_not_count() -> None:
    async def scenario() -> bool:
        scheduler = RequestScheduler()
        scheduler.record_success()
        return await scheduler.wait_for_answer(1.0)

    assert run_simulated(scenario) is False


def test_a_cluster_in_memory_shares_answers_as_a_client_does() -> None:
    assert isinstance(ClusterSource(Cluster()).lister_watcher(PODS), SharesAnswers)

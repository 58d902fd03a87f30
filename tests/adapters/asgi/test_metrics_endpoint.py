"""Answers for scrapes, without a server."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import CollectorRegistry

from aioinformer.adapters.asgi import MetricsEndpoint
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.errors import UsageError
from tests.adapters.asgi_clients import AsgiClient, make_scope, request


def exposition(accept: str) -> tuple[bytes, str]:
    in_main_thread = threading.current_thread() is threading.main_thread()
    return f"accept {accept!r} in the main thread: {in_main_thread}".encode(), "a/b"


async def test_a_scrape_is_answered_in_a_thread_with_the_content_type_of_the_metrics() -> None:
    answer = await request(MetricsEndpoint(exposition))
    assert (answer.status, answer.headers, answer.ended) == (200, {"content-type": "a/b"}, True)
    assert answer.body == b"accept '' in the main thread: False"


async def test_a_scrape_is_answered_while_the_threads_of_the_program_are_busy() -> None:
    finish = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        busy = asyncio.create_task(asyncio.to_thread(finish.wait))
        await asyncio.sleep(0)  # the task takes the thread
        try:
            async with asyncio.timeout(10):
                assert (await request(MetricsEndpoint(exposition))).status == 200
        finally:
            finish.set()
            await busy


async def test_the_accept_header_chooses_the_format() -> None:
    endpoint = MetricsEndpoint(PrometheusMetrics(CollectorRegistry()).exposition)
    plain = await request(endpoint)
    assert plain.headers["content-type"].startswith("text/plain")
    assert b"# EOF" not in plain.body
    openmetrics = AsgiClient()
    scope = {**make_scope(), "headers": [(b"accept", b"application/openmetrics-text")]}
    await endpoint(scope, openmetrics.receive, openmetrics.send)
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.body.endswith(b"# EOF\n")


async def test_requests_other_than_http_are_rejected() -> None:
    client = AsgiClient()
    with pytest.raises(UsageError, match="websocket"):
        await MetricsEndpoint(exposition)({"type": "websocket"}, client.receive, client.send)


def test_an_argument_that_is_no_function_of_the_accept_header_is_a_type_error() -> None:
    async def late(accept: str) -> tuple[bytes, str]:
        return b"", accept

    metrics = PrometheusMetrics(CollectorRegistry())
    with pytest.raises(TypeError, match=r"write MetricsEndpoint\(metrics\.exposition\), not"):
        MetricsEndpoint(metrics)  # type: ignore[arg-type] # the beginner's mistake
    with pytest.raises(TypeError, match="is async"):
        MetricsEndpoint(late)  # type: ignore[arg-type] # awaited by nobody
    with pytest.raises(TypeError, match="is to be called as"):
        MetricsEndpoint(lambda: (b"", ""))  # type: ignore[arg-type,misc] # without the header


def test_the_repr_names_the_function() -> None:
    assert repr(MetricsEndpoint(exposition)) == "<MetricsEndpoint exposition>"

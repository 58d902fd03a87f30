"""A watch event passes few calls on its way to the handler."""

from __future__ import annotations

from aioinformer.testing import ApiServerThread
from tests.walks import event_calls

MAX_CALLS = 35
"""Each call takes time for every event. ``python -m tests.walks -v`` prints them."""


async def test_a_watch_event_passes_at_most_35_calls() -> None:
    with ApiServerThread() as server:
        calls = await event_calls(server)
    assert len(calls) <= MAX_CALLS, "\n".join(map(" ".join, calls))

"""Lines on stderr that say that a command goes on while its requests fail, and when they succeed.

The log handler shows each error. A terminal shows the time of the next attempt in its status line.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import NoReturn

from aioinformer import Health, SharedInformer
from aioinformer._cli.terminal.messages import Messages

REFRESH_INTERVAL = 0.25
"""Seconds between two readings of an informer's health."""


@asynccontextmanager
async def show_outages(
    informer: SharedInformer,
    messages: Messages,
    *,
    until: str,
    describe: Callable[[SharedInformer], str] | None = None,
    is_final: Callable[[SharedInformer], bool] = lambda _: False,
) -> AsyncGenerator[None]:
    """Show the beginning and the end of each time in which the informer's requests fail.

    An outage that is over before the next reading of the health is not shown. ``until`` is the end
    of the attempts, such as ``until interrupted``; ``describe`` returns the status line of a
    terminal. No line says that the command goes on if ``is_final`` returns True for the error in
    the health.
    """
    task = asyncio.create_task(
        _show_status(informer, messages, describe or describe_retry)
        if messages.is_terminal
        else _show_lines(informer, messages, until, is_final)
    )
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def _show_status(
    informer: SharedInformer, messages: Messages, describe: Callable[[SharedInformer], str]
) -> NoReturn:
    while True:
        await asyncio.sleep(REFRESH_INTERVAL)
        messages.show_status(describe(informer))


async def _show_lines(
    informer: SharedInformer,
    messages: Messages,
    until: str,
    is_final: Callable[[SharedInformer], bool],
) -> NoReturn:
    clock = asyncio.get_running_loop().time
    failing_since: float | None = None
    while True:
        await asyncio.sleep(REFRESH_INTERVAL)
        health = informer.health
        fails = health.error is not None and health.state != "polling"
        if fails and failing_since is None and not is_final(informer):
            failing_since = clock()
            messages.show(f"{informer.name}: trying again {until}")
        elif not fails and failing_since is not None:
            seconds, failing_since = clock() - failing_since, None
            messages.show(f"{informer.name}: requests succeed again, after {seconds:.0f} s")


def describe_retry(informer: SharedInformer) -> str:
    """Return the status line of an informer that waits for its next attempt, empty for others."""
    health = informer.health
    waiting = health.retry_in is not None
    return f"waiting for {informer.name}: {format_wait(health)}" if waiting else ""


def format_wait(health: Health) -> str:
    """Describe the wait in a few words; its reason was shown as a line of its own."""
    if health.retry_in is not None:
        return f"next attempt in {health.retry_in:.1f} s"
    return f"{health.state} for {health.since:.0f} s"

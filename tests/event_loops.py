"""A pytest plugin that runs the asynchronous tests on another event loop.

``pytest -p tests.event_loops --event-loop uvloop`` runs them on uvloop, ``eager`` on the loop of
asyncio with tasks that begin to run as they are made (Python 3.12). A test that makes a loop of its
own, as each test in virtual time does, runs as always.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping

import pytest
import uvloop

__all__ = ["pytest_addoption", "pytest_asyncio_loop_factories"]


def _eager_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    if sys.version_info >= (3, 12):
        loop.set_task_factory(asyncio.eager_task_factory)
    return loop


FACTORIES: Mapping[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "eager": _eager_loop,
    "uvloop": uvloop.new_event_loop,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses the loop."""
    parser.addoption("--event-loop", choices=sorted(FACTORIES), default="uvloop")


def pytest_asyncio_loop_factories(
    config: pytest.Config,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the one factory of loops for the asynchronous tests."""
    name = str(config.getoption("event_loop"))
    return {name: FACTORIES[name]}

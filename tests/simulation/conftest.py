"""The time that tests with many histories may take."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

MANY_HISTORIES = 900
"""Seconds for a test of the mark ``simulation`` without a timeout of its own. Such a test runs up
to hundreds of histories, on a machine that may be busy; one of 100 members takes 40 s."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of many histories more time than the others have."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if (
            str(item.path).startswith(here)  # quicker than with the parents of thousands of paths
            and item.get_closest_marker("simulation") is not None
            and item.get_closest_marker("timeout") is None
        ):
            item.add_marker(pytest.mark.timeout(MANY_HISTORIES))

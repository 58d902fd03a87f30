"""The zone of the machine in tests of times."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


@pytest.fixture
def zone_before_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the local time be five hours before UTC."""
    monkeypatch.setenv("TZ", "PLACE-5")
    time.tzset()
    assert time.timezone == -5 * 3600
    yield
    monkeypatch.undo()
    time.tzset()

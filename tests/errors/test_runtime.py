"""Errors of running informers."""

from __future__ import annotations

from aioinformer.errors import CacheWaitTimeout, InformerError


def test_a_wait_for_a_cache_that_takes_too_long_is_a_timeout_error() -> None:
    assert issubclass(CacheWaitTimeout, InformerError)
    assert issubclass(CacheWaitTimeout, TimeoutError)
    assert CacheWaitTimeout.__module__ == "aioinformer.errors"

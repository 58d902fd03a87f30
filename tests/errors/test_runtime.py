"""Errors of running informers."""

from __future__ import annotations

from aioinformer import errors
from aioinformer.errors import CacheWaitTimeout, InformerError, Stale


def test_stale_is_an_alias_of_cache_wait_timeout() -> None:
    assert Stale is CacheWaitTimeout
    assert issubclass(CacheWaitTimeout, InformerError)
    assert issubclass(CacheWaitTimeout, TimeoutError)
    assert {"CacheWaitTimeout", "Stale"} <= set(errors.__all__)
    assert CacheWaitTimeout.__module__ == "aioinformer.errors"

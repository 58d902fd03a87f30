"""Asking the server for the very state that a cache shows, to compare the two.

A list with ``resourceVersionMatch=Exact`` shows the past, as long as the server remembers it (five
minutes, by etcd's compaction). client-go has the same as a debugging aid for WatchLists, its
``consistencydetector``; this one compares whenever it is asked to, and reads page by page, so that
the state isn't held twice. What differs is told by ``verification``.

Proving now and then that a cache is right: one comparison with the server every so often.

Everything else here makes sure that the cache is right; this finds out whether it is. client-go
has nothing like it for a running informer. What a comparison costs the server is a full list, page
by page, so it is asked seldom, never by all informers at once, and once only: a server that can't
be asked is asked again when the next comparison is due. How it is done is ``verifying``'s.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import NoReturn, TypeAlias

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.verification import Comparison, Verification
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.codec.shape import Converter
from aioinformer._core.listwatch.outcomes import classify
from aioinformer._core.listwatch.requests import ListRequest
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.informer.waiters import CacheWaiters
from aioinformer._runtime.reflector.list_reader import read_page
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice
from aioinformer.errors import CacheDiffers, Expired, FetchError, NotSynced, ProtocolError

__all__ = ["MIN_PERIOD", "PeriodicVerifier", "verify"]


_AddServerObject: TypeAlias = Callable[[KubeObject], None]

MAX_ATTEMPTS = 5
"""States that are asked for until the server remembers one."""


async def verify(
    source: ListerWatcher,
    indexer: Indexer,
    waiters: CacheWaiters,
    *,
    contents: bool,
    managed_fields: bool,
    converter: Converter | None = None,
) -> Verification:
    """Compare what ``indexer`` holds with what ``source`` has.

    If the server has forgotten the version of the cache, the next one that the cache reaches is
    tried: on a quiet resource that may take until the next bookmark, a minute.

    Raises:
        NotSynced: the cache doesn't hold its first full state yet.
        FetchError: the server could not be asked.
        NotRunning: the informer ended while it waited for another version.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        state = indexer.state
        if not state.synced:
            raise NotSynced("there is nothing to verify before the first full state")
        version, rejected = state.resource_version, frozenset(indexer.rejected)
        comparison = Comparison(state.objects.copy(), version, rejected=rejected, contents=contents)
        try:
            saw = _server_object_adder(comparison, converter)
            await _read_pages(source, comparison, saw, managed_fields=managed_fields)
            await _finish_comparison(comparison)
        except Expired:
            if attempt == MAX_ATTEMPTS:
                raise
            await _wait_for_new_version(indexer, waiters, version)
        else:
            return comparison.close()
    raise AssertionError("the last attempt returns or raises")


async def _wait_for_new_version(indexer: Indexer, waiters: CacheWaiters, version: str) -> None:
    """Wait until the cache has come to another version."""
    await waiters.wait_until(lambda: indexer.state.resource_version != version)


def _server_object_adder(comparison: Comparison, converter: Converter | None) -> _AddServerObject:
    """What shows an object of the server's to ``comparison``, as it would be cached."""
    return (
        comparison.add_server_object
        if converter is None
        else lambda obj: comparison.add_server_object(converter(obj))
    )


async def _read_pages(
    source: ListerWatcher,
    comparison: Comparison,
    add_object: _AddServerObject,
    *,
    managed_fields: bool,
) -> None:
    """Show the server's objects, page by page, to ``comparison``."""
    request = ListRequest(comparison.resource_version, exact=True)
    while True:
        token = await _read_page(source, request, add_object, managed_fields=managed_fields)
        if not token:
            return
        request = ListRequest(comparison.resource_version, exact=True, continue_token=token)


async def _finish_comparison(comparison: Comparison) -> None:
    pace = TimeSlice()
    while not comparison.step(ITEMS_PER_STEP):
        await pace.maybe_yield()


async def _read_page(
    source: ListerWatcher,
    request: ListRequest,
    add_object: _AddServerObject,
    *,
    managed_fields: bool,
) -> str:
    """Show one page; the token for the next one."""
    decoder = ListDecoder(source.resource, managed_fields=managed_fields)

    def take(objects: Iterable[KubeObject]) -> None:
        for obj in objects:
            add_object(obj)

    async with source.list(request) as chunks:
        # Singly, because the comparison of contents opens two bodies per object.
        frame = await read_page(chunks, decoder, take, singly=True)
    if frame.resource_version != request.resource_version:
        raise ProtocolError(
            f"{source.resource} were listed at resourceVersion {frame.resource_version}, and not "
            f"exactly at {request.resource_version}, as was asked for",
            phase="list",
        )
    return frame.continue_token


MIN_PERIOD = 60.0
"""Seconds: the least between two comparisons. Each is a full list, which the server reads from its
store and not from its cache."""

JITTER = 0.2
"""By how much of the period one may come early or late: informers that started together aren't to
list together for ever."""

_OnFailure: TypeAlias = Callable[[str, Exception], None]


class PeriodicVerifier:
    """Has one cache compared, and tells when it differs or could not be compared."""

    def __init__(
        self, period: float, verify: Callable[[], Awaitable[Verification]], on_failure: _OnFailure
    ) -> None:
        """Make it; ``run`` starts it.

        Args:
            period: seconds between two comparisons, ``MIN_PERIOD`` at least; 0 for never.
            verify: makes one.
            on_failure: is told what it was taken for, in one word, and the error.
        """
        self.period = max(period, MIN_PERIOD) if period else 0.0
        """Seconds between two comparisons; 0 for never."""
        self._verify = verify
        self._on_failure = on_failure

    async def run(self) -> NoReturn:
        """Compare every so often, until cancelled."""
        while True:
            await asyncio.sleep(self.period * random.uniform(1 - JITTER, 1 + JITTER))
            await self._verify_once()

    async def _verify_once(self) -> None:
        try:
            found = await self._verify()
        except NotSynced:  # nothing is cached yet, and health says why
            return
        except FetchError as error:
            self._on_failure(classify(error, opened=False).name.lower(), error)
        else:
            if not found:
                differences = {str(key): how for key, how in found.differences.items()}
                self._on_failure("differs", CacheDiffers(str(found), differences=differences))

    def __repr__(self) -> str:
        return f"<PeriodicVerifier every={self.period:g}>"

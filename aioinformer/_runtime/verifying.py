"""Asking the server for the very state that a cache shows, to compare the two.

A list with ``resourceVersionMatch=Exact`` shows the past, as long as the server remembers it (five
minutes, by etcd's compaction). client-go has the same as a debugging aid for WatchLists, its
``consistencydetector``; this one compares whenever it is asked to, and reads page by page, so that
the state isn't held twice. What differs is told by ``verification``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from aioinformer._core.indexer import Indexer
from aioinformer._core.list_wire import ListDecoder
from aioinformer._core.objects import KubeObject
from aioinformer._core.requests import ListRequest
from aioinformer._core.shapes import Keep
from aioinformer._core.verification import Comparison, Verification
from aioinformer._runtime.awaiting import Waits
from aioinformer._runtime.pace import STEP, Pace
from aioinformer._runtime.sources import ListerWatcher, Shared
from aioinformer.errors import Expired, NotSynced, ProtocolError

__all__ = ["verify"]

_Saw: TypeAlias = Callable[[KubeObject], None]

ATTEMPTS = 5
"""States that are asked for until the server remembers one."""


async def verify(
    source: ListerWatcher,
    indexer: Indexer,
    waits: Waits,
    *,
    contents: bool,
    managed_fields: bool,
    keep: Keep | None = None,
) -> Verification:
    """Compare what ``indexer`` holds with what ``source`` has.

    If the server has forgotten the version of the cache, the next one that the cache reaches is
    tried: on a quiet resource that may take until the next bookmark, a minute.

    Raises:
        NotSynced: the cache doesn't hold its first full state yet.
        FetchError: the server could not be asked.
        NotRunning: the informer ended while it waited for another version.
    """
    for attempt in range(1, ATTEMPTS + 1):
        state = indexer.state
        if not state.synced:
            raise NotSynced("there is nothing to verify before the first full state")
        version, rejected = state.resource_version, frozenset(indexer.rejected)
        comparison = Comparison(state.objects.copy(), version, rejected=rejected, contents=contents)
        try:
            saw = _seeing(comparison, keep)
            await _read(source, comparison, saw, managed_fields=managed_fields)
            await _finish(comparison)
        except Expired:
            if attempt == ATTEMPTS:
                raise
            await _moved(indexer, waits, version)
        else:
            return comparison.close()
    raise AssertionError("the last attempt returns or raises")


async def _moved(indexer: Indexer, waits: Waits, version: str) -> None:
    """Wait until the cache has come to another version."""
    await waits.until(lambda: indexer.state.resource_version != version)


def _seeing(comparison: Comparison, keep: Keep | None) -> _Saw:
    """What shows an object of the server's to ``comparison``, as it would be cached."""
    return comparison.saw if keep is None else lambda obj: comparison.saw(keep(obj))


async def _read(
    source: ListerWatcher, comparison: Comparison, saw: _Saw, *, managed_fields: bool
) -> None:
    """Show the server's objects, page by page, to ``comparison``."""
    request = ListRequest(comparison.resource_version, exact=True)
    while True:
        token = await _page(source, request, saw, managed_fields=managed_fields)
        if not token:
            return
        request = ListRequest(comparison.resource_version, exact=True, continue_token=token)


async def _finish(comparison: Comparison) -> None:
    pace = Pace()
    while not comparison.step(STEP):
        await pace.breathe()


async def _page(
    source: ListerWatcher, request: ListRequest, saw: _Saw, *, managed_fields: bool
) -> str:
    """Show one page; the token for the next one."""
    decoder = ListDecoder(source.resource, managed_fields=managed_fields)
    pace = Pace()
    async with source.list(request) as chunks:
        async for chunk in chunks:
            for obj in decoder.feed(chunk):
                saw(obj)
                await pace.breathe()  # each of them: to compare contents opens two bodies
            await pace.breathe()
        rest, frame = decoder.close()
        for obj in rest:
            saw(obj)
        if not frame.continue_token and isinstance(chunks, Shared):
            chunks.settled()
    if frame.resource_version != request.resource_version:
        raise ProtocolError(
            f"{source.resource} were listed at resourceVersion {frame.resource_version}, and not "
            f"exactly at {request.resource_version}, as was asked for",
            phase="list",
        )
    return frame.continue_token

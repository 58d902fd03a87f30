"""The comparison of a cache with the server.

A list with ``resourceVersionMatch=Exact`` returns the state of the cache's version, as long as the
server keeps it (five minutes, by etcd's compaction). The list is read page by page, so that the
state isn't in memory twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.codec.shape import Converter
from aioinformer._core.listwatch.page_sequence import PageSequence
from aioinformer._core.listwatch.reflector_requests import ListRequest
from aioinformer._core.objects.decode_errors import discard_input
from aioinformer._core.objects.deltas import Correction, CorrectionGuard
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import ObjectFilter
from aioinformer._runtime.informer.reflectors import ScopePart
from aioinformer._runtime.informer.waiters import CacheWaiters
from aioinformer._runtime.reflector.list_reader import read_page
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, served_namespace
from aioinformer._runtime.reflector.reflector import with_filter
from aioinformer._runtime.tasks.event_loop import ITEMS_PER_STEP, TimeSlice
from aioinformer.errors import Expired, FetchError, NotSynced, ProtocolError
from aioinformer.verification.state.verification import Comparison, Verification

MAX_ATTEMPTS = 5
"""Versions of the cache that are compared until the server still keeps one."""


@dataclass(frozen=True, slots=True)
class ServerForm:
    managed_fields: bool
    converter: Converter | None
    filter: ObjectFilter | None = None


async def verify(
    part: ScopePart,
    waiters: CacheWaiters,
    *,
    contents: bool,
    managed_fields: bool,
    converter: Converter | None = None,
    repair: Callable[[Correction], None] | None = None,
) -> Verification | None:
    """Compare the cache of one scope with its source; ``repair`` queues corrections.

    Return ``None`` if the scope leaves the informer before the end. If the server has discarded the
    cache's version, the next version that the cache reaches is compared. For a quiet resource that
    can take until the next bookmark, a minute. Raises ``NotSynced``, ``FetchError``, or
    ``NotRunning`` if the informer ends meanwhile.
    """
    guard, indexer = CorrectionGuard(), part.indexer
    if repair is not None:
        indexer.guards.append(guard)
    collects = None if repair is None else guard
    try:
        form = ServerForm(managed_fields, converter)
        comparison = await _compare(part, waiters, form, collects, contents)
        result = None if comparison is None else await _finish(comparison)
        if comparison is None or result is None or part.has_left():
            return None
        if repair is None or not comparison.corrections:
            return result
        guard.pending = len(comparison.corrections)
        for correction in comparison.corrections:
            repair(correction)
        await waiters.wait_until(lambda: not guard.pending)
        return replace(result, repaired=guard.applied)
    finally:
        if repair is not None:
            indexer.guards.remove(guard)


async def _compare(
    part: ScopePart,
    waiters: CacheWaiters,
    form: ServerForm,
    guard: CorrectionGuard | None,
    contents: bool,
) -> Comparison | None:
    """Return a comparison that has all of the server's objects; ``None`` if the scope has left."""
    indexer = part.indexer
    for attempt in range(1, MAX_ATTEMPTS + 1):
        if guard is not None:
            guard.removed.clear()
            guard.valid = True
        if part.has_left():
            return None
        state = indexer.state
        if not state.synced:
            raise NotSynced("there is nothing to verify before the initial list is complete")
        version, rejected = state.resource_version, frozenset(indexer.rejected)
        objects, cached, later = state.objects.copy(), None, None
        if part.filter is not None:
            cached, later = part.filter.of_cache(version)
        if later is not None:  # the server can't tell their state by that version
            for each in list(objects.values()):
                if later(each.uid, each.key.namespace):
                    del objects[each.key]
        comparison = Comparison(objects, version, rejected=rejected, contents=contents, guard=guard)
        try:
            source = with_filter(part.source, cached)
            await _add_server_objects(source, comparison, replace(form, filter=cached))
        except FetchError as error:
            if part.has_left():  # with its permission, or as a namespace that was deleted
                return None
            if not isinstance(error, Expired) or attempt == MAX_ATTEMPTS:
                discard_input(error)  # its frames hold parts of the list
                raise
            await _wait_for_new_version(part, waiters, version)
        else:
            return comparison
    raise AssertionError("the last attempt returns or raises")


async def _wait_for_new_version(part: ScopePart, waiters: CacheWaiters, version: str) -> None:
    await waiters.wait_until(
        lambda: part.has_left() or part.indexer.state.resource_version != version
    )


async def _finish(comparison: Comparison) -> Verification:
    time_slice = TimeSlice()
    while not comparison.step(ITEMS_PER_STEP):
        await time_slice.maybe_yield()
    return comparison.close()


async def _add_server_objects(
    source: ListerWatcher, comparison: Comparison, form: ServerForm
) -> None:

    def add(objects: Iterable[KubeObject]) -> None:
        for obj in objects if form.converter is None else map(form.converter, objects):
            comparison.add_server_object(obj)

    token, pages = "", PageSequence()
    while True:
        request = ListRequest(comparison.resource_version, exact=True, continue_token=token)
        decoder = ListDecoder(
            source.resource,
            managed_fields=form.managed_fields,
            namespace=served_namespace(source),
            filter=form.filter,
        )
        async with source.list(request) as chunks:
            # One by one, because the comparison of contents decodes two bodies per object.
            envelope = await read_page(chunks, decoder, add, yield_after_each=True)
        _check_version(source, envelope.resource_version, request)
        token = envelope.continue_token
        pages.add(decoder.count, envelope.remaining, token)
        if not token:
            return


def _check_version(source: ListerWatcher, version: str, request: ListRequest) -> None:
    if version != request.resource_version:
        raise ProtocolError(
            f"the server listed {source.resource} at resourceVersion {version} instead of exactly "
            f"{request.resource_version}",
            phase="list",
        )

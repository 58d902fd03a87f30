"""The reading of one page of a list, object by object, as its bytes arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable

from aioinformer._core.codec.list_decoder import ListDecoder, ListEnvelope
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._runtime.tasks.event_loop import TimeSlice


def _ignore(size: int, objects: int) -> None:
    pass


async def read_page(
    chunks: AsyncIterator[bytes],
    decoder: ListDecoder,
    on_objects: Callable[[Iterable[KubeObject]], object],
    *,
    yield_after_each: bool,
    received: Callable[[int, int], None] = _ignore,
) -> ListEnvelope:
    """Read a page to its end, and yield to the loop meanwhile. Return the list without its items.

    ``on_objects`` receives the objects in their order. If it may be slow, because it runs a
    program's code or compares contents, ``yield_after_each`` gives it one object per call, and
    yields to the loop in between. ``received`` is called with the number of bytes and of objects in
    each chunk.

    Raises:
        FetchError: the connection broke, or the body is no list.
    """
    pace = TimeSlice()
    async for chunk in chunks:
        start, count = 0, 0
        while start < len(chunk):
            # No copy of the chunk, unless the decoder has to count braces.
            end = start + decoder.slice_bytes
            objects = decoder.feed(chunk[start:end])
            start, count = end, count + len(objects)
            if yield_after_each:
                for obj in objects:
                    on_objects((obj,))
                    await pace.maybe_yield()
            else:
                on_objects(objects)
            await pace.maybe_yield()
        received(len(chunk), count)
    rest, envelope = decoder.close()
    on_objects(rest)
    received(0, len(rest))
    return envelope

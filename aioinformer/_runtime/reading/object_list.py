"""One read of a list: by pages, or as a whole.

A page that fails for a reason that may pass is requested again a few times, as client-go's pager
and client do together. A list as a whole starts again without pages if its continue token has
expired in the middle (client-go's ``FullListIfExpired``).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, overload

import msgspec
from msgspec import structs
from typing_extensions import TypeVar

from aioinformer._core.codec.list_decoder import ListDecoder, ListEnvelope
from aioinformer._core.codec.metadata_form import keep_metadata
from aioinformer._core.listwatch.backoff import Backoff
from aioinformer._core.listwatch.reflector_requests import ListRequest
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.view import conversion_error, name_of
from aioinformer._runtime.reflector.list_reader import read_page
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reporting.error_hook import Outage
from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.errors import (
    Expired,
    FetchError,
    ModelMismatch,
    ProtocolError,
    ServerFailure,
    TooManyRequests,
    TransportError,
)

T = TypeVar("T", default=KubeObject)
R = TypeVar("R")

log = logging.getLogger("aioinformer.api")

MAX_RETRIES = 3
"""Further requests for one page. They wait 0.8 to 11 s together, which outlives the restart of one
of several API servers."""


class ObjectList(Sequence[T], Generic[T]):
    """The objects of a list or of one page of it, and the version of the state that it shows."""

    __slots__ = ("_objects", "continue_token", "remaining", "resource_version")

    def __init__(
        self,
        objects: Sequence[T],
        resource_version: str,
        *,
        continue_token: str = "",
        remaining: int | None = None,
    ) -> None:
        self._objects = tuple(objects)
        self.resource_version = resource_version
        """The version of the state. A watch from this version continues without a gap."""
        self.continue_token = continue_token
        """The token for the next page; empty on the last page."""
        self.remaining = remaining
        """The number of objects on later pages; ``None`` if unknown, as with selectors."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._objects[index]

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects)

    def __repr__(self) -> str:
        more = ", more pages" if self.continue_token else ""
        return f"<ObjectList of {len(self)} at resourceVersion {self.resource_version}{more}>"


@dataclass(frozen=True, kw_only=True)
class ListOptions(Generic[T]):
    request: ListRequest
    model: type[T] | None = None
    metadata_only: bool = False
    """True to cut objects down to their metadata: a server may answer with whole objects."""
    managed_fields: bool = False


async def read_pages(
    source: ListerWatcher, options: ListOptions[T]
) -> AsyncGenerator[ObjectList[T]]:
    """Yield the pages of a list.

    Raises:
        Expired: the server has forgotten the state of the first page.
        FetchError: a page could not be read, also not when it was requested again.
        ObjectDecodeError, ModelMismatch: an object doesn't fit ``model``.
    """
    request, seen = options.request, set[str]()
    while True:
        page = await _read_page_with_retries(source, request, options)
        yield page
        token = page.continue_token
        if not token:
            return
        if token in seen:
            raise ProtocolError("a continue token leads to a page that was read", phase="list")
        seen.add(token)
        request = structs.replace(request, continue_token=token)


async def read_list(source: ListerWatcher, options: ListOptions[T]) -> ObjectList[T]:
    """Return a whole list. Raise as ``read_pages`` does."""
    try:
        return await _join_pages(read_pages(source, options))
    except Expired:
        if not options.request.limit:
            raise
    unpaged = replace(options, request=structs.replace(options.request, limit=0, restart=True))
    return await _join_pages(read_pages(source, unpaged))


async def _join_pages(pages: AsyncGenerator[ObjectList[T]]) -> ObjectList[T]:
    objects, version = list[T](), ""
    async for page in pages:
        # Pages may be of different moments: a watch from the first one's version misses nothing.
        version = version or page.resource_version
        objects += page
    return ObjectList(objects, version)


async def _read_page_with_retries(
    source: ListerWatcher, request: ListRequest, options: ListOptions[T]
) -> ObjectList[T]:
    clock, backoff, outage = asyncio.get_running_loop().time, Backoff(), Outage(log)
    while True:
        try:
            page = await _read_page(source, request, options)
            outage.end("list of %s: read", source.resource)
            return page
        except (TransportError, TooManyRequests, ServerFailure) as error:
            if backoff.failures >= MAX_RETRIES:
                raise
            delay = backoff.next(clock(), random.random(), minimum=_retry_after(error))
            # Without this line, the caller of a list learns of the failure with the last attempt.
            text = describe_error(error)
            log.warning("list of %s: %s; next attempt in %.1f s", source.resource, text, delay)
            outage.begin()
        await asyncio.sleep(delay)
        # The client's limit on repeated requests counts this request.
        request = structs.replace(request, restart=True)


def _retry_after(error: FetchError) -> float:
    if isinstance(error, TooManyRequests | ServerFailure):
        return error.status.retry_after or 0.0
    return 0.0


async def _read_page(
    source: ListerWatcher, request: ListRequest, options: ListOptions[T]
) -> ObjectList[T]:
    objects = list[KubeObject]()
    keep = keep_metadata if options.metadata_only else None

    def collect(listed: Iterable[KubeObject]) -> None:
        objects.extend(listed if keep is None else map(keep, listed))

    decoder = ListDecoder(source.resource, managed_fields=options.managed_fields)
    async with source.list(request) as chunks:
        envelope = await read_page(chunks, decoder, collect, yield_after_each=False)
    return _make_page(await _decode_models(objects, options.model), envelope)


def _make_page(objects: Sequence[T], envelope: ListEnvelope) -> ObjectList[T]:
    return ObjectList(
        objects,
        envelope.resource_version,
        continue_token=envelope.continue_token,
        remaining=envelope.remaining,
    )


async def _decode_models(objects: Sequence[KubeObject], model: type[T] | None) -> Sequence[T]:
    pace, models = TimeSlice(), list[T]()
    for obj in objects:
        models.append(decode_model(obj, model))
        await pace.maybe_yield()
    return models


def decode_model(obj: KubeObject, model: type[T] | None) -> T:
    """Return ``obj`` as a ``model``; unchanged if there is none.

    Raises:
        ModelMismatch: the object doesn't fit the model.
        ObjectDecodeError: the object is no JSON.
    """
    if model is None:
        found: Any = obj  # T is KubeObject then: see the overloads of the public methods
        unchanged: T = found
        return unchanged
    try:
        return obj.decode(model)
    except msgspec.ValidationError as error:
        what = f"the object doesn't fit {name_of(model)}"
        raise conversion_error(ModelMismatch, obj, what, error) from error

"""A source of informers that requests the server's tables instead of objects.

Each response is translated back into a list or events, so that an informer lists, watches and
recovers as usual. The source also counts the items of the initial list while the pages arrive.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from msgspec import structs

from aioinformer import Client, KubeObject, ListRequest, Resource, WatchRequest
from aioinformer._cli.watch.server_tables import (
    TABLE_ACCEPT,
    Columns,
    ListProgress,
    TableEventTranslator,
    TablePageTranslator,
)
from aioinformer._client.api.client_lister_watcher import ClientListerWatcher, RequestSender
from aioinformer._client.http.request import ApiRequest
from aioinformer._client.http.transport import ResponseStream
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.listwatch.reflector_requests import ANY, NEWEST, PAGE_SIZE
from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
from aioinformer.errors import ProtocolError

FIRST_BYTES = 1024 * 1024
"""Bytes of the first page that are decoded to show its objects early: a server that ignores the
limit of a page sends all objects in the first one."""


@dataclass(slots=True)
class TableSource:
    client: Client
    whole_objects: bool = False
    """True to request whole objects, False for their metadata and cells."""
    columns: Columns = ()
    """The columns of the newest table; none if the server sends objects instead."""
    progress: ListProgress = field(default_factory=ListProgress)
    on_first_page: Callable[[list[KubeObject]], None] | None = None
    """Called with objects of the first page of a list when the page has arrived."""

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> TableListerWatcher:
        inner = self.client.lister_watcher(
            resource, namespace=namespace, labels=labels, fields=fields
        )
        parameters = {
            **inner.selectors,
            "includeObject": "Object" if self.whole_objects else "Metadata",
        }
        return TableListerWatcher(
            replace(inner, client=_TableRequestSender(inner.client), selectors=parameters), self
        )

    def set_columns(self, columns: Columns) -> None:
        self.columns = columns


@dataclass(frozen=True, slots=True)
class _TableRequestSender:
    client: RequestSender

    def request(self, call: ApiRequest) -> AbstractAsyncContextManager[ResponseStream]:
        return self.client.request(replace(call, accept=TABLE_ACCEPT))

    async def cluster_identity(self) -> ClusterIdentity:
        return await self.client.cluster_identity()

    async def served(self, resource: Resource) -> Resource | None:
        return await self.client.served(resource)


class _TableTranslator(Protocol):
    def feed(self, chunk: bytes) -> bytes: ...

    def close(self) -> bytes: ...


class _TableChunks:
    """The chunks of a response, translated as they arrive."""

    __slots__ = ("_stream", "_translator")

    def __init__(self, stream: AsyncIterator[bytes], translator: _TableTranslator) -> None:
        self._stream = stream
        self._translator: _TableTranslator | None = translator

    def __aiter__(self) -> _TableChunks:
        return self

    async def __anext__(self) -> bytes:
        while (translator := self._translator) is not None:
            try:
                translated = translator.feed(await anext(self._stream))
            except StopAsyncIteration:
                self._translator = None
                translated = translator.close()
            if translated:
                return translated
        raise StopAsyncIteration


@dataclass(slots=True)
class _FirstPageTranslator:
    """A translator that also decodes the first objects of its page, before the cache has them."""

    inner: TablePageTranslator
    on_objects: Callable[[list[KubeObject]], None]

    def feed(self, chunk: bytes) -> bytes:
        return self.inner.feed(chunk)

    def close(self) -> bytes:
        page = self.inner.close()
        decoder = ListDecoder(self.inner.resource)
        # The decoder of the informer reports an error of the page.
        with suppress(ProtocolError):
            objects = decoder.feed(page[:FIRST_BYTES])
            if len(page) <= FIRST_BYTES:
                objects += decoder.close()[0]
            self.on_objects(objects)
        return page


@dataclass(frozen=True, slots=True)
class TableListerWatcher:
    inner: ClientListerWatcher
    source: TableSource

    @property
    def resource(self) -> Resource:
        return self.inner.resource

    @property
    def watch_lists(self) -> bool:
        """False as in kubectl: a LIST has the number of remaining items, and never falls back."""
        return False

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[_TableChunks]:
        """Open the response with one page. Raises the errors of ``ClientListerWatcher.list``.

        A list at any version becomes a list of the newest version in pages, as in kubectl: a server
        ignores the limit of the former, and a table is translated page by page.
        """
        if request.resource_version == ANY and not request.continue_token:
            limit = request.limit or PAGE_SIZE
            request = structs.replace(request, resource_version=NEWEST, limit=limit)
        if not request.continue_token:
            self.source.progress.start()
        source = self.source
        page = TablePageTranslator(
            self.resource,
            source.set_columns,
            source.progress,
            include_cells=not source.whole_objects,
        )
        translator: _TableTranslator = page
        if source.on_first_page is not None and not request.continue_token:
            translator = _FirstPageTranslator(page, source.on_first_page)
        async with self.inner.list(request) as stream:
            yield _TableChunks(stream, translator)

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[_TableChunks]:
        """Open the stream of a watch. Raises the errors of ``ClientListerWatcher.watch``."""
        events = TableEventTranslator(
            self.source.set_columns, include_cells=not self.source.whole_objects
        )
        async with self.inner.watch(request) as stream:
            yield _TableChunks(stream, events)

    async def discover(self) -> Resource | None:
        return await self.inner.discover()

    def with_resource(self, resource: Resource) -> TableListerWatcher:
        return replace(self, inner=self.inner.with_resource(resource))

"""Where ``watch`` reads: a client that asks for the server's tables, as a source of informers.

An informer of it is like any other: it lists, watches and recovers by the library's rules. Only
what goes over the wire differs, and is put back by ``server_tables``. On the way it is counted how
much of a first state has come, which nobody else can say.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from aioinformer import Client, ListRequest, Resource, WatchRequest
from aioinformer._cli.watch.server_tables import (
    TABLE_ACCEPT,
    Columns,
    ListProgress,
    TableEventTranslator,
    TablePageTranslator,
)
from aioinformer._client.api.lister_watcher import ClientListerWatcher, RequestSender
from aioinformer._client.http.request import ApiRequest
from aioinformer._client.http.transport import ResponseStream
from aioinformer._core.listwatch.requests import ANY, NEWEST, PAGE_SIZE

__all__ = ["TableSource"]


@dataclass(slots=True)
class TableSource:
    """Makes what lists and watches the tables of one resource, and what was learned meanwhile."""

    client: Client
    whole_objects: bool = False
    """Whether whole objects shall come, rather than their metadata and cells."""
    columns: Columns = ()
    """Those of the newest table; none if the server sends objects instead."""
    progress: ListProgress = field(default_factory=ListProgress)

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> TableListerWatcher:
        """The list and the watch of a resource's tables in one scope."""
        reader = self.client.lister_watcher(
            resource, namespace=namespace, labels=labels, fields=fields
        )
        asked = {
            **reader.selectors,
            "includeObject": "Object" if self.whole_objects else "Metadata",
        }
        return TableListerWatcher(
            replace(reader, client=_TableRequestSender(reader.client), selectors=asked), self
        )

    def set_columns(self, columns: Columns) -> None:
        """The server has said which columns there are."""
        self.columns = columns


@dataclass(frozen=True, slots=True)
class _TableRequestSender:
    """A client whose lists and watches are asked for as tables."""

    client: RequestSender

    def request(self, call: ApiRequest) -> AbstractAsyncContextManager[ResponseStream]:
        """Send a GET; its open answer."""
        return self.client.request(replace(call, accept=TABLE_ACCEPT))

    async def served(self, resource: Resource) -> Resource | None:
        """The resource as the server serves it now."""
        return await self.client.served(resource)


class _TableTranslator(Protocol):
    def feed(self, chunk: bytes) -> bytes: ...

    def close(self) -> bytes: ...


class _TableChunks:
    """An answer, put into another shape as it arrives."""

    __slots__ = ("_stream", "_translator")

    def __init__(self, stream: AsyncIterator[bytes], translator: _TableTranslator) -> None:
        self._stream = stream
        self._translator: _TableTranslator | None = translator

    def __aiter__(self) -> _TableChunks:
        return self

    async def __anext__(self) -> bytes:
        while (translation := self._translator) is not None:
            try:
                made = translation.feed(await anext(self._stream))
            except StopAsyncIteration:
                self._translator = None
                made = translation.close()
            if made:
                return made
        raise StopAsyncIteration


@dataclass(frozen=True, slots=True)
class TableListerWatcher:
    """Lists and watches the tables of one resource: a ``ListerWatcher``."""

    reader: ClientListerWatcher
    source: TableSource

    @property
    def resource(self) -> Resource:
        """What is read."""
        return self.reader.resource

    @property
    def watch_lists(self) -> bool:
        """Whether it may be asked for a WatchList: never, as kubectl doesn't. A list says how much
        is to come, and somebody waits: a server that doesn't know WatchLists takes half a minute
        to find out.
        """
        return False

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[_TableChunks]:
        """One page, as an open answer. Raises what ``ClientListerWatcher.list`` does.

        A list of any state is asked for in pages of the newest one instead, as kubectl does: a
        server ignores the limit of the former, and a table is read page by page.
        """
        if request.resource_version == ANY and not request.continue_token:
            limit = request.limit or PAGE_SIZE
            request = replace(request, resource_version=NEWEST, limit=limit)
        if not request.continue_token:
            self.source.progress.start()
        told, whole = self.source, self.source.whole_objects
        page = TablePageTranslator(
            self.resource, told.set_columns, told.progress, include_cells=not whole
        )
        async with self.reader.list(request) as stream:
            yield _TableChunks(stream, page)

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[_TableChunks]:
        """A stream of changes, as an open answer. Raises what ``ClientListerWatcher.watch`` does."""
        events = TableEventTranslator(
            self.source.set_columns, include_cells=not self.source.whole_objects
        )
        async with self.reader.watch(request) as stream:
            yield _TableChunks(stream, events)

    async def discover(self) -> Resource | None:
        """What is read, as the server serves it now. See ``ClientListerWatcher.served``."""
        return await self.reader.discover()

    def with_resource(self, resource: Resource) -> TableListerWatcher:
        """The same of the resource in another version."""
        return replace(self, reader=self.reader.with_resource(resource))

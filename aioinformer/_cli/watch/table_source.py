"""Where ``watch`` reads: a client that asks for the server's tables, as a source of informers.

An informer of it is like any other: it lists, watches and recovers by the library's rules. Only
what goes over the wire differs, and is put back by ``server_tables``. On the way it is counted how
much of a first state has come, which nobody else can say.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from aioinformer import Client, ListRequest, Resource, WatchRequest
from aioinformer._cli.watch.server_tables import TABLE, Columns, Progress, TableEvents, TablePage
from aioinformer._client.api.lister_watcher import Asked, ResourceReader
from aioinformer._client.api.scheduler import Stream
from aioinformer._client.http.request import Call
from aioinformer._client.http.transport import Body
from aioinformer._core.listwatch.requests import ANY, NEWEST, PAGE_SIZE

__all__ = ["Tables"]


@dataclass(slots=True)
class Tables:
    """Makes what lists and watches the tables of one resource, and what was learned meanwhile."""

    client: Client
    objects: bool = False
    """Whether whole objects shall come, rather than their metadata and cells."""
    columns: Columns = ()
    """Those of the newest table; none if the server sends objects instead."""
    progress: Progress = field(default_factory=Progress)

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> TableReader:
        """The list and the watch of a resource's tables in one scope."""
        reader = self.client.lister_watcher(
            resource, namespace=namespace, labels=labels, fields=fields
        )
        asked = {**reader.selectors, "includeObject": "Object" if self.objects else "Metadata"}
        return TableReader(replace(reader, client=_AsTables(reader.client), selectors=asked), self)

    def saw(self, columns: Columns) -> None:
        """The server has said which columns there are."""
        self.columns = columns


@dataclass(frozen=True, slots=True)
class _AsTables:
    """A client whose lists and watches are asked for as tables."""

    client: Asked

    def request(self, call: Call) -> AbstractAsyncContextManager[Body]:
        """Send a GET; its open answer."""
        return self.client.request(replace(call, accept=TABLE))

    async def served(self, resource: Resource) -> Resource | None:
        """The resource as the server serves it now."""
        return await self.client.served(resource)


class _Translation(Protocol):
    def feed(self, chunk: bytes) -> bytes: ...

    def close(self) -> bytes: ...


class _Translated:
    """An answer, put into another shape as it arrives."""

    __slots__ = ("_stream", "_translation")

    def __init__(self, stream: Stream, translation: _Translation) -> None:
        self._stream = stream
        self._translation: _Translation | None = translation

    def __aiter__(self) -> _Translated:
        return self

    async def __anext__(self) -> bytes:
        while (translation := self._translation) is not None:
            try:
                made = translation.feed(await anext(self._stream))
            except StopAsyncIteration:
                self._translation = None
                made = translation.close()
            if made:
                return made
        raise StopAsyncIteration

    def settled(self) -> None:
        """The initial state is complete. See ``Stream``."""
        self._stream.settled()


@dataclass(frozen=True, slots=True)
class TableReader:
    """Lists and watches the tables of one resource: a ``ListerWatcher``."""

    reader: ResourceReader
    told: Tables

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
    async def list(self, request: ListRequest) -> AsyncGenerator[_Translated]:
        """One page, as an open answer. Raises what ``ResourceReader.list`` does.

        A list of any state is asked for in pages of the newest one instead, as kubectl does: a
        server ignores the limit of the former, and a table is read page by page.
        """
        if request.resource_version == ANY and not request.continue_token:
            limit = request.limit or PAGE_SIZE
            request = replace(request, resource_version=NEWEST, limit=limit)
        if not request.continue_token:
            self.told.progress.begin()
        told, whole = self.told, self.told.objects
        page = TablePage(self.resource, told.saw, told.progress, cells=not whole)
        async with self.reader.list(request) as stream:
            yield _Translated(stream, page)

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[_Translated]:
        """A stream of changes, as an open answer. Raises what ``ResourceReader.watch`` does."""
        events = TableEvents(self.told.saw, cells=not self.told.objects)
        async with self.reader.watch(request) as stream:
            yield _Translated(stream, events)

    async def served(self) -> Resource | None:
        """What is read, as the server serves it now. See ``ResourceReader.served``."""
        return await self.reader.served()

    def of(self, resource: Resource) -> TableReader:
        """The same of the resource in another version."""
        return replace(self, reader=self.reader.of(resource))

"""``ResourceApi``: reads and writes of one resource, for a program of its own.

Lists and watches are those of an informer without its cache. ``ApiEndpoint`` is the only part that
differs between a server and a cluster in memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, get_type_hints, overload

from typing_extensions import Unpack

from aioinformer._client.api.read_options import ListKeywords, LogKeywords, WatchKeywords
from aioinformer._client.api.subresource_answers import Scale, decode_scale, split_lines
from aioinformer._core.arguments import suggest_keyword, suggest_keywords
from aioinformer._core.cache.query import FieldChoice, LabelChoice, field_selector, label_selector
from aioinformer._core.listwatch.reflector_requests import NEWEST, PAGE_SIZE, ListRequest
from aioinformer._core.objects.decode_errors import discard_input
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.write_requests import (
    Propagation,
    WriteRequest,
    WriteRequestBuilder,
)
from aioinformer._runtime.reading.object_list import (
    ListOptions,
    ObjectList,
    read_list,
    read_pages,
)
from aioinformer._runtime.reading.object_watch import ObjectWatch
from aioinformer._runtime.reflector.lister_watcher import (
    ListerWatcher,
    Source,
    SupportsMetadataOnly,
)
from aioinformer._runtime.writing.resource_writer import NamesOrigin, WriteCall, WriterMethods
from aioinformer.errors import FetchError

T = TypeVar("T")


class ApiEndpoint(Protocol):
    """The sender of requests: a client, or a cluster in memory."""

    @property
    def source(self) -> Source: ...

    async def send(self, request: WriteRequest) -> bytes:
        """Send a request once and return the body of a successful answer.

        Raises:
            FetchError: the request failed (phase ``write``).
            NotRunning: the client is not open.
        """
        ...

    def open(self, request: WriteRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Send a GET and open the body of a successful answer, which may last for hours.

        Raises:
            FetchError: the request failed (phase ``list``).
            NotRunning: the client is not open.
        """
        ...


@dataclass(frozen=True, slots=True, repr=False)
class ResourceApi(WriterMethods):
    """Reads and writes of one resource without a cache: ``client.api("pods")``.

    It is a ``ResourceWriter``, which documents ``get``, ``create``, ``update``, ``patch``,
    ``apply`` and ``delete``. Lists and watches share the client's limits and credentials with its
    informers. Only lists and watches repeat a request that fails for a reason that may pass: a
    write that is sent twice may take effect twice.
    """

    builder: WriteRequestBuilder
    endpoint: ApiEndpoint = field(compare=False)

    @property
    def resource(self) -> Resource:
        """See ``ResourceWriter``."""
        return self.builder.resource

    @property
    def namespace(self) -> str | None:
        """The namespace of all requests; ``None`` if keys and objects name theirs."""
        return self.builder.namespace

    @property
    def origin(self) -> object:
        """See ``NamesOrigin``."""
        source = self.endpoint.source
        return source.origin if isinstance(source, NamesOrigin) else source

    # -- lists and watches ---------------------------------------------------------------------

    @overload
    async def list(
        self, *, model: None = None, **options: Unpack[ListKeywords]
    ) -> ObjectList[KubeObject]: ...
    @overload
    async def list(self, *, model: type[T], **options: Unpack[ListKeywords]) -> ObjectList[T]: ...
    @suggest_keywords
    async def list(
        self, *, model: type[Any] | None = None, **options: Unpack[ListKeywords]
    ) -> ObjectList[Any]:
        """Return all objects, or the selected ones, in one list.

        The list is read page by page, so that no answer is large. See ``pages`` for objects as they
        arrive. For a list that is needed again and again, an informer's cache is cheaper by far.

        Args:
            model: the type of the objects, which msgspec builds; ``KubeObject`` by default.
            **options: see ``ListKeywords``.

        Raises:
            FetchError: the list could not be read, also not by further requests. ``Forbidden``,
                ``NotFound`` and other errors that don't pass are raised at once.
            InvalidSelector: ``labels`` or ``fields`` don't parse.
            ModelMismatch: an object doesn't fit ``model``.
            NotRunning: the client is not open.
            TypeError: an option doesn't exist.

        Example:
            ``pods = await client.api("pods", namespace="web").list(labels="app=shop")``
        """
        read = self._list_options(model, options)
        return await read_list(self._source(options), read)

    @overload
    def pages(
        self, *, model: None = None, **options: Unpack[ListKeywords]
    ) -> AsyncGenerator[ObjectList[KubeObject]]: ...
    @overload
    def pages(
        self, *, model: type[T], **options: Unpack[ListKeywords]
    ) -> AsyncGenerator[ObjectList[T]]: ...
    @suggest_keywords
    def pages(
        self, *, model: type[Any] | None = None, **options: Unpack[ListKeywords]
    ) -> AsyncGenerator[ObjectList[Any]]:
        """Return an async iterator over the pages of a list: memory for one page at a time.

        The arguments are those of ``list``.

        Raises:
            Expired: the server has forgotten the state of the first page, some minutes after it.
                The pages that were read are of that state; begin again for a complete list.
            FetchError: and others, as for ``list``.

        Example:
            ``async for page in client.api("pods").pages(page_size=100): ...``
        """
        read = self._list_options(model, options)
        return read_pages(self._source(options), read)

    @overload
    def watch(
        self, resource_version: str = "", *, model: None = None, **options: Unpack[WatchKeywords]
    ) -> ObjectWatch[KubeObject]: ...
    @overload
    def watch(
        self, resource_version: str = "", *, model: type[T], **options: Unpack[WatchKeywords]
    ) -> ObjectWatch[T]: ...
    @suggest_keywords
    def watch(
        self,
        resource_version: str = "",
        *,
        model: type[Any] | None = None,
        **options: Unpack[WatchKeywords],
    ) -> ObjectWatch[Any]:
        """Return the changes after a version, as an async iterator to use inside ``async with``.

        The watch resumes after lost connections and replaces silent ones, without a gap and without
        a repetition, as an informer's does. It has no cache: an event has no old state.

        Args:
            resource_version: the version to begin after, such as that of an ``ObjectList``. Empty
                for the changes after the newest state.
            model: as for ``list``.
            **options: see ``WatchKeywords``.

        Raises:
            InvalidSelector: ``labels`` or ``fields`` don't parse.
            TypeError: an option doesn't exist.

        Example::

            api = client.api("pods", namespace="web")
            listed = await api.list()
            await api.patch("web-0", {"metadata": {"labels": {"tier": "web"}}})
            async with api.watch(listed.resource_version) as events:
                async for event in events:
                    print(event.type, event.key)
                    break
        """
        _check_keywords(self.resource, "watch", options, WatchKeywords)
        return ObjectWatch(
            self._source(options),
            resource_version,
            model=model,
            metadata_only=options.get("metadata_only", False),
            managed_fields=options.get("managed_fields", False),
        )

    def _list_options(self, model: type[T] | None, options: ListKeywords) -> ListOptions[T]:
        _check_keywords(self.resource, "list", options, ListKeywords)
        page_size = options.get("page_size", PAGE_SIZE)
        if page_size < 0:
            raise ValueError(f"page_size must be at least 0, not {page_size}")
        return ListOptions(
            request=ListRequest(options.get("resource_version", NEWEST), page_size),
            model=model,
            metadata_only=options.get("metadata_only", False),
            managed_fields=options.get("managed_fields", False),
        )

    def _source(self, options: WatchKeywords) -> ListerWatcher:
        source = self.endpoint.source.lister_watcher(
            self.resource,
            namespace=self.namespace,
            labels=str(label_selector(options.get("labels"))),
            fields=str(field_selector(options.get("fields"))),
        )
        if options.get("metadata_only", False) and isinstance(source, SupportsMetadataOnly):
            return source.with_metadata_only()
        return source

    # -- single objects ------------------------------------------------------------------------

    async def get(self, key: ObjectKey | str, *, subresource: str = "") -> KubeObject:
        """Return the object as the server has it now. See ``ResourceWriter``.

        Args:
            key: the object's key, or its name where this API has a namespace.
            subresource: the view to read, such as ``status``.
        """
        return await self._request(self.builder.get(key, subresource), self.builder.decode)

    async def delete_collection(
        self,
        *,
        labels: LabelChoice = None,
        fields: FieldChoice = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
    ) -> None:
        """Delete all objects of the namespace, or the selected ones.

        The server deletes one object after the other, so some may be deleted when the request
        fails. Wait for the end with ``informer.wait_until_all(deleted, ...)``. ``propagation`` and
        ``grace_period`` are those of ``delete``.

        Raises:
            InvalidSelector: ``labels`` or ``fields`` don't parse.
            ServerError, TransportError, NotRunning: as for the methods of ``ResourceWriter``.
            UsageError: the resource is namespaced, and this API has no namespace: the server
                deletes in one namespace at a time.
        """
        request = self.builder.delete_collection(
            labels=str(label_selector(labels)),
            fields=str(field_selector(fields)),
            propagation=propagation,
            grace_period=grace_period,
        )
        await self.endpoint.send(request)

    # -- subresources --------------------------------------------------------------------------

    async def get_scale(self, key: ObjectKey | str) -> Scale:
        """Return the desired and the actual number of replicas, by the subresource ``scale``.

        Raises:
            NotFound: the object doesn't exist, or its resource has no ``scale``.
            ServerError, TransportError, NotRunning, UsageError: as for ``ResourceWriter``.
        """
        return await self._request(self.builder.get(key, "scale"), decode_scale)

    async def scale(self, key: ObjectKey | str, replicas: int) -> Scale:
        """Set the desired number of replicas, by the subresource ``scale``; raise as ``get_scale``.

        Example:
            ``await client.api("deployments", namespace="web").scale("shop", 3)``
        """
        patch = {"spec": {"replicas": replicas}}
        return await self._request(self.builder.patch(key, patch, "scale"), decode_scale)

    async def evict(self, key: ObjectKey | str, *, grace_period: int | None = None) -> None:
        """Evict a pod: delete it unless a PodDisruptionBudget forbids that at the moment.

        Args:
            key: the pod's key, or its name where this API has a namespace.
            grace_period: seconds until the pod is killed; the pod's own by default.

        Raises:
            TooManyRequests: a PodDisruptionBudget forbids the eviction for now; try again later.
            ServerError, TransportError, NotRunning, UsageError: as for ``ResourceWriter``.
        """
        await self.endpoint.send(self.builder.evict(key, grace_period=grace_period))

    @asynccontextmanager
    async def log(
        self, key: ObjectKey | str, **options: Unpack[LogKeywords]
    ) -> AsyncGenerator[AsyncIterator[str]]:
        """Open the log of a pod's container, and yield an async iterator over its lines.

        Lines have no line ends. Bytes that are no UTF-8 are replaced. A followed log ends when the
        container ends or the connection is lost; nothing is resumed. The options are
        ``LogKeywords``.

        Raises:
            BadRequest: the pod has several containers, and ``container`` doesn't name one; or the
                container isn't running yet.
            NotFound: the pod doesn't exist.
            ServerError, TransportError, NotRunning, UsageError: as for ``ResourceWriter``.

        Example::

            from aioinformer.api import LogKeywords

            newest: LogKeywords = {"tail_lines": 10, "follow": True}
            try:
                async with client.api("pods", namespace="web").log("web-0", **newest) as lines:
                    async for line in lines:
                        print(line)
            except errors.NotFound:
                print("there is no such pod")
        """
        _check_keywords(self.resource, "log", options, LogKeywords)
        request = self.builder.log(key, options)
        async with self.endpoint.open(request) as chunks, aclosing(split_lines(chunks)) as lines:
            yield lines

    async def _send(self, call: WriteCall) -> KubeObject | None:
        build: Callable[..., WriteRequest] = getattr(self.builder, call.method)
        decode = self.builder.decode_deleted if call.method == "delete" else self.builder.decode
        return await self._request(build(*call.arguments, **call.options), decode)

    async def _request(self, request: WriteRequest, decode: Callable[[bytes], T]) -> T:
        body = await self.endpoint.send(request)
        try:
            return decode(body)
        except FetchError as error:
            del body  # a traceback refers to the variables of this frame
            discard_input(error)
            raise

    def __repr__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"<ResourceApi of {self.resource}{where}>"


def _check_keywords(
    resource: Resource, method: str, options: Mapping[str, object], allowed: type
) -> None:
    """Raise ``TypeError`` if an option doesn't exist; the caller may not be type-checked."""
    known = list(get_type_hints(allowed))
    for name in options:
        if name not in known:
            hint = suggest_keyword(name, known)
            if not hint and (name == "namespace" or suggest_keyword(name, ("namespace",))):
                hint = f'; write client.api("{resource}", namespace=...).{method}(...)'
            raise TypeError(f"{method}() has no option {name!r}{hint}")

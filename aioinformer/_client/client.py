"""``Client``: one connection's worth of an API server, opened and closed by the program.

It holds what the parts of this package make: credentials, a transport, a catalogue of what the
server serves. It hands out ``lister_watcher``s and ``writer``s, which is all that the runtime knows
of it.
Reconnecting and retrying are the reflector's business, not the client's.
"""

from __future__ import annotations

import asyncio
import os
import ssl as tls
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType, TracebackType
from typing import Self

from aioinformer._client.api.lister_watcher import ClientListerWatcher
from aioinformer._client.api.resource_writer import ClientWriter
from aioinformer._client.api.scheduler import RequestScheduler
from aioinformer._client.auth.credentials import CredentialSource, ExplicitServer, parse_server_url
from aioinformer._client.discovery.discovery import Discovery
from aioinformer._client.http.error_mapping import WRITE_OUTCOME_UNKNOWN
from aioinformer._client.http.headers import Headers, check_headers
from aioinformer._client.http.request import JSON, ApiRequest, read_all
from aioinformer._client.http.transport import ResponseStream, Timeouts, Transport
from aioinformer._client.kubeconfig.source import Kubeconfig
from aioinformer._core.listwatch.rate_limit import Limits
from aioinformer._core.objects.resources import Resource, resolve_built_in
from aioinformer._core.writing.write_requests import WriteRequest, WriteRequestBuilder
from aioinformer.errors import NotRunning, Phase, RequestTimedOut, UsageError

__all__ = ["Client", "ClientListerWatcher"]

EMPTY: Mapping[str, str] = MappingProxyType({})


class Client:
    """A client of one API server, for one event loop. Enter it with ``async with``, once.

    ``Client(server, ...)`` is for a server that the program knows; ``Client.connect()`` finds one
    as kubectl does. Neither opens a file or a socket before it is entered.

    Args:
        server: the URL of the API server, such as ``https://10.0.0.1:6443``.
        token: a bearer token. One that rotates needs ``Client.connect()``.
        ssl: trusted certificates and one's own; the system's trusted ones by default.
        headers: headers to add to every request, such as ``Impersonate-User``, or a function that
            returns them; it is called for each request, and must be quick.
        timeouts: how long to wait for what.
        limits: how much its informers may ask for at once, all together.

    Raises:
        ConfigurationError: ``server`` is not the URL of an HTTP server.
        ValueError: the token has a space or a control character in it, or a header has one of
            the latter.
    """

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        ssl: tls.SSLContext | None = None,
        headers: Headers = EMPTY,
        timeouts: Timeouts | None = None,
        limits: Limits | None = None,
    ) -> None:
        source = ExplicitServer(parse_server_url(server), token or "", ssl)
        self._initialize(source, server, headers, timeouts, limits)

    @classmethod
    def connect(
        cls,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        headers: Headers = EMPTY,
        timeouts: Timeouts | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """A client of the cluster that kubectl would speak to, or of the one it runs in.

        The configuration is read when the client is entered: ``kubeconfig`` if given, else the
        files that ``$KUBECONFIG`` names, else ``~/.kube/config`` if there is one, else what a
        pod finds mounted. Entering raises ``ConfigurationError`` if that yields nothing usable.
        Tokens, certificates and what exec plugins yield are renewed as they rotate, and at once
        when the server refuses them; an OpenID Connect id-token is used but not renewed.

        Args:
            kubeconfig: the path of one file.
            context: the name of a context in it; its current one by default.
            headers: as for ``Client``.
            timeouts: as for ``Client``.
            limits: as for ``Client``.

        Raises:
            ValueError: a header has a control character in it.
        """
        client = cls.__new__(cls)
        patience = (timeouts or Timeouts()).connect
        source = Kubeconfig(kubeconfig, context, timeout=patience)
        client._initialize(source, "", headers, timeouts, limits)
        return client

    @classmethod
    def of(
        cls,
        source: CredentialSource,
        *,
        headers: Headers = EMPTY,
        timeouts: Timeouts | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """A client of the server that a source of credentials knows.

        What the adapters to other libraries' clients are made of. Entering raises what the
        source's ``load`` raises.

        Args:
            source: finds the credentials when the client is entered.
            headers: as for ``Client``.
            timeouts: as for ``Client``.
            limits: as for ``Client``.

        Raises:
            ValueError: a header has a control character in it.
        """
        client = cls.__new__(cls)
        client._initialize(source, "", headers, timeouts, limits)
        return client

    def _initialize(
        self,
        source: CredentialSource,
        server: str,
        headers: Headers,
        timeouts: Timeouts | None,
        limits: Limits | None,
    ) -> None:
        self._source = source
        self._server = server
        self._namespace = ""
        self._headers = check_headers(headers)
        self._timeouts = timeouts or Timeouts()
        self._scheduler = RequestScheduler(limits)
        self._transport: Transport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._discovery = Discovery(self._fetch_document, lambda: self._server_description)
        self._server_description = ""
        self._state = "new"

    # -- life ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise NotRunning(f"{self!r} can be entered once; make another one")
        self._state = "opening"
        self._loop = asyncio.get_running_loop()
        try:
            credentials = await self._source.load()
            self._transport = Transport(credentials, headers=self._headers, timeouts=self._timeouts)
        except BaseException:
            self._state = "closed"
            raise
        self._server, self._server_description = str(credentials.server), credentials.description
        self._namespace = credentials.namespace
        self._state = "open"
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        transport, self._transport = self._transport, None
        self._state = "closed"
        if transport is not None:
            await transport.close()

    @property
    def server(self) -> str:
        """The URL of the API server; empty while ``connect()`` has yet to find it."""
        return self._server

    @property
    def namespace(self) -> str:
        """The namespace that the kubeconfig context or the pod names; empty for none.

        Informers don't use it by themselves: ``SharedInformerFactory(client, namespace=...)``.
        """
        return self._namespace

    def __repr__(self) -> str:
        return f"<Client {self._server or 'of a server to be found'} {self._state}>"

    # -- asking --------------------------------------------------------------------------------

    def lister_watcher(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
    ) -> ClientListerWatcher:
        """What lists and watches a resource. Needs no network, and no entered client yet.

        Args:
            resource: what to read.
            namespace: the one namespace to read; all of them by default.
            labels: a label selector, such as ``app=shop,tier!=cache``.
            fields: a field selector, such as ``spec.nodeName=node-1``.

        Raises:
            ValueError: a namespace for a cluster-scoped resource, or one that is no DNS label.
        """
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        chosen = {name: value for name, value in selectors.items() if value}
        lane = self._scheduler.create_lane()
        resource.path(namespace)  # raises what the docstring says
        return ClientListerWatcher(self, resource, namespace, chosen, lane)

    def writer(self, resource: str | Resource, *, namespace: str | None = None) -> ClientWriter:
        """What reads and writes single objects of a resource: a ``ResourceWriter``.

        Needs no network, and no entered client yet. Its requests wait for nothing but each
        other, a hundred at a time: not for lists, nor for the pauses of informers. A request is
        sent once more only if its credentials were refused and there are others; what it may
        take is what ``Timeouts`` says for a single request.

        Args:
            resource: what to write: a ``Resource``, or the name of a built-in one.
            namespace: the one namespace to write in; by default each key and object says its
                own.

        Raises:
            UnknownResource: no built-in resource has that name.
            ValueError: a namespace for a cluster-scoped resource, or one that is no DNS label.
        """
        return ClientWriter(
            WriteRequestBuilder(resolve_built_in(resource), namespace), self._send_write
        )

    async def resource(self, name: str) -> Resource:
        """The resource that the server serves under a name.

        The server's answer is kept for ten minutes; a name that is not in it is asked for anew,
        every two seconds at most.

        Args:
            name: plural, singular, short name or kind, in any case, alone or followed by
                ``.group`` or ``.version.group``. A name alone means the core group's
                resource if there is one.

        Raises:
            UnknownResource: the server has none of that name; says which are near.
            AmbiguousResource: several groups have one; says how to name each.
            UnwatchableResource: it can't be listed and watched; says which verbs it lacks.
            FetchError: it can't be known: the server could not be asked, or is silent on a part.
            NotRunning: the client is not open.
        """
        return await self._discovery.find(name)

    async def served(self, resource: Resource) -> Resource | None:
        """The resource as the server serves it now; ``None`` if it doesn't.

        The server is asked, unless it was within the last two seconds: many may want to know at
        once.

        In another version than ``resource`` has, if it is served in that one only. One server of
        several may answer from before the last change: an absence is certain if it is answered
        again some seconds later.

        Raises:
            FetchError: it can't be known: no answer, one without discovery (401, 403, 5xx), or
                an aggregated API that doesn't answer (phase ``discovery``).
            NotRunning: the client is not open.
        """
        return await self._discovery.served(resource)

    async def get(
        self,
        path: str,
        query: Mapping[str, str] = EMPTY,
        *,
        accept: str = JSON,
        phase: Phase = "list",
    ) -> bytes:
        """The whole body of what the server answers to a GET.

        Args:
            path: an absolute path, such as ``/version``.
            query: the URL query, unquoted.
            accept: the media types to ask for.
            phase: what an error shall say that this was for.

        Raises:
            FetchError: any answer but 200, or none; or one that is longer than 64 MiB, or takes
                longer than ``Timeouts.whole``.
            NotRunning: the client is not open.
            ValueError: the path is not absolute, or has ``.`` or ``..`` in it.
        """
        return await self._read_response(ApiRequest(phase, path, query, accept))

    @asynccontextmanager
    async def request(self, call: ApiRequest) -> AsyncGenerator[ResponseStream]:
        """Send a request; its open answer. See ``Transport.request``.

        Raises:
            NotRunning: the client is not open.
            UsageError: it is open in another event loop.
        """
        if self._transport is None:
            raise NotRunning(f"{self!r} is not open: use it inside `async with`")
        if self._loop is not asyncio.get_running_loop():
            raise UsageError(f"{self!r} runs in another event loop; use it from there")
        async with self._transport.request(call) as body:
            yield body

    async def _read_response(self, request: ApiRequest) -> bytes:
        """The whole body of an answer, in the time that a single request may take."""
        whole = self._timeouts.whole
        try:
            async with asyncio.timeout(whole), self.request(request) as body:
                return await read_all(body, request)
        except TimeoutError as error:
            said = f"{request.method} {request.path}: the answer did not end in {whole:g} s"
            said = f"{said}; {WRITE_OUTCOME_UNKNOWN}" if request.is_write else said
            raise RequestTimedOut(said, phase=request.phase) from error

    async def _send_write(self, request: WriteRequest) -> bytes:
        return await self._read_response(
            ApiRequest(
                "write",
                request.path,
                request.query,
                method=request.method,
                body=request.body,
                content_type=request.content_type,
            )
        )

    async def _fetch_document(self, path: str, accept: str) -> bytes:
        return await self.get(path, accept=accept, phase="discovery")

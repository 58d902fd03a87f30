"""``Client``: the connection to one API server, opened and closed by the program.

The client holds the credentials, the HTTP transport, the discovery cache and the request schedule
of one server. It sends each request once, and a second time only with refreshed credentials. The
reflector decides about retries, backoff and reconnects.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import ssl as tls
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Literal, Self, TypeAlias, cast

import msgspec

from aioinformer._client.api.client_lister_watcher import ClientListerWatcher
from aioinformer._client.api.request_scheduler import RequestScheduler
from aioinformer._client.api.resource_api import ResourceApi
from aioinformer._client.auth.credentials import CredentialSource, ExplicitServer, parse_server_url
from aioinformer._client.discovery.discovery import Discovery
from aioinformer._client.discovery.resource_list import ResourceList
from aioinformer._client.http.error_mapping import WRITE_OUTCOME_UNKNOWN
from aioinformer._client.http.headers import Headers, check_headers
from aioinformer._client.http.request import JSON, ApiRequest, Timeouts, read_all
from aioinformer._client.http.transport import ResponseStream, Transport
from aioinformer._client.http.user_agent import ProgramNames
from aioinformer._client.kubeconfig.kubeconfig import Kubeconfig
from aioinformer._core.arguments import suggest_keywords
from aioinformer._core.listwatch.rate_limit import Limits
from aioinformer._core.objects.decode_errors import DECODE_ERRORS, discard_input
from aioinformer._core.objects.resources import Resource, resolve_built_in
from aioinformer._core.writing.write_requests import WriteRequest, WriteRequestBuilder
from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
from aioinformer._runtime.tasks.event_loop import own_loop
from aioinformer.errors import (
    ConfigurationError,
    FetchError,
    NotRunning,
    Phase,
    RequestTimedOut,
    UsageError,
)

EMPTY: Mapping[str, str] = MappingProxyType({})

ClientState: TypeAlias = Literal["new", "opening", "open", "closed"]

log = logging.getLogger("aioinformer.client")

IDENTITY_PATH = "/api/v1/namespaces/kube-system"
"""The namespace that each cluster creates once, and whose UID identifies the cluster."""

IDENTITY_SECONDS = 3.0
"""Seconds for the request. A server that doesn't answer must not keep a restored state from the
program; the endpoint identifies the cluster then."""

MAX_LOG_SECONDS = 30 * 24 * 3600
"""Seconds for which a log may be followed."""


class Client:
    """A client of one API server, for one event loop. Enter it with ``async with``, once.

    ``Client(server, ...)`` is for a server that the program knows. ``Client.connect()`` finds the
    server as kubectl does. No file or socket is opened before the client is entered.

    Args:
        server: the URL of the API server, such as ``https://10.0.0.1:6443``.
        token: a fixed bearer token. ``Client.connect()`` handles tokens that rotate.
        ssl: the trusted certificates and the client certificate. By default the system's trusted
            certificates are used, and no client certificate.
        headers: headers to add to every request, such as ``Impersonate-User``, or a function that
            returns them. The client calls the function for each request, so it must be quick.
        timeouts: the time limits of requests.
        limits: the limits on the lists and restarts of all informers of this client together.
        user_agent: the ``User-Agent`` of requests, which the server's audit log has:
            ``shop/1.2``, for example. By default it begins with the name of the program, as
            client-go's does. A server also takes the text before the slash for the field manager
            of writes. ``User-Agent`` in ``headers`` takes precedence.
        field_manager: the field manager of all creations, updates and patches, and of applies that
            name no other. By default the server derives it from the User-Agent, and an
            apply has the name that the server would derive.
        send_credentials_unencrypted: send tokens, passwords and cookies to a server without TLS,
            so that others on the network can read them. By default entering the client raises
            ``ConfigurationError`` instead, unless the server is on a loopback address.

    Raises:
        ConfigurationError: ``server`` is not the URL of an HTTP server.
        ValueError: the token contains a space or a control character, or a header contains a
            control character; or ``user_agent`` or ``field_manager`` is empty, too long or not
            printable.
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
        user_agent: str | None = None,
        field_manager: str | None = None,
        send_credentials_unencrypted: bool = False,
    ) -> None:
        if not isinstance(cast("object", server), str):  # often None, from os.environ.get
            raise TypeError(
                f"a server is a URL such as https://10.0.0.1:6443, not {server!r}; for the cluster "
                "that kubectl would use, write Client.connect()"
            )
        source = ExplicitServer(parse_server_url(server), token or "", ssl)
        self._initialize(source, headers, timeouts, limits)
        self._server = server
        self._names = ProgramNames.of(user_agent, field_manager)
        self._send_credentials_unencrypted = send_credentials_unencrypted

    @classmethod
    def connect(
        cls,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        headers: Headers = EMPTY,
        timeouts: Timeouts | None = None,
        limits: Limits | None = None,
        user_agent: str | None = None,
        field_manager: str | None = None,
        send_credentials_unencrypted: bool = False,
    ) -> Self:
        """Return a client of the cluster that kubectl would use, or of the cluster around the pod.

        The configuration is read when the client is entered: ``kubeconfig`` if given, else the
        files that ``$KUBECONFIG`` names, else ``~/.kube/config`` if it exists, else, and if those
        files choose no cluster, the service account that is mounted into a pod. Entering raises
        ``ConfigurationError`` if none of these is usable, or a file can't be read. Tokens,
        certificates and the credentials of exec plugins are renewed as they rotate, and at once
        when the server rejects them. An OpenID Connect id-token is used but not renewed.

        ``kubeconfig`` is the path of one file, ``context`` the name of a context in it; its current
        context by default. The other arguments are those of ``Client``.

        Raises:
            ValueError: a header contains a control character, or its name a space or a colon; or a
                name as for ``Client``.
        """
        source = Kubeconfig(kubeconfig, context, timeout=(timeouts or Timeouts()).connect)
        return cls.of(
            source,
            headers=headers,
            timeouts=timeouts,
            limits=limits,
            user_agent=user_agent,
            field_manager=field_manager,
            send_credentials_unencrypted=send_credentials_unencrypted,
        )

    @classmethod
    def of(
        cls,
        source: CredentialSource,
        *,
        headers: Headers = EMPTY,
        timeouts: Timeouts | None = None,
        limits: Limits | None = None,
        user_agent: str | None = None,
        field_manager: str | None = None,
        send_credentials_unencrypted: bool = False,
    ) -> Self:
        """Return a client with the server and credentials of a credential source.

        The adapters to other client libraries use this method. ``source`` is called when the client
        is entered, which raises its exceptions. The other arguments are those of ``Client``.

        Raises:
            ValueError: a header contains a control character, or its name a space or a colon; or a
                name as for ``Client``.
        """
        client = cls.__new__(cls)
        client._initialize(source, headers, timeouts, limits)
        client._names = ProgramNames.of(user_agent, field_manager)
        client._send_credentials_unencrypted = send_credentials_unencrypted
        return client

    def _initialize(
        self,
        source: CredentialSource,
        headers: Headers,
        timeouts: Timeouts | None,
        limits: Limits | None,
    ) -> None:
        self._source = source
        self._server = self._namespace = self._server_description = ""
        self._headers = check_headers(headers)
        self._timeouts = timeouts or Timeouts()
        self._scheduler = RequestScheduler(limits)
        self._transport: Transport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._discovery = Discovery(
            lambda path, accept: self.get_raw(path, accept=accept, phase="discovery"),
            lambda: self._server_description,
        )
        self._state: ClientState = "new"

    # -- entering and leaving ------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise NotRunning(f"{self!r} can be entered only once; make a new client")
        self._loop = own_loop()
        self._state = "opening"
        try:
            try:
                credentials = await self._source.load()
            except BlockingIOError as error:  # no thread can be started
                text = f"the credentials can't be read: {error.strerror}"
                raise ConfigurationError(text) from error
            self._transport = Transport(
                credentials,
                headers=self._headers,
                timeouts=self._timeouts,
                user_agent=self._names.user_agent,
                send_credentials_unencrypted=self._send_credentials_unencrypted,
            )
            await self._transport.check_exposure()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        self._scheduler.wait_for_credentials = self._transport.wait_for_credentials
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
    def state(self) -> ClientState:
        """The state: ``new`` before the client is entered, ``open`` inside of ``async with``."""
        return self._state

    @property
    def server(self) -> str:
        """The URL of the API server; empty before a client of ``connect()`` is entered."""
        return self._server

    @property
    def origin(self) -> object:
        """The server, by which a controller knows the informers that show its writes."""
        return self._server or None

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig context or of the pod; empty if there is none.

        Informers use it only if the program passes it: ``SharedInformerFactory(client,
        namespace=client.namespace)``.
        """
        return self._namespace

    def __repr__(self) -> str:
        if not self._server and self._state == "new":
            return "<Client not opened yet: enter it with 'async with'>"
        return f"<Client {self._server or 'without a server'} {self._state}>"

    # -- requests ------------------------------------------------------------------------------

    def lister_watcher(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: str = "",
        fields: str = "",
    ) -> ClientListerWatcher:
        """Return the object with which an informer lists and watches a resource.

        This method needs no network, and works before the client is entered. ``labels`` is a
        selector such as ``app=shop,tier!=cache``, ``fields`` one such as ``spec.nodeName=node-1``.
        Without ``namespace`` all namespaces are read.

        Raises:
            ValueError: a namespace is given for a cluster-scoped resource, or the namespace is not
                a DNS label.
        """
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        chosen = {name: value for name, value in selectors.items() if value}
        lane = self._scheduler.create_lane()
        resource.path(namespace)  # raises the ValueError of the docstring
        return ClientListerWatcher(self, resource, namespace, chosen, lane)

    @suggest_keywords
    def api(self, resource: str | Resource, *, namespace: str | None = None) -> ResourceApi:
        """Return the reads and writes of a resource: a ``ResourceWriter`` with lists and watches.

        This method needs no network, and works before the client is entered. At most a hundred
        requests for single objects run at a time. They wait for each other, but never for lists or
        for the backoff of informers, and ``Timeouts`` limits their duration. Such a request is sent
        a second time only if the server rejected its credentials and others are available. Lists
        and watches wait for their turn among those of the informers.

        Args:
            resource: a ``Resource``, or the name of a built-in resource.
            namespace: the namespace of all objects; by default each key and object names its own.

        Raises:
            UnknownResource: no built-in resource has that name.
            ValueError: a namespace is given for a cluster-scoped resource, or the namespace is not
                a DNS label.
        """
        builder = WriteRequestBuilder(
            resolve_built_in(resource),
            namespace,
            field_manager=self._names.field_manager,
            apply_manager=self._names.apply_manager,
        )
        return ResourceApi(builder, _ClientEndpoint(self, self._read_response))

    async def resource(self, name: str) -> Resource:
        """Return the resource that the server serves under a name.

        The discovery documents are cached for ten minutes. If a name is not in them, or ambiguous,
        they are fetched again, at most every two seconds.

        Args:
            name: a plural, singular, short name or kind, in any case, alone or followed by
                ``.group`` or ``.version.group``. A name alone means the resource of the core group
                if there is one.

        Raises:
            UnknownResource: the server has no resource of that name; the message suggests similar
                names.
            AmbiguousResource: several groups have a resource of that name; the message says how
                to name each.
            UnwatchableResource: the resource can't be listed and watched; the message says which
                verbs it lacks.
            FetchError: discovery failed, completely or for the part that may have the name.
            NotRunning: the client is not open.
        """
        return await self._discovery.find(name)

    async def discover(self) -> ResourceList:
        """Return everything that the server serves, as a list that can be searched.

        The server is asked unless it was asked in the last two seconds.

        Raises:
            FetchError: discovery failed as a whole. Single documents that could not be read are
                named in ``unread``.
            NotRunning: the client is not open.

        Example:
            ``(await client.discover()).find(category="all", verbs=["watch"])``
        """
        return await self._discovery.list_served()

    async def served(self, resource: Resource) -> Resource | None:
        """Return the resource as the server serves it now; ``None`` if the server doesn't serve it.

        The returned resource has another version than ``resource`` if the server serves only that
        one. The server is asked unless it has answered the same question in the last two seconds,
        because many informers may ask at once. An absence is proven by the list of all groups
        (``/apis``, or ``/api``), never by a 404, which a proxy may have sent. Of several API
        servers, one may still answer from before the last change: an absence is certain if a
        second answer some seconds later confirms it.

        Raises:
            FetchError: the server gave no answer, or an error (401, 403, 404, 5xx) instead of the
                list of groups, or an aggregated API doesn't answer (phase ``discovery``).
            NotRunning: the client is not open.
        """
        return await self._discovery.served(resource)

    async def get_raw(
        self,
        path: str,
        query: Mapping[str, str] = EMPTY,
        *,
        accept: str = JSON,
        phase: Phase = "list",
    ) -> bytes:
        """Send a GET and return the whole body of the response as bytes.

        Args:
            path: an absolute path, such as ``/version``.
            query: the URL query, not percent-encoded.
            accept: the ``Accept`` header.
            phase: the phase that a ``FetchError`` names.

        Raises:
            FetchError: the server gave no answer or another status than 200, or the response is
                longer than 64 MiB or takes longer than ``Timeouts.whole``.
            NotRunning: the client is not open.
            ValueError: the path is not absolute, or contains ``.`` or ``..``.
        """
        return await self._read_response(ApiRequest(phase, path, query, accept))

    async def cluster_identity(self) -> ClusterIdentity:
        """Return the identity of the cluster: the UID of ``kube-system``, if it can be read, and a
        hash of the server's URL and certificate authorities.

        Raises:
            NotRunning: the client is not open.
        """
        context = None if self._transport is None else await self._transport.tls_context()
        return await find_cluster_identity(self.get_raw, self._server, context)

    @asynccontextmanager
    async def request(self, call: ApiRequest) -> AsyncGenerator[ResponseStream]:
        """Send a request and yield the open response. See ``Transport.request``.

        Raises:
            NotRunning: the client is not open.
            UsageError: the client is open in another event loop.
        """
        if self._transport is None:
            raise NotRunning(f"{self!r} is not open: use it inside `async with`")
        if self._loop is not asyncio.get_running_loop():
            raise UsageError(f"{self!r} runs in another event loop; use it from there")
        async with self._transport.request(call) as response:
            yield response

    async def _read_response(self, request: ApiRequest) -> bytes:
        """Return the whole body of a response, within ``Timeouts.whole``."""
        limit = self._timeouts.whole
        try:
            async with asyncio.timeout(limit), self.request(request) as response:
                return await read_all(response, request)
        except FetchError as error:
            discard_input(error)  # its frames hold parts of the response
            raise
        except TimeoutError:
            text = f"{request.method} {request.path}: the response did not end in {limit:g} s"
            text = f"{text}; {WRITE_OUTCOME_UNKNOWN}" if request.is_write else text
            raise RequestTimedOut(text, phase=request.phase) from None


@dataclass(frozen=True, slots=True)
class _ClientEndpoint:
    source: Client
    read_response: Callable[[ApiRequest], Awaitable[bytes]]

    async def send(self, request: WriteRequest) -> bytes:
        return await self.read_response(
            ApiRequest(
                "write",
                request.path,
                request.query,
                method=request.method,
                body=request.body,
                content_type=request.content_type,
            )
        )

    @asynccontextmanager
    async def open(self, request: WriteRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Send a GET and open the body of the answer.

        No data may arrive for hours: a log is followed while its container writes nothing.
        """
        call = ApiRequest("list", request.path, request.query, watch_timeout=MAX_LOG_SECONDS)
        async with self.source.request(call) as body:
            yield body


# -- the identity of a cluster -----------------------------------------------------------------


class _UidMetadata(msgspec.Struct):
    uid: str = ""


class _Namespace(msgspec.Struct):
    metadata: _UidMetadata


async def find_cluster_identity(
    get: Callable[[str], Awaitable[bytes]], server: str, context: tls.SSLContext | None
) -> ClusterIdentity:
    """Return the identity of a cluster. ``get`` sends a GET and returns the body."""
    uid = ""
    try:
        async with asyncio.timeout(IDENTITY_SECONDS):
            body = await get(IDENTITY_PATH)
        uid = msgspec.json.decode(body, type=_Namespace).metadata.uid
    except (FetchError, TimeoutError, *DECODE_ERRORS) as error:
        log.debug("the UID of kube-system can't be read: %s", error)
    digest = hashlib.sha256(server.encode())
    for certificate in sorted(context.get_ca_certs(binary_form=True) if context else []):
        digest.update(certificate)
    return ClusterIdentity(uid, digest.hexdigest())

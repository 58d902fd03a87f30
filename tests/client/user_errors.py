"""A beginner's mistakes, and what is said of each.

Each text is a snapshot, whole, since the text is what helps or doesn't. The library and the
command line are held to the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeAlias

from aioinformer.errors import (
    BadRequest,
    ConfigurationError,
    ConnectionFailed,
    Forbidden,
    InformerError,
    NotFound,
    ProtocolError,
    ServerError,
    Unauthorized,
    UnknownResource,
)
from tests.client.failure_setups import (
    FailureContext,
    FailureSetup,
    anonymous,
    everything_forbidden,
    expired_client_certificate,
    expired_server_certificate,
    forbidden,
    http_to_https,
    https_to_http,
    no_client_certificate,
    no_file,
    no_plugin,
    no_such_host,
    nobody_listens,
    unknown_client_authority,
    unknown_server_authority,
    working_server,
    wrong_server_name,
    wrong_token,
)
from tests.client.non_api_servers import (
    go_service,
    html_list,
    invalid_pem,
    invalid_port,
    login_page,
    oversized_headers,
    redirect_to_login,
    unreachable_proxy,
    unrelated_json,
    web_service,
    web_site,
)

Setup: TypeAlias = Callable[[FailureSetup], AbstractAsyncContextManager[FailureContext]]


@dataclass(frozen=True, slots=True)
class UserError:
    """One of them, and what is said of it."""

    name: str
    setup: Setup
    error: type[InformerError]
    code: int
    """The command line's exit code; 0 if the command continues and retries."""
    text: str
    resource: str = "pods"
    context: str | None = None
    fields: str = ""

    def expected_text(self, situation: FailureContext, *, verb: str = "list") -> str:
        """Return the expected message for a request with this verb."""
        return self.text.format(file=situation.file, address=situation.address, verb=verb)

    def __str__(self) -> str:
        return self.name


USER_ERRORS = (
    UserError(
        "no such file",
        no_file,
        ConfigurationError,
        2,
        "kubeconfig {file} does not exist: is the path right? Without a path, $KUBECONFIG "
        "and ~/.kube/config are used",
    ),
    UserError(
        "unknown context",
        working_server,
        ConfigurationError,
        2,
        "{file} has no context 'mars'; it has main: see `kubectl config get-contexts "
        "--kubeconfig={file}`",
        context="mars",
    ),
    UserError(
        "missing exec binary",
        no_plugin,
        ConfigurationError,
        2,
        "{file}: context 'main': the exec plugin 'kubectl-shop-login' can't be run: No such file "
        "or directory. To install it: brew install shop-login",
    ),
    UserError(
        "connection refused",
        nobody_listens,
        ConnectionFailed,
        1,
        "{address}: Connection refused; nothing listens there: is the API server running, and are "
        "host and port right? ({file}: context 'main')",
    ),
    UserError(
        "unknown host",
        no_such_host,
        ConnectionFailed,
        1,
        "no-such-host.invalid:6443: the name is not known: {address}; is it spelt "
        "right, and does this machine's DNS, or VPN, know it? ({file}: context 'main')",
    ),
    UserError(
        "expired certificate",
        expired_server_certificate,
        ConnectionFailed,
        1,
        "{address}: the server's certificate was not accepted: certificate has expired; renew it "
        "on the server, or set the clock of this machine if it is wrong ({file}: context 'main')",
    ),
    UserError(
        "wrong authority",
        unknown_server_authority,
        ConnectionFailed,
        1,
        "{address}: the server's certificate was not accepted: unable to get local issuer "
        "certificate; its issuer is not a trusted authority: is this the right server, and is "
        "certificate-authority that of the server? A fresh kubeconfig has the right values "
        "({file}: context 'main')",
    ),
    UserError(
        "wrong name",
        wrong_server_name,
        ConnectionFailed,
        1,
        "{address}: the server's certificate was not accepted: IP address mismatch, certificate "
        "is not valid for '127.0.0.1'; use a name from the certificate, or set tls-server-name to "
        "such a name ({file}: context 'main')",
    ),
    UserError(
        "no client certificate",
        no_client_certificate,
        ConnectionFailed,
        1,
        "{address}: the server requires a client certificate, and none is set: get a fresh "
        "kubeconfig ({file}: context 'main')",
    ),
    UserError(
        "expired client certificate",
        expired_client_certificate,
        ConnectionFailed,
        1,
        "{address}: the client's certificate has expired: renew it, or get a fresh kubeconfig "
        "({file}: context 'main')",
    ),
    UserError(
        "client certificate of another authority",
        unknown_client_authority,
        ConnectionFailed,
        1,
        "{address}: the server doesn't accept the client's certificate (unknown ca): get a fresh "
        "kubeconfig ({file}: context 'main')",
    ),
    UserError(
        "HTTP to an HTTPS port",
        http_to_https,
        ConnectionFailed,
        1,
        "{address}: the server answers in TLS only: should its URL begin with https://? "
        "({file}: context 'main')",
    ),
    UserError(
        "HTTPS to an HTTP port",
        https_to_http,
        ConnectionFailed,
        1,
        "{address}: the server answers in plain HTTP, not TLS: should the server's URL begin with "
        "http://? ({file}: context 'main')",
    ),
    UserError(
        "a web site that has no such page",
        web_site,
        NotFound,
        1,
        "GET http://{address}/apis: 404: Not Found; the body is no "
        "Status: 25 bytes of text/html; {address} answers with a page "
        "(text/html), and doesn't look like a Kubernetes API server: is `server:` in {file}: "
        "context 'main' right?",
    ),
    UserError(
        "a web service that has no such path",
        web_service,
        NotFound,
        1,
        "GET http://{address}/apis: 404: Not Found; the body is no "
        "Status: 14 bytes of text/plain; {address} doesn't look like a Kubernetes "
        "API server: is `server:` in {file}: context 'main' right?",
    ),
    UserError(
        "a web service in Go",
        go_service,
        UnknownResource,
        2,
        "the server http://{address} ({file}: context 'main') has no resource called 'pods'; it "
        "doesn't list its groups, so ask for pods.GROUP, if it is a Kubernetes API server at all",
    ),
    UserError(
        "a login page",
        login_page,
        ProtocolError,
        1,
        "GET http://{address}/api: {address} answers with a page (text/html), and doesn't look "
        "like a Kubernetes API server: is `server:` in {file}: context 'main' right?",
    ),
    UserError(
        "a way to a login page",
        redirect_to_login,
        ServerError,
        1,
        "GET http://{address}/api: 302: redirected to login.example, which is not followed: "
        "credentials are not sent there; {address} doesn't look like a Kubernetes API server: is "
        "`server:` in {file}: context 'main' right?",
    ),
    UserError(
        "a service that answers in JSON of its own",
        unrelated_json,
        ProtocolError,
        1,
        "/apis of http://{address} ({file}: context 'main') is not a discovery document: its kind "
        "is not APIGroupList; is this a Kubernetes API server?",
    ),
    UserError(
        "a list that is a page",
        html_list,
        ProtocolError,
        0,
        "GET http://{address}/api/v1/namespaces/web/pods: {address} answers with a page "
        "(text/html), and doesn't look like a Kubernetes API server: is `server:` in {file}: "
        "context 'main' right?",
    ),
    UserError(
        "a head without end",
        oversized_headers,
        ProtocolError,
        1,
        "GET http://{address}/api: the head of the response is too long (more than 512 lines, or "
        "a line of more than 1048576 bytes): does a proxy in between add to it? ({file}: context "
        "'main')",
    ),
    UserError(
        "a proxy that is off",
        unreachable_proxy,
        ConnectionFailed,
        1,
        "10.0.0.1:443: the proxy {address} can't be reached: Connection refused; is it running, "
        "and is its URL right (`proxy-url:` in a kubeconfig, else the proxy of the client that was "
        "given)? "
        "({file}: context 'main')",
    ),
    UserError(
        "a port out of range",
        invalid_port,
        ConfigurationError,
        2,
        "{file}: context 'main': the port of 'https://127.0.0.1:99999' is not a number from 1 to "
        "65535",
    ),
    UserError(
        "a certificate that is none",
        invalid_pem,
        ConfigurationError,
        2,
        "{file}: context 'main': a certificate or its key can't be used: the certificate authority "
        "contains no certificate that can be used: it must be complete PEM (-----BEGIN "
        "CERTIFICATE-----): get a fresh kubeconfig, or check the file that it names",
    ),
    UserError(
        "unauthorized",
        wrong_token,
        Unauthorized,
        1,
        "GET http://{address}/api: 401 Unauthorized: Unauthorized; the token or client certificate "
        "is missing, wrong or has expired: log in again, or get a fresh kubeconfig ({file}: "
        "context 'main')",
    ),
    UserError(
        "not logged in",
        everything_forbidden,
        Forbidden,
        1,
        "GET http://{address}/api/v1: 403 Forbidden: forbidden: User "
        '"system:anonymous" cannot get path "/api/v1"; the request was anonymous: the token or '
        "client certificate is missing, wrong or has expired: log in again, or get a fresh "
        "kubeconfig ({file}: context 'main')",
    ),
    UserError(
        "forbidden",
        forbidden,
        Forbidden,
        0,
        "GET http://{address}/api/v1/namespaces/web/pods: 403 Forbidden: pods is forbidden: User "
        '"system:serviceaccount:web:shop" cannot list resource "pods" in API group "" in the '
        'namespace "web"; a Role or ClusterRole must allow list and watch: check with '
        "`kubectl auth can-i {verb} pods -n web --as=system:serviceaccount:web:shop` ({file}: "
        "context 'main')",
    ),
    UserError(
        "forbidden to nobody",
        anonymous,
        Forbidden,
        0,
        "GET http://{address}/api/v1/namespaces/web/pods: 403 Forbidden: pods is forbidden: User "
        '"system:anonymous" cannot {verb} resource "pods" in API group "" in the namespace "web"; '
        "the request was anonymous: the token or client certificate is missing, wrong or has "
        "expired: log in again, or get a fresh kubeconfig ({file}: context 'main')",
    ),
    UserError(
        "unknown resource",
        working_server,
        UnknownResource,
        2,
        "the server http://{address} ({file}: context 'main') has no resource called 'podz' (did "
        "you mean pods?); `kubectl api-resources` lists what the server has",
        resource="podz",
    ),
    UserError(
        "a field that can't be selected by",
        working_server,
        BadRequest,
        2,
        "GET http://{address}/api/v1/namespaces/web/pods: 400 BadRequest: field label not "
        "supported: spec.colour; servers select by metadata.name, metadata.namespace and few "
        "other fields: use a filter for the other ones",
        fields="spec.colour=red",
    ),
)

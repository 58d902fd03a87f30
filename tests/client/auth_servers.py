"""An API server that authenticates its clients by header or by client certificate."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import trustme
from aiohttp import web

from tests.client.conftest import Certificates
from tests.client.servers import start_response

UNAUTHORIZED_STATUS = {
    "kind": "Status",
    "code": 401,
    "reason": "Unauthorized",
    "message": "Unauthorized",
}


class AuthenticatingServer:
    """A server that answers known clients with their identity, and others with 401."""

    def __init__(self, *known: str) -> None:
        self.accepted = set(known)
        """The accepted headers and names in certificates, joined by a space."""
        self.identities: list[str] = []
        """The authenticated users of the requests, in order."""
        self.continue_watches = asyncio.Event()
        """Set to let the watches continue and end."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request of ``http_server``."""
        shown: dict[str, Any] = request.get_extra_info("peercert") or {}
        names = [name for _, name in shown.get("subjectAltName", ())]
        who = " ".join([request.headers.get("Authorization", ""), *names]).strip()
        self.identities.append(who)
        if who not in self.accepted:
            return web.json_response(UNAUTHORIZED_STATUS, status=401)
        if "watch" not in request.query:
            return web.Response(text=who)
        response = await start_response(request, b"one")
        await self.continue_watches.wait()
        await response.write(b"two")
        return response


def client_certificate_context(
    certificates: Certificates, leaf: trustme.LeafCert | None = None
) -> ssl.SSLContext:
    """Return the TLS context of a server that accepts client certificates, which are optional."""
    context = certificates.server_context(leaf)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=certificates.authority_pem.decode())
    return context


def replace_certificate(context: ssl.SSLContext, leaf: trustme.LeafCert) -> None:
    """Replace the certificate of a running server."""
    with leaf.private_key_and_cert_chain_pem.tempfile() as path:
        context.load_cert_chain(path)

"""What the clients of kubernetes_asyncio and ``kubernetes.aio`` have in common.

The same generator made both: an ``ApiClient`` holds a ``Configuration``, whose attributes have
the same names. That is all that is used here. ``auth_settings()`` is their way to a header; it
runs the program's ``refresh_api_key_hook``, for every request that asks, so the runs are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aioinformer.adapters.ready_made import TlsFiles

__all__ = ["Generated"]

OURS = frozenset({"user-agent", "accept", "accept-encoding", "content-type", "authorization"})
"""Default headers of a generated client that are not taken over."""


@dataclass(frozen=True, slots=True)
class Generated:
    """An ``ApiClient`` of either library, fitted to ``ReadyMade``."""

    api: Any
    """It. Untyped, since neither library is imported."""

    @property
    def host(self) -> str:
        """The URL of the API server."""
        return str(self.api.configuration.host)

    @property
    def tls(self) -> TlsFiles:
        """Its certificates. Its ``disable_strict_ssl_verification`` plays no part: certificates
        are checked here as kubectl does, which is less strict than Python 3.13.
        """
        settings = self.api.configuration
        return TlsFiles(
            authority=settings.ssl_ca_cert,
            authority_data=getattr(settings, "ca_cert_data", None),  # kubernetes.aio's alone
            certificate=settings.cert_file,
            key=settings.key_file,
            verify=bool(settings.verify_ssl),
        )

    @property
    def tls_server_name(self) -> str | None:
        """The name to check the server's certificate for, if it is not the host's."""
        return self.api.configuration.tls_server_name or None

    @property
    def proxy(self) -> str | None:
        """The URL of its proxy. Those of the environment are not looked up."""
        return self.api.configuration.proxy or None

    @property
    def proxy_headers(self) -> Mapping[str, str]:
        """The headers for its proxy."""
        return self.api.configuration.proxy_headers or {}

    @property
    def headers(self) -> Mapping[str, str]:
        """Its default headers, such as ``Impersonate-User``, and its cookie."""
        headers = {k: v for k, v in self._default_headers.items() if k.lower() not in OURS}
        cookie = getattr(self.api, "cookie", None)
        return {**headers, "Cookie": cookie} if cookie else headers

    @property
    def _default_headers(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.api.default_headers
        return found

    async def header(self) -> str:
        """The ``Authorization`` header: its token, else a default header of that name."""
        settings: Mapping[str, Mapping[str, Any]] = await self.api.configuration.auth_settings()
        value = settings.get("BearerToken", {}).get("value")
        named = (v for k, v in self._default_headers.items() if k.lower() == "authorization")
        return str(value) if value else next(named, "")

    def __repr__(self) -> str:
        return f"<Generated client of {self.host}>"

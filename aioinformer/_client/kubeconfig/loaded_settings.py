"""``LoaderSettings``: the attributes that kubernetes_asyncio's loader sets.

This module doesn't import the loader. The loader is imported only when a kubeconfig is loaded,
because that import takes longer than the import of the rest of this library.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class LoaderSettings:
    """A replacement for kubernetes_asyncio's ``Configuration``, which reconfigures loggers."""

    host: str = ""
    api_key: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    ssl_ca_cert: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify_ssl: bool = True
    tls_server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)

    @property
    def header(self) -> str:
        """The ``Authorization`` header; empty for none."""
        return self.api_key.get("BearerToken", "").strip()

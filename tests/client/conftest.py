"""Certificates for the tests that need TLS: created once per run, valid for 127.0.0.1."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority and the certificates that it has issued."""

    authority: trustme.CA
    server: trustme.LeafCert
    user: trustme.LeafCert

    def server_context(self, leaf: trustme.LeafCert | None = None) -> ssl.SSLContext:
        """Return the TLS context of a server with ``leaf``, by default for 127.0.0.1."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with (leaf or self.server).private_key_and_cert_chain_pem.tempfile() as path:
            context.load_cert_chain(path)
        return context

    def client_context(self) -> ssl.SSLContext:
        """Return the TLS context of a client that trusts only the authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.authority_pem.decode())
        return context

    @property
    def authority_pem(self) -> bytes:
        """The authority's certificate in PEM."""
        return self.authority.cert_pem.bytes()

    def write_authority(self, folder: Path) -> Path:
        """Write the authority's certificate to the file ``ca.crt``."""
        path = folder / "ca.crt"
        path.write_bytes(self.authority_pem)
        return path


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    authority = trustme.CA()
    return Certificates(
        authority, authority.issue_cert("127.0.0.1"), authority.issue_cert("user@example.com")
    )

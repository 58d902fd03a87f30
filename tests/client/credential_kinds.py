"""All kinds of credentials, configured in files as a user configures them.

Each kind can be configured twice: for the turn before a rotation and for the turn after it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme

from aioinformer import Client, Timeouts
from tests.client.conftest import Certificates
from tests.client.fake_exec_plugin import V1, V1BETA1, FakePlugin
from tests.client.kubeconfigs import encode_base64, make_kubeconfig, write_kubeconfig

TOKENS = ("canary-1-7c21", "canary-2-7c21")
"""The tokens, and passwords, before and after a rotation."""

NAMES = ("one@example.com", "two@example.com")
"""The names in the certificates before and after a rotation."""


@dataclass
class ConfiguredCredentials:
    """One kind of credentials, in the files of a directory."""

    folder: Path
    certificates: Certificates
    leaves: tuple[trustme.LeafCert, trustme.LeafCert]
    server: str = "https://127.0.0.1"
    plugin: FakePlugin | None = None
    secrets: set[str] = field(default_factory=set[str])
    """The secrets, which no message may contain."""

    def certificate(self, turn: int) -> tuple[bytes, bytes]:
        """Return the certificate chain and the key of this turn."""
        leaf = self.leaves[turn]
        key = leaf.private_key_pem.bytes()
        self.secrets |= set(key.decode().splitlines()[1:-1])
        return b"".join(blob.bytes() for blob in leaf.cert_chain_pems), key

    def token(self, turn: int) -> str:
        """Return the token of this turn."""
        self.secrets |= {TOKENS[turn], base64.b64encode(f"me:{TOKENS[turn]}".encode()).decode()}
        return TOKENS[turn]

    def put(self, name: str, content: bytes | str) -> None:
        """Replace a file in one step, as a kubelet does."""
        fresh = self.folder / f"{name}.new"
        fresh.write_bytes(content if isinstance(content, bytes) else content.encode())
        fresh.replace(self.folder / name)

    def write(self, user: Mapping[str, Any]) -> None:
        """Write the kubeconfig with this user."""
        cluster = {"server": self.server, "certificate-authority": "ca.crt"}
        if not (self.folder / "ca.crt").exists():
            self.certificates.write_authority(self.folder)
        write_kubeconfig(self.folder, make_kubeconfig(cluster=cluster, user=user), "config.new")
        (self.folder / "config.new").replace(self.folder / "config")

    def client(self) -> Client:
        """Return a client with the kubeconfig."""
        # The limit is 5 s in accelerated time.
        return Client.connect(
            kubeconfig=self.folder / "config", timeouts=Timeouts(connect=1000, read=1000)
        )


CredentialKind = Callable[[ConfiguredCredentials, int], str]
"""Configures a kind for a turn, and returns the user that the server sees."""


def configure_token(it: ConfiguredCredentials, turn: int) -> str:
    it.write({"token": it.token(turn)})
    return f"Bearer {TOKENS[turn]}"


def configure_token_file(it: ConfiguredCredentials, turn: int) -> str:
    it.put("token", it.token(turn) + "\n")
    it.write({"tokenFile": "token"})
    return f"Bearer {TOKENS[turn]}"


def configure_basic(it: ConfiguredCredentials, turn: int) -> str:
    it.write({"username": "me", "password": it.token(turn)})
    return "Basic " + base64.b64encode(f"me:{TOKENS[turn]}".encode()).decode()


def configure_certificate_files(it: ConfiguredCredentials, turn: int) -> str:
    chain, key = it.certificate(turn)
    it.put("me.crt", chain)
    it.put("me.key", key)
    it.write({"client-certificate": "me.crt", "client-key": "me.key"})
    return NAMES[turn]


def configure_certificate_data(it: ConfiguredCredentials, turn: int) -> str:
    chain, key = map(encode_base64, it.certificate(turn))
    it.secrets.add(key[40:80])
    it.write({"client-certificate-data": chain, "client-key-data": key})
    return NAMES[turn]


def configure_token_and_certificate(it: ConfiguredCredentials, turn: int) -> str:
    chain, key = map(encode_base64, it.certificate(turn))
    data = {"client-certificate-data": chain, "client-key-data": key}
    it.write({"token": it.token(turn), **data})
    return f"Bearer {TOKENS[turn]} {NAMES[turn]}"


def configure_id_token(it: ConfiguredCredentials, turn: int) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 2**32}).encode()).decode().rstrip("=")
    value = f"head.{claims}.{it.token(turn)}"
    config = {"id-token": value, "client-secret": TOKENS[0], "refresh-token": TOKENS[0]}
    it.write({"auth-provider": {"name": "oidc", "config": config}})
    return f"Bearer {value}"


def configure_plugin(it: ConfiguredCredentials, version: str, *, status: Mapping[str, str]) -> None:
    if it.plugin is None:
        it.plugin = FakePlugin(it.folder, version=version)
        it.write(it.plugin.user())
    it.plugin.set_status(**status)


def configure_exec_token(version: str) -> CredentialKind:
    def kind(it: ConfiguredCredentials, turn: int) -> str:
        configure_plugin(it, version, status={"token": it.token(turn)})
        return f"Bearer {TOKENS[turn]}"

    return kind


def configure_exec_certificate(version: str) -> CredentialKind:
    def kind(it: ConfiguredCredentials, turn: int) -> str:
        chain, key = it.certificate(turn)
        data = {"clientCertificateData": chain.decode(), "clientKeyData": key.decode()}
        configure_plugin(it, version, status=data)
        return NAMES[turn]

    return kind


def configure_exec_both(it: ConfiguredCredentials, turn: int) -> str:
    chain, key = it.certificate(turn)
    data = {"clientCertificateData": chain.decode(), "clientKeyData": key.decode()}
    configure_plugin(it, V1, status={"token": it.token(turn), **data})
    return f"Bearer {TOKENS[turn]} {NAMES[turn]}"


CREDENTIAL_KINDS: dict[str, CredentialKind] = {
    "token": configure_token,
    "tokenFile": configure_token_file,
    "basic": configure_basic,
    "certificate in files": configure_certificate_files,
    "certificate in data": configure_certificate_data,
    "token and certificate": configure_token_and_certificate,
    "oidc": configure_id_token,
    "exec v1 token": configure_exec_token(V1),
    "exec v1beta1 token": configure_exec_token(V1BETA1),
    "exec v1 certificate": configure_exec_certificate(V1),
    "exec v1beta1 certificate": configure_exec_certificate(V1BETA1),
    "exec token and certificate": configure_exec_both,
}

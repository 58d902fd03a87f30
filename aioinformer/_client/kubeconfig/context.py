"""``Context``: the cluster and the user of one kubeconfig context, and their credentials.

As in kubectl, a tokenFile that can be read overrides a token, and a user with any other
credentials, also a client certificate and its key, doesn't run its plugin. The id-token of the
auth-provider ``oidc`` is used and not renewed; Kubernetes 1.26 removed the other auth-providers.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioinformer._client.auth.exec_plugin import PluginCommand, parse_exec_section
from aioinformer._client.auth.impersonation import impersonation_headers
from aioinformer._client.auth.tls import TlsMaterial
from aioinformer._client.auth.token_refresh import CertificatePair
from aioinformer.errors import ConfigurationError

LINE_BREAKS = {ord("\r"): None, ord("\n"): None}

PLUGIN_CLUSTER_KEYS = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "proxy-url",
    "disable-compression",
)
"""Keys of a cluster that a plugin receives besides its authority (client-go's ``ExecCluster``)."""

PLUGIN_EXTENSION = "client.authentication.k8s.io/exec"
"""The name of the cluster's extension that plugins receive."""


@dataclass(frozen=True, slots=True)
class Context:
    """One context, with the fields that are set, each of its type, and absolute paths."""

    origin: str
    """The files and the name of the context, for messages."""
    cluster: Mapping[str, Any] = field(repr=False)
    user: Mapping[str, Any] = field(repr=False)
    namespace: str = ""

    @contextmanager
    def naming_origin(self) -> Generator[None]:
        """Name the files and the context in a ``ConfigurationError`` of the block."""
        try:
            yield
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.origin}: {error}") from error

    # -- the user ------------------------------------------------------------------------------

    @property
    def authorization(self) -> str:
        """The ``Authorization`` header of a token, or of a user and password; empty for none.

        Raises:
            ConfigurationError: the token can't be sent, or an id-token has expired.
        """
        has_provider = self.token_file is None and "auth-provider" in self.user
        token = self._read_id_token() if has_provider else self.user.get("token", "").strip()
        if " " in token or not token.isprintable():
            text = "the token contains a space, newline or control character"
            raise ConfigurationError(f"{self.origin}: {text}")
        if token:
            return f"Bearer {token}"
        if self.token_file is not None or "username" not in self.user:
            return ""
        pair = f"{self.user['username']}:{self.user.get('password', '')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"

    @property
    def impersonation_headers(self) -> tuple[tuple[str, str], ...]:
        """The user's impersonation headers; raises ``ConfigurationError`` for wrong keys."""
        with self.naming_origin():
            return impersonation_headers(self.user)

    @property
    def token_file(self) -> Path | None:
        path = self.user.get("tokenFile")
        return Path(path) if path else None

    @property
    def has_plugin(self) -> bool:
        others = ("tokenFile", "auth-provider", "token", "username")
        if "exec" not in self.user or any(each in self.user for each in others):
            return False
        return not all(
            each in self.user or f"{each}-data" in self.user
            for each in ("client-certificate", "client-key")
        )

    @property
    def plugin(self) -> PluginCommand | None:
        """The command of the user's plugin; ``None`` if there is none. May read a file.

        Raises:
            ConfigurationError: the section is incomplete, or requires a terminal.
            OSError: the cluster's authority, which is passed to the plugin, can't be read.
        """
        if not self.has_plugin:
            return None
        with self.naming_origin():
            return parse_exec_section(self.user["exec"], self._plugin_cluster_info())

    def _plugin_cluster_info(self) -> dict[str, Any]:
        info: dict[str, Any] = {
            key: self.cluster[key] for key in PLUGIN_CLUSTER_KEYS if key in self.cluster
        }
        if (authority := self._read_data(self.cluster, "certificate-authority")) is not None:
            info["certificate-authority-data"] = base64.b64encode(authority).decode()
        for each in self.cluster.get("extensions", ()):
            if each and each.get("name") == PLUGIN_EXTENSION:
                info["config"] = each.get("extension")
        return info

    def _read_id_token(self) -> str:
        """Return the id-token of OpenID Connect if it has not expired."""
        provider: Mapping[str, Any] = self.user["auth-provider"]
        if (name := provider.get("name")) != "oidc":
            raise ConfigurationError(
                f"{self.origin}: Kubernetes 1.26 removed the auth-provider {name!r}; use the exec "
                f"plugin of your cloud"
            )
        config: Mapping[str, Any] = provider.get("config") or {}
        token: str = config.get("id-token") or ""
        if not token:
            raise ConfigurationError(f"{self.origin}: its oidc auth-provider has no id-token")
        expires = _token_expiry(token)
        if expires is not None and expires <= dt.datetime.now(dt.UTC):
            raise ConfigurationError(
                f"{self.origin}: its id-token expired at {expires:%Y-%m-%d %H:%M:%S} UTC and is "
                f"not renewed here: run kubectl once, which renews it in the file, or use an "
                f"exec plugin for OpenID Connect such as kubelogin"
            )
        return token

    # -- certificates --------------------------------------------------------------------------

    def read_material(self) -> TlsMaterial:
        """Return the current certificates. This method reads files.

        Raises:
            OSError: a file can't be read.
            ValueError: data is not base64, or a certificate has no key, or a key no certificate.
        """
        certificate = self._read_data(self.user, "client-certificate")
        key = self._read_data(self.user, "client-key")
        if (certificate is None) != (key is None):
            raise ValueError("client-certificate and client-key must both be set")
        pair = None if certificate is None or key is None else CertificatePair(certificate, key)
        return TlsMaterial(
            self._read_data(self.cluster, "certificate-authority"),
            pair,
            verify=not self.cluster.get("insecure-skip-tls-verify"),
        )

    def _read_data(self, body: Mapping[str, Any], key: str) -> bytes | None:
        """Return the value of a key, from its ``-data`` form or from its file."""
        data: str | None = body.get(f"{key}-data")
        if data is None:
            return Path(body[key]).read_bytes() if key in body else None
        try:
            # As in Go, line breaks are ignored: some files have wrapped lines.
            return base64.b64decode(data.translate(LINE_BREAKS), validate=True)
        except ValueError:
            pass
        raise ValueError(f"{key}-data is not base64")


def _token_expiry(token: str) -> dt.datetime | None:
    """Return the expiry of a JSON Web Token; ``None`` if the token can't be decoded."""
    body = token.split(".")[1:2]
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(body[0] + "=" * (-len(body[0]) % 4)))
        return dt.datetime.fromtimestamp(claims["exp"], dt.UTC)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None

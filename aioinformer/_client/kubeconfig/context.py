"""``Context``: what the cluster and the user of one context say, and what follows from it.

kubernetes_asyncio's loader reads what it reads well: the server and its settings, a token, a user
and password. What it lacks is ours, and kept from it:

    tokenFile               it reads the file once, with the newline at its end
    exec                    see ``plugins``
    certificates            it copies data into temporary files that stay until the process ends,
                            and never looks at a file again
    oidc                    it would send the refresh token and the client's secret over TLS that
                            checks no certificate; the id-token is used, and not renewed
    other auth-providers    Kubernetes removed them in 1.26; it would ask with no credentials

A token beside a tokenFile, and a plugin beside any of the others, are not used: as for kubectl.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.kube_config import KubeConfigLoader

from aioinformer._client.auth.exec_plugin import PluginCommand, parse_exec_section
from aioinformer._client.auth.impersonation import impersonation_headers
from aioinformer._client.auth.tls import TlsMaterial
from aioinformer._client.auth.token_refresh import CertificatePair
from aioinformer._client.kubeconfig.loaded_settings import LoaderSettings
from aioinformer.errors import ConfigurationError

__all__ = ["LOADER_ERRORS", "Context", "LoaderSettings"]


LOADER_ERRORS = (
    ConfigException,
    AssertionError,
    AttributeError,
    KeyError,
    OSError,
    TypeError,
    ValueError,
)
"""What the loader raises for a file that doesn't have what it looks for."""

LOADER_USER_KEYS = ("token", "username", "password")
"""What of a user the loader gets."""

PLUGIN_CLUSTER_KEYS = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
"""What of a cluster a plugin is told, beside its authority: client-go's ``ExecCluster``."""

PLUGIN_EXTENSION = "client.authentication.k8s.io/exec"
"""The name of a cluster's extension that is meant for plugins."""


class Loader(Protocol):
    """The part of ``KubeConfigLoader`` that is used. It has no annotations of its own."""

    async def load_and_set(self, client_configuration: object) -> None:
        """Read the active context."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """One context; paths in it are absolute."""

    origin: str
    """The files and the name of the context, for messages."""
    cluster: Mapping[str, Any] = field(repr=False)
    user: Mapping[str, Any] = field(repr=False)
    namespace: str = ""

    # -- who asks ------------------------------------------------------------------------------

    async def load_settings(self) -> LoaderSettings:
        """What the loader makes of it. Reads no files.

        Raises:
            ConfigurationError: something is missing or wrong, or an id-token has expired.
        """
        loaded = LoaderSettings()
        try:
            await self._make_loader().load_and_set(loaded)
        except LOADER_ERRORS as error:
            reason = str(error) or type(error).__name__
            raise ConfigurationError(f"{self.origin}: {reason}") from error
        token = loaded.header.partition(" ")[2]
        if " " in token or not token.isprintable():
            said = "the token has a space, newline or control character in it"
            raise ConfigurationError(f"{self.origin}: {said}")
        return loaded

    def _make_loader(self) -> Loader:
        user = {key: self.user[key] for key in LOADER_USER_KEYS if key in self.user}
        if self.token_file is not None:
            user = {}
        elif "auth-provider" in self.user:
            user = {"token": self._read_id_token(self.user["auth-provider"])}
        mine = {key: value for key, value in self.cluster.items() if "authority" not in key}
        parts = {
            "clusters": [{"name": "cluster", "cluster": mine}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
        }
        return KubeConfigLoader({**parts, "current-context": "context"}, active_context="context")

    @property
    def impersonation_headers(self) -> tuple[tuple[str, str], ...]:
        """The headers that say whom its user acts as.

        Raises:
            ConfigurationError: they can't be made of what it says.
        """
        try:
            return impersonation_headers(self.user)
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.origin}: {error}") from error

    @property
    def token_file(self) -> Path | None:
        """The file with its token, if it has one."""
        path = self.user.get("tokenFile")
        return Path(path) if path else None

    @property
    def has_plugin(self) -> bool:
        """Whether a program yields its credentials."""
        others = ("tokenFile", "auth-provider", *LOADER_USER_KEYS)
        section = self.user.get("exec")
        return isinstance(section, dict) and not any(each in self.user for each in others)

    @property
    def plugin(self) -> PluginCommand | None:
        """The program that yields its credentials, if there is one. May read a file.

        Raises:
            ConfigurationError: its section is incomplete, or asks for what can't be given.
            OSError: the cluster's authority, which it shall be told, can't be read.
        """
        if not self.has_plugin:
            return None
        try:
            return parse_exec_section(
                cast("dict[str, Any]", self.user["exec"]), self._plugin_cluster_info()
            )
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.origin}: {error}") from error

    def _plugin_cluster_info(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            key: self.cluster[key] for key in PLUGIN_CLUSTER_KEYS if key in self.cluster
        }
        if (authority := self._read_data(self.cluster, "certificate-authority")) is not None:
            told["certificate-authority-data"] = base64.b64encode(authority).decode()
        for each in self.cluster.get("extensions") or ():
            if each.get("name") == PLUGIN_EXTENSION:
                told["config"] = each.get("extension")
        return told

    def _read_id_token(self, provider: Mapping[str, Any]) -> str:
        """The id-token of OpenID Connect, if it has not expired."""
        if (name := provider.get("name")) != "oidc":
            raise ConfigurationError(
                f"{self.origin}: the auth-provider {name!r} was removed from Kubernetes in 1.26; "
                f"use the exec plugin of your cloud"
            )
        config: Mapping[str, Any] = provider.get("config") or {}
        token = str(config.get("id-token") or "")
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
        """The certificates that there are now. Reads files.

        Raises:
            OSError: a file can't be read.
            ValueError: data is not base64, or a certificate has no key.
        """
        certificate = self._read_data(self.user, "client-certificate")
        key = self._read_data(self.user, "client-key")
        if (certificate is None) != (key is None):
            raise ValueError("client-certificate and client-key are not there both")
        return TlsMaterial(
            self._read_data(self.cluster, "certificate-authority"),
            CertificatePair(certificate, key)
            if certificate is not None and key is not None
            else None,
            verify=not self.cluster.get("insecure-skip-tls-verify"),
        )

    def _read_data(self, body: Mapping[str, Any], key: str) -> bytes | None:
        """What is under a key: as data, else in a file."""
        data = body.get(f"{key}-data")
        if data is None:
            return Path(body[key]).read_bytes() if key in body else None
        try:
            return base64.b64decode(data, validate=True)
        except (TypeError, ValueError):
            pass
        raise ValueError(f"{key}-data is not base64")


def _token_expiry(token: str) -> dt.datetime | None:
    """When a JSON Web Token expires; ``None`` if that can't be read from it."""
    body = token.split(".")[1:2]
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(body[0] + "=" * (-len(body[0]) % 4)))
        return dt.datetime.fromtimestamp(claims["exp"], dt.UTC)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError):
        return None

"""``InClusterConfig``: the credentials of a pod's service account, which are mounted as files.

kubernetes_asyncio's loader checks that the environment is complete and returns the URL of the
server. The token and the certificate are read by this library, because the loader reads the token
on the event loop and with the newline at its end, and reads the certificate only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aioinformer._client.auth.credentials import Credentials, parse_server_url
from aioinformer._client.auth.proxies import find_environment_proxy
from aioinformer._client.auth.tls import RotatingTls, TlsMaterial
from aioinformer._client.auth.token_file import TokenFile
from aioinformer._client.auth.token_refresh import RefreshingAuthorization
from aioinformer._client.kubeconfig.loaded_settings import LoaderSettings
from aioinformer.errors import ConfigurationError

__all__ = ["NO_KUBECONFIG_HINT", "SERVICE_ACCOUNT_PATH", "InClusterConfig"]

NO_KUBECONFIG_HINT = (
    "put your cluster's kubeconfig into ~/.kube/config, or name its file in $KUBECONFIG"
)
"""Hint for a machine without any configuration."""

SERVICE_ACCOUNT_PATH = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The directory with the service account's token and the cluster's certificate in a pod."""


@dataclass(frozen=True, slots=True)
class InClusterConfig:
    """The mounted service account and the environment variables of a pod."""

    mount: Path
    environment: Mapping[str, str] = field(repr=False)

    def read_credentials(self, tried: str) -> Credentials:
        """Return the credentials of the service account. This method reads files.

        Args:
            tried: the places that were searched before, for messages.

        Raises:
            ConfigurationError: this is not a pod, or the service account is not mounted.
        """
        token, authority, own = (self.mount / name for name in ("token", "ca.crt", "namespace"))
        loaded = self._load_settings(token, authority, tried)
        where, server = str(self.mount), parse_server_url(loaded.host)
        return Credentials(
            server,
            RefreshingAuthorization(TokenFile(token, where)),
            RotatingTls(lambda: TlsMaterial(authority.read_bytes()), origin=where),
            proxy=find_environment_proxy(server, self.environment),
            namespace=own.read_text().strip() if own.is_file() else "",
            origin=where,
        )

    def _load_settings(self, token: Path, authority: Path, tried: str) -> LoaderSettings:
        from kubernetes_asyncio.config import ConfigException, incluster_config

        loaded = LoaderSettings()
        load: Callable[..., None] = vars(incluster_config)["load_incluster_config"]  # untyped
        try:
            load(
                client_configuration=loaded,
                try_refresh_token=False,
                token_filename=str(token),
                cert_filename=str(authority),
                environ=self.environment,
            )
        except UnicodeError:
            reason = (
                "the token is not text"  # raised below, because the error's repr shows the token
            )
        except (ConfigException, OSError, ValueError) as error:
            reason = str(error)
        else:
            return loaded
        if not self.environment.get("KUBERNETES_SERVICE_HOST") and not token.exists():
            # Outside of a cluster the message shouldn't list all that a pod needs.
            raise ConfigurationError(
                f"no cluster is configured: {tried}, and this is not a pod; {NO_KUBECONFIG_HINT}"
            )
        raise ConfigurationError(
            f"no cluster is configured: {tried}, and the configuration of a pod is incomplete "
            f"($KUBERNETES_SERVICE_HOST, $KUBERNETES_SERVICE_PORT, {token}, {authority}): "
            f"{reason.rstrip('.')}; is the service account mounted? For a cluster elsewhere, "
            f"{NO_KUBECONFIG_HINT}"
        )

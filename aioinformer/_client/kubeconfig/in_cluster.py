"""``InClusterConfig``: credentials as a pod finds them mounted, those of its service account.

kubernetes_asyncio's loader says where the server is and whether all is there. What it lacks is
ours: it reads the token again, but on the loop and with the newline at its end, and the
authority's certificate never.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aioinformer._client.auth.credentials import Credentials, parse_server_url
from aioinformer._client.auth.tls import RotatingTls, TlsMaterial
from aioinformer._client.auth.token_file import TokenFile
from aioinformer._client.auth.token_refresh import RefreshingAuthorization
from aioinformer._client.kubeconfig.loaded_settings import LoaderSettings
from aioinformer.errors import ConfigurationError

__all__ = ["NO_KUBECONFIG_HINT", "SERVICE_ACCOUNT_PATH", "InClusterConfig"]

NO_KUBECONFIG_HINT = (
    "put your cluster's kubeconfig into ~/.kube/config, or name its file in $KUBECONFIG"
)
"""What to do where there is no configuration."""

SERVICE_ACCOUNT_PATH = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its service account's token and the cluster's certificate."""


@dataclass(frozen=True, slots=True)
class InClusterConfig:
    """What a pod finds."""

    mount: Path
    environment: Mapping[str, str] = field(repr=False)

    def read_credentials(self, tried: str) -> Credentials:
        """Those of its service account. Reads files.

        Args:
            tried: what was looked for before, for messages.

        Raises:
            ConfigurationError: this is no pod, or its service account is not mounted.
        """
        token, authority, own = (self.mount / name for name in ("token", "ca.crt", "namespace"))
        loaded = self._load_settings(token, authority, tried)
        where = str(self.mount)
        return Credentials(
            parse_server_url(loaded.host),
            RefreshingAuthorization(TokenFile(token, where)),
            RotatingTls(lambda: TlsMaterial(authority.read_bytes()), origin=where),
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
            reason = "the token is no text"  # told below: this error's repr shows the token
        except (ConfigException, OSError, ValueError) as error:
            reason = str(error)
        else:
            return loaded
        if not self.environment.get("KUBERNETES_SERVICE_HOST") and not token.exists():
            # Who has a laptop need not know of all that a pod has.
            raise ConfigurationError(
                f"no cluster is configured: {tried}, and this is no pod; {NO_KUBECONFIG_HINT}"
            )
        raise ConfigurationError(
            f"no cluster is configured: {tried}, and what a pod needs is not all there "
            f"($KUBERNETES_SERVICE_HOST, $KUBERNETES_SERVICE_PORT, {token}, {authority}): "
            f"{reason.rstrip('.')}; is the service account mounted? For a cluster elsewhere, "
            f"{NO_KUBECONFIG_HINT}"
        )

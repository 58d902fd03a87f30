"""``InClusterConfig``: the credentials of a pod's service account, which are mounted as files.

As in client-go, ``$POD_NAMESPACE`` precedes the mounted namespace, and the certificate may be
missing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from aioinformer._client.auth.credentials import Credentials, parse_server_url
from aioinformer._client.auth.proxies import find_environment_proxy
from aioinformer._client.auth.tls import RotatingTls, TlsMaterial
from aioinformer._client.auth.token_file import TokenFile
from aioinformer._client.auth.token_refresh import RefreshingAuthorization
from aioinformer.errors import ConfigurationError

logger = logging.getLogger("aioinformer.credentials")

NO_KUBECONFIG_HINT = (
    "put your cluster's kubeconfig into ~/.kube/config, or name its file in $KUBECONFIG"
)

SERVICE_ACCOUNT_PATH = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The directory with the service account's token and the cluster's certificate in a pod."""


@dataclass(frozen=True, slots=True)
class InClusterConfig:
    """The mounted service account and the environment variables of a pod."""

    mount: Path
    environment: Mapping[str, str] = field(repr=False)

    def read_credentials(self, tried: str) -> Credentials:
        """Return the credentials of the service account. This method reads files.

        ``tried`` are the places that were searched before, for messages.

        Raises:
            ConfigurationError: the program runs in no pod, or the service account is not mounted.
        """
        authority, own = self.mount / "ca.crt", self.mount / "namespace"
        if fault := self._find_fault():
            raise self._error(fault, tried)
        host, port = self._endpoint
        where = str(self.mount)
        server = parse_server_url(f"https://{f'[{host}]' if ':' in host else host}:{port}")
        namespace = self.environment.get("POD_NAMESPACE", "")  # from the downward API
        return Credentials(
            server,
            RefreshingAuthorization(TokenFile(self._token, where), is_file=True),
            RotatingTls(MountedAuthority(authority).read_material, origin=where),
            proxy=find_environment_proxy(server, self.environment),
            namespace=namespace or _read_namespace(own),
            origin=where,
        )

    @property
    def is_possible(self) -> bool:
        """True if the program runs in a pod with a service account."""
        return not self._find_fault()

    @property
    def _token(self) -> Path:
        return self.mount / "token"

    @property
    def _endpoint(self) -> tuple[str, str]:
        host, port = (self.environment.get(f"KUBERNETES_SERVICE_{e}", "") for e in ("HOST", "PORT"))
        return host, port

    def _find_fault(self) -> str:
        if not all(self._endpoint):
            return "Service host/port is not set"
        try:
            text = self._token.read_bytes().decode()
            return "" if text.strip() else "Service token file is empty"
        except UnicodeError:  # whose repr shows the token
            return "the token is not text"
        except FileNotFoundError:
            return "Service token file does not exist"
        except OSError as error:
            return f"{self._token}: {error.strerror}"

    def _error(self, fault: str, tried: str) -> ConfigurationError:
        if not self._endpoint[0] and not os.access(self._token, os.F_OK):
            # Outside of a cluster the message shouldn't list all that a pod needs.
            return ConfigurationError(
                f"no cluster is configured: {tried}, and this is not a pod; {NO_KUBECONFIG_HINT}"
            )
        return ConfigurationError(
            f"no cluster is configured: {tried}, and the configuration of a pod is incomplete "
            f"($KUBERNETES_SERVICE_HOST, $KUBERNETES_SERVICE_PORT, {self._token}): {fault}; is the "
            f"service account mounted? For a cluster elsewhere, {NO_KUBECONFIG_HINT}"
        )


def _read_namespace(path: Path) -> str:
    with suppress(OSError):  # as in client-go
        return path.read_bytes().decode("utf-8", "replace").strip()
    return ""


@dataclass(slots=True)
class MountedAuthority:
    """The mounted certificate of the cluster's authority.

    Without that file the system's authorities are trusted, as in client-go. A file that was read
    before and is missing now is an error, by which ``RotatingTls`` keeps the last certificate.
    """

    path: Path
    _found: bool = field(default=False, init=False)
    _warned: bool = field(default=False, init=False)

    def read_material(self) -> TlsMaterial:
        """Read the file; raise ``OSError`` if it can't be read."""
        try:
            material = TlsMaterial(self.path.read_bytes())
        except FileNotFoundError:
            if self._found:
                raise
            if not self._warned:
                self._warned = True
                logger.warning(
                    "%s does not exist: the server's certificate is checked against the system's "
                    "trusted authorities",
                    self.path,
                )
            return TlsMaterial()
        self._found = True
        return material

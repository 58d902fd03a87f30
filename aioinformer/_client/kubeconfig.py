"""Credentials as kubectl finds them: kubeconfig files, else what a pod finds mounted.

The reading is kubernetes_asyncio's, imported here only and in a thread (its import alone takes
longer than everything else here), since it reads files and runs exec plugins. Around it stands
what its loaders lack: which file and which context are meant, errors that say so without showing
the file's content, and what they get wrong about relative paths and missing users.

What a plugin or a file yielded is used until the client is closed, except for the token of a
service account, which is read anew when it is a minute old. Running a plugin again when its
token expires is not done yet.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from aioinformer._client.credentials import (
    Authorization,
    Credentials,
    FixedAuthorization,
    RenewedAuthorization,
    off_loop,
    proxy_url,
    secure_context,
    server_url,
)
from aioinformer.errors import ConfigurationError, FetchError

__all__ = ["Kubeconfig", "Loaded", "Renewal"]

PLUGIN_SECONDS = 120.0
"""What an exec plugin may take: somebody may have to log in in a browser. The thread of a load
that was cancelled lives on until then."""

MOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its service account's token and the cluster's certificate."""


@dataclass(slots=True)
class Loaded:
    """What kubernetes_asyncio's loaders set, in place of its own ``Configuration``.

    That one reconfigures loggers when it is made.
    """

    host: str = ""
    api_key: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    ssl_ca_cert: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify_ssl: bool = True
    tls_server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)
    refresh_api_key_hook: Callable[[Loaded], Awaitable[None] | None] | None = None


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Finds credentials as kubectl does.

    Args:
        path: one kubeconfig file, or several joined as in ``$KUBECONFIG``. All must exist.
        context: the name of a context in it; the current one by default.
        environment: where ``$KUBECONFIG`` and a pod's variables are looked up.
        mount: where a pod's service account is looked for.
    """

    path: str | os.PathLike[str] | None = None
    context: str | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    mount: Path = MOUNT

    async def load(self) -> Credentials:
        """Find and read them, in a thread.

        A cancellation ends the wait at once.

        Raises:
            ConfigurationError: nothing was found, or nothing usable. One sentence that names
                every place looked at.
        """
        return await off_loop(self._load)

    def _load(self) -> Credentials:
        paths = self._paths()
        found = [path for path in paths if path.exists()]
        if self.path is not None and found != paths:
            missing = next(path for path in paths if path not in found)
            raise ConfigurationError(f"kubeconfig {missing} does not exist")
        if found:
            return self._from_files(found)
        places = ", ".join(str(path) for path in paths)
        if self.environment.get("KUBECONFIG"):
            return self._from_mount(f"$KUBECONFIG names no file that exists ({places})")
        return self._from_mount(f"$KUBECONFIG is not set, {places} does not exist")

    def _paths(self) -> list[Path]:
        """The files to look for. A pod with a user of no name has no home: not an error."""
        look_up = self.environment.get
        home = look_up("HOME") or look_up("USERPROFILE") or "~"
        named = os.fspath(self.path) if self.path is not None else look_up("KUBECONFIG")
        names = (named or "~/.kube/config").split(os.pathsep)
        return [Path(home + name[1:] if name.startswith("~/") else name) for name in names if name]

    # -- files ---------------------------------------------------------------------------------

    def _from_files(self, paths: list[Path]) -> Credentials:
        from aioinformer._client.kubeconfig_files import LOADER_ERRORS, KubeconfigFiles

        where = ", ".join(str(path) for path in paths)
        files = KubeconfigFiles.read(paths)
        context = files.context(self.context)
        loaded = Loaded()
        with ExitStack() as temporary:
            loader = files.loader(context, temporary)
            try:
                asyncio.run(asyncio.wait_for(loader.load_and_set(loaded), PLUGIN_SECONDS))
            except TimeoutError as error:
                said = f"its exec plugin did not end in {PLUGIN_SECONDS:g} s"
                raise ConfigurationError(f"{where}: context {context!r}: {said}") from error
            except LOADER_ERRORS as error:
                reason = str(error) or type(error).__name__
                raise ConfigurationError(f"{where}: context {context!r}: {reason}") from error
            # The context has read the certificates when the temporary files go. Those of an exec
            # plugin that yields certificates stay until the process ends: kubernetes_asyncio
            # made them, remembers their paths for the next load, and removes them at exit.
            found = _credentials(loaded, f"{where}: context {context!r}")
            return replace(found, namespace=files.namespace(context))

    # -- a pod ---------------------------------------------------------------------------------

    def _from_mount(self, tried: str) -> Credentials:
        from kubernetes_asyncio.config import ConfigException, incluster_config

        if self.context is not None:
            raise ConfigurationError(f"there is no context {self.context!r}: {tried}")
        loaded = Loaded()
        token, authority = self.mount / "token", self.mount / "ca.crt"
        load: Callable[..., None] = vars(incluster_config)["load_incluster_config"]  # untyped
        try:
            load(
                client_configuration=loaded,
                token_filename=str(token),
                cert_filename=str(authority),
                environ=self.environment,
            )
        except (ConfigException, OSError, ValueError) as error:
            raise ConfigurationError(
                f"no cluster is configured: {tried}, and this is no pod with a service account "
                f"($KUBERNETES_SERVICE_HOST, $KUBERNETES_SERVICE_PORT, {token}, {authority}): "
                f"{error}"
            ) from error
        own = self.mount / "namespace"
        namespace = own.read_text().strip() if own.is_file() else ""
        return replace(_credentials(loaded, str(self.mount)), namespace=namespace)


def _credentials(loaded: Loaded, where: str) -> Credentials:
    try:
        proxy, proxy_authorization = proxy_url(loaded.proxy) if loaded.proxy else (None, "")
        server = server_url(loaded.host)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    return Credentials(
        server,
        _authorization(loaded, where),
        tls=_tls(loaded, where) if server.scheme == "https" else None,
        tls_server_name=loaded.tls_server_name,
        proxy=proxy,
        proxy_authorization=proxy_authorization,
    )


# -- TLS ---------------------------------------------------------------------------------------


def _tls(loaded: Loaded, where: str) -> ssl.SSLContext:
    try:
        context = secure_context(loaded.ssl_ca_cert)
        if loaded.cert_file:
            context.load_cert_chain(loaded.cert_file, loaded.key_file, password=_no_password)
    except OSError as error:  # an ssl.SSLError is one
        reason = (error.reason if isinstance(error, ssl.SSLError) else None) or error
        said = f"{where}: a certificate or its key can't be used: {reason}"
        raise ConfigurationError(said) from error
    if not loaded.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _no_password() -> str:
    # Without this, OpenSSL would ask for one on the terminal.
    raise ConfigurationError("the client key is encrypted, which is not supported")


# -- tokens ------------------------------------------------------------------------------------


def _authorization(loaded: Loaded, where: str) -> Authorization:
    if loaded.refresh_api_key_hook is not None:
        return RenewedAuthorization(Renewal(loaded, loaded.refresh_api_key_hook, where))
    value = _header(loaded.api_key)
    if not value.isprintable():
        raise ConfigurationError(f"{where}: the token has a newline or control character in it")
    return FixedAuthorization(value)


def _header(api_key: Mapping[str, str]) -> str:
    # A token file may end in a newline, which no header may have.
    return api_key.get("BearerToken", "").strip()


@dataclass(frozen=True, slots=True)
class Renewal:
    """Runs kubernetes_asyncio's refresh hook, in a thread: it reads files."""

    loaded: Loaded = field(repr=False)
    hook: Callable[[Loaded], Awaitable[None] | None]
    where: str

    async def __call__(self) -> str:
        from kubernetes_asyncio.config import ConfigException

        value = ""
        try:
            running = await off_loop(partial(self.hook, self.loaded))
            if inspect.isawaitable(running):
                await running
            value = _header(self.loaded.api_key)
            wrong = "" if value.isprintable() else "it has a newline or control character in it"
        except UnicodeError:
            wrong = "it is no text"  # told below: this error's repr shows the token
        except (ConfigException, OSError, ValueError) as error:
            said = f"{self.where}: the token can't be renewed: {error}"
            raise FetchError(said, phase="credentials") from error
        if wrong:
            said = f"{self.where}: the token that was renewed can't be used: {wrong}"
            raise FetchError(said, phase="credentials")
        return value

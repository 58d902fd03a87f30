"""``Kubeconfig``: finds credentials as kubectl does, in kubeconfig files or in a pod.

A thread reads the files. Credentials are refreshed here:

    token, id-token, user and password    after a rejection: the kubeconfig is read again
    tokenFile, a pod's token              every minute, and after a rejection
    exec plugin                           before its credentials expire, and after a rejection
    certificates, a pod's authority       every minute, and after a failed handshake

The choice of the context is final. A file that later names another current context, or another
server for the chosen context, doesn't redirect a client.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioinformer._client.auth.credentials import Credentials, parse_server_url
from aioinformer._client.auth.exec_plugin import ExecPlugin
from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._client.auth.proxies import find_environment_proxy, parse_proxy_url
from aioinformer._client.auth.tls import RotatingTls, TlsMaterial
from aioinformer._client.auth.token_file import TokenFile
from aioinformer._client.auth.token_refresh import RefreshingAuthorization, TokenGrant
from aioinformer._client.kubeconfig.context import Context
from aioinformer._client.kubeconfig.in_cluster import (
    NO_KUBECONFIG_HINT,
    SERVICE_ACCOUNT_PATH,
    InClusterConfig,
)
from aioinformer.errors import ConfigurationError, FetchError

if TYPE_CHECKING:  # its import loads PyYAML
    from aioinformer._client.kubeconfig.files import KubeconfigFiles

log = logging.getLogger("aioinformer.client")

READ_TIMEOUT = 10.0
"""Seconds, the default of ``Timeouts.connect``. Reading files from a disk takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A credential source that finds credentials as kubectl does.

    Args:
        path: one kubeconfig file, or several joined as in ``$KUBECONFIG``. All must exist.
        context: the name of a context in the files; the current context by default.
        environment: the variables of ``$KUBECONFIG``, of a pod, and those that name a proxy.
        mount: the directory of a pod's service account.
        timeout: the maximum seconds of each of the two steps that read files.
    """

    path: str | os.PathLike[str] | None = None
    context: str | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    mount: Path = SERVICE_ACCOUNT_PATH
    timeout: float = READ_TIMEOUT

    async def load(self) -> Credentials:
        """Find and read the credentials in a thread, and run an exec plugin if there is one.

        A cancellation ends the waiting at once, and the plugin.

        Raises:
            ConfigurationError: no usable credentials were found, or a file could not be read in
                time. The message is one sentence that names every place that was searched.
        """
        async with self._enforce_timeout(self._describe_location()):
            found = await run_in_thread(self._find)
            credentials = (
                found
                if isinstance(found, Credentials)
                else await found.make_credentials(self.environment)
            )
        try:
            if isinstance(found, ReloadingContext) and found.context.has_plugin:
                # A plugin has its own, longer time limit, because it may wait for a login.
                await credentials.authorization.header()
            async with self._enforce_timeout(credentials.origin or self._describe_location()):
                await credentials.authorization.header()
                if credentials.tls is not None:
                    await credentials.tls.context()
        except FetchError as error:
            await credentials.aclose()
            raise ConfigurationError(str(error)) from error.__cause__
        except BaseException:
            await credentials.aclose()
            raise
        return credentials

    @asynccontextmanager
    async def _enforce_timeout(self, where: str) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self.timeout):
                yield
        except TimeoutError:
            raise ConfigurationError(
                f"{where}: the files were not read in {self.timeout:g} s: does the file system "
                f"hang that contains them, or the token and certificates that they name?"
            ) from None

    def _describe_location(self) -> str:
        paths = ", ".join(map(str, self._paths()))
        return f"{paths}: context {self.context!r}" if self.context else paths

    def _find(self) -> ReloadingContext | Credentials:
        try:
            return self._find_readable()
        except OSError as error:
            text = f"{error.filename or self._describe_location()} can't be read: {error.strerror}"
            if isinstance(error, PermissionError):
                text += (
                    ": may this user read the file, and enter its folders? $KUBECONFIG names "
                    "another file, or /dev/null for none"
                )
            raise ConfigurationError(text) from error

    def _find_readable(self) -> ReloadingContext | Credentials:
        """Return what was found; raise ``OSError`` if a file can't be read."""
        paths = self._paths()
        found = [path for path in paths if _exists(path)]
        if self.path is not None and found != paths:
            missing = next(path for path in paths if path not in found)
            raise ConfigurationError(
                f"kubeconfig {missing} does not exist: is the path right? Without a path, "
                f"$KUBECONFIG and ~/.kube/config are used"
            )
        if found:
            return self._read_files(found)
        places = ", ".join(str(path) for path in paths)
        tried = f"$KUBECONFIG is not set, {places} does not exist"
        if self.environment.get("KUBECONFIG"):
            tried = f"$KUBECONFIG names no file that exists ({places})"
        if self.context is not None:
            text = f"there is no context {self.context!r}: {tried}; {NO_KUBECONFIG_HINT}"
            raise ConfigurationError(text)
        return InClusterConfig(self.mount, self.environment).read_credentials(tried)

    def _read_files(self, paths: list[Path]) -> ReloadingContext | Credentials:
        """Return the context of existing files, or as in client-go the pod's service account.

        That is used if the files choose no cluster, unless the program has named a file or context:
        a program that expects some cluster must not get another one.
        """
        from aioinformer._client.kubeconfig.files import KubeconfigFiles

        files = KubeconfigFiles.read(paths)
        if self.path is None and self.context is None and files.choose_no_cluster:
            pod = InClusterConfig(self.mount, self.environment)
            if pod.is_possible or files.are_empty:
                found = pod.read_credentials(f"{files.origin} is empty")
                log.info("%s: no cluster is chosen, a pod's service account is used", files.origin)
                return found
        return ReloadingContext.choose(files, self.context)

    def _paths(self) -> list[Path]:
        """Return the files to look for. A pod whose user has no name has no home directory."""
        look_up = self.environment.get
        home = look_up("HOME") or look_up("USERPROFILE") or "~"
        named = os.fspath(self.path) if self.path is not None else look_up("KUBECONFIG")
        names = (named or "~/.kube/config").split(os.pathsep)
        return [Path(home + name[1:] if name.startswith("~/") else name) for name in names if name]


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


@dataclass(slots=True)
class ReloadingContext:
    """The chosen context of kubeconfig files, read again when the files have changed."""

    files: KubeconfigFiles
    name: str
    context: Context

    @classmethod
    def choose(cls, files: KubeconfigFiles, context: str | None) -> ReloadingContext:
        """Choose a context; raise ``ConfigurationError`` if the files don't contain it."""
        name = files.choose_context(context)
        return cls(files, name, files.read_context(name))

    def reload(self) -> Context:
        """Return the current content of the context. This method blocks.

        Raises:
            ConfigurationError: the context no longer exists, or names another server.
            OSError: a file can't be read.
        """
        if self.files.have_changed():
            now = self.choose(self.files.read(self.files.paths), self.name)
            if now.context.cluster["server"] != self.context.cluster["server"]:
                text = "names another server than when it was first read"
                raise ConfigurationError(f"{now.context.origin}: {text}")
            self.files, self.context = now.files, now.context
        return self.context

    async def make_credentials(self, environment: Mapping[str, str]) -> Credentials:
        """Return the credentials of the context, without running a plugin yet.

        ``environment`` names the proxy if the context has none.

        Raises:
            ConfigurationError: a value is missing or wrong.
        """
        context = self.context
        header = context.authorization
        with context.naming_origin():
            # As in client-go, a query is removed.
            server = parse_server_url(re.split(r"[?#]", context.cluster["server"])[0])
            proxy = (
                parse_proxy_url(context.cluster["proxy-url"])
                if "proxy-url" in context.cluster
                else find_environment_proxy(server, environment)
            )
        choose_source = partial(self._choose_grant_source, header)
        authorization = RefreshingAuthorization(
            await run_in_thread(choose_source), is_file=not context.has_plugin
        )
        tls = RotatingTls(
            self._read_material, origin=context.origin, plugin_pair=lambda: authorization.pair
        )
        return Credentials(
            server,
            authorization,
            tls if server.scheme == "https" else None,
            context.cluster.get("tls-server-name"),
            proxy,
            context.namespace,
            context.origin,
            context.impersonation_headers,
            compression="disable-compression" not in context.cluster,
        )

    def _choose_grant_source(self, header: str) -> Callable[[], Coroutine[Any, Any, TokenGrant]]:
        """Return the token source of the context.

        ``header`` has the token in the kubeconfig, which is used until the tokenFile can be read.
        """
        context = self.context
        if (path := context.token_file) is not None:
            return TokenFile(path, context.origin, header)
        try:
            plugin = context.plugin
        except OSError as error:
            text = f"{context.origin}: {error.filename} can't be read: {error.strerror}"
            raise ConfigurationError(text) from error
        except ValueError as error:
            text = f"{context.origin}: the description of the cluster for its plugin is invalid"
            raise ConfigurationError(text) from error
        return (
            self._grant_from_files
            if plugin is None
            else ExecPlugin(plugin, context.origin).__call__
        )

    async def _grant_from_files(self) -> TokenGrant:
        try:
            context = await run_in_thread(self.reload)
            return TokenGrant(context.authorization)
        except ConfigurationError as error:
            raise FetchError(str(error), phase="credentials") from error
        except OSError as error:
            text = f"{self.context.origin}: {error.filename}: {error.strerror}"
            raise FetchError(text, phase="credentials") from error

    def _read_material(self) -> TlsMaterial:
        try:
            return self.reload().read_material()
        except ConfigurationError as error:
            raise ValueError(str(error)) from error

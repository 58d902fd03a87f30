"""``Kubeconfig``: finds credentials as kubectl does, in kubeconfig files or in a pod.

kubernetes_asyncio's loader reads kubeconfig files, in a thread; it is imported only then, because
its import takes longer than that of the rest of this library. Credentials are refreshed here:

    token, id-token, user and password    after a rejection: the kubeconfig is read again
    tokenFile, a pod's token              every minute, and after a rejection
    exec plugin                           before its credentials expire, and after a rejection
    certificates, a pod's authority       every minute, and after a failed handshake

The choice of the context is final. A file that later names another current context, or another
server for the chosen context, doesn't redirect a client.
"""

from __future__ import annotations

import asyncio
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
from aioinformer._client.kubeconfig.in_cluster import (
    NO_KUBECONFIG_HINT,
    SERVICE_ACCOUNT_PATH,
    InClusterConfig,
)
from aioinformer.errors import ConfigurationError, FetchError

if TYPE_CHECKING:  # the module imports kubernetes_asyncio
    from aioinformer._client.kubeconfig.context import Context

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
        paths = self._paths()
        found = [path for path in paths if path.exists()]
        if self.path is not None and found != paths:
            missing = next(path for path in paths if path not in found)
            raise ConfigurationError(
                f"kubeconfig {missing} does not exist: is the path right? Without a path, "
                f"$KUBECONFIG and ~/.kube/config are used"
            )
        if found := [path for path in found if path.stat().st_size] or found[:1]:
            # As in kubectl, an empty file among others is ignored.
            return ReloadingContext.read(found, self.context)
        places = ", ".join(str(path) for path in paths)
        tried = f"$KUBECONFIG is not set, {places} does not exist"
        if self.environment.get("KUBECONFIG"):
            tried = f"$KUBECONFIG names no file that exists ({places})"
        if self.context is not None:
            text = f"there is no context {self.context!r}: {tried}; {NO_KUBECONFIG_HINT}"
            raise ConfigurationError(text)
        return InClusterConfig(self.mount, self.environment).read_credentials(tried)

    def _paths(self) -> list[Path]:
        """Return the files to look for. A pod whose user has no name has no home directory."""
        look_up = self.environment.get
        home = look_up("HOME") or look_up("USERPROFILE") or "~"
        named = os.fspath(self.path) if self.path is not None else look_up("KUBECONFIG")
        names = (named or "~/.kube/config").split(os.pathsep)
        return [Path(home + name[1:] if name.startswith("~/") else name) for name in names if name]


@dataclass(slots=True)
class ReloadingContext:
    """The chosen context of kubeconfig files, read again when the files have changed."""

    paths: list[Path]
    name: str
    context: Context
    _file_stamps: list[tuple[int, ...]]

    @classmethod
    def read(cls, paths: list[Path], context: str | None) -> ReloadingContext:
        """Read existing files. This method blocks.

        Raises:
            ConfigurationError: the files don't contain the context, or are not kubeconfigs.
        """
        from aioinformer._client.kubeconfig.files import KubeconfigFiles

        stamps = _stat_files(paths)
        files = KubeconfigFiles.read(paths)
        name = files.choose_context(context)
        return cls(paths, name, files.read_context(name), stamps)

    def reload(self) -> Context:
        """Return the current content of the context. This method blocks.

        Raises:
            ConfigurationError: the context no longer exists, or names another server.
        """
        if _stat_files(self.paths) != self._file_stamps:
            now = self.read(self.paths, self.name)
            if now.context.cluster["server"] != self.context.cluster["server"]:
                text = "names another server than when it was first read"
                raise ConfigurationError(f"{now.context.origin}: {text}")
            self.context, self._file_stamps = now.context, now._file_stamps
        return self.context

    async def make_credentials(self, environment: Mapping[str, str]) -> Credentials:
        """Return the credentials of the context, without running a plugin yet.

        ``environment`` names the proxy if the context has none.

        Raises:
            ConfigurationError: a value is missing or wrong.
        """
        context = self.context
        loaded = await context.load_settings()
        try:
            server = parse_server_url(re.split(r"[?#]", loaded.host)[0])  # as in client-go
            proxy = (
                parse_proxy_url(loaded.proxy)
                if loaded.proxy
                else find_environment_proxy(server, environment)
            )
        except ConfigurationError as error:
            raise ConfigurationError(f"{context.origin}: {error}") from error
        choose_source = partial(self._choose_grant_source, loaded.header)
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
            loaded.tls_server_name,
            proxy,
            context.namespace,
            context.origin,
            context.impersonation_headers,
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
        except (AttributeError, TypeError, ValueError) as error:
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
            return TokenGrant((await context.load_settings()).header)
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


def _stat_files(paths: list[Path]) -> list[tuple[int, ...]]:
    found = [path.stat() for path in paths]
    return [(each.st_mtime_ns, each.st_size, each.st_ino) for each in found]

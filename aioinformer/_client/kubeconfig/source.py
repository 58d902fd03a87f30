"""Credentials as kubectl finds them: kubeconfig files, else what a pod finds mounted.

The reading is kubernetes_asyncio's, imported when a configuration is loaded and in a thread (its
import alone takes longer than everything else here). Around it stands what its loaders lack:
which file and which context are meant, errors that say so without showing the file's content,
and credentials that are renewed:

    token, id-token, user and password    when refused: the kubeconfig is read again
    tokenFile, a pod's token              every minute, and when refused
    exec plugin                           before what it yielded expires, and when refused
    certificates, a pod's authority       every minute, and when a handshake fails

The context that was chosen stays so: a file that names another current context, or another
server for this one, later on, doesn't redirect a client.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aioinformer._client.auth.credentials import Credentials, parse_proxy_url, parse_server_url
from aioinformer._client.auth.exec_plugin import ExecPlugin
from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._client.auth.tls import RotatingTls, TlsMaterial
from aioinformer._client.auth.token_file import TokenFile
from aioinformer._client.auth.token_refresh import RefreshingAuthorization, TokenGrant
from aioinformer._client.kubeconfig.in_cluster import (
    NO_KUBECONFIG_HINT,
    SERVICE_ACCOUNT_PATH,
    InClusterConfig,
)
from aioinformer.errors import ConfigurationError, FetchError

if TYPE_CHECKING:  # it imports kubernetes_asyncio
    from aioinformer._client.kubeconfig.context import Context

__all__ = ["READ_TIMEOUT", "Kubeconfig"]

READ_TIMEOUT = 10.0
"""Seconds: what ``Timeouts.connect`` is by default. Files on a disk take milliseconds."""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Finds credentials as kubectl does.

    Args:
        path: one kubeconfig file, or several joined as in ``$KUBECONFIG``. All must exist.
        context: the name of a context in it; the current one by default.
        environment: where ``$KUBECONFIG`` and a pod's variables are looked up.
        mount: where a pod's service account is looked for.
        patience: the seconds that the reading of files may take, twice: a file system may hang.
    """

    path: str | os.PathLike[str] | None = None
    context: str | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    mount: Path = SERVICE_ACCOUNT_PATH
    timeout: float = READ_TIMEOUT

    async def load(self) -> Credentials:
        """Find and read them, in a thread, and run an exec plugin if there is one.

        A cancellation ends the wait at once, and the plugin.

        Raises:
            ConfigurationError: nothing was found, or nothing usable, or a file could not be read in
                time. One sentence that names every place looked at.
        """
        async with self._enforce_timeout(self._describe_location()):
            found = await run_in_thread(self._find)
            credentials = (
                found if isinstance(found, Credentials) else await found.make_credentials()
            )
        try:
            if isinstance(found, ReloadingContext) and found.context.has_plugin:
                await credentials.authorization.header()  # has a time of its own: a login, perhaps
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
        except TimeoutError as error:
            raise ConfigurationError(
                f"{where}: the files were not read in {self.timeout:g} s: does the file system "
                f"hang that they, or the token and certificates that they name, are on?"
            ) from error

    def _describe_location(self) -> str:
        """The files and the context that are looked for, for messages."""
        paths = ", ".join(map(str, self._paths()))
        return f"{paths}: context {self.context!r}" if self.context else paths

    def _find(self) -> ReloadingContext | Credentials:
        paths = self._paths()
        found = [path for path in paths if path.exists()]
        if self.path is not None and found != paths:
            missing = next(path for path in paths if path not in found)
            raise ConfigurationError(
                f"kubeconfig {missing} does not exist: is the path right? Without one, $KUBECONFIG "
                f"and ~/.kube/config are looked at"
            )
        if found := [path for path in found if path.stat().st_size] or found[:1]:
            # An empty file among others says nothing, to kubectl too.
            return ReloadingContext.read(found, self.context)
        places = ", ".join(str(path) for path in paths)
        tried = f"$KUBECONFIG is not set, {places} does not exist"
        if self.environment.get("KUBECONFIG"):
            tried = f"$KUBECONFIG names no file that exists ({places})"
        if self.context is not None:
            said = f"there is no context {self.context!r}: {tried}; {NO_KUBECONFIG_HINT}"
            raise ConfigurationError(said)
        return InClusterConfig(self.mount, self.environment).read_credentials(tried)

    def _paths(self) -> list[Path]:
        """The files to look for. A pod with a user of no name has no home: not an error."""
        look_up = self.environment.get
        home = look_up("HOME") or look_up("USERPROFILE") or "~"
        named = os.fspath(self.path) if self.path is not None else look_up("KUBECONFIG")
        names = (named or "~/.kube/config").split(os.pathsep)
        return [Path(home + name[1:] if name.startswith("~/") else name) for name in names if name]


@dataclass(slots=True)
class ReloadingContext:
    """Files with the context that was chosen in them, read again when they have changed."""

    paths: list[Path]
    name: str
    """Of the context."""
    context: Context
    """What it says, as last read."""
    _file_stamps: list[tuple[int, ...]]

    @classmethod
    def read(cls, paths: list[Path], context: str | None) -> ReloadingContext:
        """Read files that exist. Blocks.

        Raises:
            ConfigurationError: they hold no such context, or are no kubeconfigs.
        """
        from aioinformer._client.kubeconfig.files import KubeconfigFiles

        stamps = _stat_files(paths)
        files = KubeconfigFiles.read(paths)
        name = files.choose_context(context)
        return cls(paths, name, files.read_context(name), stamps)

    def reload(self) -> Context:
        """What the context says now. Blocks.

        Raises:
            ConfigurationError: it is not there any more, or names another server.
        """
        if _stat_files(self.paths) != self._file_stamps:
            now = self.read(self.paths, self.name)
            if now.context.cluster["server"] != self.context.cluster["server"]:
                said = "names another server than when it was first read"
                raise ConfigurationError(f"{now.context.origin}: {said}")
            self.context, self._file_stamps = now.context, now._file_stamps
        return self.context

    async def make_credentials(self) -> Credentials:
        """What follows from them, with nothing asked of a plugin yet.

        Raises:
            ConfigurationError: something in them is incomplete or wrong.
        """
        context = self.context
        loaded = await context.load_settings()
        try:
            proxy, proxy_authorization = (
                parse_proxy_url(loaded.proxy) if loaded.proxy else (None, "")
            )
            server = parse_server_url(loaded.host)
        except ConfigurationError as error:
            raise ConfigurationError(f"{context.origin}: {error}") from error
        authorization = RefreshingAuthorization(await run_in_thread(self._choose_grant_source))
        tls = RotatingTls(
            self._read_material, origin=context.origin, plugin_pair=lambda: authorization.pair
        )
        return Credentials(
            server,
            authorization,
            tls if server.scheme == "https" else None,
            loaded.tls_server_name,
            proxy,
            proxy_authorization,
            context.namespace,
            context.origin,
            context.impersonation_headers,
        )

    def _choose_grant_source(self) -> Callable[[], Coroutine[Any, Any, TokenGrant]]:
        """Who yields the header, and a certificate perhaps."""
        context = self.context
        if (path := context.token_file) is not None:
            return TokenFile(path, context.origin).__call__
        try:
            plugin = context.plugin
        except OSError as error:
            said = f"{context.origin}: {error.filename} can't be read: {error.strerror}"
            raise ConfigurationError(said) from error
        except (AttributeError, TypeError, ValueError) as error:
            said = f"{context.origin}: what its plugin shall be told can't be used"
            raise ConfigurationError(said) from error
        return (
            self._grant_from_files
            if plugin is None
            else ExecPlugin(plugin, context.origin).__call__
        )

    async def _grant_from_files(self) -> TokenGrant:
        """What is written in the files themselves."""
        try:
            context = await run_in_thread(self.reload)
            return TokenGrant((await context.load_settings()).header)
        except ConfigurationError as error:
            raise FetchError(str(error), phase="credentials") from error
        except OSError as error:
            said = f"{self.context.origin}: {error.filename}: {error.strerror}"
            raise FetchError(said, phase="credentials") from error

    def _read_material(self) -> TlsMaterial:
        """The certificates that the files hold or name."""
        try:
            return self.reload().read_material()
        except ConfigurationError as error:
            raise ValueError(str(error)) from error


def _stat_files(paths: list[Path]) -> list[tuple[int, ...]]:
    """What changes when files do."""
    found = [path.stat() for path in paths]
    return [(each.st_mtime_ns, each.st_size, each.st_ino) for each in found]

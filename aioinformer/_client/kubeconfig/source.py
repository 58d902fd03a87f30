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

from aioinformer._client.auth.credentials import Credentials, proxy_url, server_url
from aioinformer._client.auth.exec_plugin import ExecPlugin
from aioinformer._client.auth.off_loop import off_loop
from aioinformer._client.auth.tls import Material, RotatingTls
from aioinformer._client.auth.token_file import TokenFile
from aioinformer._client.auth.token_refresh import Grant, RenewedAuthorization
from aioinformer._client.kubeconfig.in_cluster import GET_ONE, MOUNT, Pod
from aioinformer.errors import ConfigurationError, FetchError

if TYPE_CHECKING:  # it imports kubernetes_asyncio
    from aioinformer._client.kubeconfig.context import Context

__all__ = ["PATIENCE", "Kubeconfig"]

PATIENCE = 10.0
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
    mount: Path = MOUNT
    patience: float = PATIENCE

    async def load(self) -> Credentials:
        """Find and read them, in a thread, and run an exec plugin if there is one.

        A cancellation ends the wait at once, and the plugin.

        Raises:
            ConfigurationError: nothing was found, or nothing usable, or a file could not be read in
                time. One sentence that names every place looked at.
        """
        async with self._in_time(self._named()):
            found = await off_loop(self._find)
            credentials = found if isinstance(found, Credentials) else await found.credentials()
        try:
            if isinstance(found, ChosenFiles) and found.context.has_plugin:
                await credentials.authorization.header()  # has a time of its own: a login, perhaps
            async with self._in_time(credentials.origin or self._named()):
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
    async def _in_time(self, where: str) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self.patience):
                yield
        except TimeoutError as error:
            raise ConfigurationError(
                f"{where}: the files were not read in {self.patience:g} s: does the file system "
                f"hang that they, or the token and certificates that they name, are on?"
            ) from error

    def _named(self) -> str:
        """The files and the context that are looked for, for messages."""
        paths = ", ".join(map(str, self._paths()))
        return f"{paths}: context {self.context!r}" if self.context else paths

    def _find(self) -> ChosenFiles | Credentials:
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
            return ChosenFiles.read(found, self.context)
        places = ", ".join(str(path) for path in paths)
        tried = f"$KUBECONFIG is not set, {places} does not exist"
        if self.environment.get("KUBECONFIG"):
            tried = f"$KUBECONFIG names no file that exists ({places})"
        if self.context is not None:
            said = f"there is no context {self.context!r}: {tried}; {GET_ONE}"
            raise ConfigurationError(said)
        return Pod(self.mount, self.environment).credentials(tried)

    def _paths(self) -> list[Path]:
        """The files to look for. A pod with a user of no name has no home: not an error."""
        look_up = self.environment.get
        home = look_up("HOME") or look_up("USERPROFILE") or "~"
        named = os.fspath(self.path) if self.path is not None else look_up("KUBECONFIG")
        names = (named or "~/.kube/config").split(os.pathsep)
        return [Path(home + name[1:] if name.startswith("~/") else name) for name in names if name]


@dataclass(slots=True)
class ChosenFiles:
    """Files with the context that was chosen in them, read again when they have changed."""

    paths: list[Path]
    name: str
    """Of the context."""
    context: Context
    """What it says, as last read."""
    _stamps: list[tuple[int, ...]]

    @classmethod
    def read(cls, paths: list[Path], context: str | None) -> ChosenFiles:
        """Read files that exist. Blocks.

        Raises:
            ConfigurationError: they hold no such context, or are no kubeconfigs.
        """
        from aioinformer._client.kubeconfig.files import KubeconfigFiles

        stamps = _stamps(paths)
        files = KubeconfigFiles.read(paths)
        name = files.context(context)
        return cls(paths, name, files.chosen(name), stamps)

    def again(self) -> Context:
        """What the context says now. Blocks.

        Raises:
            ConfigurationError: it is not there any more, or names another server.
        """
        if _stamps(self.paths) != self._stamps:
            now = self.read(self.paths, self.name)
            if now.context.cluster["server"] != self.context.cluster["server"]:
                said = "names another server than when it was first read"
                raise ConfigurationError(f"{now.context.where}: {said}")
            self.context, self._stamps = now.context, now._stamps
        return self.context

    async def credentials(self) -> Credentials:
        """What follows from them, with nothing asked of a plugin yet.

        Raises:
            ConfigurationError: something in them is incomplete or wrong.
        """
        context = self.context
        loaded = await context.loaded()
        try:
            proxy, proxy_authorization = proxy_url(loaded.proxy) if loaded.proxy else (None, "")
            server = server_url(loaded.host)
        except ConfigurationError as error:
            raise ConfigurationError(f"{context.where}: {error}") from error
        authorization = RenewedAuthorization(await off_loop(self._source))
        tls = RotatingTls(self._material, where=context.where, granted=lambda: authorization.pair)
        return Credentials(
            server,
            authorization,
            tls if server.scheme == "https" else None,
            loaded.tls_server_name,
            proxy,
            proxy_authorization,
            context.namespace,
            context.where,
            context.impersonation,
        )

    def _source(self) -> Callable[[], Coroutine[Any, Any, Grant]]:
        """Who yields the header, and a certificate perhaps."""
        context = self.context
        if (path := context.token_file) is not None:
            return TokenFile(path, context.where).__call__
        try:
            plugin = context.plugin
        except OSError as error:
            said = f"{context.where}: {error.filename} can't be read: {error.strerror}"
            raise ConfigurationError(said) from error
        except (AttributeError, TypeError, ValueError) as error:
            said = f"{context.where}: what its plugin shall be told can't be used"
            raise ConfigurationError(said) from error
        return self._written if plugin is None else ExecPlugin(plugin, context.where).__call__

    async def _written(self) -> Grant:
        """What is written in the files themselves."""
        try:
            context = await off_loop(self.again)
            return Grant((await context.loaded()).header)
        except ConfigurationError as error:
            raise FetchError(str(error), phase="credentials") from error
        except OSError as error:
            said = f"{self.context.where}: {error.filename}: {error.strerror}"
            raise FetchError(said, phase="credentials") from error

    def _material(self) -> Material:
        """The certificates that the files hold or name."""
        try:
            return self.again().material()
        except ConfigurationError as error:
            raise ValueError(str(error)) from error


def _stamps(paths: list[Path]) -> list[tuple[int, ...]]:
    """What changes when files do."""
    found = [path.stat() for path in paths]
    return [(each.st_mtime_ns, each.st_size, each.st_ino) for each in found]

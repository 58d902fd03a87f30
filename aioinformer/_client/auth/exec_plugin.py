"""``ExecPlugin``: credentials from a program that the kubeconfig names.

Kubernetes calls it client-go credential plugins: the program is told about the cluster in
``$KUBERNETES_EXEC_INFO`` and prints an ``ExecCredential`` with a token, a client certificate, or
both, and perhaps the time when they expire. kubernetes_asyncio's ``ExecProvider`` is not used: it
deadlocks on a program that complains at length, repeats that complaint whole, runs the program
for every request, and takes a token or a certificate but not both.

The program has no terminal and no input: a library inside a service has none to give away. Its
diagnostics may hold secrets, so no more than the masked end of them is told.

Runs a program and takes its output: a process that can't block the loop or outlive its deadline.

Both outputs are read as they come, so that a program which fills one of them goes on; of the
diagnostics the end alone is kept. The program gets a session of its own: what it starts is killed
with it, and neither has a terminal to ask questions on.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from aioinformer._client.auth.redaction import Mask, without_secrets
from aioinformer._client.auth.token_file import bearer
from aioinformer._client.auth.token_refresh import Grant, Pair
from aioinformer.errors import ConfigurationError, FetchError

__all__ = ["ExecPlugin", "Outcome", "plugin_command", "run"]


OUTPUT_CAP = 1024 * 1024
"""Bytes of output: an ExecCredential with a chain of certificates has some kilobytes."""

TAIL = 2048
"""Bytes kept of the diagnostics: the last line says what went wrong."""

STDOUT = 1
"""The number of the pipe that carries the output."""

LINGERING = 0.5
"""Seconds that the pipes of a program that has ended may stay open: it may have left something
running that holds them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program left behind."""

    code: int
    """Its exit code; negative for the signal that ended it."""
    output: bytes = field(repr=False)
    """Its standard output, cut off at one byte more than ``OUTPUT_CAP``."""
    complaint: bytes = field(repr=False)
    """The end of its standard error."""


async def run(command: tuple[str, ...], environment: Mapping[str, str], seconds: float) -> Outcome:
    """Run a program to its end, without input.

    A cancellation kills it.

    Args:
        command: the program and its arguments.
        environment: all its variables.
        seconds: after how many it is killed.

    Raises:
        OSError: it can't be started.
        TimeoutError: it was killed.
    """
    async with asyncio.timeout(seconds):
        starting = asyncio.create_task(_started(command, environment), name="start of a plugin")
        try:
            await asyncio.wait({starting})
            transport, listening = starting.result()
            await asyncio.wait({listening.ended})
        finally:
            # A few milliseconds, if at all: what is half started can't be killed properly.
            await asyncio.wait({starting})
            if starting.exception() is None:
                await _end(*starting.result())
    code = cast("int", transport.get_returncode())
    return Outcome(code, bytes(listening.output), bytes(listening.complaint))


async def _started(
    command: tuple[str, ...], environment: Mapping[str, str]
) -> tuple[asyncio.SubprocessTransport, _Listening]:
    return await asyncio.get_running_loop().subprocess_exec(
        _Listening,
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),  # uvloop takes no other mapping
        start_new_session=True,
    )


async def _end(transport: asyncio.SubprocessTransport, listening: _Listening) -> None:
    """Kill what still runs, and return when the system has said that it has ended."""
    if transport.get_returncode() is None:
        # Else it is gone already, or runs as somebody else.
        with suppress(ProcessLookupError, PermissionError):
            _kill(transport)
    # Not close() at once: that reaps the child behind the back of asyncio's own watcher. And not
    # without waiting: its end would be reported to a loop that may be closed by then.
    await asyncio.wait({listening.ended}, timeout=2 * LINGERING)
    transport.close()


def _kill(transport: asyncio.SubprocessTransport) -> None:
    if sys.platform == "win32":
        transport.kill()  # there are no sessions: what it started lives on
    else:
        os.killpg(transport.get_pid(), signal.SIGKILL)


class _Listening(asyncio.SubprocessProtocol):
    """Takes what a program writes."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.complaint = bytearray()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the program has ended and its pipes are closed."""
        self._transport: asyncio.SubprocessTransport | None = None
        self._closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        content = cast("bytes", data)
        if fd == STDOUT:
            self.output += content[: OUTPUT_CAP + 1 - len(self.output)]
        else:
            self.complaint = (self.complaint + content)[-TAIL:]

    def process_exited(self) -> None:
        if self._transport is not None:
            loop = asyncio.get_running_loop()
            self._closing = loop.call_later(LINGERING, self._transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._closing is not None:
            self._closing.cancel()
        if not self.ended.done():
            self.ended.set_result(None)


PLUGIN_SECONDS = 120.0
"""What a run may take: somebody may have to log in in a browser."""

PAUSE = 10.0
"""Seconds after a run that failed before the next one: many informers would each ask for one."""

CHECK = "run it in a terminal to see what is wrong: perhaps a login has ended"
"""What to do about one that says nothing itself."""

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Of the protocol. v1alpha1 was removed from Kubernetes in 1.24."""

EARLY = 0.2
"""The part of a credential's life that is left when it is renewed."""

EARLIEST = 120.0
"""The seconds that are left then at most: tokens of an hour are not renewed at 48 minutes."""


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """What to run, and how."""

    version: str
    """The version of the protocol."""
    words: tuple[str, ...] = field(repr=False)
    """The program and its arguments."""
    variables: Mapping[str, str] = field(repr=False)
    """Those to add to the environment."""
    cluster: Mapping[str, Any] | None = field(repr=False)
    """What it is told of the cluster, if it asks for that."""
    hint: str
    """How to install it, in the words of the kubeconfig."""

    def environment(self) -> dict[str, str]:
        """All its variables."""
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        info = {"apiVersion": self.version, "kind": "ExecCredential", "spec": spec}
        return {**os.environ, **self.variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def mask(self) -> Mask:
        """Hides what the kubeconfig gives it that may be secret."""
        flags = zip(("", *self.words), self.words, strict=False)
        secret = [value for flag, value in flags if any(word in flag.lower() for word in TELLING)]
        assigned = [word.partition("=")[2] for word in self.words]
        return Mask(("plugin", each) for each in (*self.variables.values(), *secret, *assigned))


TELLING = ("secret", "token", "password", "key")
"""Words in a flag after which a secret comes."""


def plugin_command(section: Mapping[str, Any], cluster: Mapping[str, Any]) -> PluginCommand:
    """What an ``exec`` section of a kubeconfig says.

    Args:
        section: it, its command made absolute if it is a path.
        cluster: what a plugin may be told of the cluster.

    Raises:
        ConfigurationError: it is incomplete, or asks for what can't be given.
    """
    command, version = section.get("command"), section.get("apiVersion")
    if not isinstance(command, str) or not command:
        raise ConfigurationError("its exec section names no command")
    name = _shown(command)
    if version not in VERSIONS:
        said = f"the exec plugin {name} is of version {version!r}; known are "
        raise ConfigurationError(said + " and ".join(VERSIONS))
    if section.get("interactiveMode") == "Always":
        raise ConfigurationError(
            f"the exec plugin {name} wants a terminal (interactiveMode: Always), which a "
            f"library can't give it; use a login that needs none"
        )
    try:
        words = (command, *map(str, section.get("args") or ()))
        variables = {str(each["name"]): str(each["value"]) for each in section.get("env") or ()}
    except (KeyError, TypeError):
        said = f"args or env of the exec plugin {name} are not lists of what they should be"
        raise ConfigurationError(said) from None  # the error would quote what it stumbled over
    told = cluster if section.get("provideClusterInfo") else None
    return PluginCommand(version, words, variables, told, str(section.get("installHint") or ""))


def _shown(command: str) -> str:
    """A program's name for messages: some write a whole command line into it, or a URL."""
    return repr(re.split(r"[?\s]", command, maxsplit=1)[0])


@dataclass(slots=True)
class ExecPlugin:
    """Runs the program; call it for a ``Grant``."""

    command: PluginCommand
    where: str
    """What named it, for messages."""
    seconds: float = PLUGIN_SECONDS
    """What a run may take."""
    _failure: str = field(default="", init=False)
    _again: float = field(default=0.0, init=False)

    async def __call__(self) -> Grant:
        """What the program yields now.

        A run that fails is not repeated for ``PAUSE`` seconds: the failure is told again.

        Raises:
            FetchError: the program can't be run, fails, or yields nothing usable.
        """
        if time.monotonic() < self._again:
            raise FetchError(self._failure, phase="credentials")
        name = f"{self.where}: the exec plugin {_shown(self.command.words[0])}"
        try:
            return _grant(await self._output())
        except (OSError, TimeoutError, ValueError) as error:
            self._failure = f"{name} {self._told(error)}"
            self._again = time.monotonic() + PAUSE
            # The cause of a ValueError would show what the program printed.
            cause = error if isinstance(error, OSError) else None
            if cause is not None and cause.filename is not None:
                cause.filename = _shown(self.command.words[0])
            raise FetchError(self._failure, phase="credentials") from cause

    async def _output(self) -> Mapping[str, Any]:
        command = self.command
        outcome = await run(command.words, command.environment(), self.seconds)
        if outcome.code != 0:
            raise ValueError(f"failed{self._last_words(outcome)}")
        if len(outcome.output) > OUTPUT_CAP:
            raise ValueError(f"printed more than {OUTPUT_CAP} bytes")
        return _credential(outcome.output, command.version)

    def _told(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"did not end in {self.seconds:g} s, and was killed"
        if not isinstance(error, OSError):
            said = str(error)
            complained = said.startswith("failed") and ": " in said  # which says it better
            return said if complained else f"{said}; {CHECK}"
        hint = " ".join(self.command.hint.split())
        said = f"can't be run: {error.strerror}"
        if hint:
            return f"{said}. To install it: {hint}"
        if isinstance(error, PermissionError):
            return f"{said}: may it be executed (chmod +x)?"
        if os.sep in self.command.words[0]:
            return f"{said}: is it installed, and `command:` in the kubeconfig right?"
        return f"{said}: is it installed, and found in $PATH?"

    def _last_words(self, outcome: Outcome) -> str:
        how = f" with code {outcome.code}" if outcome.code > 0 else f" by signal {-outcome.code}"
        lines = outcome.complaint.decode("utf-8", "replace").strip().splitlines()
        said = without_secrets(self.command.mask().text(lines[-1])) if lines else ""
        return f"{how}: {said}" if said else how


# -- what it prints ----------------------------------------------------------------------------


def _credential(output: bytes, version: str) -> Mapping[str, Any]:
    """The status of an ``ExecCredential``."""
    printed = _parsed(output)
    if not isinstance(printed, dict):
        raise ValueError("printed no ExecCredential")
    document = cast("dict[str, Any]", printed)
    if document.get("kind") != "ExecCredential" or document.get("apiVersion") != version:
        raise ValueError(f"printed no ExecCredential of {version}, which the kubeconfig names")
    status: Any = document.get("status")
    if not isinstance(status, dict):
        raise ValueError("printed an ExecCredential without a status")
    return cast("dict[str, Any]", status)


def _parsed(output: bytes) -> Any:
    """The JSON; ``None`` if it is none. The error would carry all that was printed."""
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None


def _grant(status: Mapping[str, Any]) -> Grant:
    token, certificate, key = (
        str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if bool(certificate) != bool(key):
        raise ValueError("printed a certificate without its key, or a key without its certificate")
    if not token and not certificate:
        raise ValueError("printed neither a token nor a certificate")
    try:
        header = bearer(token.encode()) if token else ""
    except ValueError as error:
        raise ValueError(f"printed a token that can't be used: {error}") from None
    pair = Pair(certificate.encode(), key.encode()) if certificate else None
    return Grant(header, pair, *_life(status.get("expirationTimestamp")))


def _life(expires: object) -> tuple[float, ...]:
    """For how many seconds a credential is fresh, and valid."""
    if not expires:
        return ()
    try:
        end = dt.datetime.fromisoformat(str(expires))
    except ValueError:
        raise ValueError("printed an expirationTimestamp that is no time") from None
    end = end if end.tzinfo else end.replace(tzinfo=dt.UTC)
    left = (end - dt.datetime.now(dt.UTC)).total_seconds()
    if left <= 0:  # a clock is wrong, and the server knows better: it says 401 when it has
        return ()
    return left - min(EARLIEST, EARLY * left), left

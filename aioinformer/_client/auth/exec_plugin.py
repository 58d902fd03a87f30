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

from aioinformer._client.auth.redaction import Redactor, redact_diagnostics
from aioinformer._client.auth.token_file import bearer_header
from aioinformer._client.auth.token_refresh import CertificatePair, TokenGrant
from aioinformer.errors import ConfigurationError, FetchError

__all__ = ["ExecPlugin", "ProcessResult", "parse_exec_section", "run_process"]


MAX_OUTPUT_BYTES = 1024 * 1024
"""Bytes of output: an ExecCredential with a chain of certificates has some kilobytes."""

MAX_STDERR_BYTES = 2048
"""Bytes kept of the diagnostics: the last line says what went wrong."""

STDOUT_FD = 1
"""The number of the pipe that carries the output."""

PIPE_CLOSE_DELAY = 0.5
"""Seconds that the pipes of a program that has ended may stay open: it may have left something
running that holds them."""


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What a program left behind."""

    exit_code: int
    """Its exit code; negative for the signal that ended it."""
    stdout: bytes = field(repr=False)
    """Its standard output, cut off at one byte more than ``MAX_OUTPUT_BYTES``."""
    stderr: bytes = field(repr=False)
    """The end of its standard error."""


async def run_process(
    command: tuple[str, ...], environment: Mapping[str, str], timeout: float
) -> ProcessResult:
    """Run a program to its end, without input.

    A cancellation kills it.

    Args:
        command: the program and its arguments.
        environment: all its variables.
        timeout: after how many it is killed.

    Raises:
        OSError: it can't be started.
        TimeoutError: it was killed.
    """
    async with asyncio.timeout(timeout):
        starting = asyncio.create_task(
            _start_process(command, environment), name="start of a plugin"
        )
        try:
            await asyncio.wait({starting})
            transport, listening = starting.result()
            await asyncio.wait({listening.ended})
        finally:
            # A few milliseconds, if at all: what is half started can't be killed properly.
            await asyncio.wait({starting})
            if starting.exception() is None:
                await _stop_process(*starting.result())
    code = cast("int", transport.get_returncode())
    return ProcessResult(code, bytes(listening.stdout), bytes(listening.stderr))


async def _start_process(
    command: tuple[str, ...], environment: Mapping[str, str]
) -> tuple[asyncio.SubprocessTransport, _OutputCollector]:
    return await asyncio.get_running_loop().subprocess_exec(
        _OutputCollector,
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),  # uvloop takes no other mapping
        start_new_session=True,
    )


async def _stop_process(
    transport: asyncio.SubprocessTransport, collector: _OutputCollector
) -> None:
    """Kill what still runs, and return when the system has said that it has ended."""
    if transport.get_returncode() is None:
        # Else it is gone already, or runs as somebody else.
        with suppress(ProcessLookupError, PermissionError):
            _kill_process(transport)
    # Not close() at once: that reaps the child behind the back of asyncio's own watcher. And not
    # without waiting: its end would be reported to a loop that may be closed by then.
    await asyncio.wait({collector.ended}, timeout=2 * PIPE_CLOSE_DELAY)
    transport.close()


def _kill_process(transport: asyncio.SubprocessTransport) -> None:
    if sys.platform == "win32":
        transport.kill()  # there are no sessions: what it started lives on
    else:
        os.killpg(transport.get_pid(), signal.SIGKILL)


class _OutputCollector(asyncio.SubprocessProtocol):
    """Takes what a program writes."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the program has ended and its pipes are closed."""
        self._transport: asyncio.SubprocessTransport | None = None
        self._close_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        content = cast("bytes", data)
        if fd == STDOUT_FD:
            self.stdout += content[: MAX_OUTPUT_BYTES + 1 - len(self.stdout)]
        else:
            self.stderr = (self.stderr + content)[-MAX_STDERR_BYTES:]

    def process_exited(self) -> None:
        if self._transport is not None:
            loop = asyncio.get_running_loop()
            self._close_timer = loop.call_later(PIPE_CLOSE_DELAY, self._transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._close_timer is not None:
            self._close_timer.cancel()
        if not self.ended.done():
            self.ended.set_result(None)


PLUGIN_TIMEOUT = 120.0
"""What a run may take: somebody may have to log in in a browser."""

RETRY_DELAY = 10.0
"""Seconds after a run that failed before the next one: many informers would each ask for one."""

TERMINAL_HINT = "run it in a terminal to see what is wrong: perhaps a login has ended"
"""What to do about one that says nothing itself."""

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Of the protocol. v1alpha1 was removed from Kubernetes in 1.24."""

RENEWAL_FRACTION = 0.2
"""The part of a credential's life that is left when it is renewed."""

MAX_RENEWAL_LEAD = 120.0
"""The seconds that are left then at most: tokens of an hour are not renewed at 48 minutes."""


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """What to run, and how."""

    version: str
    """The version of the protocol."""
    argv: tuple[str, ...] = field(repr=False)
    """The program and its arguments."""
    variables: Mapping[str, str] = field(repr=False)
    """Those to add to the environment."""
    cluster_info: Mapping[str, Any] | None = field(repr=False)
    """What it is told of the cluster, if it asks for that."""
    install_hint: str
    """How to install it, in the words of the kubeconfig."""

    def build_environment(self) -> dict[str, str]:
        """All its variables."""
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster_info is not None:
            spec["cluster"] = self.cluster_info
        info = {"apiVersion": self.version, "kind": "ExecCredential", "spec": spec}
        return {**os.environ, **self.variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def make_redactor(self) -> Redactor:
        """Hides what the kubeconfig gives it that may be secret."""
        flags = zip(("", *self.argv), self.argv, strict=False)
        secret = [
            value
            for flag, value in flags
            if any(word in flag.lower() for word in SECRET_FLAG_WORDS)
        ]
        assigned = [word.partition("=")[2] for word in self.argv]
        return Redactor(("plugin", each) for each in (*self.variables.values(), *secret, *assigned))


SECRET_FLAG_WORDS = ("secret", "token", "password", "key")
"""Words in a flag after which a secret comes."""


def parse_exec_section(
    section: Mapping[str, Any], cluster_info: Mapping[str, Any]
) -> PluginCommand:
    """What an ``exec`` section of a kubeconfig says.

    Args:
        section: it, its command made absolute if it is a path.
        cluster_info: what a plugin may be told of the cluster.

    Raises:
        ConfigurationError: it is incomplete, or asks for what can't be given.
    """
    command, version = section.get("command"), section.get("apiVersion")
    if not isinstance(command, str) or not command:
        raise ConfigurationError("its exec section names no command")
    name = _program_name(command)
    if version not in API_VERSIONS:
        said = f"the exec plugin {name} is of version {version!r}; known are "
        raise ConfigurationError(said + " and ".join(API_VERSIONS))
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
    told = cluster_info if section.get("provideClusterInfo") else None
    return PluginCommand(version, words, variables, told, str(section.get("installHint") or ""))


def _program_name(command: str) -> str:
    """A program's name for messages: some write a whole command line into it, or a URL."""
    return repr(re.split(r"[?\s]", command, maxsplit=1)[0])


@dataclass(slots=True)
class ExecPlugin:
    """Runs the program; call it for a ``TokenGrant``."""

    command: PluginCommand
    origin: str
    """What named it, for messages."""
    timeout: float = PLUGIN_TIMEOUT
    """What a run may take."""
    _failure: str = field(default="", init=False)
    _retry_at: float = field(default=0.0, init=False)

    async def __call__(self) -> TokenGrant:
        """What the program yields now.

        A run that fails is not repeated for ``RETRY_DELAY`` seconds: the failure is told again.

        Raises:
            FetchError: the program can't be run, fails, or yields nothing usable.
        """
        if time.monotonic() < self._retry_at:
            raise FetchError(self._failure, phase="credentials")
        name = f"{self.origin}: the exec plugin {_program_name(self.command.argv[0])}"
        try:
            return _make_grant(await self._run_program())
        except (OSError, TimeoutError, ValueError) as error:
            self._failure = f"{name} {self._describe_failure(error)}"
            self._retry_at = time.monotonic() + RETRY_DELAY
            # The cause of a ValueError would show what the program printed.
            cause = error if isinstance(error, OSError) else None
            if cause is not None and cause.filename is not None:
                cause.filename = _program_name(self.command.argv[0])
            raise FetchError(self._failure, phase="credentials") from cause

    async def _run_program(self) -> Mapping[str, Any]:
        command = self.command
        outcome = await run_process(command.argv, command.build_environment(), self.timeout)
        if outcome.exit_code != 0:
            raise ValueError(f"failed{self._describe_exit(outcome)}")
        if len(outcome.stdout) > MAX_OUTPUT_BYTES:
            raise ValueError(f"printed more than {MAX_OUTPUT_BYTES} bytes")
        return _parse_credential(outcome.stdout, command.version)

    def _describe_failure(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"did not end in {self.timeout:g} s, and was killed"
        if not isinstance(error, OSError):
            said = str(error)
            complained = said.startswith("failed") and ": " in said  # which says it better
            return said if complained else f"{said}; {TERMINAL_HINT}"
        hint = " ".join(self.command.install_hint.split())
        said = f"can't be run: {error.strerror}"
        if hint:
            return f"{said}. To install it: {hint}"
        if isinstance(error, PermissionError):
            return f"{said}: may it be executed (chmod +x)?"
        if os.sep in self.command.argv[0]:
            return f"{said}: is it installed, and `command:` in the kubeconfig right?"
        return f"{said}: is it installed, and found in $PATH?"

    def _describe_exit(self, result: ProcessResult) -> str:
        how = (
            f" with code {result.exit_code}"
            if result.exit_code > 0
            else f" by signal {-result.exit_code}"
        )
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        said = (
            redact_diagnostics(self.command.make_redactor().redact_complete(lines[-1]))
            if lines
            else ""
        )
        return f"{how}: {said}" if said else how


# -- what it prints ----------------------------------------------------------------------------


def _parse_credential(output: bytes, version: str) -> Mapping[str, Any]:
    """The status of an ``ExecCredential``."""
    printed = _parse_json(output)
    if not isinstance(printed, dict):
        raise ValueError("printed no ExecCredential")
    document = cast("dict[str, Any]", printed)
    if document.get("kind") != "ExecCredential" or document.get("apiVersion") != version:
        raise ValueError(f"printed no ExecCredential of {version}, which the kubeconfig names")
    status: Any = document.get("status")
    if not isinstance(status, dict):
        raise ValueError("printed an ExecCredential without a status")
    return cast("dict[str, Any]", status)


def _parse_json(output: bytes) -> Any:
    """The JSON; ``None`` if it is none. The error would carry all that was printed."""
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None


def _make_grant(status: Mapping[str, Any]) -> TokenGrant:
    token, certificate, key = (
        str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if bool(certificate) != bool(key):
        raise ValueError("printed a certificate without its key, or a key without its certificate")
    if not token and not certificate:
        raise ValueError("printed neither a token nor a certificate")
    try:
        header = bearer_header(token.encode()) if token else ""
    except ValueError as error:
        raise ValueError(f"printed a token that can't be used: {error}") from None
    pair = CertificatePair(certificate.encode(), key.encode()) if certificate else None
    return TokenGrant(header, pair, *_parse_lifetime(status.get("expirationTimestamp")))


def _parse_lifetime(expires: object) -> tuple[float, ...]:
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
    return left - min(MAX_RENEWAL_LEAD, RENEWAL_FRACTION * left), left

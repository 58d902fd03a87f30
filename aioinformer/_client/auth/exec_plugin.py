"""``ExecPlugin``: credentials from a credential plugin that the kubeconfig names.

A plugin receives the description of the cluster in ``$KUBERNETES_EXEC_INFO`` and prints an
``ExecCredential`` with a token, a client certificate, or both, and optionally their expiry.

A plugin gets no terminal and no input. Its diagnostics may contain secrets, so messages show only
the redacted last line. Its outputs are read as they arrive, so that it never blocks on a full pipe.
It has a session of its own, so that its child processes are killed with it, also if its output has
no end. Like Go, this module runs no program that a relative entry of ``$PATH`` names.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import errno
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._client.auth.redaction import Redactor, redact_diagnostics
from aioinformer._client.auth.token_file import bearer_header
from aioinformer._client.auth.token_refresh import CertificatePair, TokenGrant
from aioinformer.errors import ConfigurationError, FetchError

PLUGIN_TIMEOUT = 120.0
"""Maximum seconds of a run: the user may have to log in in a browser."""

RETRY_DELAY = 10.0
"""Seconds between a failed run and the next one: each of many informers would start a run."""

TRY_AGAIN = f"; the plugin is run again in {RETRY_DELAY:g} s or later"

RESOURCE_ERRNOS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""The errors of a start that say nothing about the plugin."""

UNKNOWN_EXIT_CODE = 255
"""The code that asyncio reports if the system has kept none."""

TERMINAL_HINT = "run it in a terminal to see what is wrong: perhaps a login has expired"

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Supported versions of the protocol. Kubernetes 1.24 removed v1alpha1."""

RENEWAL_FRACTION = 0.2
"""The fraction of a credential's life that is left when the credential is refreshed."""

MAX_RENEWAL_LEAD = 120.0
"""Maximum seconds that are left then. Otherwise a token that is valid for an hour would be
refreshed after 48 minutes."""

SECRET_FLAG_WORDS = ("secret", "token", "password", "key")
"""Words in a command line flag whose value is a secret."""


# -- the exec section of a kubeconfig ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PluginCommand:
    version: str
    argv: tuple[str, ...] = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)
    cluster_info: Mapping[str, Any] | None = field(repr=False)
    """The cluster, for the plugin; ``None`` if the plugin doesn't request it."""
    install_hint: str

    def build_environment(self) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster_info is not None:
            spec["cluster"] = self.cluster_info
        info = {"apiVersion": self.version, "kind": "ExecCredential", "spec": spec}
        return {**os.environ, **self.variables, "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def make_redactor(self) -> Redactor:
        """Return a redactor of the possible secrets that the kubeconfig gives to the plugin."""
        flags = zip(("", *self.argv), self.argv, strict=False)
        after_flags = [
            value
            for flag, value in flags
            if any(word in flag.lower() for word in SECRET_FLAG_WORDS)
        ]
        assigned = [word.partition("=")[2] for word in self.argv]
        secrets = (*self.variables.values(), *after_flags, *assigned)
        return Redactor(("plugin", each) for each in secrets)


def parse_exec_section(
    section: Mapping[str, Any], cluster_info: Mapping[str, Any]
) -> PluginCommand:
    """Read the ``exec`` section of a kubeconfig's user. A command with a path must be absolute.

    Raises:
        ConfigurationError: the section is incomplete, or requires a terminal.
    """
    command, version = section.get("command"), section.get("apiVersion")
    if not command:
        raise ConfigurationError("its exec section names no command")
    name = _program_name(command)
    if version not in API_VERSIONS:
        known = " and ".join(API_VERSIONS)
        raise ConfigurationError(
            f"the exec plugin {name} uses version {version!r}; supported are {known}"
        )
    if section.get("interactiveMode") == "Always":
        raise ConfigurationError(
            f"the exec plugin {name} requires a terminal (interactiveMode: Always), which a "
            f"library can't provide; use a login that needs no terminal"
        )
    entries: list[Mapping[str, str | None]] = [each or {} for each in section.get("env") or ()]
    if not all(each.get("name") for each in entries):
        raise ConfigurationError(f"a variable in env of the exec plugin {name} has no name")
    return PluginCommand(
        version,
        (command, *(section.get("args") or ())),
        {each.get("name") or "": each.get("value") or "" for each in entries},
        cluster_info if section.get("provideClusterInfo") else None,
        section.get("installHint") or "",
    )


def _program_name(command: str) -> str:
    # Some kubeconfigs have a whole command line or a URL in ``command``, perhaps with a secret.
    return repr(re.split(r"[?\s]", command, maxsplit=1)[0])


# -- the plugin --------------------------------------------------------------------------------


@dataclass(slots=True)
class ExecPlugin:
    """A token source that runs a plugin."""

    command: PluginCommand
    origin: str
    """The file and context that name the plugin, for messages."""
    timeout: float = PLUGIN_TIMEOUT
    _failure: str = field(default="", init=False)
    _retry_at: float = field(default=0.0, init=False)

    async def __call__(self) -> TokenGrant:
        """Run the plugin and return its credentials.

        For ``RETRY_DELAY`` seconds after a failed run the same failure is raised without a run.

        Raises:
            FetchError: the plugin can't be run, fails, or prints no usable credentials.
        """
        if time.monotonic() < self._retry_at:
            raise FetchError(self._failure, phase="credentials")
        name = _program_name(self.command.argv[0])
        try:
            return _make_grant(await self._run_plugin())
        except (OSError, TimeoutError, ValueError) as error:
            failure = self._describe_failure(error)
            self._failure = f"{self.origin}: the exec plugin {name} {failure}"
            self._retry_at = time.monotonic() + RETRY_DELAY
            # A ValueError is not kept as the cause: it would show the output of the plugin.
            cause = error if isinstance(error, OSError) else None
            if cause is not None and cause.filename is not None:
                cause.filename = name
            raise FetchError(self._failure, phase="credentials") from cause

    async def _run_plugin(self) -> Mapping[str, Any]:
        command = self.command
        result = await run_process(command.argv, command.build_environment(), self.timeout)
        if len(result.stdout) > MAX_OUTPUT_BYTES:
            raise ValueError(f"printed more than {MAX_OUTPUT_BYTES} bytes")
        if result.stderr_size > MAX_READ_STDERR_BYTES:
            raise ValueError(f"wrote more than {MAX_READ_STDERR_BYTES} bytes of diagnostics")
        # Without an exit code, only the output says whether the plugin has failed.
        if result.exit_code != 0 and not (result.has_unknown_exit_code and result.stdout):
            raise ValueError(f"failed{self._describe_exit(result)}")
        return _parse_credential(bytes(result.stdout), command.version)

    def _describe_failure(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"did not end in {self.timeout:g} s, and was killed"
        if isinstance(error, RelativePathError):
            return str(error)
        if not isinstance(error, OSError):
            text = str(error)
            has_diagnostics = text.startswith("failed") and ": " in text
            return text if has_diagnostics else f"{text}; {TERMINAL_HINT}"
        hint = " ".join(self.command.install_hint.split())
        text = f"can't be run: {error.strerror}"
        if error.errno in RESOURCE_ERRNOS:
            return (
                f"{text}: this program or the machine has reached a limit (`ulimit -a`){TRY_AGAIN}"
            )
        if isinstance(error, ProcessLookupError):  # asyncio since Python 3.12 waits by a pidfd
            return f"ended before it could be waited for: this program ignores SIGCHLD{TRY_AGAIN}"
        if hint:
            return f"{text}. To install it: {hint}"
        if isinstance(error, PermissionError):
            return f"{text}: is the file executable (chmod +x)?"
        if os.sep in self.command.argv[0]:
            return f"{text}: is it installed, and is `command:` in the kubeconfig right?"
        return f"{text}: is it installed, and in a directory of $PATH?"

    def _describe_exit(self, result: Process) -> str:
        code = result.exit_code
        reason = f" with code {code}" if code > 0 else f" by signal {-code}"
        if result.has_unknown_exit_code:
            reason = " with an unknown code (this program ignores SIGCHLD)"
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        if not lines:
            return reason
        last_line = self.command.make_redactor().redact_complete(lines[-1])
        diagnostics = redact_diagnostics(last_line)
        return f"{reason}: {diagnostics}" if diagnostics else reason


# -- the output of a plugin --------------------------------------------------------------------


def _parse_credential(output: bytes, version: str) -> Mapping[str, Any]:
    printed: object = None
    with suppress(ValueError, RecursionError):  # whose texts would contain the output
        printed = json.loads(output)
    if not isinstance(printed, dict):
        raise ValueError("printed no ExecCredential")
    document = cast("dict[str, Any]", printed)
    if document.get("kind") != "ExecCredential" or document.get("apiVersion") != version:
        raise ValueError(f"printed no ExecCredential of {version}, which the kubeconfig names")
    status: Any = document.get("status")
    if not isinstance(status, dict):
        raise ValueError("printed an ExecCredential without a status")
    return cast("dict[str, Any]", status)


def _make_grant(status: Mapping[str, Any]) -> TokenGrant:
    token, certificate, key = (
        _read_text(status, name) for name in ("token", "clientCertificateData", "clientKeyData")
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


def _read_text(status: Mapping[str, Any], name: str) -> str:
    """Return a text of the status; empty if there is none. ``true`` is no token."""
    value: object = status.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"printed an ExecCredential whose {name} is no text")
    return value


def _parse_lifetime(expires: object) -> tuple[float, ...]:
    """Return the seconds for which a credential is fresh and valid; empty for no limit."""
    if not expires:
        return ()
    try:
        end = dt.datetime.fromisoformat(str(expires))
    except ValueError:
        raise ValueError("printed an expirationTimestamp that is not a time") from None
    end = end if end.tzinfo else end.replace(tzinfo=dt.UTC)
    left = (end - dt.datetime.now(dt.UTC)).total_seconds()
    if left <= 0:  # one of the clocks is wrong; the server answers 401 after the real expiry
        return ()
    return left - min(MAX_RENEWAL_LEAD, RENEWAL_FRACTION * left), left


# -- the process -------------------------------------------------------------------------------

MAX_OUTPUT_BYTES = 1024 * 1024
"""Bytes of output: an ExecCredential with a chain of certificates has some kilobytes."""

MAX_STDERR_BYTES = 2048
"""Bytes kept of the diagnostics, whose last line names the failure."""

MAX_READ_STDERR_BYTES = 64 * 1024 * 1024
"""Bytes of diagnostics after which the plugin is killed."""

STDOUT_FD = 1

PIPE_CLOSE_DELAY = 0.5
"""Seconds after the end of a process before its pipes are closed, which a child process that still
runs may keep open."""


class Process(asyncio.SubprocessProtocol):
    """A process, and its output as it arrives."""

    _transport: asyncio.SubprocessTransport

    def __init__(self) -> None:
        self.stdout = bytearray()
        """The standard output, cut to one byte more than ``MAX_OUTPUT_BYTES``."""
        self.stderr = bytearray()
        """The end of the standard error output."""
        self.stderr_size = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the process has ended and its pipes are closed."""
        self._close_timer: asyncio.TimerHandle | None = None

    @property
    def exit_code(self) -> int:
        """The exit code; negative for the signal that ended the process."""
        return cast("int", self._transport.get_returncode())

    @property
    def has_unknown_exit_code(self) -> bool:
        ignored = sys.platform != "win32" and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
        return ignored and self.exit_code == UNKNOWN_EXIT_CODE

    async def stop(self) -> None:
        self._kill()
        # close() at once would reap the child process before asyncio's watcher does. Without the
        # wait, the end would be reported to a loop that may be closed by then.
        await asyncio.wait({self.ended}, timeout=2 * PIPE_CLOSE_DELAY)
        self._transport.close()

    def _kill(self) -> None:
        if self._transport.get_returncode() is not None:
            return
        # The process may have ended already, or run as another user.
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._transport.kill()  # Windows has no sessions: child processes survive
            else:
                os.killpg(self._transport.get_pid(), signal.SIGKILL)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        content = cast("bytes", data)
        if fd == STDOUT_FD:
            self.stdout += content[: MAX_OUTPUT_BYTES + 1 - len(self.stdout)]
        else:
            self.stderr = (self.stderr + content)[-MAX_STDERR_BYTES:]
            self.stderr_size += len(content)
        if len(self.stdout) > MAX_OUTPUT_BYTES or self.stderr_size > MAX_READ_STDERR_BYTES:
            self._kill()

    def process_exited(self) -> None:
        loop = asyncio.get_running_loop()
        self._close_timer = loop.call_later(PIPE_CLOSE_DELAY, self._transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._close_timer is not None:
            self._close_timer.cancel()
        if not self.ended.done():
            self.ended.set_result(None)


class RelativePathError(ValueError):
    """The program was found in a directory that is relative to the current directory."""


def find_program(name: str, search_path: str | None) -> str:
    """Return the path of a program as Go's ``exec.LookPath`` finds it. This function blocks.

    Raises:
        FileNotFoundError: no directory of ``search_path``, by default ``$PATH``, has the program.
        RelativePathError: the first directory that has it is not absolute.
    """
    if os.sep in name:
        return name
    found = shutil.which(name, path=search_path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if not Path(found).is_absolute():
        raise RelativePathError(
            "is not run, because $PATH names its directory relative to the current directory, "
            "where anybody may have put it: write absolute directories into $PATH (an empty entry "
            "and '.' are relative), or the absolute path into `command:` of the kubeconfig"
        )
    return found


async def run_process(
    command: tuple[str, ...], environment: Mapping[str, str], timeout: float
) -> Process:
    """Run a program without input and wait for its end. A cancellation kills the process, and so
    does output without an end.

    Raises:
        OSError: the program can't be started.
        RelativePathError: see ``find_program``.
        TimeoutError: the process was killed after ``timeout`` seconds.
    """
    async with asyncio.timeout(timeout):
        find = partial(find_program, command[0], environment.get("PATH"))
        command = (await run_in_thread(find), *command[1:])
        starting = asyncio.create_task(
            _start_process(command, environment), name="start of a plugin"
        )
        try:
            await asyncio.wait({starting})
            await asyncio.wait({starting.result().ended})
        finally:
            # The start takes milliseconds, and a process can't be killed before its end.
            await asyncio.wait({starting})
            if starting.exception() is None:
                await starting.result().stop()
    return starting.result()


async def _start_process(command: tuple[str, ...], environment: Mapping[str, str]) -> Process:
    _, process = await asyncio.get_running_loop().subprocess_exec(
        Process,
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),  # uvloop accepts no other mapping
        start_new_session=True,
    )
    return process

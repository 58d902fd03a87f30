"""Exec plugins for the tests: small programs that count their runs."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


class FakePlugin:
    """A program that prints the content of a file and counts its runs."""

    def __init__(self, folder: Path, *, version: str = V1, name: str = "plugin") -> None:
        """Write the program into a directory; it prints nothing yet.

        Args:
            folder: the directory of the program and its files.
            version: the version of the protocol.
            name: the name of the program.
        """
        self.version = version
        self.path = folder / name
        self._output = folder / f"{name}.answer"
        self._runs = folder / f"{name}.runs"
        self._exec_info = folder / f"{name}.environment"
        self._runs.touch()
        # A shell starts in a millisecond, Python in fifty.
        self.write_script(f"cat {self._output}")

    def write_script(self, then: str) -> None:
        """Write the shell commands that follow the counting of a run."""
        save_info = f'printf %s "$KUBERNETES_EXEC_INFO" > {self._exec_info}'
        self.path.write_text(f"#!/bin/sh\necho >> {self._runs}\n{save_info}\n{then}\n")
        self.path.chmod(0o755)

    def set_status(self, **status: Any) -> None:
        """Set the status that the plugin prints, for example ``token="abc"``."""
        document = {"apiVersion": self.version, "kind": "ExecCredential", "status": status}
        fresh = self._output.with_suffix(".new")
        fresh.write_text(json.dumps(document))
        fresh.replace(self._output)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self._runs.read_text())

    @property
    def last_exec_info(self) -> Any:
        """The ``ExecCredential`` that the last run received."""
        return json.loads(self._exec_info.read_text())

    def user(self, **more: Any) -> dict[str, Mapping[str, Any]]:
        """Return a kubeconfig's user with this plugin."""
        return {"exec": {"apiVersion": self.version, "command": str(self.path), **more}}


def in_seconds(seconds: float) -> str:
    """Return a time relative to now, as Go formats it."""
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

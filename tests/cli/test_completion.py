"""Shell completion: what is suggested, and that shells get it."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aioinformer.__main__ import main
from aioinformer._cli.completion import suggest_values
from tests.cli.processes import ROOT, environment

CONFIG = "contexts: [{name: main, context: {namespace: web}}, {name: mars, context: {}}]\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(CONFIG)
    return path


def suggested(argument: str, prefix: str, config: Path | None = None) -> list[str]:
    return suggest_values(argument, prefix, argparse.Namespace(kubeconfig=config))


def test_completion_suggests_the_built_in_resources() -> None:
    assert suggested("resource", "deploy") == ["deployments"]
    assert suggested("resource", "deployments.") == ["deployments.apps"]


def test_contexts_and_namespaces_are_those_of_the_kubeconfig(config: Path) -> None:
    assert suggested("context", "ma", config) == ["main", "mars"]
    assert suggested("namespace", "", config) == ["default", "kube-system", "web"]


def test_an_option_without_known_values_has_no_suggestions() -> None:
    assert suggested("selector", "a") == []


def test_completion_suggests_output_formats() -> None:
    assert suggested("output", "j") == ["json"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "aioinformer" in capsys.readouterr().out


@pytest.mark.clients
def test_without_argcomplete_the_error_names_the_command_that_installs_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['argcomplete.shell_integration'] = None; "
        "from aioinformer.__main__ import main; sys.exit(main(['completion', 'bash']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "aioinformer: shell completion needs argcomplete, which is not installed: "
        "pip install 'aioinformer[cli]'\n"
    )


# -- in shells ---------------------------------------------------------------------------------

BASH = """\
eval "$(aioinformer completion bash)"
while read -r COMP_LINE; do
  COMP_POINT=${#COMP_LINE} COMP_TYPE=9 COMPREPLY=()
  _python_argcomplete aioinformer
  echo "${COMPREPLY[*]}"
done
"""
FISH = """\
aioinformer completion fish | source
while read line; echo (complete -C "$line" | cut -f1); end
"""


def completed(shell: str, script: str, lines: list[str], folder: Path, config: Path) -> list[str]:
    """Return a shell's completions of lines that end with a Tab."""
    program = folder / "aioinformer"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m aioinformer "$@"\n')
    program.chmod(0o755)
    env = environment(folder) | {"KUBECONFIG": str(config), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [shell, "-c", script],
        env=env | {"PATH": f"{folder}:{env['PATH']}"},
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.strip() for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("shell", "script"),
    [pytest.param("bash", BASH, marks=pytest.mark.clients), ("fish", FISH)],
)
def test_a_shell_completes_commands_resources_and_contexts(
    shell: str, script: str, tmp_path: Path, config: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    lines = ["aioinformer wat", "aioinformer watch statefuls", "aioinformer watch po --context mar"]

    assert completed(shell, script, lines, tmp_path, config) == ["watch", "statefulsets", "mars"]


def test_zsh_registers_the_command(tmp_path: Path, config: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh here")
    script = 'autoload -U compinit; compinit -u; eval "$(aioinformer completion zsh)"; '
    script += "print ${_comps[aioinformer]}"

    assert completed("zsh", script, [], tmp_path, config) == ["_python_argcomplete"]

"""Shell completion: what is suggested, and that shells get it."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from argcomplete.finders import CompletionFinder

from tests.cli.commands import CommandLine
from tests.cli.processes import ROOT, environment

CONFIG = "contexts: [{name: main, context: {namespace: web}}, {name: mars, context: {}}, odd]\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(CONFIG)
    return path


def suggested(cli: CommandLine, line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the suggestions for a line that ends with a Tab."""
    output, line = io.StringIO(), f"aioinformer {line}"
    finder: Any = CompletionFinder()
    finder._init_debug_stream = lambda: None  # the descriptor 9 is not one of a shell here
    finder = partial(finder, exit_method=sys.exit, output_stream=output)
    monkeypatch.setattr("argcomplete.autocomplete", finder)
    given = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "|", "COMP_LINE": line}
    for name, value in (given | {"COMP_POINT": str(len(line))}).items():
        monkeypatch.setenv(name, value)
    assert cli.run() == (0, "", "")
    return [each.strip() for each in output.getvalue().split("|")]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("wat", ["watch"]),
        ("watch deploy", ["deployments"]),
        ("watch deployments.", ["deployments.apps"]),
        ("watch po -o j", ["json"]),
        ("watch po -l a", [""]),
        ("watch po --context ma", ["main", "mars"]),
        ("watch po --context o", [""]),
        ("watch po -n ", ["default", "kube-system", "web"]),
        ("watch po --kubeconfig {folder}/con", ["{folder}/config"]),
    ],
)
def test_completion_suggests_resources_and_what_the_kubeconfig_contains(
    line: str,
    values: list[str],
    config: Path,
    cli: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(config))
    found = suggested(cli, line.format(folder=config.parent), monkeypatch)
    assert found == [each.format(folder=config.parent) for each in values]


@pytest.mark.parametrize("text", ["", "- a", "contexts: 3", "a: [", "\x00", "contexts: {a: b}"])
def test_a_file_that_is_not_a_kubeconfig_has_no_contexts(
    text: str, config: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(text)
    line = f"watch po --kubeconfig {config} --context "
    assert suggested(cli, line, monkeypatch) == [""]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, cli: CommandLine) -> None:
    code, out, err = cli.run("completion", shell)
    assert (code, err) == (0, "")
    assert "aioinformer" in out


def test_without_argcomplete_the_error_names_the_command_that_installs_it(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    monkeypatch.setitem(sys.modules, "argcomplete.shell_integration", None)
    assert cli.run("completion", "bash") == (
        2,
        "",
        "aioinformer: shell completion needs argcomplete, which is not installed: "
        "pip install 'aioinformer[cli]'\n",
    )
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    assert cli.run() == (1, "", "")


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

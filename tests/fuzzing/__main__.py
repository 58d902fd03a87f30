"""Run a coverage-guided fuzzer on one target: ``python -m tests.fuzzing watch --seconds 60``.

The fuzzer is libFuzzer by way of Atheris (``pip install --group fuzz``). An input that fails is
written to the corpus of the target, where the default run of the tests tries the input again.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

MEGABYTES = 1024
"""The memory of the process above which libFuzzer takes an input for a finding."""
SECONDS = 10
"""The time of one input above which libFuzzer takes the input for a finding."""
MAX_LENGTH = 4096
"""Bytes of an input. Longer ones find nothing more and are slow."""


def main() -> None:
    """Parse the command line and fuzz."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("target", help="watch, list, labels, fields, kubeconfig, discovery, status")
    parser.add_argument("--seconds", type=int, default=60, help="the time to fuzz for")
    arguments = parser.parse_args()
    try:
        atheris: Any = importlib.import_module("atheris")
    except ModuleNotFoundError:
        sys.exit("Atheris is not installed: pip install --group fuzz")
    with atheris.instrument_imports(include=["aioinformer"]):
        targets = importlib.import_module("tests.fuzzing.targets")
    if arguments.target not in targets.TARGETS:
        sys.exit(
            f"there is no target {arguments.target!r}: choose from {', '.join(targets.TARGETS)}"
        )
    target = targets.TARGETS[arguments.target]
    findings: Path = targets.CORPUS / arguments.target
    findings.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        for number, seed in enumerate(target.seeds):
            (Path(folder) / str(number)).write_bytes(seed)
        words = Path(folder) / "tokens"
        words.write_text("".join(f'"{_escape(token)}"\n' for token in target.tokens))
        options = [
            f"-max_total_time={arguments.seconds}",
            f"-rss_limit_mb={MEGABYTES}",
            f"-timeout={SECONDS}",
            f"-max_len={MAX_LENGTH}",
            f"-dict={words}",
            f"-artifact_prefix={findings}/",
        ]
        atheris.Setup([sys.argv[0], *options, folder, str(findings)], target.check)
        atheris.Fuzz()


def _escape(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


if __name__ == "__main__":
    main()

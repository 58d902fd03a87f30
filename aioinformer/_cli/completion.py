"""Shell completion: ``aioinformer completion bash``, and the answers when a shell asks.

The work is argcomplete's, which reads the same parsers that ``arguments`` makes and is an extra
(``pip install '.[cli]'``): a shell starts this program for every Tab, and gets commands, options,
names of resources, contexts and namespaces. No cluster is asked: a Tab must not wait for one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from aioinformer import BUILT_IN
from aioinformer._cli.arguments import OUTPUT_FORMATS, CompletionCommandOptions
from aioinformer._cli.cluster_options import kubeconfig_paths, read_contexts

__all__ = ["complete", "run_completion", "suggest_values"]

EXIT_USAGE = 2

ARGCOMPLETE_MISSING = (
    "shell completion needs argcomplete, which is not installed: pip install argcomplete"
)


def run_completion(options: CompletionCommandOptions) -> int:
    """Print what a shell has to evaluate; its exit code."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        sys.stderr.write(f"aioinformer: {ARGCOMPLETE_MISSING}\n")
        return EXIT_USAGE
    sys.stdout.write(shellcode(["aioinformer"], shell=options.shell))
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell, and end the process."""
    try:
        from argcomplete import autocomplete
        from argcomplete.completers import BaseCompleter, FilesCompleter
    except ImportError:
        sys.exit(1)  # the shell takes that for no suggestions

    class Values(BaseCompleter):
        """What an argument may be."""

        def __call__(
            self,
            *,
            prefix: str,
            action: argparse.Action,
            parser: argparse.ArgumentParser,
            parsed_args: argparse.Namespace,
        ) -> Iterable[str]:
            if action.dest == "kubeconfig":
                return list(FilesCompleter()(prefix))
            return suggest_values(action.dest, prefix, parsed_args)

    autocomplete(parser, default_completer=Values())


def suggest_values(argument: str, prefix: str, parsed: argparse.Namespace) -> list[str]:
    """The values of an argument that begin with ``prefix``, as far as they can be known at once.

    Args:
        argument: its name, as ``namespace``.
        prefix: what was typed of it.
        parsed: what was typed before.
    """
    return sorted(
        {each for each in _candidate_values(argument, prefix, parsed) if each.startswith(prefix)}
    )


def _candidate_values(argument: str, prefix: str, parsed: argparse.Namespace) -> Iterable[str]:
    if argument == "resource":
        return [
            f"{each.plural}.{each.group}" if "." in prefix and each.group else each.plural
            for each in BUILT_IN
        ]
    if argument == "output":
        return OUTPUT_FORMATS
    if argument not in ("context", "namespace"):
        return ()
    contexts = read_contexts(kubeconfig_paths(getattr(parsed, "kubeconfig", None), os.environ))
    if argument == "context":
        return [each.name for each in contexts]
    return ["default", "kube-system", *(each.namespace for each in contexts if each.namespace)]

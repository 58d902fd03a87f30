"""Shell completion: ``aioinformer completion bash``, and the answers to a shell's requests.

argcomplete, an optional dependency (``pip install 'aioinformer[cli]'``), does the work with the
parsers of the command line. No request goes to a cluster, since a Tab must not wait for a server.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from aioinformer import BUILT_IN
from aioinformer._cli.argument_types import OUTPUT_FORMATS
from aioinformer._cli.cluster_options import kubeconfig_paths, read_contexts
from aioinformer._cli.options import CompletionCommandOptions

EXIT_USAGE = 2

ARGCOMPLETE_MISSING = (
    "shell completion needs argcomplete, which is not installed: pip install 'aioinformer[cli]'"
)


def run_completion(options: CompletionCommandOptions) -> int:
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        sys.stderr.write(f"aioinformer: {ARGCOMPLETE_MISSING}\n")
        return EXIT_USAGE
    sys.stdout.write(shellcode(["aioinformer"], shell=options.shell))
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    try:
        from argcomplete import autocomplete
        from argcomplete.completers import BaseCompleter, FilesCompleter
    except ImportError:
        sys.exit(1)  # for the shell, this code means no suggestions

    class Values(BaseCompleter):
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
    """Return the values of an argument that begin with ``prefix``, without asking a cluster."""
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

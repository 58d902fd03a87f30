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
from aioinformer._cli.arguments import FORMS, CompletionOptions
from aioinformer._cli.cluster_options import contexts_in, kubeconfig_paths

__all__ = ["complete", "run_completion", "suggestions"]

UNUSABLE = 2

MISSING = "shell completion needs argcomplete, which is not installed: pip install argcomplete"


def run_completion(options: CompletionOptions) -> int:
    """Print what a shell has to evaluate; its exit code."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        sys.stderr.write(f"aioinformer: {MISSING}\n")
        return UNUSABLE
    sys.stdout.write(shellcode(["aioinformer"], shell=options.program))
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
            return suggestions(action.dest, prefix, parsed_args)

    autocomplete(parser, default_completer=Values())


def suggestions(argument: str, prefix: str, found: argparse.Namespace) -> list[str]:
    """The values of an argument that begin with ``prefix``, as far as they can be known at once.

    Args:
        argument: its name, as ``namespace``.
        prefix: what was typed of it.
        found: what was typed before.
    """
    return sorted({each for each in _values(argument, prefix, found) if each.startswith(prefix)})


def _values(argument: str, prefix: str, found: argparse.Namespace) -> Iterable[str]:
    if argument == "resource":
        return [
            f"{each.plural}.{each.group}" if "." in prefix and each.group else each.plural
            for each in BUILT_IN
        ]
    if argument == "output":
        return FORMS
    if argument not in ("context", "namespace"):
        return ()
    contexts = contexts_in(kubeconfig_paths(getattr(found, "kubeconfig", None), os.environ))
    if argument == "context":
        return [each.name for each in contexts]
    return ["default", "kube-system", *(each.namespace for each in contexts if each.namespace)]

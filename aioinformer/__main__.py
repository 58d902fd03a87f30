"""The entry point of the command line: ``demo``, ``serve``, ``watch``, ``wait``, ``health``...

``main`` parses the arguments and runs the command. A command is imported when the command runs, so
that ``--help`` loads no HTTP library.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from aioinformer._cli.command_line import help_text, parse_arguments
from aioinformer._cli.options import (
    ClusterOptions,
    CommandOptions,
    CompletionCommandOptions,
    DemoCommandOptions,
    HealthCommandOptions,
    RunningCommandOptions,
    ServeCommandOptions,
    ShardsCommandOptions,
    WaitCommandOptions,
)

if TYPE_CHECKING:
    from aioinformer._cli.terminal.command_process import Command
    from aioinformer._cli.terminal.output import Colour

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command to its end, and return its exit code, which ``--help`` explains.

    Args:
        argv: the arguments; ``sys.argv`` by default.

    Raises:
        SystemExit: the arguments are wrong, or ask for help or the version.
    """
    completing = "_ARGCOMPLETE" in os.environ  # a shell asks for completions
    options = parse_arguments(argv, complete=_complete if completing else None)
    if options is None:
        sys.stderr.write(help_text())  # a missing command is reported like other wrong arguments
        return 2
    try:
        return _run(options)
    except KeyboardInterrupt:  # during the imports; later, run_command handles the signals
        return 130


def _complete(parser: argparse.ArgumentParser) -> None:
    from aioinformer._cli.completion import complete

    complete(parser)


def _run(options: CommandOptions) -> int:
    if isinstance(options, CompletionCommandOptions):
        from aioinformer._cli.completion import run_completion

        return run_completion(options)
    from aioinformer._cli.terminal import command_process as process

    colour: Colour = options.colour if isinstance(options, ClusterOptions) else "auto"
    return process.run_command(_import_command(options), verbose=options.verbose, colour=colour)


def _import_command(options: RunningCommandOptions) -> Command:
    """Import the command with these options, and return it."""
    if isinstance(options, DemoCommandOptions):
        from aioinformer._cli.demo.command import run_demo

        return partial(run_demo, options)
    if isinstance(options, ServeCommandOptions):
        from aioinformer._cli.serve.command import run_serve

        return partial(run_serve, options)
    if isinstance(options, HealthCommandOptions):
        from aioinformer._cli.health.command import run_health

        return partial(run_health, options)
    if isinstance(options, ShardsCommandOptions):
        from aioinformer._cli.shards.command import run_shards

        return partial(run_shards, options)
    if isinstance(options, WaitCommandOptions):
        from aioinformer._cli.wait.command import run_wait

        return partial(run_wait, options)
    from aioinformer._cli.watch.command import run_watch

    return partial(run_watch, options)


if __name__ == "__main__":
    sys.exit(main())

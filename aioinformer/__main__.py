"""The entry point of the command line: ``demo``, ``serve``, ``watch``, ``wait``, ``health``...

``main`` parses the arguments and runs the command. A command is imported when the command runs, so
that ``--help`` loads no HTTP library.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from aioinformer._cli.arguments import help_text, parse_arguments
from aioinformer._cli.options import (
    CommandOptions,
    CompletionCommandOptions,
    DemoCommandOptions,
    HealthCommandOptions,
    ServeCommandOptions,
    ShardsCommandOptions,
    WaitCommandOptions,
)

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
    from aioinformer._cli.terminal import process

    if isinstance(options, DemoCommandOptions):
        from aioinformer._cli.demo.command import run_demo

        return process.run_command(
            lambda terminal: run_demo(options, terminal), verbose=options.verbose
        )
    if isinstance(options, ServeCommandOptions):
        from aioinformer._cli.serve.command import run_serve

        serve = options
        return process.run_command(
            lambda terminal: run_serve(serve, terminal), verbose=options.verbose
        )
    if isinstance(options, HealthCommandOptions):
        from aioinformer._cli.health.command import run_health

        health = options
        return process.run_command(
            lambda terminal: run_health(health, terminal),
            verbose=options.verbose,
            colour=options.colour,
        )
    if isinstance(options, ShardsCommandOptions):
        from aioinformer._cli.shards.command import run_shards

        shards = options
        return process.run_command(
            lambda terminal: run_shards(shards, terminal),
            verbose=options.verbose,
            colour=options.colour,
        )
    if isinstance(options, WaitCommandOptions):
        from aioinformer._cli.wait.command import run_wait

        wait = options
        return process.run_command(
            lambda terminal: run_wait(wait, terminal),
            verbose=options.verbose,
            colour=options.colour,
        )
    from aioinformer._cli.watch.command import run_watch

    return process.run_command(
        lambda terminal: run_watch(options, terminal),
        verbose=options.verbose,
        colour=options.colour,
    )


if __name__ == "__main__":
    sys.exit(main())

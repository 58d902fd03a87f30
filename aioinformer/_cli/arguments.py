"""The command line as it is typed: argv in, options out.

Nothing here imports a command, so that ``--help`` and mistakes answer at once. What the
options mean is the commands' business.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

__all__ = ["DemoOptions", "Options", "WatchOptions", "help_text", "parse"]

EXIT_CODES = """\
exit codes:
  0             done
  1             the server could not be asked; demo: the cache differs from it
  2             not possible as asked: arguments, cluster, selector, resource
  130, 143      interrupted (SIGINT), terminated (SIGTERM)
  141           nobody reads the output any more
"""

DEMO = "show an informer at work against an API server in this process; needs no cluster"
WATCH = "print what there is of a resource in a cluster, then each change as it comes"

Output: TypeAlias = Literal["table", "json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """``aioinformer demo``."""

    seconds: float
    """How long; 0 for until interrupted."""
    objects: int
    """About how many pods there are."""
    seed: int
    """Decides what happens to them."""
    verbose: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """``aioinformer watch``."""

    resource: str
    namespace: str = ""
    """Empty for the one that the kubeconfig's context names, else ``default``."""
    everywhere: bool = False
    """All namespaces."""
    labels: str = ""
    fields: str = ""
    output: Output = "table"
    kubeconfig: Path | None = None
    context: str | None = None
    verbose: bool = False


Options: TypeAlias = DemoOptions | WatchOptions


def parse(argv: Sequence[str] | None) -> Options | None:
    """The options in ``argv``, or in ``sys.argv``; ``None`` if no command was given.

    Raises:
        SystemExit: the arguments are wrong, or ask for help or the version.
    """
    found = _parser().parse_args(argv)
    if found.command == "demo":
        return DemoOptions(
            seconds=found.seconds, objects=found.objects, seed=found.seed, verbose=found.verbose
        )
    if found.command == "watch":
        return WatchOptions(
            resource=found.resource,
            namespace=found.namespace or "",
            everywhere=found.all_namespaces,
            labels=found.selector,
            fields=found.field_selector,
            output=cast("Output", found.output),
            kubeconfig=found.kubeconfig,
            context=found.context,
            verbose=found.verbose,
        )
    return None


def help_text() -> str:
    """What ``--help`` prints."""
    return _parser().format_help()


# -- the parsers -------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aioinformer",
        description="Kubernetes informers for asyncio, from the command line.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    _add_verbose(parser, default=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, said, add in (("demo", DEMO, _add_demo), ("watch", WATCH, _add_watch)):
        command = commands.add_parser(name, help=said, description=said, allow_abbrev=False)
        add(command)
        _add_verbose(command, default=argparse.SUPPRESS)
    return parser


def _add_verbose(parser: argparse.ArgumentParser, *, default: bool | str) -> None:
    parser.add_argument(
        "-v", "--verbose", action="store_true", default=default, help="log everything to stderr"
    )


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument(
        "--seconds",
        type=_duration,
        default=30.0,
        metavar="N",
        help="how long; 0 for until interrupted (default: 30)",
    )
    demo.add_argument(
        "--objects",
        type=_count,
        default=400,
        metavar="N",
        help="about how many pods (default: 400)",
    )
    demo.add_argument(
        "--seed", type=int, default=0, metavar="N", help="decides what happens to them (default: 0)"
    )


def _add_watch(watch: argparse.ArgumentParser) -> None:
    watch.add_argument(
        "resource",
        metavar="RESOURCE",
        help="plural, singular, short name or kind, alone or with .group or .version.group",
    )
    scope = watch.add_mutually_exclusive_group()
    scope.add_argument(
        "-n",
        "--namespace",
        type=_text,
        metavar="NS",
        help="the namespace; without it the context's, else `default`",
    )
    scope.add_argument("-A", "--all-namespaces", action="store_true", help="every namespace")
    watch.add_argument(
        "-l", "--selector", default="", metavar="SELECTOR", help="only what these labels select"
    )
    watch.add_argument(
        "--field-selector", default="", metavar="F", help="only what these fields select"
    )
    watch.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: %(default)s"
    )
    watch.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="default: $KUBECONFIG, else ~/.kube/config, else what a pod finds mounted",
    )
    watch.add_argument(
        "--context", type=_text, metavar="C", help="a context in it (default: its current one)"
    )


# -- their values ------------------------------------------------------------------------------


def _duration(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be seconds, or 0, not {text}")
    return seconds


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return count


def _text(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


# argparse names a function in "invalid float value: 'x'".
_duration.__name__ = "number"
_count.__name__ = "number"


class _Version(argparse.Action):
    """Prints the version; looked up only when asked for, since that reads the disk."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("aioinformer")
        except PackageNotFoundError:
            found = "(run from its source, not installed)"
        sys.stdout.write(f"aioinformer {found}\n")
        parser.exit()

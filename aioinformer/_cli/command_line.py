"""The parser of the command line: ``argv`` in, one frozen options object per command out.

No command is imported here, so that ``--help`` and errors in the arguments answer at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

from aioinformer._cli.argument_types import (
    duration_seconds,
    feature_values,
    host_names,
    nonempty_text,
    nonnegative_count,
    nonnegative_seconds,
    output_format,
    port_number,
    positive_count,
    positive_seconds,
    resource_argument,
    wait_goal,
)
from aioinformer._cli.help_texts import (
    COMPLETION_EXAMPLES,
    COMPLETION_HELP,
    DEMO_HELP,
    HEALTH_EXAMPLES,
    HEALTH_HELP,
    HELP_EPILOG,
    SERVE_EXAMPLES,
    SERVE_HELP,
    SHARDS_EXAMPLES,
    SHARDS_HELP,
    WAIT_EXAMPLES,
    WAIT_HELP,
    WATCH_EXAMPLES,
    WATCH_HELP,
)
from aioinformer._cli.options import (
    DEFAULT_OBJECTS,
    DEFAULT_PORT,
    DEFAULT_RATE,
    CommandOptions,
    CompletionCommandOptions,
    DemoCommandOptions,
    HealthCommandOptions,
    ServeCommandOptions,
    ShardsCommandOptions,
    Shell,
    WaitCommandOptions,
    WatchCommandOptions,
)
from aioinformer._cli.terminal.output import Colour


def parse_arguments(
    argv: Sequence[str] | None, complete: Callable[[argparse.ArgumentParser], None] | None = None
) -> CommandOptions | None:
    """Return the options in ``argv``, or in ``sys.argv``; ``None`` if no command was given.

    ``complete`` answers a shell that asks for completions, before the parser parses.
    """
    argv = sys.argv[1:] if argv is None else argv
    parser = _build_parser(argv)
    if complete is not None:
        complete(parser)
    found, unknown = parser.parse_known_args(argv)
    if unknown:
        found.report_error(f"unrecognized arguments: {' '.join(unknown)}")
    make: Callable[[argparse.Namespace], CommandOptions] | None = _OPTION_BUILDERS.get(
        found.command
    )
    return make(found) if make else None


def help_text() -> str:
    return _build_parser().format_help()


# -- the options -------------------------------------------------------------------------------


def _demo_options(parsed: argparse.Namespace) -> DemoCommandOptions:
    return DemoCommandOptions(
        seconds=parsed.seconds, objects=parsed.objects, seed=parsed.seed, verbose=parsed.verbose
    )


def _serve_options(parsed: argparse.Namespace) -> ServeCommandOptions:
    objects = parsed.objects
    if objects is None:
        objects = 0 if parsed.load else DEFAULT_OBJECTS
    return ServeCommandOptions(
        port=parsed.port,
        objects=objects,
        rate=parsed.rate,
        seed=parsed.seed,
        kubeconfig=parsed.kubeconfig,
        load=tuple(parsed.load),
        features=parsed.features,
        token=parsed.token,
        accept_hosts=parsed.accept_hosts,
        verbose=parsed.verbose,
    )


def _watch_options(parsed: argparse.Namespace) -> WatchCommandOptions:
    resource, _, name = parsed.resource.partition("/")
    if name and parsed.name:
        parsed.report_error(f"name one object, not {name!r} and {parsed.name!r}")
    return WatchCommandOptions(
        resource=resource,
        name=name or parsed.name or "",
        labels=parsed.selector,
        fields=parsed.field_selector,
        output=parsed.output,
        events=parsed.events,
        **_cluster_options(parsed),
    )


def _wait_options(parsed: argparse.Namespace) -> WaitCommandOptions:
    resource, _, name = parsed.resource.partition("/")
    if bool(name) == bool(parsed.name):
        parsed.report_error("name one object, as RESOURCE/NAME or RESOURCE NAME")
    _check_one_namespace(parsed, "an object")
    return WaitCommandOptions(
        resource=resource,
        name=name or parsed.name,
        goal=parsed.goal,
        timeout=parsed.timeout,
        **_cluster_options(parsed),
    )


def _health_options(parsed: argparse.Namespace) -> HealthCommandOptions:
    return HealthCommandOptions(
        resources=tuple(parsed.resource),
        timeout=parsed.timeout,
        output=parsed.output,
        **_cluster_options(parsed),
    )


def _shards_options(parsed: argparse.Namespace) -> ShardsCommandOptions:
    _check_one_namespace(parsed, "a group")
    return ShardsCommandOptions(
        group=parsed.group, timeout=parsed.timeout, output=parsed.output, **_cluster_options(parsed)
    )


def _check_one_namespace(parsed: argparse.Namespace, what: str) -> None:
    """Reject ``--all-namespaces``, which a user of the other commands may try."""
    if parsed.all_namespaces:
        parsed.report_error(f"{what} is in one namespace: use --namespace")


def _completion_options(parsed: argparse.Namespace) -> CompletionCommandOptions:
    return CompletionCommandOptions(shell=cast("Shell", parsed.shell))


def _cluster_options(parsed: argparse.Namespace) -> dict[str, Any]:
    if parsed.server and (parsed.kubeconfig or parsed.context):
        parsed.report_error("--server takes the place of --kubeconfig and --context")
    return {
        "namespace": parsed.namespace or "",
        "everywhere": parsed.all_namespaces,
        "kubeconfig": parsed.kubeconfig,
        "context": parsed.context,
        "server": parsed.server,
        "colour": parsed.color,
        "verbose": parsed.verbose,
    }


_OPTION_BUILDERS: dict[str, Callable[[argparse.Namespace], CommandOptions]] = {
    "demo": _demo_options,
    "serve": _serve_options,
    "watch": _watch_options,
    "wait": _wait_options,
    "health": _health_options,
    "shards": _shards_options,
    "completion": _completion_options,
}


# -- the parsers -------------------------------------------------------------------------------


class _SuggestingParser(argparse.ArgumentParser):
    """A parser whose errors suggest the option that a misspelt one was meant to be."""

    given: Sequence[str] = ()
    """All arguments of the command line."""

    def error(self, message: str) -> NoReturn:
        names = [each.partition("=")[0] for each in self.given if each.startswith("--")]
        meant = dict.fromkeys(filter(None, map(self._similar_option, names)))
        hint = f"; did you mean {' and '.join(meant)}?" if meant else ""
        super().error(message + hint)

    def _similar_option(self, name: str) -> str | None:
        """Return the option that an unknown one resembles, or begins."""
        from difflib import get_close_matches  # rarely needed

        if name in self._option_string_actions or name == "--":
            return None
        known = [
            each
            for each, action in self._option_string_actions.items()
            if each.startswith("--") and action.help != argparse.SUPPRESS
        ]
        begun = [each for each in known if each.startswith(name)]
        return next(iter(begun or get_close_matches(name, known, n=1)), None)


def _build_parser(given: Sequence[str] = ()) -> argparse.ArgumentParser:
    parser = _SuggestingParser(
        prog="aioinformer",
        description="Kubernetes informers for asyncio, from the command line.",
        epilog=HELP_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_VersionAction, help="print the version and exit")
    _add_verbose(parser, default=False)
    parser.given = given
    parser.set_defaults(report_error=parser.error)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary, examples, add in (
        ("demo", DEMO_HELP, "", _add_demo),
        ("serve", SERVE_HELP, SERVE_EXAMPLES, _add_serve),
        ("watch", WATCH_HELP, WATCH_EXAMPLES, _add_watch),
        ("wait", WAIT_HELP, WAIT_EXAMPLES, _add_wait),
        ("health", HEALTH_HELP, HEALTH_EXAMPLES, _add_health),
        ("shards", SHARDS_HELP, SHARDS_EXAMPLES, _add_shards),
        ("completion", COMPLETION_HELP, COMPLETION_EXAMPLES, _add_completion),
    ):
        command = commands.add_parser(
            name,
            help=summary,
            description=summary,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.given = given
        command.set_defaults(report_error=command.error)
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
        type=nonnegative_seconds,
        default=30.0,
        metavar="N",
        help="seconds to run; 0 for until interrupted (default: 30)",
    )
    demo.add_argument(
        "--objects",
        type=positive_count,
        default=400,
        metavar="N",
        help="approximate number of pods (default: 400)",
    )
    demo.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the random changes (default: 0)"
    )


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument(
        "--port",
        type=port_number,
        default=DEFAULT_PORT,
        metavar="N",
        help=f"port on 127.0.0.1; 0 for a free one (default: {DEFAULT_PORT})",
    )
    serve.add_argument(
        "--objects",
        type=nonnegative_count,
        metavar="N",
        help=f"approximate number of pods that change (default: {DEFAULT_OBJECTS}; 0 with --load)",
    )
    serve.add_argument(
        "--rate",
        type=nonnegative_seconds,
        default=DEFAULT_RATE,
        metavar="R",
        help=f"changes of these pods a second (default: {DEFAULT_RATE:g})",
    )
    serve.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the random changes (default: 0)"
    )
    serve.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig file to write (default: a temporary file)",
    )
    serve.add_argument(
        "--load",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="YAML or JSON manifests to create, or a folder of them; can be repeated",
    )
    serve.add_argument(
        "--features",
        type=feature_values,
        default=(),
        metavar="NAME=VALUE,...",
        help="the imitated server: minor=36, watch_list=true, sharding=false",
    )
    serve.add_argument(
        "--token",
        action="store_true",
        help="require a random token, which the kubeconfig holds (kubectl sends none over http)",
    )
    serve.add_argument(
        "--accept-hosts",
        type=host_names,
        default=(),
        metavar="NAME,...",
        help="hosts besides localhost in URLs of the server, and of web pages that use it",
    )


def _add_watch(watch: argparse.ArgumentParser) -> None:
    watch.add_argument(
        "resource",
        type=resource_argument,
        metavar="RESOURCE",
        help="plural, singular, short name or kind, alone or with .group or .version.group",
    )
    watch.add_argument(
        "name",
        type=nonempty_text,
        nargs="?",
        metavar="NAME",
        help="one object, existing or not yet; RESOURCE/NAME is the same (default: all)",
    )
    watch.add_argument(
        "-l", "--selector", default="", metavar="SELECTOR", help="only objects with these labels"
    )
    watch.add_argument(
        "--field-selector", default="", metavar="F", help="only objects with these fields"
    )
    watch.add_argument(
        "-o",
        "--output",
        type=output_format,
        default="table",
        metavar="FORM",
        help="table (as kubectl get prints it), wide, json, yaml, name or fields=PATH,... "
        "(default: table)",
    )
    watch.add_argument(
        "--events",
        action="store_true",
        help="show the objects' Kubernetes Events between the changes",
    )
    _add_cluster(watch)


def _add_wait(wait: argparse.ArgumentParser) -> None:
    wait.add_argument(
        "resource",
        type=resource_argument,
        metavar="RESOURCE",
        help="as for watch; RESOURCE/NAME names the object",
    )
    wait.add_argument(
        "name", type=nonempty_text, nargs="?", metavar="NAME", help="the object's name"
    )
    wait.add_argument(
        "--for",
        dest="goal",
        type=wait_goal,
        required=True,
        metavar="STATE",
        help="rollout, create, delete, job-complete or condition=TYPE[=STATUS]",
    )
    wait.add_argument(
        "--timeout",
        type=duration_seconds,
        default=30.0,
        metavar="D",
        help="seconds, or a duration such as 90s, 2m or 1h30m (default: 30s)",
    )
    _add_cluster(wait, one_namespace=True)


def _add_health(health: argparse.ArgumentParser) -> None:
    health.add_argument(
        "resource",
        nargs="*",
        metavar="RESOURCE",
        help="resources to check, as for watch (default: a common selection)",
    )
    health.add_argument(
        "--timeout",
        type=positive_seconds,
        default=10.0,
        metavar="N",
        help="seconds for the requests, and for the initial list of each (default: 10)",
    )
    health.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: table"
    )
    _add_cluster(health)


def _add_shards(shards: argparse.ArgumentParser) -> None:
    shards.add_argument("group", type=nonempty_text, metavar="NAME", help="the group's name")
    shards.add_argument(
        "--timeout",
        type=positive_seconds,
        default=10.0,
        metavar="N",
        help="seconds for the request (default: 10)",
    )
    shards.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: table"
    )
    _add_cluster(shards, one_namespace=True)


def _add_completion(completion: argparse.ArgumentParser) -> None:
    completion.add_argument("shell", choices=get_args(Shell), help="the shell")


def _add_cluster(command: argparse.ArgumentParser, *, one_namespace: bool = False) -> None:
    scope = command.add_mutually_exclusive_group()
    scope.add_argument(
        "-n",
        "--namespace",
        type=nonempty_text,
        metavar="NS",
        help="the namespace (default: the context's, else `default`)",
    )
    # A command of one namespace rejects -A with a reason, and its help does not offer -A.
    help_of_all = argparse.SUPPRESS if one_namespace else "every namespace"
    scope.add_argument("-A", "--all-namespaces", action="store_true", help=help_of_all)
    command.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="default: $KUBECONFIG, else ~/.kube/config, else the pod's service account",
    )
    command.add_argument(
        "--context",
        type=nonempty_text,
        metavar="C",
        help="a context of the kubeconfig (default: the current one)",
    )
    command.add_argument(
        "-s",
        "--server",
        type=nonempty_text,
        metavar="URL",
        help="a server without credentials, such as that of aioinformer serve",
    )
    command.add_argument(
        "--color",
        choices=get_args(Colour),
        default="auto",
        help="auto: in a terminal, unless $NO_COLOR is set (default: auto)",
    )


class _VersionAction(argparse.Action):
    """Prints the version, which is read on request only, because that reads files."""

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

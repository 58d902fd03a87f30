"""The arguments: what is rejected, with which message, and what help says."""

from __future__ import annotations

import re

import pytest

from tests.cli.commands import CommandLine
from tests.cli.processes import imported_modules

EXAMPLES = "90s, 2m or 1h30m, not "


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ("watch", "the following arguments are required: RESOURCE"),
        ("watch po,svc", "argument RESOURCE: one resource at a time, as kubectl watches: not "),
        ("watch pods/", "argument RESOURCE: must be RESOURCE or RESOURCE/NAME, not 'pods/'"),
        ("watch pods/a b", "name one object, not 'a' and 'b'"),
        ("watch pods -n a -A", "argument -A/--all-namespaces: not allowed with argument -n"),
        (
            "watch pods -o xml",
            "argument -o/--output: must be table, wide, json, yaml, name or fields=PATH,..., "
            "not 'xml'",
        ),
        ("watch pods --color no", "argument --color: invalid choice: 'no'"),
        ("health --timeout 0", "argument --timeout: must be seconds, not 0"),
        ("health -o wide", "argument -o/--output: invalid choice: 'wide'"),
        ("shards", "the following arguments are required: NAME"),
        ("shards shop -A", "a group is in one namespace: use --namespace"),
        ("wait deploy/web --for delete -A", "an object is in one namespace: use --namespace"),
        ("completion", "the following arguments are required: shell"),
        ("completion csh", "argument shell: invalid choice: 'csh'"),
        ("watch pods --field f", "unrecognized arguments: --field"),
        ("demo --seconds -1", "argument --seconds: must be seconds, or 0, not -1"),
        ("demo --seconds nan", "argument --seconds: must be seconds, or 0, not nan"),
        ("demo --objects 0", "argument --objects: must be at least 1, not 0"),
        ("demo --objects x", "argument --objects: invalid number value: 'x'"),
        ("serve --port 65536", "argument --port: must be from 0 to 65535, not 65536"),
        ("serve --objects -1", "argument --objects: must be 0 or more, not -1"),
        (
            "serve --features minor",
            "argument --features: must be NAME=true, NAME=false or NAME=NUMBER, not 'minor'",
        ),
        (
            "watch pods -s http://a --context b",
            "--server takes the place of --kubeconfig and --context",
        ),
        ("dance", "invalid choice: 'dance'"),
        ("watch /a", "argument RESOURCE: must be RESOURCE or RESOURCE/NAME, not '/a'"),
        ("watch a/b/c", "argument RESOURCE: must be RESOURCE or RESOURCE/NAME, not 'a/b/c'"),
        ("watch pods -o fields", "argument -o/--output: must be table, "),
        ("watch pods -n=", "argument -n/--namespace: must not be empty"),
        ("health --timeout inf", "argument --timeout: must be seconds, not inf"),
        ("demo --seconds inf", "argument --seconds: must be seconds, or 0, not inf"),
        ("serve --port -1", "argument --port: must be from 0 to 65535, not -1"),
        ("serve --port http", "argument --port: invalid number value: 'http'"),
        ("serve --features a=-1", "must be NAME=true, NAME=false or NAME=NUMBER, not 'a=-1'"),
        ("wait po/a", "required: --for"),
        ("wait po --for delete", "name one object"),
        ("wait po/a b --for delete", "name one object"),
        *(
            (
                f"wait po/a --for delete --timeout={text}",
                f"must be a duration such as {EXAMPLES}{text}",
            )
            for text in ("0s", "-1s", "s", "1d", "1h30", "inf", "1e400", "1x")
        ),
        *(
            (f"wait po/a --for {text}", f"or condition=Ready=False, not '{text}'")
            for text in ("ready", "condition=", "condition=A=", "condition==A", "condition=a=b=c")
        ),
    ],
)
def test_mistakes_exit_with_code_2_and_a_message(
    argv: str, complaint: str, cli: CommandLine
) -> None:
    code, out, err = cli.run(*argv.split())

    assert (code, out) == (2, "")
    assert complaint in err


@pytest.mark.parametrize(
    ("argv", "command", "hint"),
    [
        ("watch pods --namspace web", "watch", "--namespace?"),
        ("watch pods --namspace=web", "watch", "--namespace?"),
        ("watch pods --field f", "watch", "--field-selector?"),
        ("watch pods --all", "watch", "--all-namespaces?"),
        ("wait deploy/web --fro rollout", "wait", "--for?"),
        ("wait deploy/web --for rollout --timeuot 5s", "wait", "--timeout?"),
        ("serve --objcets 5 --rat 3", "serve", "--objects and --rate?"),
        ("health --contxt a", "health", "--context?"),
        ("demo --second 3", "demo", "--seconds?"),
    ],
)
def test_a_misspelt_option_is_suggested_with_the_usage_of_its_command(
    argv: str, command: str, hint: str, cli: CommandLine
) -> None:
    code, _, err = cli.run(*argv.split())

    assert code == 2
    assert err.startswith(f"usage: aioinformer {command} ")
    assert err.endswith(f"; did you mean {hint}\n")


@pytest.mark.parametrize(
    "argv",
    [
        "watch pods --zzz",
        "watch pods --color no",
        "watch pods a b",
        "wait deploy/web --for delete --all",
    ],
)
def test_other_mistakes_suggest_no_option(argv: str, cli: CommandLine) -> None:
    code, _, err = cli.run(*argv.split())

    assert code == 2
    assert "did you mean" not in err


@pytest.mark.parametrize(
    "argv",
    [
        "watch pods",
        "watch po/a -n web -l app=shop --field-selector metadata.name=a --events --color never",
        *(f"watch pods -A -o {form}" for form in ("wide", "json", "yaml", "name", "fields=spec")),
        *(
            f"wait po a --for={goal} --timeout={text}"
            for goal, text in (
                ("delete", "90"),
                ("create", "1.5s"),
                ("rollout", "2m"),
                ("job-complete", "1h30m"),
                ("condition=Ready", ".5h"),
                ("condition=Ready=False", "250ms"),
            )
        ),
        "health po wd -A --timeout 3 -o json -v",
    ],
)
def test_what_is_right_is_not_rejected(argv: str, cli: CommandLine) -> None:
    """Without a cluster, which is what is missing then."""
    code, out, err = cli.run(*argv.split())

    assert (code, out) == (2, "")
    assert err.startswith(
        ("aioinformer: no cluster is configured: ", "aioinformer: there is no context ")
    )


# -- help --------------------------------------------------------------------------------------


def help_of(cli: CommandLine, *argv: str) -> str:
    code, out, _ = cli.run(*argv, "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    return out


@pytest.mark.parametrize(
    ("command", "offered"), [("watch", True), ("health", True), ("wait", False), ("shards", False)]
)
def test_a_command_of_one_namespace_does_not_offer_all_of_them(
    command: str, offered: bool, cli: CommandLine
) -> None:
    text = help_of(cli, command)

    assert ("--all-namespaces" in text) is offered
    assert (" -A" in text.partition("examples:")[0]) is offered
    assert "--namespace NS" in text


@pytest.mark.parametrize(
    ("command", "defaults"),
    [("demo", ("30", "400", "0")), ("serve", ("8001", "100; 0 with --load", "10", "0"))],
)
def test_every_default_is_shown_in_the_same_way(
    command: str, defaults: tuple[str, ...], cli: CommandLine
) -> None:
    text = " ".join(help_of(cli, command).split())
    for default in defaults:
        assert f"(default: {default})" in text


@pytest.mark.parametrize("command", ["serve", "watch", "wait", "health", "shards", "completion"])
def test_the_help_of_a_command_contains_examples(command: str, cli: CommandLine) -> None:
    assert help_of(cli, command).rpartition("options:")[2].count(f"aioinformer {command}") >= 3


def test_the_help_explains_the_exit_codes(cli: CommandLine) -> None:
    assert "interrupted (SIGINT)" in help_of(cli)


def test_no_command_is_a_mistake_that_prints_the_help(cli: CommandLine) -> None:
    code, out, err = cli.run()

    assert (code, out, err) == (2, "", help_of(cli))


def test_the_version_is_printed(cli: CommandLine) -> None:
    code, out, _ = cli.run("--version")

    assert code == 0
    assert re.fullmatch(r"aioinformer (\d+\.\d+.*|\(run from its source, not installed\))\n", out)


def test_help_needs_no_http_library() -> None:
    loaded = imported_modules("aioinformer.__main__")

    assert "aioinformer.__main__" in loaded
    assert not {"aiohttp", "kubernetes_asyncio"} & loaded

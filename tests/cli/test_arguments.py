"""argv in, options out."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioinformer._cli.command_line import help_text, parse_arguments
from aioinformer._cli.options import (
    CompletionCommandOptions,
    DemoCommandOptions,
    HealthCommandOptions,
    ServeCommandOptions,
    ShardsCommandOptions,
    WaitCommandOptions,
    WatchCommandOptions,
)


def test_no_command_means_no_options() -> None:
    assert parse_arguments([]) is None


def test_the_demo_runs_half_a_minute_with_four_hundred_pods() -> None:
    assert parse_arguments(["demo"]) == DemoCommandOptions(seconds=30, objects=400, seed=0)


def test_the_demo_takes_numbers() -> None:
    argv = ["demo", "--seconds", "1.5", "--objects", "9", "--seed", "3", "-v"]
    assert parse_arguments(argv) == DemoCommandOptions(seconds=1.5, objects=9, seed=3, verbose=True)


def test_a_watch_leaves_the_namespace_to_the_context() -> None:
    assert parse_arguments(["watch", "pods"]) == WatchCommandOptions(resource="pods", namespace="")


def test_all_namespaces_can_be_selected() -> None:
    assert parse_arguments(["watch", "po", "-A"]) == WatchCommandOptions(
        resource="po", everywhere=True
    )


def test_a_watch_takes_every_option() -> None:
    argv = "watch deploy -n web -l app=shop --field-selector metadata.name=a -o json --events"
    more = "--kubeconfig ~/other --context test --color never --verbose"
    assert parse_arguments([*argv.split(), *more.split()]) == WatchCommandOptions(
        resource="deploy",
        namespace="web",
        labels="app=shop",
        fields="metadata.name=a",
        output="json",
        events=True,
        colour="never",
        kubeconfig=Path("~/other"),
        context="test",
        verbose=True,
    )


def test_a_server_takes_the_place_of_a_kubeconfig() -> None:
    argv = ["watch", "pods", "-s", "http://127.0.0.1:8001"]
    assert parse_arguments(argv) == WatchCommandOptions(
        resource="pods", server="http://127.0.0.1:8001"
    )


def test_serve_starts_with_a_hundred_pods_or_with_the_loaded_objects() -> None:
    assert parse_arguments(["serve"]) == ServeCommandOptions(port=8001, objects=100, rate=10)
    argv = "serve --load a.yaml --load b --port 0 --kubeconfig k --features minor=37,sharding=true"
    assert parse_arguments(argv.split()) == ServeCommandOptions(
        port=0,
        objects=0,
        kubeconfig=Path("k"),
        load=(Path("a.yaml"), Path("b")),
        features=(("minor", 37), ("sharding", True)),
    )


@pytest.mark.parametrize("argv", ["watch pod web-0", "watch pod/web-0"])
def test_a_watch_can_select_one_object_by_name(argv: str) -> None:
    assert parse_arguments(argv.split()) == WatchCommandOptions(resource="pod", name="web-0")


def test_verbose_may_stand_before_the_command() -> None:
    options = parse_arguments(["-v", "watch", "pods"])
    assert options == WatchCommandOptions(resource="pods", verbose=True)


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
    ],
)
def test_mistakes_exit_with_code_2_and_a_message(
    argv: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        parse_arguments(argv.split())

    assert ending.value.code == 2
    assert complaint in capsys.readouterr().err


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
    argv: str, command: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        parse_arguments(argv.split())

    said = capsys.readouterr().err
    assert ending.value.code == 2
    assert said.startswith(f"usage: aioinformer {command} ")
    assert said.endswith(f"; did you mean {hint}\n")


@pytest.mark.parametrize(
    "argv",
    [
        "watch pods --zzz",
        "watch pods --color no",
        "watch pods a b",
        "wait deploy/web --for delete --all",
    ],
)
def test_other_mistakes_suggest_no_option(argv: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(argv.split())

    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "offered"), [("watch", True), ("health", True), ("wait", False), ("shards", False)]
)
def test_a_command_of_one_namespace_does_not_offer_all_of_them(
    command: str, offered: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([command, "--help"])

    text = capsys.readouterr().out
    assert ("--all-namespaces" in text) is offered
    assert (" -A" in text.partition("examples:")[0]) is offered
    assert "--namespace NS" in text


def test_an_empty_namespace_is_no_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["watch", "pods", "-n", ""])

    assert "argument -n/--namespace: must not be empty" in capsys.readouterr().err


def test_every_default_of_the_demo_is_shown_in_the_same_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["demo", "--help"])

    help_of_demo = " ".join(capsys.readouterr().out.split())
    for default in (30, 400, 0):
        assert f"(default: {default})" in help_of_demo


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "name", "fields=spec.nodeName"])
def test_a_watch_has_six_output_formats(form: str) -> None:
    options = parse_arguments(["watch", "pods", "-o", form])

    assert isinstance(options, WatchCommandOptions)
    assert options.output == form


def test_health_checks_a_default_selection_of_resources() -> None:
    assert parse_arguments(["health"]) == HealthCommandOptions(resources=())
    assert parse_arguments(
        ["health", "po", "wd", "-A", "--timeout", "3", "-o", "json"]
    ) == HealthCommandOptions(resources=("po", "wd"), everywhere=True, timeout=3, output="json")


def test_shards_takes_a_group() -> None:
    assert parse_arguments(["shards", "shop", "-n", "web", "-o", "json"]) == ShardsCommandOptions(
        group="shop", namespace="web", output="json"
    )


def test_completion_takes_a_shell() -> None:
    options = parse_arguments(["completion", "zsh"])
    assert isinstance(options, CompletionCommandOptions)
    assert options.shell == "zsh"


@pytest.mark.parametrize("command", ["serve", "watch", "health", "shards", "completion"])
def test_the_help_of_a_command_contains_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([command, "--help"])
    text = capsys.readouterr().out

    assert text.rpartition("options:")[2].count(f"aioinformer {command}") >= 3
    assert max(map(len, text.splitlines())) <= 80


def test_the_help_fits_into_eighty_columns_and_explains_the_exit_codes() -> None:
    text = help_text()

    assert max(map(len, text.splitlines())) <= 80
    assert "interrupted (SIGINT)" in text


def test_the_default_timeout_of_wait_is_half_a_minute() -> None:
    assert parse_arguments(["wait", "deploy/web", "--for", "rollout"]) == WaitCommandOptions(
        resource="deploy", name="web", goal="rollout", timeout=30
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5s", 1.5), ("2m", 120), ("1h30m", 5400), ("250ms", 0.25)]
)
def test_a_duration_has_units(text: str, seconds: float) -> None:
    options = parse_arguments(["wait", "po", "a", "--for=delete", "--timeout", text])
    assert isinstance(options, WaitCommandOptions)
    assert options.timeout == seconds


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["po/a", "--for", "delete", "--timeout", "1x"], "must be a duration such as 90s"),
        (["po/a", "--for", "delete", "--timeout", "0s"], "must be a duration such as 90s"),
        (["po/a", "--for", "delete", "--timeout", "1m30"], "must be a duration such as 90s"),
        (["po/a", "--for", "ready"], "condition=TYPE[=STATUS], such as condition=Ready or"),
        (["po/a", "--for", "condition="], "not 'condition='"),
        (["po/a"], "required: --for"),
        (["po", "--for", "delete"], "name one object"),
        (["po/a", "b", "--for", "delete"], "name one object"),
    ],
)
def test_wrong_arguments_of_wait_exit_with_code_2_and_a_message(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        parse_arguments(["wait", *argv])
    assert raised.value.code == 2
    assert message in capsys.readouterr().err

"""argv in, options out."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioinformer._cli.arguments import DemoOptions, WatchOptions, help_text, parse


def test_no_command_means_no_options() -> None:
    assert parse([]) is None


def test_the_demo_runs_half_a_minute_with_four_hundred_pods() -> None:
    assert parse(["demo"]) == DemoOptions(seconds=30, objects=400, seed=0)


def test_the_demo_takes_numbers() -> None:
    argv = ["demo", "--seconds", "1.5", "--objects", "9", "--seed", "3", "-v"]
    assert parse(argv) == DemoOptions(seconds=1.5, objects=9, seed=3, verbose=True)


def test_a_watch_leaves_the_namespace_to_the_context() -> None:
    assert parse(["watch", "pods"]) == WatchOptions(resource="pods", namespace="")


def test_all_namespaces_can_be_asked_for() -> None:
    assert parse(["watch", "po", "-A"]) == WatchOptions(resource="po", everywhere=True)


def test_a_watch_takes_every_option() -> None:
    argv = "watch deploy -n web -l app=shop --field-selector metadata.name=a -o json"
    more = "--kubeconfig ~/other --context test --verbose"
    assert parse([*argv.split(), *more.split()]) == WatchOptions(
        resource="deploy",
        namespace="web",
        labels="app=shop",
        fields="metadata.name=a",
        output="json",
        kubeconfig=Path("~/other"),
        context="test",
        verbose=True,
    )


def test_verbose_may_stand_before_the_command() -> None:
    options = parse(["-v", "watch", "pods"])
    assert options is not None
    assert options.verbose


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        ("watch", "the following arguments are required: RESOURCE"),
        ("watch pods -n a -A", "argument -A/--all-namespaces: not allowed with argument -n"),
        ("watch pods -o yaml", "invalid choice: 'yaml'"),
        ("watch pods --field f", "unrecognized arguments: --field f"),
        ("demo --seconds -1", "argument --seconds: must be seconds, or 0, not -1"),
        ("demo --seconds nan", "argument --seconds: must be seconds, or 0, not nan"),
        ("demo --objects 0", "argument --objects: must be at least 1, not 0"),
        ("demo --objects x", "argument --objects: invalid number value: 'x'"),
        ("dance", "invalid choice: 'dance'"),
    ],
)
def test_mistakes_end_with_code_2_and_say_what_is_wrong(
    argv: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        parse(argv.split())

    assert ending.value.code == 2
    assert complaint in capsys.readouterr().err


def test_an_empty_namespace_is_no_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["watch", "pods", "-n", ""])

    assert "argument -n/--namespace: must not be empty" in capsys.readouterr().err


def test_every_default_of_the_demo_is_shown_in_the_same_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parse(["demo", "--help"])

    help_of_demo = " ".join(capsys.readouterr().out.split())
    for default in (30, 400, 0):
        assert f"(default: {default})" in help_of_demo


def test_the_help_fits_into_eighty_columns_and_explains_the_exit_codes() -> None:
    text = help_text()

    assert max(map(len, text.splitlines())) <= 80
    assert "interrupted (SIGINT)" in text

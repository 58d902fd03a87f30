"""The values of options: what is accepted, and what argparse reports of the rest."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer._cli.argument_types import (
    duration_seconds,
    feature_values,
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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("2m", 120), ("1h30m", 5400), ("1.5h", 5400), ("250ms", 0.25)],
)
def test_a_duration_is_written_as_in_kubectl(text: str, seconds: float) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "-1s", "s", "1d", "1h30", "30 s", "1m 2s", "inf", "1e400"]
)
def test_a_text_that_is_no_duration_is_rejected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be a duration such as 90s"):
        duration_seconds(text)


@pytest.mark.parametrize(
    ("parse", "accepted", "rejected"),
    [
        (nonnegative_seconds, ["0", "1.5"], ["-0.1", "inf", "nan"]),
        (positive_seconds, ["0.1"], ["0", "inf", "nan"]),
        (positive_count, ["1"], ["0", "-1"]),
        (nonnegative_count, ["0"], ["-1"]),
        (port_number, ["0", "65535"], ["-1", "65536"]),
        (nonempty_text, ["x"], [""]),
        (resource_argument, ["pods", "pods/a"], ["", "pods,nodes", "/a", "pods/", "a/b/c"]),
        (output_format, ["table", "json", "fields=spec"], ["yml", "fields", ""]),
        (
            wait_goal,
            ["rollout", "delete", "condition=Ready", "condition=Ready=False"],
            ["ready", "condition=", "condition=Ready=", "condition==True", "condition=a=b=c", ""],
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_the_limits_of_an_option(
    parse: Callable[[str], Any], accepted: list[str], rejected: list[str]
) -> None:
    for text in accepted:
        assert str(parse(text)) == text or parse(text) == float(text)
    for text in rejected:
        with pytest.raises(argparse.ArgumentTypeError):
            parse(text)


def test_features_are_truths_and_numbers() -> None:
    assert feature_values("a=true, b=false,c=17,") == (("a", True), ("b", False), ("c", 17))
    assert feature_values("") == ()
    for text in ("a", "a=", "a=yes", "a=-1"):
        with pytest.raises(argparse.ArgumentTypeError, match="must be NAME=true"):
            feature_values(text)


def test_argparse_calls_a_text_in_the_place_of_a_number_an_invalid_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=port_number)
    with pytest.raises(SystemExit):
        parser.parse_args(["--port", "http"])

    assert "invalid number value: 'http'" in capsys.readouterr().err

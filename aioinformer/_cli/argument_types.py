"""The values of options: functions that argparse calls with the text of an argument.

Each function returns the value, or raises ``ArgumentTypeError``, which argparse reports.
"""

from __future__ import annotations

import argparse

__all__ = [
    "OUTPUT_FORMATS",
    "feature_values",
    "nonempty_text",
    "nonnegative_count",
    "nonnegative_seconds",
    "output_format",
    "port_number",
    "positive_count",
    "positive_seconds",
    "resource_argument",
]

MAX_PORT = 65535

OUTPUT_FORMATS = ("table", "wide", "json", "yaml", "name", "fields=")
"""The values of ``watch -o``; paths follow the last one."""


def nonnegative_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be seconds, or 0, not {text}")
    return seconds


def positive_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be seconds, not {text}")
    return seconds


def positive_count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return count


def nonnegative_count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise argparse.ArgumentTypeError(f"must be 0 or more, not {text}")
    return count


def port_number(text: str) -> int:
    port = int(text)
    if not 0 <= port <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"must be from 0 to {MAX_PORT}, not {text}")
    return port


def feature_values(text: str) -> tuple[tuple[str, int | bool], ...]:
    """Return the names and values of ``name=value,...``, where a value is a number or a truth."""
    found: dict[str, int | bool] = {}
    for each in filter(None, text.split(",")):
        name, _, value = each.partition("=")
        if value in ("true", "false"):
            found[name.strip()] = value == "true"
        elif value.isdecimal():
            found[name.strip()] = int(value)
        else:
            raise argparse.ArgumentTypeError(
                f"must be NAME=true, NAME=false or NAME=NUMBER, not {each!r}"
            )
    return tuple(found.items())


def nonempty_text(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def resource_argument(text: str) -> str:
    if "," in text:
        raise argparse.ArgumentTypeError(
            f"one resource at a time, as kubectl watches: not {text!r}; start one watch for each"
        )
    if text.startswith("/") or text.endswith("/") or text.count("/") > 1:
        raise argparse.ArgumentTypeError(f"must be RESOURCE or RESOURCE/NAME, not {text!r}")
    return nonempty_text(text)


def output_format(text: str) -> str:
    *words, fields = OUTPUT_FORMATS
    if text not in words and not text.startswith(fields):
        raise argparse.ArgumentTypeError(
            f"must be {', '.join(words)} or {fields}PATH,..., not {text!r}"
        )
    return text


# argparse builds the message "invalid number value: 'x'" from the name of the function.
for _parse in (
    nonnegative_seconds,
    positive_seconds,
    positive_count,
    nonnegative_count,
    port_number,
):
    _parse.__name__ = "number"

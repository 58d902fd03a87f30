"""The values of options, or ``ArgumentTypeError``, which argparse reports."""

from __future__ import annotations

import argparse
import re

MAX_PORT = 65535

OUTPUT_FORMATS = ("table", "wide", "json", "yaml", "name", "fields=")
"""The values of ``watch -o``; paths follow the last one."""

WAIT_GOALS = ("rollout", "create", "delete", "job-complete", "condition=")
"""The values of ``wait --for``; the type of a condition, and its status if this is not True, follow
the last one."""

_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "": 1.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ms|h|m|s|)")
"""A number and a unit of Go's durations, as in ``--timeout 1h30m`` of kubectl."""


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


def duration_seconds(text: str) -> float:
    """Return the seconds of a duration such as ``90``, ``90s``, ``2m`` or ``1h30m``."""
    parts = _DURATION_PART.findall(text)
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    units = [unit for _, unit in parts]
    complete = "".join(number + unit for number, unit in parts) == text
    if not complete or not 0 < seconds < float("inf") or ("" in units and len(parts) > 1):
        raise argparse.ArgumentTypeError(f"must be a duration such as 90s, 2m or 1h30m, not {text}")
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


def host_names(text: str) -> tuple[str, ...]:
    return tuple(name for each in text.split(",") if (name := each.strip()))


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


def wait_goal(text: str) -> str:
    *words, condition = WAIT_GOALS
    if text in words or re.fullmatch(rf"{condition}[^=]+(=[^=]+)?", text):
        return text
    raise argparse.ArgumentTypeError(
        f"must be {', '.join(words)} or {condition}TYPE[=STATUS], such as condition=Ready or "
        f"condition=Ready=False, not {text!r}"
    )


# argparse builds the message "invalid number value: 'x'" from the name of the function.
for _parse in (
    nonnegative_seconds,
    positive_seconds,
    positive_count,
    nonnegative_count,
    port_number,
):
    _parse.__name__ = "number"

"""Paths into an object: ``spec.containers[0].image``, parsed and walked.

A path has dots between keys, ``[0]`` for an item of a list, and ``['app.kubernetes.io/name']`` for
a key with special characters, in single or double quotes: the common part of kubectl's JSONPath and
of field selectors. There are no wildcards, slices or filters: a path means one value.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from aioinformer.errors import InvalidPath

Step: TypeAlias = str | int
"""A key of a mapping, or the position of an item in a list."""
Steps: TypeAlias = tuple[Step, ...]

_KEY = re.compile(r"[^\s.\[\]'\"]+")
_BRACKET = re.compile(r"\[(?:(?P<index>[0-9]{1,9})|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")\]")


MAX_STEPS = 64
"""The longest path, far below the depth at which an object can't be decoded any more."""

_TYPE_NAMES = {"dict": "an object", "list": "a list", "str": "a string", "bool": "a boolean"}


class StepMismatch(Exception):
    """Raised by a strict ``walk`` at a value of another shape."""

    def __init__(self, steps: Steps, value: object) -> None:
        found = _TYPE_NAMES.get(type(value).__name__, "a number")
        super().__init__(f"{render_path(steps)} is {found}" if steps else f"it is {found}")


def parse_path(path: str) -> Steps:
    """Parse a path into its steps.

    Raises:
        InvalidPath: the path doesn't parse. The message marks the place.
    """
    steps: list[Step] = []
    position = 0
    while position < len(path) or not steps:
        if len(steps) == MAX_STEPS:
            raise _path_error(f"it has more than {MAX_STEPS} steps", path, position)
        bracket = _BRACKET.match(path, position)
        if bracket is not None:
            steps.append(_parse_bracket(bracket))
            position = bracket.end()
            continue
        if path.startswith("[", position):
            raise _path_error("expected a position or a quoted key in brackets", path, position)
        if steps:
            if not path.startswith(".", position):
                raise _path_error("expected '.' or '['", path, position)
            position += 1
        key = _KEY.match(path, position)
        if key is None:
            raise _path_error("expected a key", path, position)
        steps.append(key[0])
        position = key.end()
    return tuple(steps)


def _parse_bracket(found: re.Match[str]) -> Step:
    if found["index"] is not None:
        return int(found["index"])
    return str(found["double"] if found["single"] is None else found["single"])


def _path_error(problem: str, path: str, position: int) -> InvalidPath:
    mark = "^" if position < len(path) else "^ at the end"
    shown = path.replace("\n", " ")
    return InvalidPath(f"invalid path: {problem}\n    {shown}\n    {' ' * position}{mark}")


def render_path(steps: Steps) -> str:
    """Return the path that ``parse_path`` parses into these steps."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            quote = '"' if "'" in step else "'"
            text += f"[{quote}{step}{quote}]"
    return text


def walk(body: Any, steps: Steps, strict: bool = False) -> Any:
    """Return the value at ``steps`` of decoded JSON; ``None`` if it is absent or ``null``.

    Raises:
        StepMismatch: ``strict``, and a step leads into another shape, such as a key of a string.
    """
    value = body
    for count, step in enumerate(steps):
        if value is None:
            return None
        expected: type[Any] = dict if isinstance(step, str) else list
        if type(value) is not expected:  # value[step] doesn't tell: a string has a first item too
            if strict:
                raise StepMismatch(steps[:count], value)
            return None
        try:
            value = value[step]
        except (KeyError, IndexError):
            return None
    return value

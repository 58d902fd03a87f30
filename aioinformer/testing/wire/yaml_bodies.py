"""YAML bodies of requests, read as an API server reads them: converted to JSON first.

The server reads YAML 1.1 with the scalars of Go's library (sigs.k8s.io/yaml): ``y``, ``yes`` and
``on`` are true, ``1e3`` is the number 1000, a date stays a text, ``1:30`` too, and every key of a
mapping becomes a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import yaml

YAML = "application/yaml"

_TAG = "tag:yaml.org,2002:"
_TRUE, _FALSE = ("y", "yes", "on", "true"), ("n", "no", "off", "false")
_BOOL_PATTERN = re.compile(
    "|".join(f"{word}$|{word.capitalize()}$|{word.upper()}$" for word in (*_TRUE, *_FALSE))
)
_INT_PATTERN = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_FLOAT_PATTERN = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_INT_LIMIT = 1e21
"""Go's encoder of JSON writes a whole float below this limit without a fraction."""


class _GoLoader(yaml.SafeLoader):
    """PyYAML's safe loader with the scalars of Go's library."""


def _construct_bool(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> bool:
    return str(loader.construct_scalar(node)).lower() in _TRUE


def _construct_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    value = float(loader.construct_scalar(node))
    return int(value) if value.is_integer() and abs(value) < _INT_LIMIT else value


def _set_scalars() -> None:
    replaced = (f"{_TAG}bool", f"{_TAG}int", f"{_TAG}float", f"{_TAG}timestamp")
    kept = cast("Mapping[str, list[tuple[str, Any]]]", yaml.SafeLoader.yaml_implicit_resolvers)
    _GoLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag not in replaced]
        for first, rules in kept.items()
    }
    # The first pattern that matches decides, so that a whole number is no float.
    loader: Any = _GoLoader  # PyYAML's stubs leave the parameters of the next method untyped
    loader.add_implicit_resolver(f"{_TAG}bool", _BOOL_PATTERN, list("yYnNtTfFoO"))
    loader.add_implicit_resolver(f"{_TAG}int", _INT_PATTERN, list("-+0123456789"))
    loader.add_implicit_resolver(f"{_TAG}float", _FLOAT_PATTERN, list("-+.0123456789"))
    _GoLoader.add_constructor(f"{_TAG}bool", _construct_bool)
    _GoLoader.add_constructor(f"{_TAG}float", _construct_float)


_set_scalars()


def decode_yaml(body: bytes) -> object:
    """Return the value of a YAML document, with mappings whose keys are texts.

    Raises:
        ValueError: the body is not one YAML document. The text is one line.
    """
    loader: _GoLoader | None = None
    try:
        loader = _GoLoader(body)
        value: object = loader.get_single_data()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        line = f"line {mark.line + 1}: " if mark is not None else ""
        problem = error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error)
        raise ValueError(f"yaml: {line}{problem}".partition("\n")[0]) from error
    return _to_json(value)


def _to_json(value: object) -> object:
    if isinstance(value, dict):
        members = cast("Mapping[object, object]", value).items()
        return {_to_key(key): _to_json(member) for key, member in members}
    if isinstance(value, list):
        return [_to_json(item) for item in cast("Iterable[object]", value)]
    return value


def _to_key(key: object) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    return "null" if key is None else str(key)

"""YAML as kubectl and the API server read it: by the rules of Go's library, converted to JSON.

The events are those of PyYAML, with libyaml where PyYAML has it; sigs.k8s.io/yaml with go-yaml v2
differs from PyYAML in what it makes of them:

    scalars     ``y`` and ``on`` are true, ``010`` and ``0o10`` are 8, ``1e3`` is 1000; dates,
                ``12:30`` and ``=`` are texts; ``!!binary`` is decoded, unknown tags are ignored
    mappings    each key becomes a text; of equal keys, and of merged ones, the last one counts
    documents   what follows the first document isn't parsed, unless a caller asks for it
    aliases     a document of which most is expanded aliases is refused

PyYAML without libyaml refuses tabs behind values and inside of brackets.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

import yaml

_TAG = "tag:yaml.org,2002:"

_MEANINGS: dict[bool | None, tuple[str, ...]] = {
    True: ("y", "yes", "true", "on"),
    False: ("n", "no", "false", "off"),
    None: ("null", "", "~"),
}
_WORDS = {
    spelling: value
    for value, words in _MEANINGS.items()
    for word in words
    for spelling in (word, word.capitalize(), word.upper())
}
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGER = re.compile(r"([-+]?)0(?:[bB]([01]+)|[oO]?([0-7]+)|[xX]([0-9a-fA-F]+))")
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGERS = range(-(2**63), 2**64)
_MAX_DIGITS = 70
"""More than an integer of 64 bits has in any base."""

_TAGGED: dict[str, tuple[type, ...]] = {
    f"{_TAG}bool": (bool,),
    f"{_TAG}int": (int,),
    f"{_TAG}float": (float, int),
    f"{_TAG}null": (type(None),),
}
"""The types of the values that a scalar with each of these tags may have."""

_WHOLE_LIMIT = 1e21
"""Go's encoder of JSON writes a whole float below this limit without a fraction."""

_SMALL, _LARGE = 40_000, 400_000
"""Weights of a document, between which the allowed part of aliases falls from 99 to 10 %: a tenth
of Go's numbers, so that a short document takes at most some megabytes."""

_TEXT_WEIGHT = 100
"""Characters that weigh as much as a value. Go counts values alone, whatever their length."""


class YamlError(ValueError):
    """A document is not valid. The text may quote it; ``place`` doesn't."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(problem)
        self.place = place
        """A part of a sentence: the line, and the problem if it quotes nothing. Empty if the
        document has characters or bytes that no YAML has."""


def decode_yaml(content: bytes) -> object:
    """Return the value of the first document; ``None`` without one.

    Raises:
        YamlError: the document is not valid, or has too many aliases.
    """
    return next(decode_yaml_documents(content), None)


def decode_yaml_documents(content: bytes) -> Iterator[object]:
    """Yield the value of each document; see ``decode_yaml``."""
    try:
        yield from _Reader(content).documents()
        return
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else "its end"
        problem = f"{line}: {error.problem}".partition("\n")[0]
        fault = YamlError(problem, problem if isinstance(error, _Fault) else f"see {line}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        fault = YamlError(str(error).partition("\n")[0])
    except RecursionError:
        fault = YamlError("it is nested too deeply", "it is nested too deeply")
    # Raised outside of the handler: the texts and tracebacks of PyYAML's errors quote the document.
    raise fault


class _Reader:
    """Builds values from the events of a stream."""

    def __init__(self, content: bytes) -> None:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._next = loader(content).get_event
        self._anchors: dict[str, tuple[object, int] | None] = {}
        """The value and the weight of each anchor; ``None`` while its value is read."""
        self._weight = 0
        self._aliased = 0
        """The part of the weight that comes from aliases."""

    def documents(self) -> Iterator[object]:
        self._next()  # the start of the stream
        while isinstance(self._next(), yaml.DocumentStartEvent):
            self._anchors, self._weight, self._aliased = {}, 0, 0
            value = self._value(self._next())
            self._next()  # the end of the document
            yield value

    def _value(self, event: Any) -> object:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before, anchor = self._weight, event.anchor
        self._weight += 1
        if anchor is not None:
            self._anchors[anchor] = None
        value: object
        if isinstance(event, yaml.ScalarEvent):
            self._weight += len(event.value) // _TEXT_WEIGHT
            value = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence()
        else:
            value = self._mapping()
        if anchor is not None:
            self._anchors[anchor] = value, self._weight - before
        return value

    def _sequence(self) -> list[object]:
        found: list[object] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            found.append(self._value(event))
        return found

    def _mapping(self) -> dict[str, object]:
        found: dict[str, object] = {}
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            name = self._value(key)
            event = self._next()
            value = self._value(event)
            if _is_merge(key):
                _merge(found, value, event)
            else:
                found[_key(name, key)] = value
        return found

    def _alias(self, event: Any) -> object:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            known = event.anchor in self._anchors
            problem = "an anchor's value contains itself" if known else "an anchor is unknown"
            raise _fault(problem, event)
        value, weight = anchored
        self._weight += 1 + weight
        self._aliased += weight
        if self._weight > 1000 and self._aliased > self._weight * _allowed_aliases(self._weight):
            raise _fault("document contains excessive aliasing", event)
        return deepcopy(value)


def _allowed_aliases(weight: int) -> float:
    return 0.99 - 0.89 * (min(max(weight, _SMALL), _LARGE) - _SMALL) / (_LARGE - _SMALL)


class _Fault(yaml.MarkedYAMLError):
    """A fault whose text doesn't quote the document."""


def _fault(problem: str, event: Any) -> _Fault:
    return _Fault(problem=problem, problem_mark=event.start_mark)


# -- mappings ----------------------------------------------------------------------------------


def _is_merge(key: Any) -> bool:
    if not isinstance(key, yaml.ScalarEvent) or key.value != "<<":
        return False
    return bool(key.implicit[0]) or key.tag == f"{_TAG}merge"


def _merge(into: dict[str, object], value: object, event: Any) -> None:
    parts = cast("list[object]", value)[::-1] if isinstance(value, list) else [value]
    for part in parts:
        if not isinstance(part, dict):
            raise _fault("map merge requires map or sequence of maps as the value", event)
        into.update(cast("dict[str, object]", part))


def _key(value: object, event: Any) -> str:
    if value is None or isinstance(value, dict | list):
        raise _fault("a key is not text", event)
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- scalars -----------------------------------------------------------------------------------


def _scalar(event: Any) -> object:
    text, tag = event.value, event.tag
    if tag is None:
        return _json_number(_resolve(text), event) if event.implicit[0] else text
    if tag == f"{_TAG}binary":
        try:
            data = base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True)
        except ValueError:
            raise _fault("!!binary value contains invalid base64 data", event) from None
        return data.decode("utf-8", "replace")
    types = _TAGGED.get(tag)
    if types is None:
        return text
    value = _resolve(text)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise _fault("a value is not of the type of its tag", event)
    return _json_number(value, event)


def _resolve(text: str) -> object:
    """Return the value of a scalar without quotes and without tag."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _NO_NUMBER.fullmatch(text):
        return float("inf")
    digits = text if text[0] == "." else text.replace("_", "")
    number = _integer(digits) if len(digits) < _MAX_DIGITS else None
    if number is not None and number in _INTEGERS:
        return number
    if _FLOAT.fullmatch(digits) and abs(value := float(digits)) != float("inf"):
        return value
    return text


def _integer(digits: str) -> int | None:
    if _DECIMAL.fullmatch(digits):
        return int(digits)
    if (match := _INTEGER.fullmatch(digits)) is None:
        return None
    sign, *numerals = match.groups()
    base, numeral = next(pair for pair in zip((2, 8, 16), numerals, strict=True) if pair[1])
    return int(f"{sign}{numeral}", base)


def _json_number(value: object, event: Any) -> object:
    if not isinstance(value, float):
        return value
    if abs(value) == float("inf"):
        raise _fault("JSON has no such number", event)
    return int(value) if value.is_integer() and abs(value) < _WHOLE_LIMIT else value

"""Conditions on labels, the syntax of label keys and values, and the error of invalid selectors.

Source: apimachinery's ``labels`` and ``validation`` packages. Their error texts are kept word for
word, so that the test server can answer with them. The error of a selector that doesn't parse has
the server's sentence, then the selector with the place marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from aioinformer.errors import InvalidSelector
from aioinformer.errors.texts import printable

LabelOperator: TypeAlias = Literal["=", "!=", "in", "notin", "exists", "!", ">", "<"]
"""The operator of a condition. ``>`` and ``<`` compare integers, as the server does."""


class LabelRequirement(Struct, frozen=True, order=True):
    """One condition on one label. Made by ``LabelSelector.parse``, which checks it."""

    key: str
    operator: LabelOperator
    values: tuple[str, ...] = ()
    """The values, sorted, without duplicates; empty for ``exists`` and ``!``."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "!=" | "notin":
                return value not in self.values  # an object without the label matches
            case "=" | "in":
                return value in self.values
            case ">" | "<":
                return self._compare(value)

    def _compare(self, value: str | None) -> bool:
        number, bound = parse_integer(value or ""), parse_integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == ">" else number < bound

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


# -- the syntax of labels (apimachinery's validation package) ----------------------------------

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_INTEGER = re.compile(r"[-+]?[0-9]+")

_INTEGERS = range(-(2**63), 2**63)
"""The integers that a label is compared as: Go's int64."""

_NAME_LIMIT = 63
_PREFIX_LIMIT = 253

_CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_NAME_RULE = (
    f"must {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation "
    f"is '{_NAME}')"
)
_PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_PREFIX}')"
)
_VALUE_RULE = (
    f"a valid label must be an empty string or {_CHARACTERS} (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '({_NAME})?')"
)


def parse_integer(text: str) -> int | None:
    """Return the integer that a server reads in ``text``, or ``None``."""
    if len(text) > _NAME_LIMIT or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if number in _INTEGERS else None


def key_problem(key: str) -> str:
    """Return the problem of a label key, empty if it is valid."""
    problem = "; ".join(_key_problems(key))
    return f'<nil>: Invalid value: "{key}": {problem}' if problem else ""


def _key_problems(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a qualified name {_NAME_RULE} {optional}"
        return
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash and not re.fullmatch(_PREFIX, prefix):
        yield f"prefix part {_PREFIX_RULE}"
    if len(prefix) > _PREFIX_LIMIT:
        yield f"prefix part must be no more than {_PREFIX_LIMIT} bytes"
    if not name:
        yield "name part must be non-empty"
    if len(name.encode()) > _NAME_LIMIT:
        yield f"name part must be no more than {_NAME_LIMIT} bytes"
    if not re.fullmatch(_NAME, name):
        yield f"name part {_NAME_RULE}"


def value_problem(key: str, index: int, value: str) -> str:
    """Return the problem of a label value, empty if it is valid."""
    problems: list[str] = []
    if len(value.encode()) > _NAME_LIMIT:
        problems.append(f"must be no more than {_NAME_LIMIT} bytes")
    if value and not re.fullmatch(_NAME, value):
        problems.append(_VALUE_RULE)
    if not problems:
        return ""
    return f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(problems)}'


END_OF_TEXT = "at the end"
"""The text beside the mark if a selector stops too early: the server says only ``found ''``."""

MAX_PROBLEM_LENGTH = 500

EXCERPT_LENGTH = 100
"""Characters of a selector, which users may send, that an error shows on either side of the mark.
"""


def selector_error(problem: str, text: str, position: int) -> InvalidSelector:
    """Return the error. Its first line is an API server's message, the rest marks the place."""
    start, end = max(0, position - EXCERPT_LENGTH), position + EXCERPT_LENGTH
    before, after = "..." if start else "", "..." if end < len(text) else ""
    mark = "^" if position < len(text) else f"^ {END_OF_TEXT}"
    indent = " " * (len(before) + position - start)
    problem = printable(problem)
    cut = problem if len(problem) <= MAX_PROBLEM_LENGTH else f"{problem[:MAX_PROBLEM_LENGTH]}..."
    shown = f"{before}{text[start:end]}{after}".replace("\n", " ")
    return InvalidSelector(f"{cut}\n    {shown}\n    {indent}{mark}")

"""Label selectors: the grammar, its canonical form, and matching.

Source: apimachinery's ``labels`` package, whose error texts are kept word for word (recording 21),
so that the test server can answer with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from aioinformer._core.selectors.faults import invalid
from aioinformer.errors import InvalidSelector

__all__ = ["LabelOperator", "LabelRequirement", "LabelSelector"]

LabelOperator: TypeAlias = Literal["=", "!=", "in", "notin", "exists", "!", ">", "<"]
"""How a label is compared. ``>`` and ``<`` compare integers, as the server does."""


@dataclass(frozen=True, slots=True, order=True)
class LabelRequirement:
    """One condition on one label. Made by ``LabelSelector.parse``, which checks it."""

    key: str
    operator: LabelOperator
    values: tuple[str, ...] = ()
    """Sorted, without doubles; empty for ``exists`` and ``!``."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels fulfils the condition."""
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
        number, bound = _integer(value or ""), _integer(self.values[0])
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


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions on labels that must all hold; none of them selects everything.

    Two selectors are equal iff their canonical forms are: ``a==b``, ``a in (b)`` and ``{"a": "b"}``
    are one selector, and the order of conditions doesn't count.
    """

    requirements: tuple[LabelRequirement, ...] = ()

    @classmethod
    def parse(cls, selector: str | Mapping[str, str] | None) -> LabelSelector:
        """The selector that a text or a mapping of labels means.

        Args:
            selector: ``app=web,tier in (a, b),!canary`` and so on; or labels that must be equal;
                ``None`` and the empty text select everything.

        Raises:
            InvalidSelector: it doesn't parse, or a key or value can't be a label's. The message
                is the server's sentence, then the text with the place marked.
        """
        if isinstance(selector, str):
            found = _Parser(selector).requirements()
        else:
            found = (_equality(key, value) for key, value in (selector or {}).items())
        return cls(tuple(sorted(set(found))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def _equality(key: str, value: str) -> LabelRequirement:
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] # from YAML
        raise TypeError(f"a label selector maps labels to strings, not {key!r} to {value!r}")
    text = f"{key}={value}"
    if problem := _key_problem(key):
        raise invalid(f"unable to parse requirement: {problem}", text, 0)
    if problem := _value_problem(key, 0, value):
        raise invalid(f"unable to parse requirement: {problem}", text, len(key) + 1)
    return LabelRequirement(key, "=", (value,))


# -- what a label may be (apimachinery's validation package) -----------------------------------

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_INTEGER = re.compile(r"[-+]?[0-9]+")

_INTEGERS = range(-(2**63), 2**63)
"""What a label is compared as: Go's int64."""

_NAME_LIMIT = 63
"""The longest label value, and name part of a key: the length of a DNS label."""
_PREFIX_LIMIT = 253
"""The longest prefix of a key: the length of a DNS name."""

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


def _integer(text: str) -> int | None:
    """The number that a server would take it for."""
    if len(text) > _NAME_LIMIT or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if number in _INTEGERS else None


def _key_problem(key: str) -> str:
    """What is wrong with a label key; empty if nothing is."""
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


def _value_problem(key: str, index: int, value: str) -> str:
    """What is wrong with a label value; empty if nothing is."""
    problems: list[str] = []
    if len(value.encode()) > _NAME_LIMIT:
        problems.append(f"must be no more than {_NAME_LIMIT} bytes")
    if value and not re.fullmatch(_NAME, value):
        problems.append(_VALUE_RULE)
    if not problems:
        return ""
    return f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(problems)}'


# -- the grammar -------------------------------------------------------------------------------

_TOKEN = re.compile(r"[ \t\r\n]*(?P<text>==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|$)")
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))
_BINARY: dict[str, LabelOperator] = {
    "in": "in",
    "notin": "notin",
    "=": "=",
    "==": "=",
    "!=": "!=",
    ">": ">",
    "<": "<",
}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    """Empty at the end of the selector."""
    position: int

    @property
    def is_word(self) -> bool:
        return self.text not in _SYMBOLS


class _Parser:
    """A recursive descent over the tokens, one method a rule (labels.Parser in apimachinery)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = self._token(0)

    def requirements(self) -> Iterator[LabelRequirement]:
        expected = "!, identifier, or 'end of string'"
        while self._next.text or expected == "identifier after ','":
            if not (self._next.is_word or self._next.text == "!"):
                raise self._unexpected(self._next, expected)
            yield self._requirement()
            separator = self._take()
            if not separator.text:
                return
            if separator.text != ",":
                raise self._unexpected(separator, "',' or 'end of string'")
            expected = "identifier after ','"

    def _requirement(self) -> LabelRequirement:
        absent = self._next.text == "!"
        if absent:
            self._take()
        key = self._word()
        if problem := _key_problem(key.text):
            raise self._bad(problem, key)
        if absent:
            return LabelRequirement(key.text, "!")
        if self._next.text in ("", ","):
            return LabelRequirement(key.text, "exists")
        return self._comparison(key.text)

    def _comparison(self, key: str) -> LabelRequirement:
        token = self._take()
        operator = _BINARY.get(token.text)
        if operator is None:
            raise self._bad(f"found '{token.text}', expected: in, notin, =, ==, !=, gt, lt", token)
        several = operator in ("in", "notin")
        values = self._values() if several else [self._exact_value()]
        self._check(key, operator, values)
        texts = tuple(sorted({value.text for value in values}))
        if several and len(texts) == 1:
            operator = "=" if operator == "in" else "!="
        return LabelRequirement(key, operator, texts)

    def _check(self, key: str, operator: LabelOperator, values: list[_Token]) -> None:
        for index, value in enumerate(sorted(values, key=lambda value: value.text)):
            if operator in (">", "<") and _integer(value.text) is None:
                rule = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise self._bad(f'values[0]: Invalid value: "{value.text}": {rule}', value)
            if problem := _value_problem(key, index, value.text):
                raise self._bad(problem, value)

    def _exact_value(self) -> _Token:
        if self._next.text in ("", ","):
            return _Token("", self._next.position)
        return self._word()

    def _values(self) -> list[_Token]:
        """``(a, b)``; an empty place, as in ``(a,)``, is the empty value."""
        opening = self._take()
        if opening.text != "(":
            raise self._bad(f"found '{opening.text}' expected: '('", opening)
        if self._next.text == ")":
            rule = "for 'in', 'notin' operators, values set can't be empty"
            raise self._bad(f"values: Invalid value: []: {rule}", self._next)
        values: list[_Token] = []
        while True:
            empty = self._next.text in (",", ")")
            values.append(_Token("", self._next.position) if empty else self._word())
            separator = self._take()
            if separator.text == ")":
                return values
            if separator.text != ",":
                raise self._bad(f"found '{separator.text}', expected: ',' or ')'", separator)

    # -- tokens -------------------------------------------------------------------------------

    def _token(self, position: int) -> _Token:
        found = _TOKEN.match(self._text, position)
        assert found is not None  # noqa: S101  a symbol, a word or the end: nothing else exists
        return _Token(found["text"], found.start("text"))

    def _take(self) -> _Token:
        taken = self._next
        self._next = self._token(taken.position + len(taken.text))
        return taken

    def _word(self) -> _Token:
        token = self._take()
        if not token.is_word:
            raise self._bad(f"found '{token.text}', expected: identifier", token)
        return token

    def _unexpected(self, token: _Token, expected: str) -> InvalidSelector:
        problem = f"found '{token.text}', expected: {expected}"
        return invalid(problem, self._text, token.position)

    def _bad(self, problem: str, token: _Token) -> InvalidSelector:
        return invalid(f"unable to parse requirement: {problem}", self._text, token.position)

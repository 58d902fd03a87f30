"""Label selectors as text: ``app=web,tier in (a,b),!canary``.

Source: ``labels.Parser`` in apimachinery. What a key, a value and a condition may be is
``requirements``'.

Label selectors as mappings: labels that must be equal, and the selectors that objects carry.

``{"app": "shop", "tier": ["web", "api"]}`` is how a Python program writes one; ``matchLabels`` and
``matchExpressions`` are how a Deployment does (``metav1.LabelSelector``), so that its
``obj["spec"]["selector"]`` can be handed on as it is. Error texts are those of apimachinery's
``LabelSelectorAsSelector``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NoReturn, TypeAlias, TypeGuard

import msgspec
from msgspec import Struct

from aioinformer._core.selectors.requirements import (
    LabelOperator,
    LabelRequirement,
    integer,
    invalid,
    key_problem,
    value_problem,
)
from aioinformer.errors import InvalidSelector

__all__ = ["LabelMapping", "requirements_in_mapping", "requirements_in_text"]


def requirements_in_text(text: str) -> Iterator[LabelRequirement]:
    """The conditions in ``text``.

    Raises:
        InvalidSelector: it doesn't parse, or a key or value can't be a label's.
    """
    return _Parser(text).requirements()


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


class _Token(Struct, frozen=True):
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
        if problem := key_problem(key.text):
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
            if operator in (">", "<") and integer(value.text) is None:
                rule = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise self._bad(f'values[0]: Invalid value: "{value.text}": {rule}', value)
            if problem := value_problem(key, index, value.text):
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


LabelMapping: TypeAlias = Mapping[str, object]
"""Labels with a value, or a list of values of which it must be one; or ``matchLabels`` and
``matchExpressions``."""

_LABELS, _EXPRESSIONS = "matchLabels", "matchExpressions"
_OPERATORS: dict[str, LabelOperator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}


def requirements_in_mapping(selector: LabelMapping) -> Iterator[LabelRequirement]:
    """The conditions that ``selector`` means.

    Raises:
        InvalidSelector: a key, an operator or a value can't be one.
        TypeError: something is of another type than it can be.
    """
    given = selector.items()
    if any(key in (_LABELS, _EXPRESSIONS) and not isinstance(value, str) for key, value in given):
        yield from _of_an_object(selector)
        return
    for key, value in given:
        operator: LabelOperator = "=" if isinstance(value, str) else "in"
        yield _requirement(key, operator, _strings(key, value))


def _of_an_object(selector: LabelMapping) -> Iterator[LabelRequirement]:
    if others := sorted(set(selector) - {_LABELS, _EXPRESSIONS}):
        raise TypeError(f"beside {_LABELS} and {_EXPRESSIONS} there can't be {others[0]!r}")
    labels, expressions = selector.get(_LABELS), selector.get(_EXPRESSIONS)
    if not (labels is None or _is_mapping(labels)):
        raise TypeError(f"{_LABELS} is a mapping, not {labels!r}")
    for key, value in (labels or {}).items():
        if not isinstance(value, str):
            _refuse(key, value)
        yield _requirement(key, "=", [value])
    if not (expressions is None or _is_list(expressions)):
        raise TypeError(f"{_EXPRESSIONS} is a list, not {expressions!r}")
    for expression in expressions or ():
        yield _of_an_expression(expression)


def _of_an_expression(expression: object) -> LabelRequirement:
    if not _is_mapping(expression) or not isinstance(expression.get("key"), str):
        raise TypeError(f"{_EXPRESSIONS} has mappings with a key and an operator, not {expression}")
    key, named = expression["key"], expression.get("operator")
    operator = _OPERATORS.get(named) if isinstance(named, str) else None
    if operator is None:
        raise invalid(f'"{named}" is not a valid label selector operator', f"{key} {named}", 0)
    given = expression.get("values")
    return _requirement(key, operator, [] if given is None else _strings(key, given))


def _requirement(key: str, operator: LabelOperator, values: Sequence[str]) -> LabelRequirement:
    texts = tuple(sorted(set(values)))
    shown = f"{key} {operator} ({','.join(texts)})" if operator != "=" else f"{key}={values[0]}"
    if problem := key_problem(key):
        raise invalid(f"unable to parse requirement: {problem}", shown, 0)
    if problem := _count_problem(operator, texts):
        raise invalid(f"unable to parse requirement: values: {problem}", shown, len(key) + 1)
    for index, value in enumerate(texts):
        if problem := value_problem(key, index, value):
            at = len(shown.partition("(" if operator != "=" else "=")[0]) + 1
            at += len("".join(f"{text}," for text in texts[:index]))
            raise invalid(f"unable to parse requirement: {problem}", shown, at)
    if len(texts) == 1:
        operator = "=" if operator in ("=", "in") else "!="
    return LabelRequirement(key, operator, texts)


def _count_problem(operator: LabelOperator, values: tuple[str, ...]) -> str:
    """What is wrong with how many values there are; empty if nothing is."""
    if operator in ("in", "notin") and not values:
        return "Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
    if operator in ("exists", "!") and values:
        found = msgspec.json.encode(values).decode()
        return f"Invalid value: {found}: values set must be empty for exists and does not exist"
    return ""


def _strings(key: str, value: object) -> Sequence[str]:
    """The one value or the several that are given for ``key``."""
    if isinstance(value, str):
        return [value]
    several = list(value) if _is_list(value) or _is_set(value) else [value]
    if not _are_strings(several):
        _refuse(key, value)
    return several


def _refuse(key: object, value: object) -> NoReturn:
    # It may come from YAML, which makes booleans and numbers of unquoted words.
    raise TypeError(f"a label selector maps labels to strings, not {key!r} to {value!r}")


def _are_strings(values: Iterable[object]) -> TypeGuard[Sequence[str]]:
    return all(isinstance(value, str) for value in values)


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_set(value: object) -> TypeGuard[Set[object]]:
    return isinstance(value, Set)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)

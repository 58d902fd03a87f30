"""The parsers of label selectors: of texts and of mappings.

A text is ``app=web,tier in (a,b),!canary`` (``labels.Parser`` in apimachinery). A mapping is
``{"app": "shop", "tier": ["web", "api"]}``, or has ``matchLabels`` and ``matchExpressions``
(``metav1.LabelSelector``), so that ``obj["spec"]["selector"]`` can be passed as it is. Error texts
are those of apimachinery's ``LabelSelectorAsSelector``.
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
    key_problem,
    parse_integer,
    selector_error,
    value_problem,
)
from aioinformer.errors import InvalidSelector


def parse_label_text(text: str) -> Iterator[LabelRequirement]:
    """Parse a text; raise ``InvalidSelector`` for wrong syntax, or an invalid key or value."""
    return _LabelParser(text).requirements()


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


class _LabelToken(Struct, frozen=True):
    text: str
    position: int

    @property
    def is_word(self) -> bool:
        return self.text not in _SYMBOLS


class _LabelParser:
    """A recursive-descent parser with one method a rule (labels.Parser in apimachinery)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lookahead = self._read_token(0)

    def requirements(self) -> Iterator[LabelRequirement]:
        expected = "!, identifier, or 'end of string'"
        while self._lookahead.text or expected == "identifier after ','":
            if not (self._lookahead.is_word or self._lookahead.text == "!"):
                raise self._unexpected_token(self._lookahead, expected)
            yield self._requirement()
            separator = self._take_token()
            if not separator.text:
                return
            if separator.text != ",":
                raise self._unexpected_token(separator, "',' or 'end of string'")
            expected = "identifier after ','"

    def _requirement(self) -> LabelRequirement:
        absent = self._lookahead.text == "!"
        if absent:
            self._take_token()
        key = self._take_word()
        if problem := key_problem(key.text):
            raise self._requirement_error(f"{problem}{_suggest_operator(key.text)}", key)
        if absent:
            return LabelRequirement(key.text, "!")
        if self._lookahead.text in ("", ","):
            return LabelRequirement(key.text, "exists")
        return self._comparison(key.text)

    def _comparison(self, key: str) -> LabelRequirement:
        token = self._take_token()
        operator = _BINARY.get(token.text)
        if operator is None:
            raise self._requirement_error(
                f"found '{token.text}', expected: in, notin, =, ==, !=, gt, lt", token
            )
        several = operator in ("in", "notin")
        values = self._values() if several else [self._exact_value()]
        self._check(key, operator, values)
        texts = tuple(sorted({value.text for value in values}))
        if several and len(texts) == 1:
            operator = "=" if operator == "in" else "!="
        return LabelRequirement(key, operator, texts)

    def _check(self, key: str, operator: LabelOperator, values: list[_LabelToken]) -> None:
        for index, value in enumerate(sorted(values, key=lambda value: value.text)):
            if operator in (">", "<") and parse_integer(value.text) is None:
                rule = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise self._requirement_error(
                    f'values[0]: Invalid value: "{value.text}": {rule}', value
                )
            if problem := value_problem(key, index, value.text):
                raise self._requirement_error(problem, value)

    def _exact_value(self) -> _LabelToken:
        if self._lookahead.text in ("", ","):
            return _LabelToken("", self._lookahead.position)
        return self._take_word()

    def _values(self) -> list[_LabelToken]:
        """Parse ``(a, b)``. An empty place, as in ``(a,)`` and ``()``, is the empty value."""
        opening = self._take_token()
        if opening.text != "(":
            raise self._requirement_error(f"found '{opening.text}' expected: '('", opening)
        values, expected = list[_LabelToken](), "',', ')' or identifier"
        while True:
            empty = self._lookahead.text in (",", ")")
            place = _LabelToken("", self._lookahead.position)
            values.append(place if empty else self._take_word(expected))
            expected = "',', or identifier"
            separator = self._take_token()
            if separator.text == ")":
                return values
            if separator.text != ",":
                raise self._requirement_error(
                    f"found '{separator.text}', expected: ',' or ')'", separator
                )

    # -- tokens -------------------------------------------------------------------------------

    def _read_token(self, position: int) -> _LabelToken:
        found = _TOKEN.match(self._text, position)
        assert found is not None  # noqa: S101  a symbol, a word or the end: nothing else exists
        return _LabelToken(found["text"], found.start("text"))

    def _take_token(self) -> _LabelToken:
        taken = self._lookahead
        self._lookahead = self._read_token(taken.position + len(taken.text))
        return taken

    def _take_word(self, expected: str = "identifier") -> _LabelToken:
        token = self._take_token()
        if not token.is_word:
            raise self._requirement_error(f"found '{token.text}', expected: {expected}", token)
        return token

    def _unexpected_token(self, token: _LabelToken, expected: str) -> InvalidSelector:
        problem = f"found '{token.text}', expected: {expected}"
        return selector_error(problem, self._text, token.position)

    def _requirement_error(self, problem: str, token: _LabelToken) -> InvalidSelector:
        return selector_error(f"unable to parse requirement: {problem}", self._text, token.position)


def _suggest_operator(key: str) -> str:
    """Return a hint for ``app:shop``, as YAML writes a label; else empty."""
    name, colon, value = key.partition(":")
    if not colon or key_problem(name):
        return ""
    return f"; did you mean {name}={value or '...'}?"


LabelMapping: TypeAlias = Mapping[str, object]
"""A mapping of labels to a value or to a list of allowed values; or one with ``matchLabels`` and
``matchExpressions``."""

_LABELS, _EXPRESSIONS = "matchLabels", "matchExpressions"
_OPERATORS: dict[str, LabelOperator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}


def parse_label_mapping(selector: LabelMapping) -> Iterator[LabelRequirement]:
    """Parse a mapping into conditions.

    Raises:
        InvalidSelector: a key, an operator or a value is invalid.
        TypeError: a member of the mapping has another type.
    """
    if not _is_mapping(selector):
        raise TypeError(
            "a label selector is a text such as 'app=shop', or a mapping such as "
            f"{{'app': 'shop'}}, not {selector!r}"
        )
    items = selector.items()
    # A label may be called "matchLabels"; its value is a string then.
    if any(key in (_LABELS, _EXPRESSIONS) and not isinstance(value, str) for key, value in items):
        yield from _parse_label_selector(selector)
        return
    for key, value in items:
        operator: LabelOperator = "=" if isinstance(value, str) else "in"
        yield _make_requirement(key, operator, _string_values(key, value))


def _parse_label_selector(selector: LabelMapping) -> Iterator[LabelRequirement]:
    if others := sorted(set(selector) - {_LABELS, _EXPRESSIONS}):
        raise TypeError(f"beside {_LABELS} and {_EXPRESSIONS} there can't be {others[0]!r}")
    labels, expressions = selector.get(_LABELS), selector.get(_EXPRESSIONS)
    if not (labels is None or _is_mapping(labels)):
        raise TypeError(f"{_LABELS} is a mapping, not {labels!r}")
    for key, value in (labels or {}).items():
        if not isinstance(value, str):
            _raise_not_string(key, value)
        yield _make_requirement(key, "=", [value])
    if not (expressions is None or _is_list(expressions)):
        raise TypeError(f"{_EXPRESSIONS} is a list, not {expressions!r}")
    for expression in expressions or ():
        yield _parse_expression(expression)


def _parse_expression(expression: object) -> LabelRequirement:
    if not _is_mapping(expression) or not isinstance(expression.get("key"), str):
        raise TypeError(f"{_EXPRESSIONS} has mappings with a key and an operator, not {expression}")
    key, named = expression["key"], expression.get("operator")
    operator = _OPERATORS.get(named) if isinstance(named, str) else None
    if operator is None:
        raise selector_error(
            f'"{named}" is not a valid label selector operator', f"{key} {named}", 0
        )
    given = expression.get("values")
    return _make_requirement(key, operator, [] if given is None else _string_values(key, given))


def _make_requirement(key: str, operator: LabelOperator, values: Sequence[str]) -> LabelRequirement:
    texts = tuple(sorted(set(values)))
    shown = f"{key} {operator} ({','.join(texts)})" if operator != "=" else f"{key}={values[0]}"
    if problem := key_problem(key):
        raise selector_error(f"unable to parse requirement: {problem}", shown, 0)
    if problem := _count_problem(operator, texts):
        raise selector_error(f"unable to parse requirement: values: {problem}", shown, len(key) + 1)
    for index, value in enumerate(texts):
        if problem := value_problem(key, index, value):
            at = len(shown.partition("(" if operator != "=" else "=")[0]) + 1
            at += len("".join(f"{text}," for text in texts[:index]))
            raise selector_error(f"unable to parse requirement: {problem}", shown, at)
    if len(texts) == 1:
        operator = "=" if operator in ("=", "in") else "!="
    return LabelRequirement(key, operator, texts)


def _count_problem(operator: LabelOperator, values: tuple[str, ...]) -> str:
    """Return the problem of the number of values, empty if the number is valid."""
    if operator in ("in", "notin") and not values:
        return "Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    if operator in ("exists", "!") and values:
        found = msgspec.json.encode(values).decode()
        return f"Invalid value: {found}: values set must be empty for exists and does not exist"
    return ""


def _string_values(key: str, value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    values = list(value) if _is_list(value) or _is_set(value) else [value]
    if not _are_strings(values):
        _raise_not_string(key, value)
    return values


def _raise_not_string(key: object, value: object) -> NoReturn:
    # The mapping may come from YAML, which reads some unquoted words as booleans or numbers.
    raise TypeError(f"a label selector maps labels to strings, not {key!r} to {value!r}")


def _are_strings(values: Iterable[object]) -> TypeGuard[Sequence[str]]:
    return all(isinstance(value, str) for value in values)


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_set(value: object) -> TypeGuard[Set[object]]:
    return isinstance(value, Set)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)

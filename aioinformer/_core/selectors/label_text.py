"""Label selectors as text: ``app=web,tier in (a,b),!canary``.

Source: ``labels.Parser`` in apimachinery. What a key, a value and a condition may be is
``requirements``'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from aioinformer._core.selectors.faults import invalid
from aioinformer._core.selectors.requirements import (
    LabelOperator,
    LabelRequirement,
    integer,
    key_problem,
    value_problem,
)
from aioinformer.errors import InvalidSelector

__all__ = ["requirements_in_text"]


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

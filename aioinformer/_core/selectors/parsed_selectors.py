"""Label selectors and field selectors: parsing, the canonical form, and matching.

The sorted requirements of a label selector are its canonical form. The grammar of field selectors
is that of apimachinery's ``fields`` package. Any path parses here, since each resource of a server
supports other fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Literal, TypeAlias, cast

from msgspec import Struct

from aioinformer._core.selectors.label_parser import (
    LabelMapping,
    parse_label_mapping,
    parse_label_text,
)
from aioinformer._core.selectors.requirements import LabelRequirement, selector_error


class LabelSelector(Struct, frozen=True):
    """Conditions on labels that must all hold. An empty selector selects everything.

    Two selectors are equal if and only if their canonical forms are: ``a==b``, ``a in (b)`` and
    ``{"a": "b"}`` are one selector, and the order of conditions doesn't count.

    Example::

        selector = LabelSelector.parse("app=shop,tier!=cache")
        assert selector.matches({"app": "shop", "tier": "web"})
    """

    requirements: tuple[LabelRequirement, ...] = ()

    @classmethod
    def parse(cls, selector: LabelSelector | str | LabelMapping | None) -> LabelSelector:
        """Parse a text or a mapping; return a selector as it is.

        Args:
            selector: a text such as ``app=web,tier in (a, b),!canary``; or a mapping of labels to a
                value or a list of values; or the selector of a Kubernetes object, with
                ``matchLabels`` and ``matchExpressions``. ``None``, an empty text and an empty
                mapping select everything.

        Raises:
            InvalidSelector: the selector doesn't parse, or has an invalid key or value. The message
                is the server's sentence, then the text with the place marked.
            TypeError: a member of the mapping has another type.
        """
        if isinstance(selector, LabelSelector):
            return selector
        if isinstance(selector, str):
            found = parse_label_text(selector)
        else:
            found = parse_label_mapping(selector or {})
        return cls(tuple(sorted(set(found))))

    @classmethod
    def nothing(cls) -> LabelSelector:
        """Return a selector that selects nothing, for servers too: apimachinery's ``Nothing()``.

        A Service without a selector selects no pods, and ``parse(None)`` would select all::

            selector = service["spec"].get("selector") or LabelSelector.nothing()
        """
        return cls((LabelRequirement("nothing", "!"), LabelRequirement("nothing", "exists")))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


FieldOperator: TypeAlias = Literal["=", "!="]
FieldValues: TypeAlias = Mapping[str, str] | Callable[[str], str]
"""The values of paths: a function, or a mapping in which an absent path has the empty value."""

_TERM = re.compile(r"(?P<path>.*?)(?P<operator>!=|==|=)(?P<value>.*)", re.DOTALL)
_TERM_TEXT = re.compile(r"(?:\\.|[^,\\])*\\?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED = re.compile(r"(?:\\[\\,=]|[^\\,=])*", re.DOTALL)


class FieldRequirement(Struct, frozen=True, order=True):
    """One condition on one field. Made by ``FieldSelector.parse``."""

    path: str
    operator: FieldOperator
    value: str

    def matches(self, values: FieldValues) -> bool:
        found = values(self.path) if callable(values) else values.get(self.path, "")
        return (found == self.value) is (self.operator == "=")

    def __str__(self) -> str:
        return self.path + self.operator + re.sub(r"([\\,=])", r"\\\1", self.value)


class FieldSelector(Struct, frozen=True):
    """Conditions on fields that must all hold. An empty selector selects everything.

    Example::

        selector = FieldSelector.parse("spec.nodeName=node-1,status.phase!=Failed")
        assert selector.matches({"spec.nodeName": "node-1", "status.phase": "Running"})
    """

    requirements: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, selector: FieldSelector | str | Mapping[str, str] | None) -> FieldSelector:
        r"""Parse a text or a mapping of field values; return a selector as it is.

        Args:
            selector: ``spec.nodeName=a,status.phase!=Running``, with ``\,``, ``\=`` and ``\\`` in
                values; or a mapping of paths to values that must be equal. ``None`` and "" select
                everything.

        Raises:
            InvalidSelector: the selector doesn't parse. The message marks the place.
            TypeError: the selector is neither a text nor a mapping of strings.
        """
        if isinstance(selector, FieldSelector):
            return selector
        if isinstance(selector, str):
            found = _parse_requirements(selector)
        else:
            if not isinstance(cast("object", selector), Mapping | NoneType):
                raise TypeError(
                    "a field selector is a text such as 'spec.nodeName=node-1', or a mapping of "
                    f"paths to values, not {selector!r}"
                )
            pairs = (selector or {}).items()
            found = (_make_equality(path, value) for path, value in pairs)
        return cls(tuple(sorted(set(found))))

    def matches(self, values: FieldValues) -> bool:
        """Return True if an object with these field values is selected."""
        return all(requirement.matches(values) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_UNCHANGING = ("metadata.name", "metadata.namespace")


def selects_for_good(fields: str) -> bool:
    """Return True if an object that a field selector selects can't leave the selection."""
    return all(each.path in _UNCHANGING for each in FieldSelector.parse(fields).requirements)


def _make_equality(path: str, value: object) -> FieldRequirement:
    if not isinstance(value, str):  # a number or a boolean, from YAML
        raise TypeError(f"a field selector maps paths to strings, not {path!r} to {value!r}")
    if not path or re.search(r"[=!,\\]", path):
        raise selector_error(f"invalid selector: can't understand '{path}' as a path", path, 0)
    return FieldRequirement(path, "=", value)


def _parse_requirements(text: str) -> Iterator[FieldRequirement]:
    start = 0
    while start <= len(text):
        found = _TERM_TEXT.match(text, start)
        assert found is not None  # noqa: S101  the empty piece matches everywhere
        if found[0]:
            yield _parse_requirement(found[0], text, start)
        start = found.end() + 1


def _parse_requirement(term: str, text: str, start: int) -> FieldRequirement:
    found = _TERM.fullmatch(term)
    if found is None or not found["path"]:
        raise selector_error(f"invalid selector: '{text}'; can't understand '{term}'", text, start)
    value = found["value"]
    if (end := _UNESCAPED.match(value)) and end.end() < len(value):
        position = start + found.start("value") + end.end()
        fault = value[end.end() : end.end() + 2]
        # The server prints the number of the rune for a stray '='. The character says more.
        problem = "invalid escape sequence" if fault[0] == "\\" else "unescaped character in value"
        shown = fault if fault[0] == "\\" else fault[0]
        raise selector_error(f"invalid field selector: {problem}: {shown}", text, position)
    operator: FieldOperator = "!=" if found["operator"] == "!=" else "="
    return FieldRequirement(found["path"], operator, _ESCAPED.sub(r"\1", value))

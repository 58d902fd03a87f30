"""Label selectors as mappings: labels that must be equal, and the selectors that objects carry.

``{"app": "shop", "tier": ["web", "api"]}`` is how a Python program writes one; ``matchLabels`` and
``matchExpressions`` are how a Deployment does (``metav1.LabelSelector``), so that its
``obj["spec"]["selector"]`` can be handed on as it is. Error texts are those of apimachinery's
``LabelSelectorAsSelector``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NoReturn, TypeAlias, TypeGuard

import msgspec

from aioinformer._core.selectors.faults import invalid
from aioinformer._core.selectors.requirements import (
    LabelOperator,
    LabelRequirement,
    key_problem,
    value_problem,
)

__all__ = ["LabelMapping", "requirements_in_mapping"]

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

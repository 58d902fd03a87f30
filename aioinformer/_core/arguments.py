"""Checks of arguments, with errors that name the mistake and its correction.

A program without a type checker passes a misspelt keyword, or a text from its configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, iscoroutinefunction, signature, unwrap
from typing import Any, TypeVar

MAX_MANAGER_LENGTH = 128
"""The longest field manager that a server accepts (apimachinery's ``FieldManagerMaxLength``)."""

MAX_NAMED = 6
"""Keywords that an error names."""

F = TypeVar("F", bound=Callable[..., Any])

OTHER_NAMES = {
    "selector": "labels",
    "label_selector": "labels",
    "labelselector": "labels",
    "labels_selector": "labels",
    "field_selector": "fields",
    "fieldselector": "fields",
    "fields_selector": "fields",
    "ns": "namespace",
    "all_namespaces": "namespace",
    "timeout_seconds": "timeout",
    "resync_period": "resync",
    "limit": "page_size",
    "chunk_size": "page_size",
    "count": "shards",
    "workers": "concurrency",
    "rate_limiter": "backoff",
}
"""Names that other clients give to options, in lower case, with the names of this library."""


def suggest_keywords(function: F) -> F:
    """Decorate a function: a misspelt keyword, or an argument that needs its keyword, raises a
    TypeError that suggests the correct one.
    """
    parameters = [*signature(function).parameters.values()]
    names = [each.name for each in parameters]
    named = [each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
    is_open = bool(parameters) and parameters[-1].kind is Parameter.VAR_KEYWORD
    first = len(names) - len(named) - is_open
    named = [*_typed_keywords(function, parameters[-1]), *named] if is_open else named
    *_, owner, last = ("", *function.__qualname__.split("."))
    called = owner if last == "__init__" else last

    def check(args: tuple[Any, ...], keywords: Iterable[str]) -> None:
        if len(args) > first and named:
            hint = ", ".join(f"{each}=" for each in named[:MAX_NAMED])
            raise TypeError(f"{called}() needs the name of the argument, such as {hint}")
        for name in () if is_open else keywords:
            if name not in names:
                shown = f"{called}() has no argument {name!r}"
                raise TypeError(shown + suggest_keyword(name, names))

    @wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        check(args, keywords)
        return function(*args, **keywords)

    @wraps(function)
    async def checked_async(*args: Any, **keywords: Any) -> Any:
        check(args, keywords)
        return await function(*args, **keywords)

    # An async function stays one, which mocks of a class look for.
    found: Any = checked_async if iscoroutinefunction(function) else checked
    decorated: F = found
    return decorated


def _typed_keywords(function: Callable[..., Any], parameter: Parameter) -> Iterable[str]:
    """Return the keywords of a parameter such as ``**options: Unpack[ListKeywords]``."""
    name = str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")
    keywords: Iterable[str] = unwrap(function).__globals__[name].__annotations__
    return keywords


def check_names(keywords: Iterable[str], names: Iterable[str], *others: str) -> None:
    """Raise a ``TypeError`` unless each keyword is one of ``names``.

    ``others`` are further arguments of the same call, to suggest for a misspelt keyword.
    """
    known = [*names]
    for name in keywords:
        if name not in known:
            raise TypeError(
                f"there is no option {name!r}{suggest_keyword(name, (*known, *others))}"
            )


def check_bool(name: str, value: object) -> None:
    """Raise a ``TypeError`` unless an option is True or False: the text "false" would be true."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")


def check_int(name: str, value: object) -> None:
    """Raise a ``TypeError`` unless an option is a whole number, neither True nor False."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")


def check_seconds(name: str, seconds: object, *, zero: str = "") -> None:
    """Raise unless an option is a positive number of seconds.

    Args:
        name: the name of the option, for the error.
        seconds: its value.
        zero: the meaning of 0, ``"never"`` for example; empty if 0 is out of range. Callers check
            ``None`` before.

    Raises:
        TypeError: the value is no number.
        ValueError: the value is negative, or 0 where that is out of range, or a NaN.
    """
    allowed = f"{name} must be seconds, or " + (f"0 for {zero}" if zero else "None for no limit")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{allowed}, not {seconds!r}")
    if not (seconds >= 0 if zero else seconds > 0):  # written so that a NaN fails, too
        raise ValueError(f"{allowed}, not {seconds:g}")


def check_field_manager(name: str, field_manager: object) -> None:
    """Raise unless a server accepts a field manager's name; errors as of ``check_text``."""
    check_text(name, field_manager, longest=MAX_MANAGER_LENGTH)


def check_text(name: str, text: object, *, longest: int) -> None:
    """Raise unless an argument is 1 to ``longest`` printable characters.

    Raises:
        TypeError: the argument is no text.
        ValueError: the text is empty, too long or not printable.
    """
    # ``object``, because a program without a type checker may pass anything.
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text, not {text!r}")
    if not text.strip() or not text.isprintable() or len(text) > longest:
        raise ValueError(
            f"{name} must be 1 to {longest} printable characters, such as 'shop', not {text!r}"
        )


def suggest_keyword(name: str, names: Iterable[str]) -> str:
    """Return the end of an error text that suggests the keyword meant by ``name``; else empty."""
    from difflib import get_close_matches  # rarely needed

    known = [*names]
    other = OTHER_NAMES.get(name.lower())
    close = [other] if other in known else get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""

"""The identity of the objects of a stored state in their cluster.

A stored state may continue only where all that has produced the state is unchanged. The identity is
therefore stored beside the state, and compared when the state is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from operator import itemgetter
from types import CodeType, MemberDescriptorType, NoneType
from typing import Any, TypeGuard, cast

import msgspec

from aioinformer._core.objects.resources import Resource

_PLAIN = (str, bytes, int, float, NoneType)
"""Types whose values have the same text in each process; ``bool`` is an ``int``."""


def scope_identity(
    resource: Resource, selection: Mapping[str, str], transform: Callable[..., Any] | None
) -> str:
    """Return the identity of the objects that one reflector reads, as text; ``selection`` is all
    else that selects objects or changes their stored form.
    """
    parts = {
        **selection,
        "resource": f"{resource.api_version}/{resource.plural}",
        "transform": "" if transform is None else describe_function(transform),
    }
    return msgspec.json.encode(parts, order="sorted").decode()


def describe_function(function: Callable[..., Any]) -> str:
    """Return the name of a function of the program, with a hash of its code and of its parameters.

    The parameters are the arguments that a ``functools.partial`` adds, default values, the
    variables of an enclosing function, and the attributes of the object of a method or of a called
    object. Of the latter three only functions, plain values and collections of plain values count:
    the text of another object differs in each process. Changes of called functions don't count: for
    them a program gives its cache file a ``version``.
    """
    return _describe(function, ())


def _describe(function: Callable[..., Any], enclosing: tuple[object, ...]) -> str:
    if any(function is each for each in enclosing):
        return "recursive"
    enclosing = (*enclosing, function)
    if _is_partial(function):
        return _describe_partial(function, enclosing)
    wrapped, owner = _split_method(function)
    code = getattr(wrapped, "__code__", None)
    name = f"{getattr(wrapped, '__module__', '')}.{getattr(wrapped, '__qualname__', '')}"
    if not isinstance(code, CodeType):
        return f"{_type_name(wrapped)}:{name}"
    digest = hashlib.sha256()
    _hash_code(code, digest.update)
    for value in _captured_values(wrapped):
        if (text := _value_text(value, enclosing)) is not None:
            digest.update(text.encode())
    for attribute, value in _attributes(owner):
        if (text := _value_text(value, enclosing)) is not None:
            digest.update(f"{attribute}={text};".encode())
    return f"{name}:{digest.hexdigest()}"


def _split_method(function: Any) -> tuple[Any, object]:
    """Return the function of a method or callable object, and the object unless it is a class."""
    wrapped = getattr(function, "__func__", function)
    owner: object = getattr(function, "__self__", None)
    if not hasattr(wrapped, "__code__"):
        kind = cast("type[object]", type(function))
        method = getattr(kind, "__call__", None)  # noqa: B004 - its code is needed
        if hasattr(method, "__code__"):
            wrapped, owner = method, function
    return wrapped, None if isinstance(owner, type) else owner


def _value_text(value: object, enclosing: tuple[object, ...]) -> str | None:
    """Return the text of a parameter; ``None`` if it differs in each process."""
    if callable(value):
        return _describe(value, enclosing)
    return _constant_text(value) if _is_plain(value) else None


def _attributes(owner: object) -> Iterator[tuple[str, object]]:
    """Yield the names and values of an object's own attributes, without those of its class."""
    if owner is None:
        return
    found: dict[str, object] = dict(getattr(owner, "__dict__", {}))
    for kind in type(owner).__mro__:
        for name, slot in vars(kind).items():
            if isinstance(slot, MemberDescriptorType):
                with suppress(AttributeError):  # no value has been assigned yet
                    found[name] = slot.__get__(owner)
    yield from sorted(found.items(), key=itemgetter(0))


def _is_partial(function: object) -> TypeGuard[partial[Any]]:
    return isinstance(function, partial)


def _describe_partial(function: partial[Any], enclosing: tuple[object, ...]) -> str:
    """Describe the wrapped function, with a hash of the arguments, which may be secret. An argument
    whose ``repr`` shows its address only causes a needless list in each process.
    """
    arguments = [("", each) for each in function.args] + sorted(function.keywords.items())
    shown = repr(
        [
            (name, _describe(each, enclosing) if callable(each) else _constant_text(each))
            for name, each in arguments
        ]
    )
    digest = hashlib.sha256(shown.encode()).hexdigest()
    return f"{_describe(function.func, enclosing)}({digest})"


def _captured_values(function: Any) -> Iterator[object]:
    """Yield the default values of a function, and the variables of the enclosing function."""
    keyword_defaults: dict[str, object] = function.__kwdefaults__ or {}
    yield from function.__defaults__ or ()
    yield from (keyword_defaults[name] for name in sorted(keyword_defaults))
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the enclosing function has not assigned the variable yet
            continue


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        items = cast("dict[object, object]", value)
        return all(isinstance(each, _PLAIN) for pair in items.items() for each in pair)
    if isinstance(value, (tuple, list, set, frozenset)):
        members = cast("Collection[object]", value)
        return all(isinstance(each, _PLAIN) for each in members)
    return isinstance(value, _PLAIN)


def _type_name(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def _hash_code(code: CodeType, update: Callable[[bytes], None]) -> None:
    """Hash what a function does. Its place in the file doesn't count."""
    update(code.co_code)
    update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _hash_code(constant, update)
        else:
            update(_constant_text(constant).encode())


def _constant_text(constant: object) -> str:
    # The order of a set's repr differs between two processes.
    if isinstance(constant, (set, frozenset)):
        return repr(sorted(map(repr, cast("Collection[object]", constant))))
    return repr(constant)

"""Checks of functions that a program passes to the library, at their registration.

Handlers, filters and reconcilers may be called days later. The types of arguments are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature, iscoroutinefunction, signature
from typing import TypeVar
from weakref import WeakMethod

A = TypeVar("A")


def check_signature(function: object, name: str, *positional: str, **keywords: object) -> None:
    """Raise a ``TypeError`` with both signatures unless ``function`` takes these arguments.

    A function whose signature can't be known passes: one of an extension module, or one with a
    ``__signature__`` by its decorator. The signature that ``functools.wraps`` copied is ignored,
    since the wrapper may add arguments. The values of ``keywords`` mean nothing.
    """
    found = _signature(function)
    if found is None:
        return
    try:
        found.bind(*positional, **keywords)
    except TypeError as error:
        shown = ", ".join((*positional, *(f"{each}=..." for each in keywords)))
        raise TypeError(f"{name}{found} is to be called as ({shown}): {error}") from None


def _signature(function: object) -> Signature | None:
    if not callable(function) or hasattr(function, "__signature__"):
        return None
    try:
        return signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None


def is_async(function: object) -> bool:
    """Return True if a call of ``function``, or an object's ``__call__``, returns a coroutine by
    its definition. A plain function that returns an awaitable is not async.
    """
    called = getattr(type(function), "__call__", None)  # noqa: B004 - the method is inspected
    return iscoroutinefunction(function) or iscoroutinefunction(called)


def check_not_async(function: object, what: str) -> None:
    """Raise a ``TypeError`` that names the purpose ``what`` if ``function`` is async."""
    if is_async(function):
        raise TypeError(f"{what} is async; it must answer at once")


def weak_call(method: Callable[[A], None]) -> Callable[[A], None]:
    """Return a call of a method that does not keep the method's object."""
    found = WeakMethod(method)

    def call(argument: A) -> None:
        alive = found()
        if alive is not None:
            alive(argument)

    return call

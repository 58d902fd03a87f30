"""Checks of functions that a program passes to the library.

Handlers, filters and reconcilers are called when something happens, which may be days after they
were registered, a deletion for example. So their signatures are checked at registration. The types
of the arguments are not checked.
"""

from __future__ import annotations

from inspect import Signature, iscoroutinefunction, signature


def check_signature(function: object, name: str, *positional: str, **keywords: object) -> None:
    """Raise unless ``function`` takes these arguments.

    A function whose signature can't be known passes: one of an extension module, or one with a
    ``__signature__`` by its decorator. The signature that ``functools.wraps`` copied is ignored,
    since the wrapper may add arguments.

    Args:
        function: the function to be called.
        name: its name in the error.
        positional: the names, in the error, of the arguments by position.
        keywords: the arguments by name; their values mean nothing.

    Raises:
        TypeError: the function takes other arguments. The text has both signatures.
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
    """Return the signature, if it can be known."""
    if not callable(function) or hasattr(function, "__signature__"):
        return None
    try:
        return signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None


def is_async(function: object) -> bool:
    """Return True if a call of ``function`` returns a coroutine, as far as its definition shows.

    An object counts by its ``__call__``. A plain function that returns an awaitable is not async.
    """
    called = getattr(type(function), "__call__", None)  # noqa: B004 - the method is inspected
    return iscoroutinefunction(function) or iscoroutinefunction(called)


def check_not_async(function: object, what: str) -> None:
    """Raise if ``function`` is async, where the library calls it without awaiting.

    Raises:
        TypeError: the function is async; ``what`` names its purpose.
    """
    if is_async(function):
        raise TypeError(f"{what} is async; it must answer at once")

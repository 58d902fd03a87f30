"""Whether a program's function can be called as it will be.

Handlers, filters and reconcilers are called when something happens, which may be days after they
were handed over: a deletion, say. So what can be seen from outside is looked at right then. What a
function does with its arguments is its own business, and its author's type checker's.
"""

from __future__ import annotations

from inspect import Signature, iscoroutinefunction, signature

__all__ = ["check_not_async", "check_signature"]


def check_signature(function: object, name: str, *positional: str, **keywords: object) -> None:
    """Raise unless ``function`` takes these arguments.

    What can't be known passes: a function of an extension module, and one that its decorator
    describes in other words (``__signature__``). What ``functools.wraps`` copied is not believed:
    the wrapper may add arguments of its own.

    Args:
        function: what is to be called.
        name: what to call it in the error.
        positional: what the arguments by position are called in the error.
        keywords: the arguments by name; their values mean nothing.

    Raises:
        TypeError: it doesn't; it says how it is called, and what it takes.
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
    """What it takes, if that can be known."""
    if not callable(function) or hasattr(function, "__signature__"):
        return None
    try:
        return signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None


def check_not_async(function: object, what: str) -> None:
    """Raise if ``function`` is async, where nobody would await it.

    Raises:
        TypeError: it is; ``what`` says what it is for.
    """
    if iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__):
        raise TypeError(f"{what} is async; it must answer at once")

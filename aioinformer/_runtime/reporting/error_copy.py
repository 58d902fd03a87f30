"""Copies of errors without their tracebacks.

A traceback refers to the frames that the error has passed, and their local variables to an informer
and its cache. So a part that remembers the error with which it ended would keep itself alive, with
all cached objects, until a full garbage collection. Such a part remembers a copy. The error itself
keeps its traceback, for the program that catches the error.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from aioinformer._core.objects.decode_errors import iter_related
from aioinformer._runtime.reporting.error_texts import error_text

E = TypeVar("E", bound=BaseException)


def copy_error(error: E) -> E:
    """Return a copy of an error, its causes and a group's exceptions, without tracebacks and
    contexts.

    It is ``error`` itself if none of these errors has a traceback, or if it can't be copied.
    """
    if all(each.__traceback__ is None for each in iter_related(error)):
        return error
    return _copy(error, seen=set())


def copy_to_raise(error: E) -> E:
    """Return a copy of a remembered error, which remains without the traceback of the raise. It is
    ``error`` itself if it can't be copied.
    """
    return _copy(error, seen=set())


def _copy(error: E, seen: set[int]) -> E:
    """Copy an error whose causes are not in ``seen``: a cause may be its own cause."""
    seen.add(id(error))
    makers: tuple[Callable[[E], object], ...] = (partial(_copy_content, seen=seen), copy.copy)
    for make in makers:
        try:
            copied = make(error)
        except Exception:  # noqa: BLE001, S112 - the constructor of a program's class
            continue
        # A copy whose text differs lacks what its constructor would have set.
        if type(copied) is type(error) and error_text(copied) == error_text(error):
            cause = error.__cause__
            known = cause is None or id(cause) in seen
            copied.__cause__ = None if cause is None or known else _copy(cause, seen)
            copied.__suppress_context__ = error.__suppress_context__
            return copied
    return error


def _copy_content(error: E, seen: set[int]) -> E:
    """Return an error of the same class and attributes; its ``__init__`` isn't called."""
    copied = type(error).__new__(type(error), *_copy_args(error, seen))
    vars(copied).update(vars(error))
    return copied


def _copy_args(error: BaseException, seen: set[int]) -> tuple[Any, ...]:
    """Return the arguments of an error. Those of a group have copies of its exceptions, whose
    tracebacks refer to the frames of tasks.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error.args
    group = cast("BaseExceptionGroup[BaseException]", error)
    return group.message, [_copy(each, seen) for each in group.exceptions]

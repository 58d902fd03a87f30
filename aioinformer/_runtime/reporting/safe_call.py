"""Calls of the program's instrumentation that can't break the informer.

An exception of metrics or tracing must not end an informer or a handler's call, nor must a
CancelledError, since nobody has cancelled the task. The first exception is logged with its
traceback; a repetition is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def check_instrumentation(name: str, target: object, interface: type) -> None:
    """Raise unless ``target`` is ``None``, or an object with some of ``interface``'s methods.

    Raises:
        TypeError: ``target`` is a class, or has none of the methods.
    """
    if target is None:
        return
    if isinstance(target, type):
        raise TypeError(f"{name} is an object: pass {target.__name__}(), not the class")
    methods = [each for each in vars(interface) if not each.startswith("_")]
    if not any(callable(getattr(target, each, None)) for each in methods):
        raise TypeError(
            f"{name} must be an object with the methods of {interface.__name__}, not {target!r}"
        )


class SafeCall:
    def __init__(self, log: logging.Logger, message: str, name: str) -> None:
        """``message`` is the log record's format, with one ``%s`` for ``name``."""
        self._log = log
        self._message = message
        self._name = name
        self._logged = False

    def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Return what ``function`` returns; ``None`` if it raises."""
        try:
            return function(*args, **kwargs)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - the program's code; logged below
            if not self._logged:
                self._logged = True
                self._log.exception(self._message, self._name)
            return None

    def wrap(self, target: object, interface: type, wrapper: object) -> None:
        """Set safe versions of ``target``'s public methods of ``interface`` on ``wrapper``.

        A method that ``target`` lacks is left as it is on ``wrapper``.
        """
        for name in vars(interface):
            method = getattr(target, name, None)
            if not name.startswith("_") and method is not None:
                setattr(wrapper, name, partial(self, method))

    def __repr__(self) -> str:
        return f"<SafeCall {self._name}>"

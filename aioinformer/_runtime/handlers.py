"""What a handler is: the forms that it may have, made into one function of an event.

A handler is an object with any of ``on_add(obj, *, initial)``, ``on_update(old, new, *,
resync)``, ``on_delete(obj, *, reason)``, or a function of one event; ``async`` or not. It is
called with exactly these arguments. When, and what becomes of its failures, is ``registration``'s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeAlias, TypeVar

from aioinformer._core.objects import Added, Deleted, DeleteReason, Event, KubeObject, Updated

__all__ = [
    "Handler",
    "HandlesAdd",
    "HandlesDelete",
    "HandlesUpdate",
    "OnAdd",
    "OnDelete",
    "OnUpdate",
    "adds_only",
    "deletions_only",
    "dispatch",
    "handler_name",
    "is_async",
    "updates_only",
]


class HandlesAdd(Protocol):
    """Hears of objects that are new to it."""

    def on_add(self, obj: KubeObject, /, *, initial: bool) -> Awaitable[None] | None:
        """``initial``: it was cached when this handler joined."""
        ...


class HandlesUpdate(Protocol):
    """Hears of objects that have changed."""

    def on_update(
        self, old: KubeObject, new: KubeObject, /, *, resync: bool
    ) -> Awaitable[None] | None:
        """``resync``: nothing has changed, this is the state told again."""
        ...


class HandlesDelete(Protocol):
    """Hears of objects that are gone."""

    def on_delete(self, obj: KubeObject, /, *, reason: DeleteReason) -> Awaitable[None] | None:
        """``obj`` is the last known state."""
        ...


class OnAdd(Protocol):
    """A function for ``SharedInformer.on_add``."""

    def __call__(self, obj: KubeObject, /, *, initial: bool) -> Awaitable[None] | None:
        """As ``HandlesAdd.on_add``."""
        ...


class OnUpdate(Protocol):
    """A function for ``SharedInformer.on_update``."""

    def __call__(
        self, old: KubeObject, new: KubeObject, /, *, resync: bool
    ) -> Awaitable[None] | None:
        """As ``HandlesUpdate.on_update``."""
        ...


class OnDelete(Protocol):
    """A function for ``SharedInformer.on_delete``."""

    def __call__(self, obj: KubeObject, /, *, reason: DeleteReason) -> Awaitable[None] | None:
        """As ``HandlesDelete.on_delete``."""
        ...


Handler: TypeAlias = (
    HandlesAdd | HandlesUpdate | HandlesDelete | Callable[[Event], Awaitable[None] | None]
)
"""What can be given to ``add_handler``."""

_Call: TypeAlias = Callable[[Event], Any]
F = TypeVar("F", bound=Callable[[Event], Awaitable[None] | None])


def handler_name(handler: object) -> str:
    """What to call a handler in logs: its function's name, or its class's."""
    name = getattr(handler, "__qualname__", None) or type(handler).__qualname__
    return str(name).replace("<locals>.", "")


def is_async(handler: Handler) -> bool:
    """Whether any of its functions is a coroutine function. A plain one may still return an
    awaitable.
    """
    names = ("on_add", "on_update", "on_delete", "__call__")
    parts = (handler, *(getattr(handler, name, None) for name in names))
    return any(iscoroutinefunction(part) for part in parts)


def adds_only(function: OnAdd) -> Callable[[Event], Awaitable[None] | None]:
    """A handler that calls ``function`` for additions."""

    def on_event(event: Event) -> Awaitable[None] | None:
        return function(event.obj, initial=event.initial) if isinstance(event, Added) else None

    return _named(on_event, function)


def updates_only(function: OnUpdate) -> Callable[[Event], Awaitable[None] | None]:
    """A handler that calls ``function`` for updates."""

    def on_event(event: Event) -> Awaitable[None] | None:
        if not isinstance(event, Updated):
            return None
        return function(event.old, event.new, resync=event.resync)

    return _named(on_event, function)


def deletions_only(function: OnDelete) -> Callable[[Event], Awaitable[None] | None]:
    """A handler that calls ``function`` for deletions."""

    def on_event(event: Event) -> Awaitable[None] | None:
        return function(event.obj, reason=event.reason) if isinstance(event, Deleted) else None

    return _named(on_event, function)


def _named(on_event: F, function: object) -> F:
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"this is for a function, not for {function!r}")
    on_event.__qualname__ = handler_name(function)
    return on_event


def dispatch(handler: Handler) -> _Call:
    """One function of an event for whatever form the handler has.

    Raises:
        TypeError: it has none of them.
    """
    if isinstance(handler, type):
        raise TypeError(f"a handler is an object: pass {handler.__name__}(), not the class")
    on_add = getattr(handler, "on_add", None)
    on_update = getattr(handler, "on_update", None)
    on_delete = getattr(handler, "on_delete", None)
    if not (on_add or on_update or on_delete):
        if not callable(handler):
            raise TypeError(
                f"a handler has on_add, on_update or on_delete, or is a function of one event; "
                f"{type(handler).__name__} is neither"
            )
        return handler

    def call(event: Event) -> Any:
        match event:
            case Added(obj, initial):
                return on_add(obj, initial=initial) if on_add else None
            case Updated(old, new, resync):
                return on_update(old, new, resync=resync) if on_update else None
            case Deleted(obj, reason):
                return on_delete(obj, reason=reason) if on_delete else None

    return call

"""What a handler is: the forms that it may have, made into one function of an event.

A handler is an object with any of ``on_add(obj, *, initial)``, ``on_update(old, new, *,
resync)``, ``on_delete(obj, *, reason)``, or a function of one event; ``async`` or not. It is
called with exactly these arguments. When, and what becomes of its failures, is ``registration``'s.

How a handler is to be called: what ``add_handler`` was asked for, checked.

Who calls it that way is ``calling``; how much may be pending is the mailbox's.

A handler that is traced: another one, which does the same inside a span.

It stays what it is, a plain function or an async one, so that it is called in the same way. A call
with an event that the handler does nothing about has no span. When a handler is called, and what
becomes of what it raises, is ``attempts``'.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from inspect import isasyncgenfunction, isawaitable, iscoroutinefunction, isgeneratorfunction
from typing import Any, Protocol, TypeAlias

from msgspec import Struct
from typing_extensions import TypeVar

from aioinformer._core.callables import check_signature
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    DeleteReason,
    Event,
    KubeObject,
    Updated,
)
from aioinformer._core.objects.view import ObjectView
from aioinformer._runtime.reporting.safe_tracing import SafeSpan, await_in_span

__all__ = [
    "Handler",
    "HandlerOptions",
    "HandlesAdd",
    "HandlesDelete",
    "HandlesUpdate",
    "InternalHandler",
    "OnAdd",
    "OnDelete",
    "OnUpdate",
    "add_handler_from",
    "check_int",
    "compile_handler",
    "delete_handler_from",
    "event_kinds",
    "handler_name",
    "is_async",
    "update_handler_from",
    "with_span",
    "with_view",
]


T = TypeVar("T", default=KubeObject)
T_contra = TypeVar("T_contra", contravariant=True, default=KubeObject)
R_co = TypeVar("R_co", bound=Awaitable[None] | None, covariant=True, default=Awaitable[None] | None)


class HandlesAdd(Protocol[T_contra]):
    """Hears of objects that are new to it."""

    def on_add(self, obj: T_contra, /, *, initial: bool) -> Awaitable[None] | None:
        """``initial``: it was cached when this handler joined."""
        ...


class HandlesUpdate(Protocol[T_contra]):
    """Hears of objects that have changed."""

    def on_update(self, old: T_contra, new: T_contra, /, *, resync: bool) -> Awaitable[None] | None:
        """``resync``: nothing has changed, this is the state told again."""
        ...


class HandlesDelete(Protocol[T_contra]):
    """Hears of objects that are gone."""

    def on_delete(self, obj: T_contra, /, *, reason: DeleteReason) -> Awaitable[None] | None:
        """``obj`` is the last known state."""
        ...


class OnAdd(Protocol[T_contra, R_co]):
    """A function for ``SharedInformer.on_add``."""

    def __call__(self, obj: T_contra, /, *, initial: bool) -> R_co:
        """As ``HandlesAdd.on_add``."""
        ...


class OnUpdate(Protocol[T_contra, R_co]):
    """A function for ``SharedInformer.on_update``."""

    def __call__(self, old: T_contra, new: T_contra, /, *, resync: bool) -> R_co:
        """As ``HandlesUpdate.on_update``."""
        ...


class OnDelete(Protocol[T_contra, R_co]):
    """A function for ``SharedInformer.on_delete``."""

    def __call__(self, obj: T_contra, /, *, reason: DeleteReason) -> R_co:
        """As ``HandlesDelete.on_delete``."""
        ...


Handler: TypeAlias = (
    HandlesAdd[T]
    | HandlesUpdate[T]
    | HandlesDelete[T]
    | Callable[[Event[T]], Awaitable[None] | None]
)
"""What can be given to ``add_handler``."""

METHODS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "on_add": (("obj",), ("initial",)),
    "on_update": (("old", "new"), ("resync",)),
    "on_delete": (("obj",), ("reason",)),
}
"""What an object that is a handler may have, and what that is called with, by position and name."""

EVENT_KIND_ATTRIBUTE = "_aioinformer_only"
"""Where a function of an event that was made of one for a single kind says which."""

_EventFunction: TypeAlias = Callable[[Any], Any]
F = TypeVar("F", bound=Callable[[Any], Awaitable[None] | None])


def handler_name(handler: object) -> str:
    """What to call a handler in logs: its function's name, or its class's."""
    name = getattr(handler, "__qualname__", None) or type(handler).__qualname__
    return str(name).replace("<locals>.", "")


def is_async(handler: Handler[Any]) -> bool:
    """Whether any of its functions is a coroutine function. A plain one may still return an
    awaitable.
    """
    return any(iscoroutinefunction(part) for part in _callables_of(handler))


def _callables_of(handler: object) -> tuple[object, ...]:
    """What of it may be called."""
    names = ("on_add", "on_update", "on_delete", "__call__")
    return (handler, *(getattr(handler, name, None) for name in names))


def _check_no_yield(handler: object) -> None:
    """Raise if calling it would do nothing: a function with a ``yield`` in it only makes something
    to iterate over, which nobody will.

    Raises:
        TypeError: it is one.
    """
    if any(
        isgeneratorfunction(each) or isasyncgenfunction(each) for each in _callables_of(handler)
    ):
        raise TypeError(f"{handler_name(handler)} has a yield in it: as a handler it would not run")


def _check_methods(handler: object) -> None:
    """Raise if a method can't be called as it will be, or never will be called.

    Raises:
        TypeError: it takes something else, or its name has a slip in it.
    """
    name = handler_name(handler)
    missing = [each for each in METHODS if getattr(handler, each, None) is None]
    for method in dir(type(handler)):
        if method.startswith("on_") and method not in METHODS:
            for meant in get_close_matches(method, missing, n=1, cutoff=0.8):
                raise TypeError(f"{name} has {method}, which nobody calls: is {meant} meant?")
    for method in METHODS:
        _check_method_signature(getattr(handler, method, None), f"{name}.{method}", method)


def _check_method_signature(function: object, name: str, method: str) -> None:
    positional, keywords = METHODS[method]
    check_signature(function, name, *positional, **dict.fromkeys(keywords))


def add_handler_from(function: OnAdd[T]) -> Callable[[Event[T]], Awaitable[None] | None]:
    """A handler that calls ``function`` for additions."""

    def on_event(event: Event[T]) -> Awaitable[None] | None:
        return function(event.obj, initial=event.initial) if isinstance(event, Added) else None

    return _make_handler(on_event, function, Added, "on_add")


def update_handler_from(function: OnUpdate[T]) -> Callable[[Event[T]], Awaitable[None] | None]:
    """A handler that calls ``function`` for updates."""

    def on_event(event: Event[T]) -> Awaitable[None] | None:
        if not isinstance(event, Updated):
            return None
        return function(event.old, event.new, resync=event.resync)

    return _make_handler(on_event, function, Updated, "on_update")


def delete_handler_from(function: OnDelete[T]) -> Callable[[Event[T]], Awaitable[None] | None]:
    """A handler that calls ``function`` for deletions."""

    def on_event(event: Event[T]) -> Awaitable[None] | None:
        return function(event.obj, reason=event.reason) if isinstance(event, Deleted) else None

    return _make_handler(on_event, function, Deleted, "on_delete")


def _with_name(on_event: F, function: object) -> F:
    on_event.__qualname__ = handler_name(function)
    return on_event


def _make_handler(on_event: F, function: object, kind: type, method: str) -> F:
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"this is for a function, not for {function!r}")
    _check_no_yield(function)
    _check_method_signature(function, handler_name(function), method)
    vars(on_event)[EVENT_KIND_ATTRIBUTE] = kind
    return _with_name(on_event, function)


def event_kinds(handler: Handler[Any]) -> tuple[type, ...]:
    """The kinds of events that it does something about; of all, as far as can be seen, if it is a
    function of an event.
    """
    methods = {"on_add": Added, "on_update": Updated, "on_delete": Deleted}
    kinds = tuple(kind for name, kind in methods.items() if getattr(handler, name, None))
    only: type | None = getattr(handler, EVENT_KIND_ATTRIBUTE, None)
    return kinds or ((Added, Updated, Deleted) if only is None else (only,))


class InternalHandler:
    """Base of the library's own handlers, which are told of objects as they are inside the informer
    and look at keys alone: an object that no program can be shown still has one.
    """

    __slots__ = ()


def with_view(handler: Handler[T], view: ObjectView[T] | None) -> Handler:
    """A handler of events as they are inside the informer, which tells ``handler`` what programs
    see: itself if that is the same.

    What can't be converted is raised from it, as if the handler had looked at the object.

    Raises:
        TypeError: as ``compile_handler``.
    """
    if view is None or isinstance(handler, InternalHandler):
        same: Any = handler
        inside: Handler = same
        return inside
    call = compile_handler(handler)

    def on_event(event: Event) -> Awaitable[None] | None:
        unfinished: Awaitable[None] | None = call(view.convert_event(event))
        return unfinished

    async def on_event_async(event: Event) -> None:
        if (unfinished := on_event(event)) is not None:
            await unfinished

    return _with_name(on_event_async if is_async(handler) else on_event, handler)


def compile_handler(handler: Handler[Any]) -> _EventFunction:
    """One function of an event for whatever form the handler has.

    Raises:
        TypeError: it has none of them, or a function of it has a ``yield``, or takes something
            else than it will be given.
    """
    if isinstance(handler, type):
        raise TypeError(f"a handler is an object: pass {handler.__name__}(), not the class")
    _check_no_yield(handler)
    on_add = getattr(handler, "on_add", None)
    on_update = getattr(handler, "on_update", None)
    on_delete = getattr(handler, "on_delete", None)
    if not (on_add or on_update or on_delete):
        if not callable(handler):
            raise TypeError(
                f"a handler has on_add, on_update or on_delete, or is a function of one event; "
                f"{type(handler).__name__} is neither"
            )
        check_signature(handler, handler_name(handler), "event")
        return handler
    _check_methods(handler)

    def call(event: Event) -> Any:
        match event:
            case Added(obj, initial):
                return on_add(obj, initial=initial) if on_add else None
            case Updated(old, new, resync):
                return on_update(old, new, resync=resync) if on_update else None
            case Deleted(obj, reason):
                return on_delete(obj, reason=reason) if on_delete else None

    return call


def check_int(name: str, value: object) -> None:
    """Raise TypeError unless the argument of this name is an integer."""
    if not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")


class HandlerOptions(Struct, frozen=True):
    """How a handler is to be called. ``add_handler`` explains each."""

    concurrency: int = 1
    timeout: float | None = None
    run_in_thread: bool = False
    drain: bool = False
    fail_fast: bool = False

    def __post_init__(self) -> None:
        check_int("concurrency", self.concurrency)
        if self.concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {self.concurrency}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be seconds, or None for no limit, not {self.timeout:g}")


def with_span(handler: Handler[Any], begin_span: Callable[[str], SafeSpan]) -> Handler[Any]:
    """A handler that calls ``handler`` inside a span, which ``begin_span`` begins.

    Raises:
        TypeError: as ``compile_handler``.
    """
    call, kinds = compile_handler(handler), event_kinds(handler)

    def on_event(event: Event[Any]) -> Awaitable[None] | None:
        if not isinstance(event, kinds):
            nothing: Awaitable[None] | None = call(event)
            return nothing
        span = begin_span(type(event).__name__.lower())
        try:
            with span.current():
                result = call(event)
        except BaseException as error:
            span.ended(error)
            raise
        if result is not None and isawaitable(result):
            return await_in_span(result, span)
        span.ended(None)
        return None

    async def on_event_async(event: Event[Any]) -> None:
        if (rest := on_event(event)) is not None:
            await rest

    return on_event_async if is_async(handler) else on_event

"""Handlers: the forms that a program may give, compiled into one function of an event.

A handler is an object with any of ``on_add(obj, *, initial)``, ``on_update(old, new, *,
resync)``, ``on_delete(obj, *, reason)``, or a function of one event; ``async`` or not. Each form
is called with exactly these arguments.

A handler is compiled once, when it is registered. Two wrappers may be applied to the compiled
handler: a span for each call (tracing), and the view of an informer that shows models or
conversions instead of the stored objects. A wrapper changes the function and nothing else, so that
a plain handler stays plain and an async one stays async.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import (
    isasyncgenfunction,
    isawaitable,
    iscoroutine,
    iscoroutinefunction,
    isgeneratorfunction,
)
from types import FunctionType, MethodType
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace
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
from aioinformer._core.objects.view import EventView, ObjectView
from aioinformer._runtime.reporting.safe_tracing import SafeSpan, await_in_span

T = TypeVar("T", default=KubeObject)
T_contra = TypeVar("T_contra", contravariant=True, default=KubeObject)
R_co = TypeVar("R_co", bound=Awaitable[None] | None, covariant=True, default=Awaitable[None] | None)


class HandlesAdd(Protocol[T_contra]):
    """A handler of objects that are new to it."""

    def on_add(self, obj: T_contra, /, *, initial: bool) -> Awaitable[None] | None:
        """Handle a new object; ``initial`` if it was cached when this handler joined."""
        ...


class HandlesUpdate(Protocol[T_contra]):
    """A handler of objects that have changed."""

    def on_update(self, old: T_contra, new: T_contra, /, *, resync: bool) -> Awaitable[None] | None:
        """Handle a change; ``resync`` if the state is delivered again and nothing has changed."""
        ...


class HandlesDelete(Protocol[T_contra]):
    """A handler of objects that were deleted, vanished or ceased to pass the filter."""

    def on_delete(self, obj: T_contra, /, *, reason: DeleteReason) -> Awaitable[None] | None:
        """Handle a deletion; ``obj`` is the last known state."""
        ...


class OnAdd(Protocol[T_contra, R_co]):
    """A function for ``SharedInformer.on_add``."""

    def __call__(self, obj: T_contra, /, *, initial: bool) -> R_co:
        """Do the same as ``HandlesAdd.on_add``."""
        ...


class OnUpdate(Protocol[T_contra, R_co]):
    """A function for ``SharedInformer.on_update``."""

    def __call__(self, old: T_contra, new: T_contra, /, *, resync: bool) -> R_co:
        """Do the same as ``HandlesUpdate.on_update``."""
        ...


class OnDelete(Protocol[T_contra, R_co]):
    """A function for ``SharedInformer.on_delete``."""

    def __call__(self, obj: T_contra, /, *, reason: DeleteReason) -> R_co:
        """Do the same as ``HandlesDelete.on_delete``."""
        ...


Handler: TypeAlias = (
    HandlesAdd[T]
    | HandlesUpdate[T]
    | HandlesDelete[T]
    | Callable[[Event[T]], Awaitable[None] | None]
)
"""The forms that ``add_handler`` accepts.

Example::

    def shown(handler: Handler) -> Registration:
        return pods.add_handler(handler, name="shown")

    shown(print)
"""

Method: TypeAlias = Literal["on_add", "on_update", "on_delete"]

METHODS: dict[Method, tuple[type, tuple[str, ...], tuple[str, ...]]] = {
    "on_add": (Added, ("obj",), ("initial",)),
    "on_update": (Updated, ("old", "new"), ("resync",)),
    "on_delete": (Deleted, ("obj",), ("reason",)),
}
"""The methods of a handler: the kind of event, and the arguments by position and by name."""


class InternalHandler:
    """A handler of the library's own, which receives the stored objects.

    It reads keys alone. So it works where an object can't be converted, and costs no conversion.
    """

    __slots__ = ("call",)

    def __init__(self, call: Callable[[Event[Any]], None]) -> None:
        """Deliver events to ``call``."""
        self.call = call

    def __call__(self, event: Event[Any]) -> None:
        """Deliver an event. A ``CompiledHandler`` calls ``call`` instead, which saves a call."""
        self.call(event)


class CompiledHandler(Struct, frozen=True, eq=False):
    """A handler as one function of an event."""

    call: Callable[[Any], Any]
    """Calls the handler. Returns an awaitable if there is something to await."""
    name: str
    """The name of the handler's function or class."""
    is_async: bool = False
    """True if one of its functions is a coroutine function. A plain function may still return an
    awaitable."""
    kinds: tuple[type, ...] = (Added, Updated, Deleted)
    """The kinds of events that the handler does something about, as far as can be seen."""
    internal: bool = False
    """True for an ``InternalHandler``."""


# -- compiling ---------------------------------------------------------------------------------


def compile_handler(handler: Handler[Any]) -> CompiledHandler:
    """Return the one function of an event for a handler of any form.

    Raises:
        TypeError: it has none of the forms, or a function of it has a ``yield``, or takes other
            arguments than it will be called with.
    """
    if isinstance(handler, InternalHandler):
        return CompiledHandler(handler.call, handler_name(handler.call), internal=True)
    if isinstance(handler, type):
        raise TypeError(f"a handler is an object: pass {handler.__name__}(), not the class")
    given: object = handler  # a program without a type checker may pass the result of a call
    if iscoroutine(given):
        name = handler_name(given)
        given.close()
        raise TypeError(f"a handler is a function: pass {name}, not {name}(...)")
    name = handler_name(handler)
    parts = (handler, *(getattr(handler, each, None) for each in (*METHODS, "__call__")))
    _check_no_yield(name, *parts)
    found: dict[Method, Callable[..., Any]] = {
        each: method for each in METHODS if (method := getattr(handler, each, None))
    }
    if found:
        _check_methods(handler, name)
        call, kinds = _event_function(**found), tuple(METHODS[each][0] for each in found)
    elif callable(handler):
        check_signature(handler, name, "event")
        call, kinds = _bound_call(handler), (Added, Updated, Deleted)
    else:
        raise TypeError(
            f"a handler has on_add, on_update or on_delete, or is a function of one event; "
            f"{type(handler).__name__} is neither: pass the function, not the result of its call"
        )
    is_async = any(map(iscoroutinefunction, parts))
    return CompiledHandler(call, name, is_async, kinds)


def compile_method(
    method: Method, function: Callable[..., Awaitable[None] | None]
) -> CompiledHandler:
    """Return a handler that has ``function`` for its only method.

    Raises:
        TypeError: it is no function, or has a ``yield``, or takes other arguments.
    """
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"this is for a function, not for {function!r}")
    name, called = handler_name(function), getattr(function, "__call__", None)  # noqa: B004 - the method itself is inspected
    _check_no_yield(name, function, called)
    _check_method_signature(function, name, method)
    is_async = iscoroutinefunction(function) or iscoroutinefunction(called)
    kind = METHODS[method][0]
    return CompiledHandler(_event_function(**{method: function}), name, is_async, (kind,))


def _event_function(
    on_add: Callable[..., Any] | None = None,
    on_update: Callable[..., Any] | None = None,
    on_delete: Callable[..., Any] | None = None,
) -> Callable[[Event[Any]], Any]:
    def call(event: Event[Any]) -> Any:
        # No match statement: class patterns take twice as long, for every event.
        if isinstance(event, Updated):  # the most frequent kind comes first
            return on_update(event.old, event.new, resync=event.resync) if on_update else None
        if isinstance(event, Added):
            return on_add(event.obj, initial=event.initial) if on_add else None
        return on_delete(event.obj, reason=event.reason) if on_delete else None

    return call


def _bound_call(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the ``__call__`` method of an object with one; any other function unchanged.

    CPython calls a method in half the time that it takes to call an object.
    """
    function = type(handler).__call__
    return MethodType(function, handler) if isinstance(function, FunctionType) else handler


def handler_name(handler: object) -> str:
    """Return the name of a handler for logs: of its function, or of its class."""
    name = getattr(handler, "__qualname__", None) or type(handler).__qualname__
    return str(name).replace("<locals>.", "")


def _check_no_yield(name: str, *functions: object) -> None:
    """Raise TypeError if a function has a ``yield``.

    Calling such a function only makes an iterator, which the library doesn't iterate over.
    """
    if any(isgeneratorfunction(each) or isasyncgenfunction(each) for each in functions):
        raise TypeError(f"{name} has a yield in it: as a handler it would not run")


def _check_methods(handler: object, name: str) -> None:
    """Raise TypeError if a method takes other arguments, or its name has a slip in it."""
    missing = [each for each in METHODS if getattr(handler, each, None) is None]
    for method in dir(type(handler)):
        if method.startswith("on_") and method not in METHODS:
            from difflib import get_close_matches  # rarely needed

            for meant in get_close_matches(method, missing, n=1, cutoff=0.8):
                raise TypeError(
                    f"{name} has {method}, which is never called: rename it if {meant} is meant"
                )
    for each in METHODS:
        _check_method_signature(getattr(handler, each, None), f"{name}.{each}", each)


def _check_method_signature(function: object, name: str, method: Method) -> None:
    _, positional, keywords = METHODS[method]
    check_signature(function, name, *positional, **dict.fromkeys(keywords))


# -- wrappers ----------------------------------------------------------------------------------


def with_view(handler: CompiledHandler, view: ObjectView[Any] | None) -> CompiledHandler:
    """Return a handler of stored objects that shows ``handler`` what programs see of them.

    If an object can't be converted, the call raises, as if the handler had read the object. A
    deletion is passed on even then.
    """
    if view is None or handler.internal:
        return handler
    call, convert = handler.call, EventView(view).convert

    def call_with_view(event: Event) -> Any:
        return call(convert(event))

    return replace(handler, call=call_with_view)


def with_span(handler: CompiledHandler, begin_span: Callable[[str], SafeSpan]) -> CompiledHandler:
    """Return a handler that calls ``handler`` inside a span.

    A call with an event that the handler does nothing about has no span.

    Args:
        handler: the handler.
        begin_span: begins a span for an event of the given kind.
    """
    call, kinds = handler.call, handler.kinds

    def call_in_span(event: Event[Any]) -> Any:
        if not isinstance(event, kinds):
            return call(event)
        span = begin_span(type(event).__name__.lower())
        try:
            with span.current():
                result = call(event)
        except BaseException as error:
            span.ended(error)
            raise
        if result is not None and isawaitable(result):
            return await_in_span(result, span)  # which ends the span
        span.ended(None)
        return None

    return replace(handler, call=call_in_span)

"""Filters: what one listener is told, decided before anything enters its mailbox.

The semantics are client-go's FilteringResourceEventHandler: an object that ceases to pass is
deleted for this listener, one that begins to pass is added, and in between the listener sees the
updates of what passes. Whether an object passed before is asked of its old state rather than
remembered, so that a filter costs no memory; hence it must depend on the object alone. Every
kind of event goes through here: live ones, the initial state, the changes of a relist, resyncs.

Differences from client-go. A ``Deleted`` for an object that only ceased to pass says so with its
reason, ``"filtered"``. A filter that raises takes no process down: the object counts as passing,
so that nothing is lost, and what was raised is reported. The tests themselves are ``predicates``.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, TypeAlias

from typing_extensions import TypeVar

from aioinformer._core.callables import check_signature
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, Updated
from aioinformer._core.objects.view import ObjectView
from aioinformer._core.selectors.predicates import (
    ChangePredicate,
    CombinedPredicate,
    ObjectPredicate,
)

__all__ = ["EventFilter", "Filter"]

T = TypeVar("T", default=KubeObject)

Filter: TypeAlias = ObjectPredicate | ChangePredicate | CombinedPredicate | Callable[[T], object]
"""What can be given as ``filter=``: a predicate, or a function that is true of the objects to hear
of."""

_OnError: TypeAlias = Callable[[KubeObject, BaseException], None]


class EventFilter:
    """Lets through what a listener is to hear. It keeps no state."""

    def __init__(
        self, predicate: Filter[Any], on_error: _OnError, *, view: ObjectView[Any] | None = None
    ) -> None:
        """Make a filter.

        Args:
            predicate: what passes.
            on_error: called with what the filter raised, and at which object.
            view: what a plain function gets instead of an object, if it is something else.

        Raises:
            TypeError: ``predicate`` is neither a predicate nor a plain function.
            UsageError: it is a predicate, and there is no JSON for it to read.
        """
        self._object_test, self._change_test = _split_predicate(predicate)
        if view is not None:
            self._object_test = _with_view(self._object_test, self._change_test, view)
        self._text = repr(predicate)
        self._on_error = on_error

    def apply(self, event: Event) -> Event | None:
        """What the listener is told instead of ``event``; ``None`` for nothing."""
        if not isinstance(event, Updated):
            return event if self._passes(event.obj) else None
        old, new = event.old, event.new
        now = self._passes(new)
        before = now if old is new else self._passes(old)
        if now and before:
            return event if event.resync or self._passes_change(old, new) else None
        if now:
            return Added(new)
        return Deleted(old, "filtered") if before else None

    def _passes(self, obj: KubeObject) -> bool:
        if self._object_test is None:
            return True
        try:
            return bool(self._object_test(obj))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a program's function may raise anything
            self._on_error(obj, error)
            return True

    def _passes_change(self, old: KubeObject, new: KubeObject) -> bool:
        if self._change_test is None:
            return True
        try:
            return self._change_test(old, new)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a program's function may raise anything
            self._on_error(new, error)
            return True

    def __repr__(self) -> str:
        return f"<EventFilter {self._text}>"


def _with_view(
    objects: Callable[[KubeObject], object] | None,
    changes: ChangePredicate | None,
    view: ObjectView[Any],
) -> Callable[[KubeObject], object] | None:
    if changes is not None:
        view.require_json(f"the filter {changes!r} reads")
    of = None if objects is None else view.adapter_for(objects, "the filter")
    if objects is None or of is None:
        return objects
    asked: Callable[[Any], object] = objects
    return lambda obj: asked(of(obj))


def _split_predicate(
    predicate: Filter[Any],
) -> tuple[Callable[[KubeObject], object] | None, ChangePredicate | None]:
    if isinstance(predicate, CombinedPredicate):
        _check_sync(predicate.objects.test)
        _check_sync(predicate.changes.test)
        return predicate.objects, predicate.changes
    if isinstance(predicate, ChangePredicate):
        _check_sync(predicate.test)
        return None, predicate
    if isinstance(predicate, type) or not callable(predicate):
        raise TypeError(f"a filter is a predicate or a function of an object, not {predicate!r}")
    if isinstance(predicate, ObjectPredicate):
        _check_sync(predicate.test)
    else:
        _check_sync(predicate)
        check_signature(
            predicate, f"the filter {getattr(predicate, '__qualname__', predicate)!s}", "obj"
        )
    return predicate, None


def _check_sync(test: Callable[..., object]) -> None:
    called: tuple[object, object] = (test, type(test).__call__)
    name: str = getattr(test, "__qualname__", None) or repr(test)
    if any(map(iscoroutinefunction, called)):
        raise TypeError(f"the filter {name} is async; it must answer at once")
    if any(isgeneratorfunction(each) or isasyncgenfunction(each) for each in called):
        raise TypeError(f"the filter {name} has a yield in it, so that everything would pass")

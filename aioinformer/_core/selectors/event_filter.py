"""Filters: the selection of the events that one listener receives.

The semantics are those of client-go's FilteringResourceEventHandler:

    old state   new state   delivered
    passes      passes      the update
    -           passes      an addition
    passes      -           a deletion with reason "filtered"
    -           -           nothing

The old state of a deletion is the cached one, which the listener holds: the state that the server
sends with a deletion may differ from it. The filter is called for the old state again; so a filter
costs no memory, and must depend on the object alone. Events of every kind are filtered.

Two differences from client-go: the reason ``"filtered"``, and a filter that raises doesn't end the
process. The object counts as passing then, so that no event is lost, and the error is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isasyncgenfunction, isgeneratorfunction
from typing import Any, TypeAlias

from typing_extensions import TypeVar

from aioinformer._core.callables import check_signature, is_async
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    Updated,
    held_state,
)
from aioinformer._core.objects.view import ObjectView
from aioinformer._core.selectors.predicates import (
    ChangePredicate,
    CombinedPredicate,
    ObjectPredicate,
)

T = TypeVar("T", default=KubeObject)

Filter: TypeAlias = ObjectPredicate | ChangePredicate | CombinedPredicate | Callable[[T], object]
"""The forms of ``filter=``: a predicate, or a function that returns true for objects to deliver.

Example::

    choices: list[Filter] = [
        labelled("app=shop"),  # a predicate of objects
        labels_changed | annotations_changed,  # a predicate of changes
        labelled("app=shop") & generation_changed,  # both
        lambda pod: pod.name.startswith("web-"),
    ]
    for each in choices:
        pods.add_handler(print, filter=each)
"""

_OnError: TypeAlias = Callable[[KubeObject, BaseException], None]


class EventFilter:
    def __init__(
        self, predicate: Filter[Any], on_error: _OnError, *, view: ObjectView[Any] | None = None
    ) -> None:
        """Make a filter.

        ``on_error`` is called with an object and the exception that the predicate raised for it;
        ``view`` converts objects for a plain function, ``None`` for the stored objects.

        Raises:
            TypeError: ``predicate`` is neither a predicate nor a plain function.
            UsageError: the predicate reads JSON, and the informer keeps none.
        """
        self._object_test, self._change_test = _split_predicate(predicate)
        if view is not None:
            self._object_test = _with_view(self._object_test, self._change_test, view)
        self._text = repr(predicate)
        self._on_error = on_error

    def apply(self, event: Event) -> Event | None:
        """Return the event to deliver instead of ``event``, or ``None`` for none."""
        if not isinstance(event, Updated):
            held = held_state(event) if isinstance(event, Deleted) else event.obj
            return event if self._passes(held) else None
        old, new = event.old, event.new
        now = self._passes(new)
        before = now if old is new else self._passes(old)  # equal objects: a resync
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
    convert = None if objects is None else view.adapter_for(objects, "the filter")
    if objects is None or convert is None:
        return objects
    test: Callable[[Any], object] = objects
    return lambda obj: test(convert(obj))


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


def check_filter(predicate: Filter[Any] | None) -> None:
    """Raise ``TypeError`` unless ``predicate`` can be a listener's filter, or is ``None``."""
    if predicate is not None:
        _split_predicate(predicate)


def _check_sync(test: Callable[..., object]) -> None:
    functions: tuple[object, object] = (test, type(test).__call__)
    name: str = getattr(test, "__qualname__", None) or repr(test)
    if is_async(test):
        raise TypeError(f"the filter {name} is async; it must answer at once")
    if any(isgeneratorfunction(each) or isasyncgenfunction(each) for each in functions):
        raise TypeError(f"the filter {name} has a yield in it, so that everything would pass")

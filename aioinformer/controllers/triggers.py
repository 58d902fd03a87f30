"""Triggers: handlers that turn the events of one informer into keys of a controller.

A trigger only requests keys, so that it is quick. For an update, the keys of the old and the new
object are requested: a child whose owner changes affects both owners. If ``to_keys`` raises for one
of the two objects, the keys of the other are still requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

from aioinformer._core.callables import check_signature, is_async
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey, Updated
from aioinformer._core.objects.resources import Resource
from aioinformer._core.objects.view import UNREADABLE, EventView
from aioinformer._runtime.delivery.handler_errors import as_exception
from aioinformer.controllers.key_gate import KeyGate
from aioinformer.controllers.state.queue_items import Priority
from aioinformer.controllers.state.reconcile import Reason, cause_of

T = TypeVar("T", default=KubeObject)

ToKeys: TypeAlias = Callable[[T], Iterable[ObjectKey | str]]
"""Returns the keys that an object affects: ``ObjectKey``s, ``"namespace/name"``, or names where the
controller's informer has a namespace of its own."""

Enqueue: TypeAlias = Callable[[ObjectKey, Reason, Priority], None]


def check_informer(informer: T) -> T:
    """Return the informer that a controller was given; raise a ``TypeError`` for anything else."""
    if isinstance(informer, str | Resource):
        raise TypeError(
            f"a controller takes an informer, such as informers.informer({str(informer)!r}), not "
            f"{informer!r}; names of resources are for the controllers of an Operator, whose "
            "informers it makes: Operator(client, name=...).controller(...), and for the first "
            "argument of Controller(..., shards=group)"
        )
    if not hasattr(informer, "add_handler"):
        raise TypeError(
            f"a controller takes an informer, such as informers.informer('pods'), not {informer!r}"
        )
    return informer


def check_to_keys(to_keys: object) -> None:
    """Raise a ``TypeError`` unless this is a plain function of an object."""
    if isinstance(to_keys, type) or not callable(to_keys):
        raise TypeError(f"to_keys must be a function of an object, not {to_keys!r}")
    if is_async(to_keys):
        raise TypeError(f"{to_keys!r} is async; to_keys must be a plain function")
    check_signature(to_keys, getattr(to_keys, "__qualname__", "to_keys"), "obj")


def _reason_for(event: Event[Any], informer: str) -> tuple[Reason, Priority]:
    """Return the reason and the priority of an event, as in controller-runtime."""
    cause = cause_of(event)
    low = cause in ("initial", "resync")
    return Reason(cause, informer), Priority.LOW if low else Priority.NORMAL


class ObjectTrigger:
    """A handler that requests the key of each event's object.

    With ``deletions``, only those of objects that are being deleted: a controller's ``filter=`` may
    exclude the event that begins a deletion, as ``changed("spec")`` does for built-in resources,
    and an object with a finalizer would stay for ever.
    """

    def __init__(
        self,
        informer: str,
        enqueue: Enqueue,
        gate: KeyGate | None = None,
        *,
        deletions: bool = False,
    ) -> None:
        """Make a trigger. ``gate`` knows which deletions are moves to another replica."""
        self._informer = informer
        self._enqueue = enqueue
        self._gate = gate
        self._deletions = deletions

    def __call__(self, event: Event[Any]) -> None:
        """Request the key of an event."""
        if self._deletions and event.obj.deletion_timestamp is None:
            return
        if self._gate is None or self._gate.is_trigger(event):
            reason, priority = _reason_for(event, self._informer)
            self._enqueue(event.key, reason, Priority.NORMAL if self._deletions else priority)

    def __repr__(self) -> str:
        return f"<ObjectTrigger of {self._informer}>"


class Trigger(Generic[T]):
    """A handler that requests the keys that other objects affect."""

    def __init__(
        self,
        informer: str,
        enqueue: Enqueue,
        to_keys: ToKeys[T],
        *,
        parse_key: Callable[[ObjectKey | str], ObjectKey],
        on_error: Callable[[Exception], None],
        events: EventView[T] | None = None,
    ) -> None:
        """Make a trigger. ``parse_key`` converts what ``to_keys`` returns; ``on_error`` gets its
        errors; ``events`` makes the argument of ``to_keys``, ``None`` for objects as stored.
        """
        self._informer = informer
        self._enqueue = enqueue
        self._to_keys = to_keys
        self._parse_key = parse_key
        self._on_error = on_error
        self._events = events

    def __call__(self, event: Event[Any]) -> None:
        """Request the keys that an event affects, then raise the first error of ``to_keys``."""
        if failures := self._request(event):
            raise failures[0]

    def on_rejected(self, stored: Callable[[ObjectKey], KubeObject | None], key: ObjectKey) -> None:
        """Request the keys that the cached version of an object affects, since the cache has
        rejected a newer one, for which no event comes.
        """
        obj = stored(key)
        if obj is not None:
            self._request(Updated(obj, obj))

    def _request(self, event: Event[Any]) -> list[Exception]:
        reason, priority = _reason_for(event, self._informer)
        failures: list[Exception] = []
        for key in self._affected_keys(event, failures):
            self._enqueue(key, reason, priority)
        if failures:
            self._on_error(failures[0])
        return failures

    def _affected_keys(self, event: Event[Any], failures: list[Exception]) -> Iterable[ObjectKey]:
        """Return the keys of the old and the new object, each key once."""
        found: dict[ObjectKey, None] = {}
        for state in self._shown_states(event, failures):
            try:
                found.update(dict.fromkeys(self._keys_of(state)))
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - a program's code; raised by __call__
                failures.append(as_exception(error, f"to_keys of {self._informer}"))
        return found

    def _shown_states(self, event: Event[Any], failures: list[Exception]) -> Iterable[T]:
        """Return the new object and the old one, as ``to_keys`` takes them. For a new object that
        can't be converted, the last one that could.
        """
        key = event.key
        try:
            shown: Event[T] = event if self._events is None else self._events.convert(event)
            states = [shown.obj]
        except UNREADABLE as error:
            failures.append(error)
            return () if self._events is None else self._events.held(key)
        if isinstance(shown, Updated) and shown.old is not shown.new:
            states.append(shown.old)
        return states

    def _keys_of(self, obj: T) -> list[ObjectKey]:
        given = self._to_keys(obj)
        if not _is_key_list(given):
            raise TypeError(f"{self._to_keys!r} must return a list of keys, not {given!r}")
        return [self._parse_key(each) for each in given]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._informer}: {self._to_keys!r}>"


def _is_key_list(given: object) -> bool:
    """Return True if this is a list of keys. A string is iterable, but its elements are letters."""
    return isinstance(given, Iterable) and not isinstance(given, str)

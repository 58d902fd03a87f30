"""The form in which programs see cached objects: as they are, as models, or converted.

An ``ObjectView`` stands at every border between the cache and a program: lister, handlers, streams,
filters, index functions, waits. Informers without ``model=`` and ``convert=`` have no view, and no
cost.

An object is converted when a program reads it, so an object that can't be converted is found late,
by its reader. The last results are kept, because an update needs the state before too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Generic

from typing_extensions import TypeVar

from aioinformer._core.objects.decode_errors import HIDDEN_TEXT, is_secret
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    Updated,
    held_state,
)
from aioinformer._core.objects.object_key import ObjectKey
from aioinformer._core.objects.stored import NeedsJson
from aioinformer.errors import ModelMismatch, ObjectDecodeError, TransformFailed, UsageError

T = TypeVar("T", default=KubeObject)
T_co = TypeVar("T_co", covariant=True, default=KubeObject)
F = TypeVar("F", ModelMismatch, TransformFailed)

MAX_CONVERTED = 128
"""The number of conversions that are kept: an update needs the old state, too, which was converted
when it was new. With kubernetes_asyncio's pods they take 10 MB."""

UNREADABLE = (ModelMismatch, ObjectDecodeError)
"""The errors for an object that can't be converted."""


class ObjectView(Generic[T]):
    __slots__ = ("_description", "_failures", "_has_json", "convert")

    def __init__(
        self,
        convert: Callable[[KubeObject], T],
        description: str,
        *,
        has_json: bool,
        failures: Callable[[], int] = int,
    ) -> None:
        """Create a view that shows the results of ``convert``, which may raise ``ModelMismatch``.

        ``description`` names that form in errors; ``has_json`` says that the cached object has its
        JSON; ``failures`` returns the number of times that ``convert`` has raised.
        """
        self.convert = convert
        self._description = description
        self._has_json = has_json
        self._failures = failures

    def adapter_for(self, function: object, role: str) -> Callable[[KubeObject], T] | None:
        """Return the conversion for the objects passed to ``function``; ``None`` for no conversion.

        ``role`` is the purpose of the function, for the error.

        Raises:
            UsageError: the function reads an object's JSON, which isn't kept.
        """
        if not isinstance(function, NeedsJson):
            return self.convert
        if function.needs_bytes:
            self.require_json(f"{role} {function!r} reads")
        return None

    def require_json(self, reader: str, advice: str = "") -> None:
        """Raise ``UsageError`` unless objects have JSON, as ``"the filter f reads"``."""
        if not self._has_json:
            raise UsageError(
                f"{reader} an object's JSON, and an informer with model= keeps none: "
                f"{advice or f'give a plain function of {self._description}'}"
            )

    @property
    def failures(self) -> int:
        return self._failures()

    @property
    def is_fast(self) -> bool:
        """True if showing an object takes next to no time."""
        return not self._has_json

    def __repr__(self) -> str:
        return f"<View of {self._description}>"


class EventView(Generic[T]):
    """The events of one listener, as a program sees them.

    An event whose state can't be converted is an error of that one event. The last state that the
    listener was shown is kept until the object can be converted again or is deleted, so that the
    listener learns what becomes of it.
    """

    __slots__ = ("_held", "_of")

    def __init__(self, view: ObjectView[T]) -> None:
        self._of = view.convert
        self._held: dict[ObjectKey, tuple[T, ...]] = {}
        """By key of an object that can't be converted: the state that the listener was shown last,
        or nothing."""

    def convert(self, event: Event) -> Event[T]:
        """Return the event with converted objects.

        An update of a state that can't be converted begins with the state that the listener was
        shown last; without one, it is an addition. A deletion always arrives: with the last state,
        the cached one, or the one shown last. If none can be converted, the event has its key
        alone, and reading ``obj`` raises.

        Raises:
            ModelMismatch: the object can't be converted.
            ObjectDecodeError: the object is no JSON.
        """
        if not isinstance(event, Updated):  # the most frequent kind, so it needs no other call
            if isinstance(event, Added):
                return self._convert_added(event)
            return self._convert_deleted(event)
        stored, of, resync = event.new, self._of, event.resync
        try:
            new = of(stored)
        except UNREADABLE:
            if stored.key not in self._held:
                self._held[stored.key] = self._try(event.old)
            raise
        if self._held and (held := self._held.pop(stored.key, None)) is not None:
            if not held:
                return _Added(new, _key=stored.key)
            old, resync = held[0], False
        else:
            try:
                old = of(event.old)
            except UNREADABLE:
                return _Added(new, _key=stored.key)
        return _Updated(old, new, resync, _key=stored.key)

    def _convert_added(self, event: Added) -> Event[T]:
        stored = event.obj
        try:
            new = self._of(stored)
        except UNREADABLE:
            self._held.setdefault(stored.key, ())
            raise
        if self._held:
            self._held.pop(stored.key, None)
        return _Added(new, event.initial, _key=stored.key)

    def held(self, key: ObjectKey) -> tuple[T, ...]:
        """Return the state that the listener was shown last of an object that can't be converted;
        nothing if there is none.
        """
        return self._held.get(key, ())

    def _convert_deleted(self, event: Deleted) -> Event[T]:
        stored = event.obj
        held = self._held.pop(stored.key, None) if self._held else None
        try:
            obj = self._of(stored)
        except UNREADABLE as error:
            cached = held_state(event)
            if held is None and cached is not stored:
                held = self._try(cached)
            if not held:
                error.__traceback__ = None  # its frames refer to this event
                return _DeletedKey(None, event.reason, _key=stored.key, _error=error)
            obj = held[0]
        return _Deleted(obj, event.reason, _key=stored.key)

    def _try(self, obj: KubeObject) -> tuple[T, ...]:
        try:
            return (self._of(obj),)
        except UNREADABLE:
            return ()

    def __repr__(self) -> str:
        return f"<EventView held={len(self._held)}>"


def model_view(model: type[T]) -> ObjectView[T]:
    return ObjectView(attrgetter("model"), name_of(model), has_json=False)


def conversion_view(convert: Callable[[KubeObject], T]) -> ObjectView[T]:
    conversion = Conversion(convert)
    shown = f"what {name_of(convert)} returns"
    return ObjectView(conversion, shown, has_json=True, failures=lambda: conversion.failures)


class Conversion(Generic[T]):
    """A conversion by ``convert=``, which keeps its last results.

    Every step is one atomic operation of ``dict`` or ``deque``, so that readers in threads may
    race: at worst an object is converted twice.
    """

    def __init__(self, convert: Callable[[KubeObject], T]) -> None:
        self.failures = 0
        self._convert = convert
        self._results: dict[int, tuple[KubeObject, T]] = {}
        """The results by id of the object, which is kept too, so that its id can't be reused."""
        self._order: deque[int] = deque()

    def __call__(self, obj: KubeObject) -> T:
        """Return the converted form of ``obj``.

        Raises:
            ModelMismatch: ``convert`` raised.
            ObjectDecodeError: the object is no JSON.
        """
        result = self._results.get(id(obj))
        if result is not None:
            return result[1]
        try:
            converted = self._convert(obj)
        except ObjectDecodeError:  # not the function's fault
            self.failures += 1
            raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a program's function may raise anything
            self.failures += 1
            what = f"convert= {name_of(self._convert)} failed"
            failure = conversion_error(ModelMismatch, obj, what, error)
        else:
            self._remember(obj, converted)
            return converted
        # An error that is raised inside of the except block would keep the function's error, which
        # may quote a Secret, as its ``__context__``.
        raise failure

    def _remember(self, obj: KubeObject, converted: T) -> None:
        self._results[id(obj)] = (obj, converted)
        self._order.append(id(obj))
        while len(self._order) > MAX_CONVERTED:
            try:
                self._results.pop(self._order.popleft(), None)
            except IndexError:  # another thread was faster
                return

    def __repr__(self) -> str:
        return f"<Conversion by {name_of(self._convert)} results={len(self._results)}>"


def conversion_error(kind: type[F], obj: KubeObject, what: str, error: BaseException) -> F:
    """Return the error for a failed conversion of ``obj``, with its cause.

    Validators quote the invalid value, so of a Secret's conversion only the error's class is kept.
    """
    secret = is_secret(obj.resource)
    try:
        why = HIDDEN_TEXT if secret else str(error)
    except Exception:  # noqa: BLE001 - a program's exception
        why = "(its message can't be shown)"
    failure = kind(
        f"{obj.resource} {obj.key} at resourceVersion {obj.resource_version}: {what}: "
        f"{type(error).__name__}: {why}",
        key=str(obj.key),
        resource_version=obj.resource_version,
        uid=obj.uid,
    )
    if not secret:
        failure.__cause__ = error
    return failure


class ObjectSnapshot(Mapping[ObjectKey, T]):
    """The objects of one moment, each converted when read; none may be changed any more."""

    def __init__(self, objects: Mapping[ObjectKey, KubeObject], view: ObjectView[T]) -> None:
        self._objects = objects
        self._convert = view.convert

    def __getitem__(self, key: ObjectKey) -> T:
        return self._convert(self._objects[key])

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def __repr__(self) -> str:
        return f"<ObjectSnapshot objects={len(self)}>"


def name_of(function: object) -> str:
    """Return the name of a program's function or model, for messages."""
    names = (getattr(function, name, None) for name in ("__qualname__", "__name__"))
    found = next(filter(None, names), type(function).__qualname__)  # never an address in memory
    return str(found).replace("<locals>.", "")


# -- events of converted objects ---------------------------------------------------------------
#
# These store the key, which can't be read from the object, and otherwise behave as the plain
# events. A program's object may refer to the event that contains it, so the garbage collector must
# see them.


class _KeyedEvent:
    """An event with a stored key, compared and shown as the plain event."""

    __slots__ = ()

    _key: ObjectKey

    @property
    def _plain_event(self) -> Event[Any]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self._plain_event == (
            other._plain_event if isinstance(other, _KeyedEvent) else other
        )

    def __ne__(self, other: object) -> bool:  # the method of Struct compares identities
        return not self == other

    def __hash__(self) -> int:
        return hash(self._plain_event)

    def __repr__(self) -> str:
        return repr(self._plain_event)

    def __reduce__(self) -> str | tuple[Any, ...]:  # pickled as the plain event
        return self._plain_event.__reduce__()


class _Added(_KeyedEvent, Added[T_co], frozen=True, eq=False, gc=True, kw_only=True):
    _key: ObjectKey

    @property
    def key(self) -> ObjectKey:
        return self._key

    @property
    def _plain_event(self) -> Added[T_co]:
        return Added(self.obj, self.initial)


class _Updated(_KeyedEvent, Updated[T_co], frozen=True, eq=False, gc=True, kw_only=True):
    _key: ObjectKey

    @property
    def key(self) -> ObjectKey:
        return self._key

    @property
    def _plain_event(self) -> Updated[T_co]:
        return Updated(self.old, self.new, self.resync)


class _Deleted(_KeyedEvent, Deleted[T_co], frozen=True, eq=False, gc=True, kw_only=True):
    _key: ObjectKey

    @property
    def key(self) -> ObjectKey:
        return self._key

    @property
    def _plain_event(self) -> Deleted[T_co]:
        return Deleted(self.obj, self.reason)


class _DeletedKey(_KeyedEvent, Deleted[Any], frozen=True, eq=False, gc=True, kw_only=True):
    """The deletion of an object of which no state can be converted."""

    _key: ObjectKey
    _error: Exception

    @property
    def key(self) -> ObjectKey:
        return self._key

    @property  # type: ignore[misc]
    def obj(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise self._error  # the field, which can't be assigned either, is None

    @property
    def _plain_event(self) -> Deleted[Any]:
        return Deleted((self._key, str(self._error)), self.reason)


for _kind, _name in (
    *((_Added, "Added"), (_Updated, "Updated")),
    *((_Deleted, "Deleted"), (_DeletedKey, "Deleted")),
):
    _kind.__name__ = _kind.__qualname__ = _name

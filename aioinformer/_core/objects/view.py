"""What programs see of cached objects: the objects themselves, models, or what they convert to.

A ``ObjectView`` stands at every border between the cache and a program: lister, handlers, streams,
filters, index functions, waits. Where programs see whole objects there is none, and nothing to
pay. Behind the border everything is a ``KubeObject``; how those came to be is ``shapes``' business.

A conversion is asked for when it is needed, so that an object which can't be converted is found
late: by who reads it. What was converted last is kept, since an update needs the state before too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Generic

from typing_extensions import TypeVar

from aioinformer._core.objects.identity import ObjectKey
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, Updated
from aioinformer._core.objects.stored import NeedsJson
from aioinformer.errors import ModelMismatch, ObjectDecodeError, TransformFailed, UsageError

__all__ = [
    "Conversion",
    "ObjectSnapshot",
    "ObjectView",
    "conversion_error",
    "conversion_view",
    "model_view",
    "name_of",
]

T = TypeVar("T", default=KubeObject)
T_co = TypeVar("T_co", covariant=True, default=KubeObject)
F = TypeVar("F", ModelMismatch, TransformFailed)

MAX_CONVERTED = 128
"""Conversions that are kept: an update converts the new state and needs the old one, which was
converted when it was new unless 128 others were since. Of kubernetes_asyncio's pods they take
10 MB."""


class ObjectView(Generic[T]):
    """How one informer shows its objects."""

    __slots__ = ("_description", "_failures", "_has_json", "convert")

    def __init__(
        self,
        convert: Callable[[KubeObject], T],
        description: str,
        *,
        has_json: bool,
        failures: Callable[[], int] = int,
    ) -> None:
        """Show objects as what ``convert`` makes of them.

        Args:
            convert: gives what a program sees of a cached object; may raise ``ModelMismatch``.
            description: what that is called.
            has_json: whether the cached object has its JSON.
            failures: how many times ``convert`` has raised; never, by default.
        """
        self.convert = convert
        """What a program sees of an object."""
        self._description = description
        self._has_json = has_json
        self._failures = failures

    def adapter_for(self, function: object, asked: str) -> Callable[[KubeObject], T] | None:
        """Through what ``function`` is to see objects; ``None`` if it gets the ``KubeObject``.

        Raises:
            UsageError: it reads an object's JSON, which isn't kept; ``asked`` says what it is.
        """
        if not isinstance(function, NeedsJson):
            return self.convert
        if function.needs_bytes:
            self.require_json(f"{asked} {function!r} reads")
        return None

    def require_json(self, what: str) -> None:
        """Raise unless there is JSON to read; ``what`` says who wants to.

        Raises:
            UsageError: there is none.
        """
        if not self._has_json:
            raise UsageError(
                f"{what} an object's JSON, and an informer with model= keeps none: give a plain "
                f"function of {self._description}"
            )

    @property
    def failures(self) -> int:
        """How many times an object could not be shown."""
        return self._failures()

    @property
    def is_fast(self) -> bool:
        """Whether showing an object takes no time that is worth to be spoken of."""
        return not self._has_json

    def convert_event(self, event: Event) -> Event[T]:
        """What a program is told instead.

        An update from a state that can't be shown is told as an addition: nobody has seen it.

        Raises:
            ModelMismatch: the object can't be converted.
            ObjectDecodeError: it is no JSON.
        """
        of = self.convert
        if isinstance(event, Updated):
            new = of(event.new)
            try:
                return _Updated(of(event.old), new, event.resync, _key=event.new.key)
            except (ModelMismatch, ObjectDecodeError):
                return _Added(new, _key=event.new.key)
        if isinstance(event, Added):
            return _Added(of(event.obj), event.initial, _key=event.obj.key)
        return _Deleted(of(event.obj), event.reason, _key=event.obj.key)

    def __repr__(self) -> str:
        return f"<View of {self._description}>"


def model_view(model: type[T]) -> ObjectView[T]:
    """Shows the model that was kept."""
    return ObjectView(attrgetter("model"), name_of(model), has_json=False)


def conversion_view(convert: Callable[[KubeObject], T]) -> ObjectView[T]:
    """Shows what ``convert`` makes of an object, once somebody looks."""
    conversion = Conversion(convert)
    shown = f"what {name_of(convert)} returns"
    return ObjectView(conversion, shown, has_json=True, failures=lambda: conversion.failures)


class Conversion(Generic[T]):
    """Calls ``convert=``, and keeps what it returned last.

    Readers in threads may race here, every step being one atomic operation of ``dict`` or
    ``deque``: the worst is an object converted twice.
    """

    def __init__(self, convert: Callable[[KubeObject], T]) -> None:
        """Nothing is converted yet."""
        self.failures = 0
        """How many times ``convert`` has raised."""
        self._convert = convert
        self._results: dict[int, tuple[KubeObject, T]] = {}
        """By id of the object, which is kept alive here, so that nobody else can have its id."""
        self._order: deque[int] = deque()

    def __call__(self, obj: KubeObject) -> T:
        """What ``obj`` converts to.

        Raises:
            ModelMismatch: ``convert`` raised.
            ObjectDecodeError: the object is no JSON.
        """
        kept = self._results.get(id(obj))
        if kept is not None:
            return kept[1]
        try:
            made = self._convert(obj)
        except ObjectDecodeError:  # no fault of the function's
            self.failures += 1
            raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self.failures += 1
            what = f"convert= {name_of(self._convert)} failed"
            raise conversion_error(ModelMismatch, obj, what, error) from error
        self._remember(obj, made)
        return made

    def _remember(self, obj: KubeObject, made: T) -> None:
        self._results[id(obj)] = (obj, made)
        self._order.append(id(obj))
        while len(self._order) > MAX_CONVERTED:
            try:
                self._results.pop(self._order.popleft(), None)
            except IndexError:  # another thread was faster
                return

    def __repr__(self) -> str:
        return f"<Conversion by {name_of(self._convert)} kept={len(self._results)}>"


def conversion_error(kind: type[F], obj: KubeObject, what: str, error: BaseException) -> F:
    """The error that tells what could not be made of ``obj``, and why."""
    try:
        why = str(error)
    except Exception:  # noqa: BLE001 - a program's exception
        why = "(and it can't be printed)"
    made = kind(
        f"{obj.resource} {obj.key} at resourceVersion {obj.resource_version}: {what}: "
        f"{type(error).__name__}: {why}",
        key=str(obj.key),
        resource_version=obj.resource_version,
    )
    made.__cause__ = error
    return made


class ObjectSnapshot(Mapping[ObjectKey, T]):
    """Objects of one moment, shown one by one as somebody looks."""

    def __init__(self, objects: Mapping[ObjectKey, KubeObject], view: ObjectView[T]) -> None:
        """Show ``objects``, which nobody may change any more."""
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
        return f"<Snapshot objects={len(self)}>"


def name_of(function: object) -> str:
    """What to call a program's function or model in a message."""
    names = (getattr(function, name, None) for name in ("__qualname__", "__name__"))
    found = next(filter(None, names), type(function).__qualname__)  # never an address in memory
    return str(found).replace("<locals>.", "")


# -- events of what is not a KubeObject --------------------------------------------------------
#
# They know the key, which can't be read off the object, and are else what they are named for. A
# program's object may lead back to an event that it was given, so the garbage collector must see
# these.


class _KeyedEvent:
    """Compared and shown as the plain event."""

    __slots__ = ()

    _key: ObjectKey

    @property
    def _plain_event(self) -> Event[Any]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self._plain_event == (
            other._plain_event if isinstance(other, _KeyedEvent) else other
        )

    def __ne__(self, other: object) -> bool:  # the struct's own compares identities
        return not self == other

    def __hash__(self) -> int:
        return hash(self._plain_event)

    def __repr__(self) -> str:
        return repr(self._plain_event)

    def __reduce__(self) -> str | tuple[Any, ...]:  # the key stays behind
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


for _kind, _name in ((_Added, "Added"), (_Updated, "Updated"), (_Deleted, "Deleted")):
    _kind.__name__ = _kind.__qualname__ = _name

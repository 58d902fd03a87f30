"""What an informer keeps of each object, and what its programs see of it: ``Shape``.

Four forms. The whole object, as its bytes. A ``model=``: built as the object is cut from the
stream, and nothing else kept. ``convert=``: the bytes are kept, and a program's function makes of
them what programs see, when they look. And before any of these, a ``transform=``.

An object that doesn't fit is withheld in its place in the order of things, so that the cache keeps
the version before, and says so (``ExcludedObject``). What is shown where is ``views``'.

``transform=``: a program's function that replaces or drops objects before anything sees them.

It runs once for each version that is read, whatever kind of event brought it, so that what it cuts
is never cached. What it returns must be the same object still, by key, uid and version: else the
cache would file it elsewhere, or take it for older or newer than it is. client-go's TransformFunc
may return anything, and an error of it stops the informer; here it costs that one object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeAlias, cast, overload

import msgspec
from msgspec import inspect
from typing_extensions import TypeVar

from aioinformer._core.codec.object_decoder import decode_envelope
from aioinformer._core.objects.identity import ObjectKey
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import ExcludedObject, ModelObject
from aioinformer._core.objects.view import (
    ObjectView,
    conversion_error,
    conversion_view,
    model_view,
    name_of,
)
from aioinformer.errors import ModelMismatch, TransformFailed, UsageError

__all__ = ["Converter", "Shape", "Transform", "Transformer", "with_type_meta"]


Transform: TypeAlias = Callable[[KubeObject], KubeObject | Mapping[str, Any] | None]
"""Gives the object itself, another body for it, or ``None`` to drop it. It must give the same
answer for the same object every time; it runs in the event loop, for each object that is read."""


class Transformer:
    """Calls one ``transform=``."""

    def __init__(self, transform: Transform) -> None:
        """Have ``transform`` called for each object."""
        self._transform = transform

    def __call__(self, obj: KubeObject) -> KubeObject:
        """What is to be cached of ``obj``: itself, another body, or ``ExcludedObject``."""
        try:
            made = self._transform(obj)
            if made is obj:
                return obj
            return ExcludedObject.of(obj) if made is None else _replace_body(made, obj)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a program's function may raise anything
            what = f"transform= {name_of(self._transform)} failed"
            return ExcludedObject.of(obj, conversion_error(TransformFailed, obj, what, error))

    def __repr__(self) -> str:
        return f"<Transformer by {name_of(self._transform)}>"


def _replace_body(made: object, obj: KubeObject) -> KubeObject:
    """``obj`` with another body.

    Raises:
        TypeError: ``made`` is no object.
        ValueError: it is another object, or another version of it.
        msgspec.MsgspecError: it is no Kubernetes object, or can't be written as JSON.
    """
    if isinstance(made, KubeObject):
        raw, identity = made.raw, (made.key, made.uid, made.resource_version)
    elif isinstance(made, Mapping):
        raw = _encode(cast("Mapping[str, Any]", made))
        metadata = decode_envelope(raw).metadata
        key = ObjectKey(metadata.namespace, metadata.name)
        identity = (key, metadata.uid, metadata.resourceVersion)
    else:
        raise TypeError(f"it returned a {type(made).__name__}, not an object, a mapping or None")
    kept = (obj.key, obj.uid, obj.resource_version)
    if identity != kept:
        was, now = (f"{key} uid={uid} rv={rv}" for key, uid, rv in (kept, identity))
        raise ValueError(f"it must keep name, namespace, uid and resourceVersion: {was} is {now}")
    return KubeObject(obj.key, obj.uid, obj.resource_version, raw, obj.resource)


def _to_plain(value: object) -> object:
    """A part of a cached object, which is read-only, as something that JSON has."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a {type(value).__name__} can't be written as JSON")


_encode = msgspec.json.Encoder(enc_hook=_to_plain).encode


T = TypeVar("T", default=KubeObject)
M = TypeVar("M")

Converter: TypeAlias = Callable[[KubeObject], KubeObject]
"""What is kept of an object that was just read. It never raises: what doesn't fit is withheld."""

_MODEL_TYPES = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)

_TYPE_META = {"apiVersion", "kind"}
"""What the items of a list lack, and the events of a watch have."""


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """What an informer makes of each object. ``Shape.of`` makes them."""

    model: Any = None
    convert: Callable[[KubeObject], T] | None = None
    transform: Transform | None = None

    @overload
    @classmethod
    def of(cls, *, transform: Transform | None = None) -> Shape: ...
    @overload
    @classmethod
    def of(cls, *, model: type[M], transform: Transform | None = None) -> Shape[M]: ...
    @overload
    @classmethod
    def of(
        cls, *, convert: Callable[[KubeObject], M], transform: Transform | None = None
    ) -> Shape[M]: ...
    @classmethod
    def of(
        cls,
        *,
        model: type[Any] | None = None,
        convert: Callable[[KubeObject], Any] | None = None,
        transform: Transform | None = None,
    ) -> Shape[Any]:
        """The shape that was asked for.

        Args:
            model: a ``msgspec.Struct``, dataclass, ``TypedDict`` or attrs class. Only what it
                declares is kept. Best a frozen ``Struct`` with ``gc=False`` and tuples: nobody can
                change what is cached then, and Python's garbage collector has nothing to visit.
                With 50,000 pods of eight fields, a full collection takes 0.1 ms longer with
                such structs, 60 with others, 200 with dataclasses, which take twice the memory
                too; and all of the program waits for it (``benchmarks/models.py``).
            convert: makes something of a ``KubeObject``, when somebody looks; must be quick, and
                ready to be called in any thread that reads. A few results are kept and shared.
            transform: see ``Transform``.

        Raises:
            UsageError: both ``model`` and ``convert`` are given, or ``model`` is no such class.
            TypeError: a function is none, or async, or has no hash.
        """
        return cls.checked(model, convert, transform)

    @classmethod
    def checked(
        cls,
        model: type[Any] | None,
        convert: Callable[[KubeObject], Any] | None,
        transform: Transform | None,
    ) -> Shape[Any]:
        """The same as ``of``, where it isn't known which of them were given."""
        if model is not None and convert is not None:
            raise UsageError("model= and convert= exclude each other: objects have one form")
        if model is not None:
            _model_fields(model)
        _check_function("convert", convert)
        _check_function("transform", transform)
        return cls(model, convert, transform)

    def view(self) -> ObjectView[T] | None:
        """A new view of objects in this shape; ``None`` if programs see the objects themselves."""
        if self.model is not None:
            return model_view(self.model)
        return None if self.convert is None else conversion_view(self.convert)

    def keep(self) -> Converter | None:
        """What makes of an object what is kept of it; ``None`` if that is the object itself."""
        transform = None if self.transform is None else Transformer(self.transform)
        if self.model is None:
            return transform
        model = _ModelDecoder(self.model)
        if transform is None:
            return model

        def keep(obj: KubeObject) -> KubeObject:
            made = transform(obj)
            return made if type(made) is ExcludedObject else model(made)

        return keep

    def __str__(self) -> str:
        form = self.model or self.convert
        parts = [f"as {name_of(form)}"] if form is not None else []
        if self.transform is not None:
            parts.append(f"through {name_of(self.transform)}")
        return " ".join(parts)


class _ModelDecoder:
    """Makes models of objects."""

    def __init__(self, model: type[Any]) -> None:
        self._decode = msgspec.json.Decoder(model).decode
        self._adds_type_meta = not _TYPE_META.isdisjoint(_model_fields(model))
        self._name = name_of(model)

    def __call__(self, obj: KubeObject) -> KubeObject:
        raw = with_type_meta(obj) if self._adds_type_meta else obj.raw
        try:
            model: Any = self._decode(raw)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a model may have code of its own
            what = f"it doesn't fit the model {self._name}"
            return ExcludedObject.of(obj, conversion_error(ModelMismatch, obj, what, error))
        key, uid, version = obj.key, obj.uid, obj.resource_version
        return ModelObject(key, uid, version, b"", obj.resource, model=model, size=len(obj.raw))

    def __repr__(self) -> str:
        return f"<Modelling {self._name}>"


def with_type_meta(obj: KubeObject) -> bytes:
    """Its JSON, with the kind and apiVersion that items of a list lack. Where it has its own they
    come later, and decoders take the last one.
    """
    head = msgspec.json.encode({"apiVersion": obj.api_version, "kind": obj.kind})
    return head[:-1] + b"," + obj.raw[1:]


def _model_fields(model: object) -> set[str]:
    """The keys that it declares.

    Raises:
        UsageError: it can't be a model.
    """
    said = (
        f"model= takes a msgspec.Struct, dataclass, TypedDict or attrs class, not {name_of(model)}"
    )
    if isinstance(model, type) and issubclass(model, KubeObject):
        raise UsageError(f"{said}, which is what objects are without it")
    try:
        found = inspect.type_info(model)
    except Exception as error:  # of whatever its annotations are made of
        raise UsageError(f"{said}: {error}") from error
    if not isinstance(found, _MODEL_TYPES):
        raise UsageError(
            f"{said}; convert= takes any function of an object, and aioinformer.adapters has some"
        )
    return {field.encode_name for field in found.fields}


def _check_function(name: str, function: object) -> None:
    if function is None:
        return
    if not callable(function):
        raise TypeError(f"{name}= is a function of an object, not {function!r}")
    if iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__):
        raise TypeError(f"{name}= {name_of(function)} is async; it must answer at once")
    try:
        hash(function)
    except TypeError:
        raise TypeError(
            f"{name}= {name_of(function)} has no hash: one informer can't be told from another"
        ) from None

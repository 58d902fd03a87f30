"""``Shape``: the form in which an informer keeps objects, and the form in which programs see them.

By default the bytes of the whole object are kept; with ``metadata_only=True`` those of its
metadata; with ``model=`` an instance of a class and nothing else. With ``convert=`` the bytes are
kept, and a program's function converts the object when the program reads it. Before any of these,
``transform=`` names a program's function that replaces or drops objects.

``transform=`` runs once for each version that arrives, so that removed parts are never cached. Its
result must be the same object by key, uid and version: else the cache would file the object
elsewhere, or take it for older or newer than it is. client-go's TransformFunc may return anything,
and its error stops the informer; here an error rejects that one version.

A rejected object keeps its place in the order of events (as an ``ExcludedObject``), so that the
cache keeps the version before and lists the object as rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Generic, TypeAlias, cast, overload

import msgspec
from msgspec import Struct, inspect
from typing_extensions import TypeVar

from aioinformer._core.callables import is_async
from aioinformer._core.codec.metadata_form import keep_metadata
from aioinformer._core.codec.object_decoder import decode_envelope
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_key import ObjectKey
from aioinformer._core.objects.stored import ExcludedObject, ModelObject
from aioinformer._core.objects.view import (
    ObjectView,
    conversion_error,
    conversion_view,
    model_view,
    name_of,
)
from aioinformer.errors import ModelMismatch, TransformFailed, UsageError

Transform: TypeAlias = Callable[[KubeObject], KubeObject | Mapping[str, Any] | None]
"""Returns the object itself, another body for it, or ``None`` to drop it, and the same result for
the same object every time. It runs in the event loop, for each object that arrives."""


class Transformer:
    def __init__(
        self, transform: Transform, on_dropped: Callable[[KubeObject], None] | None = None
    ) -> None:
        self._transform = transform
        self._on_dropped = on_dropped

    def __call__(self, obj: KubeObject) -> KubeObject:
        """Return the form of ``obj`` to cache: itself, another body, or ``ExcludedObject``."""
        try:
            result = self._transform(obj)
            if result is obj:
                return obj
            if result is not None:
                return _replace_body(result, obj)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a program's function may raise anything
            what = f"transform= {name_of(self._transform)} failed"
            return ExcludedObject.of(obj, conversion_error(TransformFailed, obj, what, error))
        if self._on_dropped is not None:
            self._on_dropped(obj)
        return ExcludedObject.of(obj)

    def __repr__(self) -> str:
        return f"<Transformer by {name_of(self._transform)}>"


def _replace_body(body: object, obj: KubeObject) -> KubeObject:
    """Return ``obj`` with another body.

    Raises:
        TypeError: ``body`` is no object and no mapping.
        ValueError: ``body`` is another object, or another version of the object.
        msgspec.MsgspecError: ``body`` is no Kubernetes object, or can't be written as JSON.
    """
    if isinstance(body, KubeObject):
        raw, identity = body.raw, (body.key, body.uid, body.resource_version)
    elif isinstance(body, Mapping):
        raw = _encode(cast("Mapping[str, Any]", body))
        metadata = decode_envelope(raw).metadata
        key = ObjectKey(metadata.namespace, metadata.name)
        identity = (key, metadata.uid, metadata.resource_version)
    else:
        raise TypeError(f"it returned a {type(body).__name__}, not an object, a mapping or None")
    expected = (obj.key, obj.uid, obj.resource_version)
    if identity != expected:
        old, new = (f"{key} uid={uid} rv={rv}" for key, uid, rv in (expected, identity))
        raise ValueError(
            f"it must keep name, namespace, uid and resourceVersion: it returned {new} for {old}"
        )
    return KubeObject(obj.key, obj.uid, obj.resource_version, raw, obj.resource)


def _to_plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    raise TypeError(f"a {type(value).__name__} can't be written as JSON")


_encode = msgspec.json.Encoder(enc_hook=_to_plain).encode


T = TypeVar("T", default=KubeObject)
M = TypeVar("M")

Converter: TypeAlias = Callable[[KubeObject], KubeObject]
"""Converts an object that has just arrived to its stored form. A converter never raises: an object
that doesn't fit becomes an ``ExcludedObject``."""

_MODEL_TYPES = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)

_TYPE_META = {"apiVersion", "kind"}
"""The keys that the items of a list lack, and the events of a watch have."""


class Shape(Struct, Generic[T], frozen=True):
    """The stored and the shown form of an informer's objects. ``Shape.of`` creates one."""

    model: Any = None
    convert: Callable[[KubeObject], T] | None = None
    transform: Transform | None = None
    metadata_only: bool = False

    @property
    def is_whole(self) -> bool:
        """True if objects are stored as the server sent them."""
        return self.model is None and self.transform is None and not self.metadata_only

    @overload
    @classmethod
    def of(cls, *, transform: Transform | None = None, metadata_only: bool = False) -> Shape: ...
    @overload
    @classmethod
    def of(
        cls, *, model: type[M], transform: Transform | None = None, metadata_only: bool = False
    ) -> Shape[M]: ...
    @overload
    @classmethod
    def of(
        cls,
        *,
        convert: Callable[[KubeObject], M],
        transform: Transform | None = None,
        metadata_only: bool = False,
    ) -> Shape[M]: ...
    @classmethod
    def of(
        cls,
        *,
        model: type[Any] | None = None,
        convert: Callable[[KubeObject], Any] | None = None,
        transform: Transform | None = None,
        metadata_only: bool = False,
    ) -> Shape[Any]:
        """Return the shape for these options.

        Args:
            model: a ``msgspec.Struct``, dataclass, ``TypedDict`` or attrs class. Only the fields
                that it declares are kept. Prefer a frozen ``Struct`` with ``gc=False`` and tuples:
                then no program can change a cached object, and Python's garbage collector has
                nothing to visit. With 50,000 pods of eight fields, a full collection, for which the
                whole program waits, takes 0.1 ms longer with such structs, 60 ms with others, 200
                ms with dataclasses, which also take twice the memory
                (``benchmarks/features/models.py``). WARNING: all readers and handlers share the one
                cached object. An object of a mutable model can be changed in place, and the cache
                then differs from the server until the object's next change. Copy before changing;
                ``aioinformer.testing.MutationDetector`` finds programs that don't.
            convert: converts a ``KubeObject`` when the object is read. The function must be quick,
                and runs in the thread that reads. A few results are kept and shared, so that the
                warning of ``model`` applies to them.
            transform: see ``Transform``.
            metadata_only: True to keep nothing but ``metadata`` of each object. The informer asks
                the server for ``PartialObjectMetadata``. The other options see nothing else.

        Raises:
            UsageError: both ``model`` and ``convert`` are given, or ``model`` is no such class.
            TypeError: a function isn't callable, is async, or has no hash.
        """
        return cls.checked(model, convert, transform, metadata_only=metadata_only)

    @classmethod
    def checked(
        cls,
        model: type[Any] | None,
        convert: Callable[[KubeObject], Any] | None,
        transform: Transform | None,
        *,
        metadata_only: bool = False,
    ) -> Shape[Any]:
        """Return the shape, as ``of`` does, for options any of which may be missing."""
        if model is not None and convert is not None:
            raise UsageError("model= and convert= exclude each other: objects have one form")
        if model is not None:
            _model_fields(model)
        _check_function("convert", convert)
        _check_function("transform", transform)
        return cls(model, convert, transform, metadata_only)

    def view(self) -> ObjectView[T] | None:
        if self.model is not None:
            return model_view(self.model)
        return None if self.convert is None else conversion_view(self.convert)

    def converter(self, on_dropped: Callable[[KubeObject], None] | None = None) -> Converter | None:
        """Return the converter to the stored form; ``None`` if objects are stored unchanged.

        ``on_dropped`` is called with each version that ``transform`` drops.
        """
        steps: list[Converter] = [keep_metadata] if self.metadata_only else []
        if self.transform is not None:
            steps.append(Transformer(self.transform, on_dropped))
        if self.model is not None:
            steps.append(_ModelDecoder(self.model))
        return reduce(_chain, steps) if steps else None

    def __str__(self) -> str:
        form = self.model or self.convert
        parts = ["with metadata only"] if self.metadata_only else []
        if form is not None:
            parts.append(f"as {name_of(form)}")
        if self.transform is not None:
            parts.append(f"through {name_of(self.transform)}")
        return " ".join(parts)


def _chain(first: Converter, second: Converter) -> Converter:
    def convert(obj: KubeObject) -> KubeObject:
        converted = first(obj)
        return converted if type(converted) is ExcludedObject else second(converted)

    return convert


class _ModelDecoder:
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
        return ModelObject(
            key,
            b"",
            obj.resource,
            stored_uid=uid,
            stored_version=version,
            model=model,
            size=len(obj.raw),
        )

    def __repr__(self) -> str:
        return f"<ModelDecoder {self._name}>"


def with_type_meta(obj: KubeObject) -> bytes:
    """Return the JSON of ``obj`` with the kind and apiVersion that the items of a list lack.

    If the object has its own, they come later in the JSON, and decoders use the last one.
    """
    head = msgspec.json.encode({"apiVersion": obj.api_version, "kind": obj.kind})
    return head[:-1] + b"," + obj.raw[1:]


def _model_fields(model: object) -> set[str]:
    """Return the keys that a model declares; raise ``UsageError`` for another class."""
    message = (
        f"model= takes a msgspec.Struct, dataclass, TypedDict or attrs class, not {name_of(model)}"
    )
    if isinstance(model, type) and issubclass(model, KubeObject):
        raise UsageError(f"{message}, which is what objects are without model=")
    try:
        found = inspect.type_info(model)
    except Exception as error:  # evaluating its annotations may raise anything
        raise UsageError(f"{message}: {error}") from error
    if not isinstance(found, _MODEL_TYPES):
        raise UsageError(
            f"{message}; convert= takes any function of an object, and aioinformer.adapters has "
            "some"
        )
    return {field.encode_name for field in found.fields}


def _check_function(name: str, function: object) -> None:
    if function is None:
        return
    if not callable(function):
        raise TypeError(f"{name}= is a function of an object, not {function!r}")
    if is_async(function):
        raise TypeError(f"{name}= {name_of(function)} is async; it must be a plain function")
    try:
        hash(function)
    except TypeError:
        raise TypeError(
            f"{name}= {name_of(function)} has no hash, by which informers are distinguished; "
            "give a function or a hashable object"
        ) from None

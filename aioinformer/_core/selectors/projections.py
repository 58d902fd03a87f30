"""Projections: functions that read a few values of an object without decoding the rest.

A path is compiled once, to a msgspec struct that has only the keys of the path, so that the decoder
skips the rest of the object's bytes. If the body was decoded before, the path is walked instead.
Four metadata fields are attributes of every cached object and need neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from types import GenericAlias
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET

from aioinformer._core.objects.decode_errors import DECODE_ERRORS, is_secret
from aioinformer._core.objects.json_depth import MAX_DEPTH
from aioinformer._core.objects.kube_object import (
    KubeObject,
    body_error,
    cached_body,
    decoded_body,
    shallow_body,
)
from aioinformer._core.objects.readonly import freeze, freeze_secret, has_levels
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._core.selectors.paths import Step, StepMismatch, Steps, parse_path, walk
from aioinformer.errors import ObjectDecodeError, PathMismatch

CACHE_SIZE = 4096
"""The number of projections that are cached. One path gives one function object, so that two parts
of a program can request the same index of an informer."""

TOO_DEEP: Final = object()
"""Stands for a value that can't be decoded. It equals no value, and is not absent."""

_MetadataReader: TypeAlias = Callable[[KubeObject], str | None]

_CACHED_METADATA: Mapping[Steps, _MetadataReader] = {
    ("metadata", "name"): lambda obj: obj.name,
    ("metadata", "namespace"): lambda obj: obj.namespace or None,
    ("metadata", "uid"): lambda obj: obj.uid or None,
    ("metadata", "resourceVersion"): lambda obj: obj.resource_version or None,
}

_TYPE_META: Mapping[Steps, _MetadataReader] = {
    ("kind",): lambda obj: obj.kind,
    ("apiVersion",): lambda obj: obj.api_version,
}
"""Paths that the items of a list don't have, and that ``to_dict()`` adds."""


class Fields(NeedsJson):
    """A function that reads several values of an object in one pass. ``fields`` makes these.

    The rest of the object is not checked. An error in it, such as a string that is no UTF-8, shows
    when the whole body is decoded.
    """

    __slots__ = ("_decode", "_plan", "paths", "strict")

    def __init__(self, paths: tuple[str, ...], *, strict: bool = False) -> None:
        self.paths = paths
        self.strict = strict
        parsed = [parse_path(path) for path in paths]
        tree = _Node()
        for steps in parsed:
            if steps not in _CACHED_METADATA:
                tree.add_path(steps)
        self._decode = msgspec.json.Decoder(tree.build_type()).decode if tree.has_children else None
        self._plan: tuple[tuple[Steps, _Getter, _MetadataReader | None], ...] = tuple(
            (steps, _get_nothing, _CACHED_METADATA[steps])
            if steps in _CACHED_METADATA
            else (steps, _make_getter(tree, steps, strict=strict), _TYPE_META.get(steps))
            for steps in parsed
        )

    @property
    def needs_bytes(self) -> bool:
        return self._decode is not None

    def __call__(self, obj: KubeObject) -> tuple[Any, ...]:
        """Return the values, read-only, with ``None`` for an absent value.

        Raises:
            ObjectDecodeError: the body is no JSON, or a value is nested too deeply to be decoded.
            PathMismatch: a strict path doesn't fit the object.
        """
        body = cached_body(obj)
        if body is not None:
            return self._walk(obj, body)
        values: list[Any] = []
        try:
            found = None if self._decode is None else self._decode(obj.raw)
            for _, get, known in self._plan:  # no comprehension, which is a call more
                value = get(found)
                if type(value) is not str:  # most values are strings, which need no conversion
                    value = _complete_value(obj, value, known)
                values.append(value)
        except (msgspec.ValidationError, StepMismatch, RecursionError):
            found = value = None  # as in ``_walk``
            values.clear()
            return self._read_body(obj)
        except DECODE_ERRORS as error:
            raise body_error(obj, error) from error
        return tuple(values)

    def _read_body(self, obj: KubeObject) -> tuple[Any, ...]:
        """Return the values where one on a path has another shape, or ``obj`` is too deep."""
        try:
            return self._walk(obj, decoded_body(obj))
        except ObjectDecodeError as error:
            if not isinstance(error.__cause__, RecursionError):
                raise
            values = self.read_shallow(obj)
            if any(value is TOO_DEEP for value in values):
                raise
            return values

    def read_shallow(self, obj: KubeObject) -> tuple[Any, ...]:
        """Return the values of an object that is nested too deeply to be decoded, with ``TOO_DEEP``
        for an object or a list that itself is. Raises as a call.
        """
        values = self._walk(obj, shallow_body(obj))
        return tuple(
            TOO_DEEP if has_levels(value, MAX_DEPTH - len(steps)) else value
            for (steps, _, _), value in zip(self._plan, values, strict=True)
        )

    def _walk(self, obj: KubeObject, body: dict[str, Any]) -> tuple[Any, ...]:
        view = freeze
        if type(body) is not dict:  # a ``SecretBody``
            body, view = dict(body), freeze_secret
        try:
            return tuple(
                [
                    known(obj)
                    if get is _get_nothing and known is not None
                    else view(walk(body, steps, self.strict))
                    for steps, get, known in self._plan
                ]
            )
        except StepMismatch as error:
            del body  # tools that show the variables of a traceback would show a Secret
            paths = ", ".join(self.paths)
            raise PathMismatch(f"{paths} doesn't fit {obj.resource} {obj.key}: {error}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fields):
            return NotImplemented
        return (self.paths, self.strict) == (other.paths, other.strict)

    def __hash__(self) -> int:
        return hash((self.paths, self.strict))

    def __reduce__(self) -> tuple[object, ...]:
        return _cached_fields, (self.paths, self.strict)

    def __repr__(self) -> str:
        return f"fields({_format_arguments(self.paths, strict=self.strict)})"


class Field(NeedsJson):
    """A function that reads one value of an object. ``field`` makes these."""

    __slots__ = ("_read", "path", "strict")

    def __init__(self, path: str, *, strict: bool = False) -> None:
        self.path = path
        self.strict = strict
        self._read = Fields((path,), strict=strict)

    @property
    def needs_bytes(self) -> bool:
        return self._read.needs_bytes

    def __call__(self, obj: KubeObject) -> Any:
        """Return the value, read-only; ``None`` if it is absent; raise as ``Fields``."""
        return self._read(obj)[0]

    def read_shallow(self, obj: KubeObject) -> Any:
        return self._read.read_shallow(obj)[0]

    def __eq__(self, other: object) -> bool:
        return self._read == other._read if isinstance(other, Field) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._read)

    def __reduce__(self) -> tuple[object, ...]:
        return _cached_field, (self.path, self.strict)

    def __repr__(self) -> str:
        return f"field({_format_arguments((self.path,), strict=self.strict)})"


def field(path: str, *, strict: bool = False) -> Field:
    """Return a function that reads one value of an object.

    As an index function it must return strings: use a string field, or a list of strings (for a
    number, a function of your own that returns ``str()`` of it). Reading
    ``metadata.name``, ``namespace``, ``uid`` and ``resourceVersion`` decodes nothing.

    Args:
        path: ``spec.nodeName``, ``spec.containers[0].image``,
            ``metadata.labels['app.kubernetes.io/name']``.
        strict: True to raise ``PathMismatch`` if the path leads into a value of another shape, such
            as a key of a string; False to return ``None``.

    Raises:
        InvalidPath: the path doesn't parse, or has more than 64 steps. The message marks the place.
    """
    return _cached_field(path, strict)


def fields(*paths: str, strict: bool = False) -> Fields:
    """Return a function that reads several values of an object in one pass, as a tuple.

    The arguments and errors are those of ``field``.
    """
    return _cached_fields(paths, strict)


@lru_cache(maxsize=CACHE_SIZE)
def _cached_field(path: str, strict: bool) -> Field:
    return Field(path, strict=strict)


@lru_cache(maxsize=CACHE_SIZE)
def _cached_fields(paths: tuple[str, ...], strict: bool) -> Fields:
    return Fields(paths, strict=strict)


def _format_arguments(paths: Iterable[str], *, strict: bool) -> str:
    return ", ".join([*map(repr, paths), *(["strict=True"] if strict else [])])


# -- compiling ---------------------------------------------------------------------------------

_Getter: TypeAlias = Callable[[Any], Any]

_INVALID_STRUCT_KEY = re.compile(r'[\\"\x00-\x1f]')
"""Characters that msgspec doesn't allow in a key. Such a mapping is decoded whole and walked."""


class _Node:
    def __init__(self) -> None:
        self.keys: dict[str, _Node] = {}
        self.items: _Node | None = None
        self.whole_value = False

    def add_path(self, steps: Iterable[Step]) -> None:
        node = self
        for step in steps:
            if isinstance(step, str):
                node.whole_value = node.whole_value or _INVALID_STRUCT_KEY.search(step) is not None
                node = node.keys.setdefault(step, _Node())
            else:
                node.items = node.items or _Node()
                node = node.items
        node.whole_value = True

    @property
    def has_children(self) -> bool:
        return bool(self.keys) or self.items is not None

    @property
    def is_struct(self) -> bool:
        return bool(self.keys) and self.items is None and not self.whole_value

    @property
    def is_list(self) -> bool:
        return self.items is not None and not self.keys and not self.whole_value

    def attribute_name(self, key: str) -> str:
        """Return the struct's attribute for ``key``, which may be no Python name."""
        return f"f{list(self.keys).index(key)}"

    def build_type(self) -> Any:
        if self.is_list and self.items is not None:
            return GenericAlias(list, (self.items.build_type(),))
        if not self.is_struct:
            return Any
        members: list[tuple[str, Any, Any]] = []
        for key, node in self.keys.items():
            kind = node.build_type()
            # The default of a struct is an empty struct, so that its members read as UNSET.
            default: Any = kind() if node.is_struct else () if node.is_list else UNSET
            members.append((self.attribute_name(key), kind, default))
        names = {self.attribute_name(key): key for key in self.keys}
        return msgspec.defstruct("Part", members, rename=names, frozen=True, gc=False)


def _make_getter(node: _Node, steps: Steps, *, strict: bool) -> _Getter:
    """Return a function that gets the value at ``steps`` of a decoded ``node``, or UNSET."""
    names: list[str] = []
    while steps and node.is_struct and isinstance(steps[0], str):
        names.append(node.attribute_name(steps[0]))
        node, steps = node.keys[steps[0]], steps[1:]
    here: _Getter = attrgetter(".".join(names)) if names else lambda decoded: decoded
    if not steps:
        return here
    step = steps[0]
    if node.is_list and node.items is not None and isinstance(step, int):
        return _make_item_getter(here, step, _make_getter(node.items, steps[1:], strict=strict))

    def walked(found: Any) -> Any:
        value = here(found)
        return UNSET if value is UNSET else walk(value, steps, strict)

    return walked


def _make_item_getter(here: _Getter, index: int, onward: _Getter) -> _Getter:
    def item(found: Any) -> Any:
        items = here(found)
        return onward(items[index]) if index < len(items) else UNSET

    return item


def _get_nothing(found: Any) -> Any:
    return UNSET


def _complete_value(obj: KubeObject, value: Any, known: _MetadataReader | None) -> Any:
    """Return a decoded value read-only; for UNSET, what is known without the bytes."""
    if value is UNSET:
        return None if known is None else known(obj)
    view = freeze(value)
    if view is value or obj.resource.plural != "secrets":  # nearly always, so decided at once
        return view
    return freeze_secret(value) if is_secret(obj.resource) else view

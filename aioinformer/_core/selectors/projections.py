"""Projections: a few values of an object, read without building the rest of it.

``field("spec.nodeName")`` is a function of an object. It is compiled once, to a msgspec struct
with nothing but the keys on the way, so that everything else in the object's bytes is skipped
over and never built. A body that is decoded already is walked instead, and the four metadata
fields that every cached object carries are taken from there.

How a path is written is ``paths``'; index functions, filters and predicates are made of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from aioinformer._core.objects.kube_object import (
    KubeObject,
    cached_body,
    decode_error,
    decoded_body,
)
from aioinformer._core.objects.readonly import freeze
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._core.selectors.paths import Step, StepMismatch, Steps, parse_path, walk
from aioinformer.errors import PathMismatch

__all__ = ["Field", "Fields", "field", "fields"]

CACHE_SIZE = 4096
"""Projections that are kept: paths are a program's constants. It matters beyond speed that one
path is one function: two parts of a program may ask for an informer with the same index."""

_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_MetadataReader: TypeAlias = Callable[[KubeObject], str | None]

_CACHED_METADATA: Mapping[Steps, _MetadataReader] = {
    ("metadata", "name"): lambda obj: obj.name,
    ("metadata", "namespace"): lambda obj: obj.namespace or None,
    ("metadata", "uid"): lambda obj: obj.uid or None,
    ("metadata", "resourceVersion"): lambda obj: obj.resource_version or None,
}
"""What needs no look into the bytes."""

_TYPE_META: Mapping[Steps, _MetadataReader] = {
    ("kind",): lambda obj: obj.kind,
    ("apiVersion",): lambda obj: obj.api_version,
}
"""What items of a list don't carry, and ``to_dict()`` adds."""


class Fields(NeedsJson):
    """Reads several values of an object in one pass. ``fields`` makes them.

    The rest of the object is not checked: what is wrong there, as a string that is no UTF-8,
    shows when it is opened.
    """

    __slots__ = ("_decode", "_plan", "paths", "strict")

    def __init__(self, paths: tuple[str, ...], *, strict: bool = False) -> None:
        """Compile ``paths``; as ``fields``."""
        self.paths = paths
        self.strict = strict
        ways = [parse_path(path) for path in paths]
        tree = _Node()
        for steps in ways:
            if steps not in _CACHED_METADATA:
                tree.add_path(steps)
        self._decode = msgspec.json.Decoder(tree.build_type()).decode if tree.has_children else None
        self._plan = tuple(
            (steps, None, _CACHED_METADATA[steps])
            if steps in _CACHED_METADATA
            else (steps, _make_getter(tree, steps, strict=strict), _TYPE_META.get(steps))
            for steps in ways
        )

    @property
    def needs_bytes(self) -> bool:
        """Whether it reads more than what the cache knows of every object."""
        return self._decode is not None

    def __call__(self, obj: KubeObject) -> tuple[Any, ...]:
        """The values, read-only; ``None`` for what is absent.

        Raises:
            ObjectDecodeError: the body is no JSON.
            PathMismatch: a strict path doesn't fit the object.
        """
        body = cached_body(obj)
        if body is not None:
            return self._walk(obj, body)
        found: Any = None
        try:
            if self._decode is not None:
                found = self._decode(obj.raw)
            return tuple([_read_value(obj, get, known, found) for _, get, known in self._plan])
        except (msgspec.ValidationError, StepMismatch):  # some shape on the way is another one
            return self._walk(obj, decoded_body(obj))
        except _DECODE_ERRORS as error:
            raise decode_error(obj, error) from error

    def _walk(self, obj: KubeObject, body: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return tuple(
                [
                    known(obj) if get is None and known else freeze(walk(body, steps, self.strict))
                    for steps, get, known in self._plan
                ]
            )
        except StepMismatch as error:
            asked = ", ".join(self.paths)
            raise PathMismatch(f"{asked} doesn't fit {obj.resource} {obj.key}: {error}") from None

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
    """Reads one value of an object. ``field`` makes them."""

    __slots__ = ("_read", "path", "strict")

    def __init__(self, path: str, *, strict: bool = False) -> None:
        """Compile ``path``; as ``field``."""
        self.path = path
        self.strict = strict
        self._read = Fields((path,), strict=strict)

    @property
    def needs_bytes(self) -> bool:
        """Whether it reads more than what the cache knows of every object."""
        return self._read.needs_bytes

    def __call__(self, obj: KubeObject) -> Any:
        """The value, read-only; ``None`` if it is absent.

        Raises:
            ObjectDecodeError: the body is no JSON.
            PathMismatch: a strict path doesn't fit the object.
        """
        return self._read(obj)[0]

    def __eq__(self, other: object) -> bool:
        return self._read == other._read if isinstance(other, Field) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._read)

    def __reduce__(self) -> tuple[object, ...]:
        return _cached_field, (self.path, self.strict)

    def __repr__(self) -> str:
        return f"field({_format_arguments((self.path,), strict=self.strict)})"


def field(path: str, *, strict: bool = False) -> Field:
    """A function that reads one value of an object.

    As an index function it must give strings: a string field, or a list of strings. Reading
    ``metadata.name``, ``namespace``, ``uid`` and ``resourceVersion`` costs nothing.

    Args:
        path: ``spec.nodeName``, ``spec.containers[0].image``,
            ``metadata.labels['app.kubernetes.io/name']``.
        strict: whether a path that leads into a value of another shape, as a key of a string, is
            a ``PathMismatch`` when it is read, rather than ``None``.

    Raises:
        InvalidPath: it doesn't parse. The message marks where.
    """
    return _cached_field(path, strict)


def fields(*paths: str, strict: bool = False) -> Fields:
    """A function that reads several values of an object in one pass, as a tuple.

    Args:
        paths: as for ``field``.
        strict: as for ``field``.

    Raises:
        InvalidPath: one doesn't parse. The message marks where.
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
"""What msgspec doesn't allow in a key: such a mapping is built whole, and then walked."""


class _Node:
    """A place in an object, and which ways lead on from there."""

    def __init__(self) -> None:
        self.keys: dict[str, _Node] = {}
        self.items: _Node | None = None
        self.whole_value = False
        """Whether all of the value is wanted."""

    def add_path(self, steps: Iterable[Step]) -> None:
        """Add a way, and all nodes on it."""
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
        """What the struct calls ``key``, which may be no Python name."""
        return f"f{list(self.keys).index(key)}"

    def build_type(self) -> Any:
        """The type that msgspec decodes this place as."""
        if self.is_list and self.items is not None:
            return list[self.items.build_type()]  # type: ignore[misc] # a type made at run time
        if not self.is_struct:
            return Any
        members: list[tuple[str, Any, Any]] = []
        for key, node in self.keys.items():
            kind = node.build_type()
            # An absent struct is an empty one, so that its absent members are found unset.
            default: Any = kind() if node.is_struct else () if node.is_list else UNSET
            members.append((self.attribute_name(key), kind, default))
        names = {self.attribute_name(key): key for key in self.keys}
        return msgspec.defstruct("Part", members, rename=names, frozen=True, gc=False)


def _make_getter(node: _Node, steps: Steps, *, strict: bool) -> _Getter:
    """What takes the value at ``steps`` out of a decoded ``node``; UNSET if it isn't there."""
    names: list[str] = []
    while steps and node.is_struct and isinstance(steps[0], str):
        names.append(node.attribute_name(steps[0]))
        node, steps = node.keys[steps[0]], steps[1:]
    here: _Getter = attrgetter(".".join(names)) if names else lambda found: found
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


def _read_value(
    obj: KubeObject, get: _Getter | None, known: _MetadataReader | None, found: Any
) -> Any:
    value = UNSET if get is None else get(found)
    if value is UNSET:
        return None if known is None else known(obj)
    return freeze(value)

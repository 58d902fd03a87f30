"""The keyed lists and the sets of an applied configuration: no key and no value occurs twice.

A server checks so with the schema of the type (structured-merge-diff, ``typed/validate.go``). Here
the keyed lists are those of ``server_side_apply``. An item without its key has the key ``""``. The
rules of single types, by which each container needs a name, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding
from aioinformer.testing.writes.server_side_apply import (
    FINALIZERS,
    FieldPath,
    format_path,
    list_key,
)


def check_keyed_lists(encoding: Encoding, config: Mapping[str, Any]) -> None:
    """Raise ``ServerFailure``, 500, if two items have one key, or an item can't have a key."""
    texts = [*_iterate_errors((), config, custom=encoding.custom)]
    if texts:
        raise statuses.untyped_configuration(encoding.resource, config["metadata"], texts)


def _iterate_errors(path: FieldPath, value: object, *, custom: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in cast("dict[str, Any]", value).items():
            yield from _iterate_errors((*path, f"f:{name}"), member, custom=custom)
    if not isinstance(value, list):
        return
    items = cast("Sequence[Any]", value)
    if path == FINALIZERS:
        yield from _iterate_duplicates(path, [f"v:{_encode(each)}" for each in items])
    key = list_key(path, custom=custom)
    if key is not None:
        yield from _iterate_item_errors(path, items, key, custom=custom)


def _iterate_item_errors(
    path: FieldPath, items: Sequence[Any], key: str, *, custom: bool
) -> Iterator[str]:
    elements: list[str] = []
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            fault = "a null element" if item is None else "non-map elements"
            text = f"associative list with keys may not have {fault}"
            yield f"{format_path(path)}: element {place}: {text}"
            break  # the server doesn't look at the other items
        body = cast("dict[str, Any]", item)
        element = f"k:{_encode({key: body.get(key, '')})}"
        yield from _iterate_errors((*path, element), body, custom=custom)
        elements.append(element)
    yield from _iterate_duplicates(path, elements)


def _iterate_duplicates(path: FieldPath, elements: Sequence[str]) -> Iterator[str]:
    for place, element in enumerate(elements):
        if element in elements[:place]:
            yield f"{format_path(path)}: duplicate entries for key {format_path((element,))}"


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()

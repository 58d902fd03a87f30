"""JSON patch (RFC 6902), as the API server reads it.

Where its library departs from the RFC, so does this: ``replace`` and ``copy`` take a member that
isn't there for ``null``, an index may count from the end, and ``1`` is not ``1.0``. Every operation
that fails is refused in the same words, which say nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any, NoReturn, cast

import msgspec

from aioinformer.testing import statuses, write_statuses

__all__ = ["operations_in", "patched"]

Json = Any
Containers = dict[str, Json] | list[Json]

_MISSING = object()


def operations_in(body: bytes) -> list[dict[str, Any]]:
    """The operations that a request's body has.

    Raises:
        BadRequest: it has none.
    """
    try:
        found: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise statuses.bad_request("invalid JSON patch") from error
    if not isinstance(found, list):
        raise write_statuses.undecodable_patch(found, "[]handlers.jsonPatchOp")
    operations = list(cast("Iterable[Any]", found))
    for each in operations:
        if not isinstance(each, dict):
            raise write_statuses.undecodable_patch(each, "handlers.jsonPatchOp")
    return operations


def patched(body: Mapping[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """A copy of ``body`` after all operations.

    Raises:
        Invalid: one of them fails; none is done then.
    """
    result: dict[str, Any] = deepcopy(dict(body))
    for operation in operations:
        act = _ACTS.get(operation.get("op", ""))
        if act is None:
            _refuse()
        act(result, operation)
    return result


def _add(body: Json, operation: Mapping[str, Json]) -> None:
    _put(body, _path(operation), operation.get("value"))


def _put(body: Json, path: list[str], value: Json) -> None:
    parent, last = _parent(body, path)
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(_index(last, len(parent) + 1), value)


def _remove(body: Json, operation: Mapping[str, Json]) -> None:
    _take(body, _path(operation))


def _take(body: Json, path: list[str]) -> Json:
    parent, last = _parent(body, path)
    if isinstance(parent, list):
        return parent.pop(_index(last, len(parent)))
    if last not in parent:
        _refuse()
    return parent.pop(last)


def _replace(body: Json, operation: Mapping[str, Json]) -> None:
    parent, last = _parent(body, _path(operation))
    if isinstance(parent, list):
        parent[_index(last, len(parent))] = operation.get("value")
    else:
        parent[last] = operation.get("value")


def _move(body: Json, operation: Mapping[str, Json]) -> None:
    _put(body, _path(operation), _take(body, _path(operation, "from")))


def _copy(body: Json, operation: Mapping[str, Json]) -> None:
    _put(body, _path(operation), deepcopy(_found(body, _path(operation, "from"))))


def _test(body: Json, operation: Mapping[str, Json]) -> None:
    if not _same(_found(body, _path(operation)), operation.get("value")):
        _refuse()


_ACTS: Mapping[str, Callable[[Json, Mapping[str, Json]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


# -- paths -------------------------------------------------------------------------------------


def _path(operation: Mapping[str, Json], name: str = "path") -> list[str]:
    """A JSON pointer (RFC 6901), which leads somewhere inside the object."""
    text = operation.get(name)
    if not isinstance(text, str) or not text.startswith("/"):
        _refuse()
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _parent(body: Json, path: list[str]) -> tuple[Containers, str]:
    """What the last part of a path is a part of, and that part."""
    here = body
    for part in path[:-1]:
        here = _member(here, part)
    if not isinstance(here, dict | list):
        _refuse()
    return cast("Containers", here), path[-1]


def _found(body: Json, path: list[str]) -> Json:
    """What is at a path; ``null`` if only the last part of it is missing."""
    parent, last = _parent(body, path)
    found = _member(parent, last)
    return None if found is _MISSING else found


def _member(container: Json, part: str) -> Json:
    if isinstance(container, list):
        items = list(cast("Iterable[Any]", container))
        return items[_index(part, len(items))]
    if not isinstance(container, dict):
        _refuse()
    return cast("dict[str, Json]", container).get(part, _MISSING)


def _index(part: str, size: int) -> int:
    if not part.removeprefix("-").isdecimal() or not -size <= int(part) < size:
        _refuse()
    return int(part) % size


def _same(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON; numbers by how they are written: 1 is not 1.0."""
    exact = msgspec.json.Encoder(order="sorted").encode
    return exact(one) == exact(other)


def _refuse() -> NoReturn:
    raise write_statuses.failed_patch()

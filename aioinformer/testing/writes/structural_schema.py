"""The schema of a custom resource: pruning, defaults, validation.

A server drops the fields that the structural schema (OpenAPI v3) of a version doesn't name, fills
in its defaults, and validates the result. ``jsonschema-rs`` validates; without this library, which
the extra ``testing`` installs, objects are pruned and defaulted alone. Rules in CEL
(``x-kubernetes-validations``) are not evaluated. Source: apiextensions-apiserver's packages
``schema/pruning``, ``schema/defaulting`` and ``validation``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import METADATA_FIELDS, JsonObject, encode_json

_log = logging.getLogger(__name__)

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_LIST_TYPE, _LIST_MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_TYPE_META = ("apiVersion", "kind", "metadata")
"""The fields that every object has, whatever its schema says."""
_FORMATS = frozenset({"date-time", "date", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"})
_ANNOTATIONS = frozenset({"default", "description", "example", "externalDocs", "title"})
"""The keywords that validate nothing."""


class StructuralSchema:
    def __init__(self, resource: Resource, schema: Mapping[str, Any]) -> None:
        """Make the schema of an ``openAPIV3Schema``; raise ``ValueError`` if it is not valid."""
        self.resource = resource
        self._schema = schema
        self._find_errors = _make_validator(to_json_schema(schema))

    def prepare(self, body: JsonObject) -> JsonObject:
        """Return a copy of a body without unknown fields, and with defaults."""
        prepared: JsonObject = _copy_json(body)
        _prune(prepared, self._schema)
        _set_defaults(prepared, self._schema)
        return prepared

    def unknown_fields(self, body: JsonObject) -> list[str]:
        """Return the paths of the fields that the schema doesn't name, sorted."""
        found = _iterate_unknown(body, self._schema, "", root=True)
        return sorted(path for _, _, path in found)

    def check(self, body: JsonObject) -> None:
        """Raise ``Invalid`` with all values that the schema doesn't allow."""
        causes = [*self._find_errors(body), *_iterate_duplicates(body, self._schema, "")]
        if causes:
            name, resource = str(body["metadata"].get("name", "")), self.resource
            raise statuses.invalid_fields(resource.kind, name, causes, group=resource.group)


# -- pruning and defaults ----------------------------------------------------------------------


def _copy_json(value: Any) -> Any:
    """Copy a value of JSON, several times as fast as ``deepcopy``."""
    if isinstance(value, dict):
        members = cast("JsonObject", value)
        return {name: _copy_json(member) for name, member in members.items()}
    if isinstance(value, list):
        return [_copy_json(item) for item in cast("Sequence[Any]", value)]
    return value


def _prune(body: JsonObject, schema: Mapping[str, Any]) -> None:
    for container, name, _ in list(_iterate_unknown(body, schema, "", root=True)):
        del container[name]


def _iterate_unknown(
    value: object, schema: Mapping[str, Any], path: str, *, root: bool = False
) -> Iterator[tuple[JsonObject, str, str]]:
    """Yield the container, the name, and the path of each unknown field."""
    if isinstance(value, list):
        items: Mapping[str, Any] = schema.get("items") or {}
        for place, item in enumerate(cast("Sequence[object]", value)):
            yield from _iterate_unknown(item, items, f"{path}[{place}]")
    if not isinstance(value, dict):
        return
    body = cast("JsonObject", value)
    properties: Mapping[str, Any] = schema.get("properties") or {}
    additional: object = schema.get("additionalProperties")
    keeps = bool(schema.get(_PRESERVE)) or additional is True
    kept = _TYPE_META if root or schema.get(_EMBEDDED) else ()
    for name, member in body.items():
        inner = f"{path}.{name}" if path else name
        if name in kept:
            if name == "metadata" and isinstance(member, dict):
                yield from _iterate_unknown_metadata(cast("JsonObject", member), inner)
            continue
        if name in properties:
            yield from _iterate_unknown(member, properties[name], inner)
        elif isinstance(additional, Mapping):
            yield from _iterate_unknown(member, cast("Mapping[str, Any]", additional), inner)
        elif not keeps:
            yield body, name, inner


def _iterate_unknown_metadata(
    metadata: JsonObject, path: str
) -> Iterator[tuple[JsonObject, str, str]]:
    for name in metadata:
        if name not in METADATA_FIELDS:
            yield metadata, name, f"{path}.{name}"


def _set_defaults(value: object, schema: Mapping[str, Any]) -> None:
    """Fill in defaults in place. They replace a null of a field that isn't nullable."""
    if isinstance(value, list):
        items: Mapping[str, Any] = schema.get("items") or {}
        for item in cast("Sequence[object]", value):
            _set_defaults(item, items)
    if not isinstance(value, dict):
        return
    body = cast("JsonObject", value)
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties") or {}
    for name, each in properties.items():
        absent = name not in body or (body[name] is None and not each.get("nullable"))
        if absent and "default" in each:
            body[name] = _copy_json(each["default"])
    additional: object = schema.get("additionalProperties")
    for name, member in body.items():
        if name in properties:
            _set_defaults(member, properties[name])
        elif isinstance(additional, Mapping):
            _set_defaults(member, cast("Mapping[str, Any]", additional))


# -- validation --------------------------------------------------------------------------------


def _iterate_duplicates(
    value: object, schema: Mapping[str, Any], path: str
) -> Iterator[dict[str, str]]:
    """Yield a cause for each repeated item of sets and keyed lists (``x-kubernetes-list-type``)."""
    if isinstance(value, dict):
        body = cast("JsonObject", value)
        properties: Mapping[str, Any] = schema.get("properties") or {}
        additional: object = schema.get("additionalProperties")
        for name in sorted(body):
            inner = properties.get(name, additional)
            if isinstance(inner, Mapping):
                part = cast("Mapping[str, Any]", inner)
                yield from _iterate_duplicates(body[name], part, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        items = cast("Sequence[Any]", value)
        counts: Counter[bytes] = Counter()
        for place, item in enumerate(items) if _LIST_TYPE in schema else ():
            key = encode_json(_item_identity(item, schema), sort_keys=True)
            counts[key] += 1
            if counts[key] == 2 and key != b"null":  # the server names each value once
                text = f"Duplicate value: {key.decode()}"
                yield _cause("FieldValueDuplicate", f"{path}[{place}]", text)
        inside: Mapping[str, Any] = schema.get("items") or {}
        for place, item in enumerate(items):
            yield from _iterate_duplicates(item, inside, f"{path}[{place}]")


def _item_identity(item: Any, schema: Mapping[str, Any]) -> Any:
    """Return the part of an item that no other item of its list may have; ``None`` for none."""
    match schema.get(_LIST_TYPE):
        case "set":
            return item
        case "map" if isinstance(item, dict):
            keys: Sequence[str] = schema.get(_LIST_MAP_KEYS) or ()
            members = cast("JsonObject", item)
            return {name: members[name] for name in keys if name in members}
        case _:
            return None


def to_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI v3 schema as a JSON schema of draft 4, which allows the same values."""
    result: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _ANNOTATIONS or keyword.startswith("x-") or keyword == "nullable":
            continue
        if keyword == "format" and value not in _FORMATS:
            continue
        result[keyword] = _convert_keyword(keyword, value)
    if schema.get(_INT_OR_STRING):
        result["type"] = ["integer", "string"]
    if schema.get("nullable") and "type" in result:
        own = result["type"]
        result["type"] = [*(own if isinstance(own, list) else [own]), "null"]
        if "enum" in result:
            result["enum"] = [*result["enum"], None]
    return result


def _convert_keyword(keyword: str, value: Any) -> Any:
    if keyword == "properties":
        return {name: to_json_schema(each) for name, each in value.items()}
    if keyword in ("allOf", "anyOf", "oneOf"):
        return [to_json_schema(each) for each in value]
    if keyword in ("items", "not", "additionalProperties") and isinstance(value, Mapping):
        return to_json_schema(cast("Mapping[str, Any]", value))
    return value


def _make_validator(schema: Mapping[str, Any]) -> Callable[[JsonObject], Iterator[dict[str, str]]]:
    """Return a function that yields the causes of the errors of a body."""
    try:
        import jsonschema_rs  # an extra: the pruning and the defaults work without this library
    except ImportError:
        _warn_without_library()
        return lambda _: iter(())
    validator = jsonschema_rs.Draft4Validator(dict(schema), validate_formats=True)

    def find_errors(body: JsonObject) -> Iterator[dict[str, str]]:
        seen: set[str] = set()
        for error in validator.iter_errors(body):
            kind = error.kind
            cause = _to_cause(error.instance_path, kind.name, kind.value, error.instance)
            # The server names the first broken rule of each value.
            if cause["field"] not in seen:
                seen.add(cause["field"])
                yield cause

    return find_errors


@cache
def _warn_without_library() -> None:
    _log.warning(
        "custom objects are not validated by their schemas: jsonschema-rs is missing, which "
        "aioinformer[testing] installs"
    )


def _to_cause(path: Sequence[str | int], keyword: str, wanted: Any, found: Any) -> dict[str, str]:
    """Return the cause of an error: ``wanted`` is the value of the schema's keyword."""
    field = _format_path(path)
    match keyword:
        case "required":
            field = f"{field}.{wanted}".lstrip(".")
            return _cause("FieldValueRequired", field, "Required value")
        case "type":
            types = ",".join(each for each in _as_list(wanted) if each != "null")
            kind = _json_type(found)
            text = f'Invalid value: "{kind}": {field} in body must be of type {types}: "{kind}"'
            return _cause("FieldValueTypeInvalid", field, text)
        case "format":
            text = f'"{found}": {field} in body must be of type {wanted}: "{found}"'
            return _cause("FieldValueTypeInvalid", field, f"Invalid value: {text}")
        case "enum":
            listed = ", ".join(f'"{each}"' for each in wanted if each is not None)
            text = f'Unsupported value: "{found}": supported values: {listed}'
            return _cause("FieldValueNotSupported", field, text)
        case "maxLength":
            text = f"Too long: may not be more than {wanted} bytes"
            return _cause("FieldValueTooLong", field, text)
        case "maxItems":
            text = f"Too many: {len(found)}: must have at most {wanted} items"
            return _cause("FieldValueTooMany", field, text)
        case _:
            rule = _RULES.get(keyword, f"doesn't match {keyword} {{}}").format(wanted)
            text = f"Invalid value: {_show(found)}: {field} in body {rule}"
            return _cause("FieldValueInvalid", field, text)


_RULES: Mapping[str, str] = {
    "minimum": "should be greater than or equal to {}",
    "maximum": "should be less than or equal to {}",
    "pattern": "should match '{}'",
    "minLength": "should be at least {} chars long",
    "minItems": "should have at least {} items",
}
"""The server's words for keywords with one limit."""


def _show(found: Any) -> str:
    if isinstance(found, str):
        return f'"{found}"'
    return str(len(cast("Sequence[object]", found)) if isinstance(found, list) else found)


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _format_path(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    names: Mapping[type, str] = {
        int: "integer",
        float: "number",
        str: "string",
        dict: "object",
        list: "array",
    }
    return names.get(type(value), "null")


def _cause(reason: str, field: str, text: str) -> dict[str, str]:
    return {"reason": reason, "message": text, "field": field}

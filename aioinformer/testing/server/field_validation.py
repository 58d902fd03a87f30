"""Field validation: unknown and duplicate fields of sent objects (``fieldValidation``, KEP-2885).

A field is unknown if the schema of the type doesn't name it; here custom resources with a
definition have a schema. ``Strict`` rejects such a request, ``Warn``, the default, answers with a
header ``Warning`` for each field, and ``Ignore`` says nothing. Duplicate fields are found in JSON,
not in YAML.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.server.object_requests import ObjectRequest
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import JsonObject, encode_json
from aioinformer.testing.writes.patches import BodyPatch


def check_sent_fields(cluster: Cluster, request: ObjectRequest, body: JsonObject) -> list[str]:
    """Check a created or updated object; return warnings, or raise ``BadRequest`` if strict."""
    found = _find_errors(cluster, request, body)
    if found and request.field_validation == "Strict":
        raise statuses.strict_decoding(request.path.resource, found)
    return found


def check_patched_fields(cluster: Cluster, request: ObjectRequest, patch: BodyPatch) -> list[str]:
    """Check the object that a patch makes; return warnings, or raise ``Invalid`` if strict."""
    path = request.path
    if not _is_checked(cluster, request):
        return []
    stored = cluster.find_object(path.resource, path.name, namespace=path.namespace)
    if stored is None:
        return []  # the patch fails, and its error says why
    patched = patch.apply(dict(stored))
    found = _find_errors(cluster, request, patched)
    if found and request.field_validation == "Strict":
        text = encode_json(patched, sort_keys=True).decode()
        raise statuses.strict_decoding_of_patch(text, found)
    return found


def reject_unknown_fields(cluster: Cluster, request: ObjectRequest, config: JsonObject) -> None:
    """Raise ``ServerFailure`` for unknown fields of an applied configuration, however validated."""
    unknown = cluster.unknown_fields(request.path.resource, config)
    if unknown:
        raise statuses.undeclared_fields(request.path.resource, config["metadata"], unknown)


def _is_checked(cluster: Cluster, request: ObjectRequest) -> bool:
    return request.field_validation != "Ignore" and cluster.has_schema(request.path.resource)


def _find_errors(cluster: Cluster, request: ObjectRequest, body: JsonObject) -> list[str]:
    """Return the server's texts for duplicate fields, then those for unknown ones."""
    if not _is_checked(cluster, request):
        return []
    duplicates = [f'duplicate field "{path}"' for path in find_duplicates(request.body)]
    unknown = cluster.unknown_fields(request.path.resource, body)
    return [*duplicates, *(f'unknown field "{path}"' for path in unknown)]


# -- duplicate fields --------------------------------------------------------------------------


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object in the order of the text, duplicates included."""


def find_duplicates(body: bytes) -> list[str]:
    """Return the paths of members that an object of a JSON text has several times."""
    repeated = False

    def note(members: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len(dict(members)) < len(members)

    try:
        json.loads(body, object_pairs_hook=note)
        if not repeated:
            return []
        return list(_iterate_duplicates(json.loads(body, object_pairs_hook=_Members), ""))
    except ValueError:
        return []  # YAML


def _iterate_duplicates(value: object, path: str) -> Iterator[str]:
    if isinstance(value, _Members):
        seen: set[str] = set()
        for name, member in value:
            inner = f"{path}.{name}" if path else name
            if name in seen:
                yield inner
            seen.add(name)
            yield from _iterate_duplicates(member, inner)
    elif isinstance(value, list):
        for place, item in enumerate(cast("Sequence[object]", value)):
            yield from _iterate_duplicates(item, f"{path}[{place}]")

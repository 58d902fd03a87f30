"""What an API server says when it refuses a write: ``statuses`` for patches, applies, deletions.

The texts and details are those of the real server that the tests run, asked the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aioinformer._core.resources import Resource
from aioinformer.errors import ServerError, Status, server_error
from aioinformer.testing import statuses

__all__ = [
    "apply_conflict",
    "failed_patch",
    "immutable_uid",
    "invalid_options",
    "new_finalizers",
    "undecodable_patch",
    "unsupported_method",
]

_GO_NAMES: Mapping[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
"""What Go's decoder calls the values of JSON; every number is a ``number``."""


def undecodable_patch(found: object, wanted: str) -> ServerError:
    """JSON of another form than the kind of patch has."""
    name = _GO_NAMES.get(type(found), "number")
    return statuses.bad_request(
        f"error decoding patch: json: cannot unmarshal {name} into Go value of type {wanted}"
    )


def failed_patch() -> ServerError:
    """An operation of a JSON patch failed; it doesn't say which."""
    message = "the server rejected our request due to an error in our request"
    return server_error(Status(422, "Invalid", message))


def apply_conflict(conflicts: Mapping[str, Sequence[str]]) -> ServerError:
    """Fields that others own, by whom, as the server writes both."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, fields in conflicts.items()
        for field in fields
    ]
    if len(causes) == 1:
        said = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines: list[str] = []
        for manager, fields in conflicts.items():
            lines += [f"conflicts with {manager}:", *(f"- {field}" for field in fields)]
        said = f"{len(causes)} conflicts: {chr(10).join(lines)}"
    return server_error(Status(409, "Conflict", f"Apply failed with {said}", {"causes": causes}))


def immutable_uid(resource: Resource, name: str, uid: str) -> ServerError:
    """A patch would give an object another uid."""
    text = f'Invalid value: "{uid}": field is immutable'
    return _twice(resource, name, "metadata.uid", "FieldValueInvalid", text)


def new_finalizers(resource: Resource, name: str, added: Sequence[str]) -> ServerError:
    """Somebody wants to hold up a deletion that is under way."""
    listed = ", ".join(f'"{each}"' for each in added)
    text = (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{listed}}}"
    )
    return _twice(resource, name, "metadata.finalizers", "FieldValueForbidden", text)


def _twice(resource: Resource, name: str, field: str, reason: str, text: str) -> ServerError:
    """Two validations of one object's metadata find the same; the sentence has it once."""
    refusal = statuses.invalid(resource.kind, name, field, reason, text, group=resource.group)
    details: dict[str, Any] = dict(refusal.status.details)
    details["causes"] = details["causes"] * 2
    return server_error(Status(422, "Invalid", refusal.status.message, details))


def invalid_options(kind: str, field: str, reason: str, text: str) -> ServerError:
    """``PatchOptions`` or ``DeleteOptions`` that can't be."""
    return statuses.invalid(kind, "", field, reason, text, group="meta.k8s.io")


def unsupported_method(verb: str, resource: Resource) -> ServerError:
    """A verb that a subresource doesn't have."""
    message = f'{verb} is not supported on resources of kind "{resource}"'
    details = {"group": resource.group, "kind": resource.plural}
    kept = {name: text for name, text in details.items() if text}
    return server_error(Status(405, "MethodNotAllowed", message, kept))

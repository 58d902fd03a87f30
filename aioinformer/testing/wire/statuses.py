"""Errors of an API server: one function for each error, with the texts of a kube-apiserver 1.36."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from aioinformer._core.objects.resources import BUILT_IN, Resource
from aioinformer.errors import InvalidSelector, Phase, ServerError, Status, server_error

_BUILT_IN_VERSIONS = frozenset(resource.api_version for resource in BUILT_IN)
_GO_NAMES: Mapping[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
"""The names of Go's decoder for the values of JSON; every number is a ``number``."""
_OBJECT_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def status_document(status: Status) -> dict[str, Any]:
    """Return the ``v1.Status`` object, with its keys in the server's order."""
    metadata = {"continue": status.continue_token} if status.continue_token else {}
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata}
    body |= {"status": "Failure", "message": status.message}
    if status.reason:
        body["reason"] = status.reason
    # The server omits empty `details` in all but these errors.
    if status.details or status.reason in ("NotFound", "Invalid"):
        body["details"] = dict(status.details)
    return body | {"code": status.code}


def success_document(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """Return the answer to a finished deletion."""
    details = _details(resource, name) | {"uid": uid}
    head: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    return head | {"status": "Success", "details": details}


def created_document() -> dict[str, Any]:
    """Return the answer to a request that created something without a name, such as an eviction."""
    head: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    return head | {"status": "Success", "code": 201}


@contextmanager
def error_phase(phase: Phase) -> Generator[None]:
    """Set the phase of errors that the body raises: the purpose of the request."""
    try:
        yield
    except ServerError as error:
        error.phase = phase
        raise


def _details(resource: Resource, name: str, *, kind: str = "") -> dict[str, Any]:
    details = {"name": name, "group": resource.group, "kind": kind or resource.plural}
    return _without_empty(details)


def _without_empty(details: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in details.items() if value}


# -- 400, 401, 404, 415 ------------------------------------------------------------------------


def bad_request(message: str) -> ServerError:
    return server_error(Status(400, "BadRequest", message))


def undeterminable_name(name: str) -> ServerError:
    """Return the error for an applied configuration without a name that creates an object."""
    found = f"the name of the object ({name} based on URL) was undeterminable"
    return bad_request(f"{found}: name must be provided")


def invalid_selector(error: InvalidSelector) -> ServerError:
    """Take the first line of the parser's error, which is the server's text."""
    return bad_request(str(error).partition("\n")[0])


def unauthorized() -> ServerError:
    return server_error(Status(401, "Unauthorized", "Unauthorized"))


ANONYMOUS = "system:anonymous"
"""The user of a request without credentials."""


def forbidden(
    verb: str,
    resource: Resource,
    namespace: str | None,
    *,
    name: str = "",
    part: str = "",
    user: str = ANONYMOUS,
) -> ServerError:
    """Return the error of RBAC; ``part`` is the subresource, or empty."""
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    target = f"{resource.plural}/{part}" if part else resource.plural
    action = f'{verb} resource "{target}" in API group "{resource.group}" {where}'
    return forbidden_because(resource, name, f'User "{user}" cannot {action}')


def forbidden_because(resource: Resource, name: str, reason: str) -> ServerError:
    shown = f' "{name}"' if name else ""
    message = f"{resource}{shown} is forbidden: {reason}"
    return server_error(Status(403, "Forbidden", message, _details(resource, name)))


def forbidden_path(verb: str, path: str, user: str = ANONYMOUS) -> ServerError:
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    return server_error(Status(403, "Forbidden", message))


def refused_sender(what: str) -> ServerError:
    message = (
        f"the embedded server answers no request {what}: accept its host with accept_hosts= of "
        "ApiServer, or --accept-hosts of aioinformer serve"
    )
    return server_error(Status(403, "Forbidden", message))


def object_not_found(resource: Resource, name: str) -> ServerError:
    message = f'{resource} "{name}" not found'
    return server_error(Status(404, "NotFound", message, _details(resource, name)))


def resource_not_found() -> ServerError:
    """Return the error for an unknown resource of a served group version."""
    message = "the server could not find the requested resource"
    return server_error(Status(404, "NotFound", message))


def page_not_found() -> ServerError:
    """Return the error for an unknown group version, in plain text."""
    return server_error(Status(404, "", "404 page not found"))


def not_served(api_version: str) -> ServerError:
    return resource_not_found() if api_version in _BUILT_IN_VERSIONS else page_not_found()


def method_not_allowed() -> ServerError:
    message = "the server does not allow this method on the requested resource"
    return server_error(Status(405, "MethodNotAllowed", message))


def unsupported_media_type(accepted: str) -> ServerError:
    unknown = "the body of the request was in an unknown format"
    message = f"{unknown} - accepted media types include: {accepted}"
    return server_error(Status(415, "UnsupportedMediaType", message))


def protobuf_body(accepted: str) -> ServerError:
    """Name the settings of clients that send JSON; a real server reads protobuf."""
    error = unsupported_media_type(accepted)
    advice = (
        " (this test server reads no protobuf: set rest.Config.ContentType to application/json "
        "in client-go; with kubectl, write a manifest and use `kubectl apply -f`)"
    )
    return server_error(Status(415, error.status.reason, error.status.message + advice))


def unrecognized_body(kind: str, reason: str, body: bytes) -> ServerError:
    """Return the error for a body that is not an object, or lacks a kind."""
    start, rest = body[:30], " ..." if len(body) > 30 else ""
    shown = start.decode(errors="replace") if start.startswith(b"{") else start.hex()
    expected = f"must be of type {kind}"
    summary = f"{shown}{rest}" or "<empty>"
    return bad_request(f"the object provided is unrecognized ({expected}): {reason} ({summary})")


def body_too_large(limit: int) -> ServerError:
    message = f"Request entity too large: limit is {limit}"
    return server_error(Status(413, "RequestEntityTooLarge", message))


def not_acceptable(offered: str) -> ServerError:
    return _not_acceptable(f"only the following media types are accepted: {offered}")


def not_a_list() -> ServerError:
    """Return the error for a ``PartialObjectMetadataList`` of one object: 500, not 406."""
    return server_error(Status(500, "", "content is not a list"))


def list_not_acceptable(kind: str) -> ServerError:
    """Return the error for a ``PartialObjectMetadata`` of a list."""
    requested = "you requested PartialObjectMetadata, but the requested object"
    return _not_acceptable(f"{requested} is a list ({kind})")


def _not_acceptable(message: str) -> ServerError:
    return server_error(Status(406, "NotAcceptable", message))


# -- unknown and duplicate fields --------------------------------------------------------------


def strict_decoding(resource: Resource, errors: Sequence[str]) -> ServerError:
    """Return the error for unknown or duplicate fields of a strictly validated object."""
    handled = f'{resource.kind} in version "{resource.version}" cannot be handled as a'
    return bad_request(f"{handled} {resource.kind}: {_strict_error(errors)}")


def strict_decoding_of_patch(patched: str, errors: Sequence[str]) -> ServerError:
    """``patched`` is the patched object as JSON, which the server shows."""
    return _invalid_patch(patched, _strict_error(errors))


def invalid_patch(patched: Mapping[str, Any], error: str) -> ServerError:
    """Return the error for a patch whose result is not an object."""
    return _invalid_patch(msgspec.json.encode(patched, order="sorted").decode(), error)


def _invalid_patch(patched: str, error: str) -> ServerError:
    shown = msgspec.json.encode(patched).decode()
    text = f"Invalid value: {shown}: {error}"
    return invalid("", "", "patch", "FieldValueInvalid", text)


def _strict_error(errors: Sequence[str]) -> str:
    return f"strict decoding error: {', '.join(errors)}"


def undeclared_fields(
    resource: Resource, metadata: Mapping[str, Any], paths: Sequence[str]
) -> ServerError:
    """Return the error for an applied configuration with fields that the schema doesn't name."""
    texts = [f".{path}: field not declared in schema" for path in paths]
    return untyped_configuration(resource, metadata, texts)


def untyped_configuration(
    resource: Resource, metadata: Mapping[str, Any], texts: Sequence[str]
) -> ServerError:
    """Return the error for an applied configuration that doesn't fit the schema."""
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    listed = texts[0] if len(texts) == 1 else "\n  ".join(["errors:", *texts])
    target = f"({name}; {resource.group}/{resource.version}, Kind={resource.kind})"
    return server_error(Status(500, "", f"failed to create typed patch object {target}: {listed}"))


# -- 409, 422 ----------------------------------------------------------------------------------


def already_exists(resource: Resource, name: str) -> ServerError:
    message = f'{resource} "{name}" already exists'
    return server_error(Status(409, "AlreadyExists", message, _details(resource, name)))


def conflict(resource: Resource, name: str, reason: str = _OBJECT_MODIFIED) -> ServerError:
    """Return the error for a write from an old state, or with a failed precondition."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {reason}'
    return server_error(Status(409, "Conflict", message, _details(resource, name)))


def failed_precondition(
    resource: Resource, name: str, field: str, expected: str, found: str
) -> ServerError:
    """Return the error for a write to an object with another uid (``UID``) or version."""
    difference = f"{field} in precondition: {expected}, {field} in object meta: {found}"
    return conflict(resource, name, f"Precondition failed: {difference}")


def delete_conflict(
    resource: Resource, name: str, field: str, expected: str, found: str
) -> ServerError:
    """Return the error for a deletion of an object with another uid (``UID``) or version."""
    change = "deleted and then recreated" if field == "UID" else "modified"
    qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = (
        f'Operation cannot be fulfilled on {qualified} "{name}": the {field} in the precondition '
        f"({expected}) does not match the {field} in record ({found}). "
        f"The object might have been {change}"
    )
    details = _details(resource, name, kind=resource.kind)
    return server_error(Status(409, "Conflict", message, details))


def invalid(
    kind: str, name: str, field: str, reason: str, text: str, *, group: str = ""
) -> ServerError:
    causes = [{"reason": reason, "message": text, "field": field}]
    return invalid_fields(kind, name, causes, group=group)


def invalid_fields(
    kind: str,
    name: str,
    causes: Sequence[Mapping[str, str]],
    *,
    group: str = "",
    repeated: int = 1,
) -> ServerError:
    """Each cause has reason, message and field.

    ``repeated`` validations find the causes: the details have them as often, the message once.
    """
    qualified = f"{kind}.{group}" if group else kind
    details = {"name": name, "group": group, "kind": kind, "causes": [*causes] * repeated}
    message = f'{qualified} "{name}" is invalid: {_list_causes(causes)}'
    return server_error(Status(422, "Invalid", message, _without_empty(details)))


def _list_causes(causes: Sequence[Mapping[str, str]]) -> str:
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def invalid_option(field: str, text: str) -> ServerError:
    """Return the error for a forbidden combination of query parameters."""
    return _invalid_list_options(_forbidden_cause(field, text))


def unsupported_option(field: str, value: str, known: tuple[str, ...]) -> ServerError:
    return _invalid_list_options(_unsupported_cause(field, value, known))


def invalid_watch_list_match(match: str) -> ServerError:
    """Return the error for a WatchList without its ``resourceVersionMatch``."""
    name, required = "resourceVersionMatch", "NotOlderThan"
    causes = [_forbidden_cause(name, f"sendInitialEvents requires setting {name} to {required}")]
    if match:
        causes.append(_unsupported_cause(name, match, (required,)))
    return _invalid_list_options(*causes)


def _forbidden_cause(field: str, text: str) -> dict[str, str]:
    return {"reason": "FieldValueForbidden", "message": f"Forbidden: {text}", "field": field}


def _unsupported_cause(field: str, value: str, known: tuple[str, ...]) -> dict[str, str]:
    listed = ", ".join(f'"{each}"' for each in known)
    text = f'Unsupported value: "{value}": supported values: {listed}'
    return {"reason": "FieldValueNotSupported", "message": text, "field": field}


def _invalid_list_options(*causes: dict[str, str]) -> ServerError:
    return invalid_fields("ListOptions", "", causes, group="meta.k8s.io")


# -- subresources ---------------------------------------------------------------------------


def missing_replicas(path: str) -> ServerError:
    """Return the error for the ``Scale`` of a custom object without replicas."""
    return internal_error(f'the spec replicas field "{path}" does not exist')


def internal_error(text: str) -> ServerError:
    details = {"causes": [{"message": text}]}
    message = f"Internal error occurred: {text}"
    return server_error(Status(500, "InternalError", message, details))


def disruption_budget_violated(name: str, status: Mapping[str, Any]) -> ServerError:
    needed, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    text = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    cause = {"reason": "DisruptionBudget", "message": text}
    return server_error(Status(429, "TooManyRequests", message, {"causes": [cause]}))


def several_disruption_budgets() -> ServerError:
    message = (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
        "support."
    )
    return server_error(Status(500, "InternalError", message))


# -- patches, applies and deletions ------------------------------------------------------------


def undecodable_patch(found: object, wanted: str, *, field: str = "") -> ServerError:
    """Return the error for a patch, or a field of it, whose JSON has the wrong type."""
    name = _GO_NAMES.get(type(found), "number")
    place = f"struct field {field}" if field else "value"
    return bad_request(
        f"error decoding patch: json: cannot unmarshal {name} into Go {place} of type {wanted}"
    )


def failed_patch() -> ServerError:
    """Return the error for a failed operation of a JSON patch. The server doesn't say which one."""
    message = "the server rejected our request due to an error in our request"
    return server_error(Status(422, "Invalid", message))


def apply_conflict(conflicts: Mapping[str, Sequence[str]]) -> ServerError:
    """Return the error for an apply to fields of other managers, as the server writes them."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, fields in conflicts.items()
        for field in fields
    ]
    if len(causes) == 1:
        summary = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines: list[str] = []
        for manager, fields in conflicts.items():
            lines += [f"conflicts with {manager}:", *(f"- {field}" for field in fields)]
        summary = f"{len(causes)} conflicts: {chr(10).join(lines)}"
    return server_error(Status(409, "Conflict", f"Apply failed with {summary}", {"causes": causes}))


def immutable_uid(resource: Resource, name: str, uid: str) -> ServerError:
    text = f'Invalid value: "{uid}": field is immutable'
    return _invalid_twice(resource, name, "metadata.uid", "FieldValueInvalid", text)


def new_finalizers(resource: Resource, name: str, added: Sequence[str]) -> ServerError:
    """Return the error for new finalizers on an object that is being deleted."""
    listed = ", ".join(f'"{each}"' for each in added)
    text = (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{listed}}}"
    )
    return _invalid_twice(resource, name, "metadata.finalizers", "FieldValueForbidden", text)


def _invalid_twice(
    resource: Resource, name: str, field: str, reason: str, text: str
) -> ServerError:
    """Return an error that has its cause twice, since two validations find it."""
    causes = [{"reason": reason, "message": text, "field": field}]
    return invalid_fields(resource.kind, name, causes, group=resource.group, repeated=2)


def invalid_options(kind: str, causes: Sequence[Mapping[str, str]]) -> ServerError:
    """Return the error for invalid ``PatchOptions``, ``DeleteOptions`` or the like."""
    return invalid_fields(kind, "", causes, group="meta.k8s.io")


def unsupported_method(verb: str, resource: Resource) -> ServerError:
    """Return the error for a verb that a subresource doesn't have."""
    message = f'{verb} is not supported on resources of kind "{resource}"'
    details = {"group": resource.group, "kind": resource.plural}
    return server_error(Status(405, "MethodNotAllowed", message, _without_empty(details)))

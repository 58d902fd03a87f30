"""Requests for single objects: method, path, query and body in, the server's answer out.

The HTTP server and the writers without sockets share this sans-I/O module, so that both read a
request the same way. The registry of the cluster does the write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from aioinformer.testing.access.access import Access
from aioinformer.testing.access.escalation import check_grant
from aioinformer.testing.access.reviews import Review, answer_review
from aioinformer.testing.access.rights import check_access
from aioinformer.testing.access.users import RequestAttributes
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.registry import WriteOptions
from aioinformer.testing.faults.faults import RequestVerb
from aioinformer.testing.server import queries
from aioinformer.testing.server.field_validation import (
    check_patched_fields,
    check_sent_fields,
    reject_unknown_fields,
)
from aioinformer.testing.server.object_requests import (
    ObjectRequest,
    ObjectResponse,
    decode_configuration,
    decode_delete_options,
    decode_patch,
    json_response,
    object_response,
)
from aioinformer.testing.server.subresources import handle_subresource
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import Encoding, JsonObject
from aioinformer.testing.wire.served_resources import REVIEWS, STATUS
from aioinformer.testing.wire.urls import MAIN, ResourcePath
from aioinformer.testing.writes import validation
from aioinformer.testing.writes.role_references import RBAC_GROUP

_REVIEWS = frozenset(review.resource for review in REVIEWS)

BODY_LIMIT = 3 * 1024 * 1024
"""The most bytes of a write's body (the API server's ``MaxRequestBodyBytes``)."""

_WRITE_VERBS: Mapping[str, RequestVerb] = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_RETURNS_DELETED = frozenset(
    (
        *("persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates"),
        *("resourcequotas", "serviceaccounts", "services", "csidrivers.storage.k8s.io"),
        *("csinodes.storage.k8s.io", "storageclasses.storage.k8s.io"),
        "volumeattachments.storage.k8s.io",
    )
)
"""The resources whose deletion is answered with the object, not with a Status (the field
``ReturnDeletedObject`` of their registries in kubernetes)."""


def object_verb(method: str, path: ResourcePath) -> RequestVerb:
    """Return the verb of a request that is neither a list nor a watch."""
    if method == "DELETE" and not path.name:
        return "deletecollection"
    return _WRITE_VERBS.get(method, "get")


def request_attributes(verb: str, path: ResourcePath) -> RequestAttributes:
    is_namespace = path.resource.plural == "namespaces" and not path.resource.group
    return RequestAttributes(
        verb=verb,
        resource=path.resource,
        part="" if path.part == MAIN else path.part,
        # A Role in a namespace can allow the Namespace object itself (apiserver's RequestInfo).
        namespace=path.name if is_namespace else path.namespace or "",
        name=path.name,
    )


def handle_request(
    cluster: Cluster, request: ObjectRequest, access: Access | None = None
) -> ObjectResponse:
    """Return the answer, or raise it as a ``ServerError``. Reviews ask about ``access``."""
    path = request.path
    if len(request.body) > BODY_LIMIT:
        raise statuses.body_too_large(BODY_LIMIT)
    # A write to all namespaces is not possible; the server has no default namespace.
    if path.resource.namespaced and path.namespace is None:
        custom = Encoding(path.resource).custom
        raise statuses.page_not_found() if custom else statuses.method_not_allowed()
    if path.resource in _REVIEWS:
        return _answer_review(cluster, request, access or Access())
    if path.part not in (MAIN, STATUS.name):
        return handle_subresource(cluster, request)
    if request.method in ("POST", "DELETE") and path.part != MAIN:
        raise statuses.unsupported_method(object_verb(request.method, path), path.resource)
    handler = _HANDLERS.get((request.method, bool(path.name)))
    served = cluster.served.find(path.resource)
    if handler is None or (served and object_verb(request.method, path) not in served.verbs):
        raise statuses.method_not_allowed()
    return handler(cluster, request)


def _answer_review(cluster: Cluster, request: ObjectRequest, access: Access) -> ObjectResponse:
    path = request.path
    if request.method != "POST" or path.name:
        raise statuses.method_not_allowed()
    user = request.user or access.authenticate(cluster, "")
    review = Review(path.resource, path.namespace or "", request.json(), user)
    return json_response(answer_review(cluster, access, review), 201)


def _get(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    path = request.path
    return object_response(cluster.registry.get(path.resource, path.name, path.namespace))


def _create(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("CreateOptions")
    path, body = request.path, request.object_json()
    warnings = check_sent_fields(cluster, request, body)
    options = _checked_options(cluster, request)
    created = cluster.registry.create(path.resource, body, path.namespace, options)
    return object_response(created, 201, warnings=warnings)


def _update(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("UpdateOptions")
    path, body = request.path, validation.check_metadata(request.object_json())
    warnings = check_sent_fields(cluster, request, body)
    _check_name(path, body)
    options = _checked_options(cluster, request)
    updated, new = cluster.registry.update(path.resource, body, path.namespace, options)
    return object_response(updated, 201 if new else 200, warnings=warnings)


def _patch(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    request.check_query("PatchOptions")
    if request.is_apply:
        return _apply(cluster, request)
    path, patch = request.path, decode_patch(request)
    warnings = check_patched_fields(cluster, request, patch)
    options = _checked_options(cluster, request)
    patched = cluster.registry.patch(path.resource, path.name, patch, path.namespace, options)
    return object_response(patched, warnings=warnings)


def _apply(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    path, resource = request.path, request.path.resource
    config = validation.check_metadata(decode_configuration(request))
    api_version, kind = config.get("apiVersion", ""), config.get("kind", "")
    if (api_version, kind) != (resource.api_version, resource.kind):
        raise statuses.bad_request(f"invalid object type: {api_version or '/'}, Kind={kind}")
    if config["metadata"].get("managedFields") is not None:
        raise statuses.bad_request("metadata.managedFields must be nil")
    exists = cluster.find_object(resource, path.name, namespace=path.namespace) is not None
    if not exists and not config["metadata"].get("name"):
        raise statuses.undeterminable_name(path.name)
    _check_name(path, config)
    reject_unknown_fields(cluster, request, config)
    force = request.query.get("force", "false").lower() not in ("false", "0")
    options = _checked_options(cluster, request)
    applied, new = cluster.registry.apply(resource, config, path.namespace, options, force=force)
    return object_response(applied, 201 if new else 200)


def _checked_options(cluster: Cluster, request: ObjectRequest) -> WriteOptions:
    """Return the options with the checks of the user's rights that depend on the objects."""
    options, user, path = request.write_options, request.user, request.path
    if user is None or user.unrestricted:
        return options
    creation = partial(check_access, cluster, user, request_attributes("create", path))
    options = replace(options, check_creation=creation)
    if path.resource.group != RBAC_GROUP:
        return options
    grant = partial(check_grant, cluster, user, request_attributes("update", path))
    return replace(options, check_change=grant)


def _check_name(path: ResourcePath, body: JsonObject) -> None:
    found = body["metadata"].setdefault("name", path.name)
    if found != path.name:
        raise statuses.bad_request(
            f"the name of the object ({found}) does not match the name on the URL ({path.name})"
        )


def _delete(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    path, (preconditions, dry_run) = request.path, decode_delete_options(request)
    last = cluster.registry.delete(
        path.resource, path.name, path.namespace, preconditions=preconditions, dry_run=dry_run
    )
    # With finalizers the object still exists.
    if last.metadata.get("finalizers") or str(path.resource) in _RETURNS_DELETED:
        return object_response(last)
    return json_response(statuses.success_document(path.resource, path.name, last.uid))


def _delete_collection(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    path, (preconditions, dry_run) = request.path, decode_delete_options(request)
    query = queries.list_query(path.namespace, request.query)
    deleted = cluster.delete_page(path.resource, query, preconditions, dry_run=dry_run)
    return ObjectResponse(deleted)


_HANDLERS: Mapping[tuple[str, bool], Callable[[Cluster, ObjectRequest], ObjectResponse]] = {
    ("GET", True): _get,
    ("POST", False): _create,
    ("PUT", True): _update,
    ("PATCH", True): _patch,
    ("DELETE", True): _delete,
    ("DELETE", False): _delete_collection,
}
"""The handlers by method, and by whether the path names an object."""

"""Subresources other than the status: scale, eviction, and tokens of service accounts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from aioinformer._core.selectors.parsed_selectors import LabelSelector
from aioinformer.testing.access.tokens import ServiceAccountClaims, issue_token
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.registry import Preconditions
from aioinformer.testing.server.object_requests import (
    DeleteOptionsBody,
    ObjectRequest,
    ObjectResponse,
    PreconditionsBody,
    decode_patch,
    json_response,
)
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import JsonObject
from aioinformer.testing.writes.patches import MergePatch
from aioinformer.testing.writes.scale import ScalePatch, ScaleReplacement, build_scale
from aioinformer.testing.writes.typed_bodies import convert_body

_UNPROTECTED_PHASES = ("Succeeded", "Failed", "Pending")
"""The phases of pods that a disruption budget doesn't protect."""
_AUDIENCE = "https://kubernetes.default.svc"
"""The audience of a token whose request names none."""
_TOKEN_SECONDS, _LEAST_TOKEN_SECONDS = 3600, 600
"""The life of a token without ``expirationSeconds``, and the shortest life."""


def handle_subresource(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    """Return the answer to a request for ``scale``, ``eviction`` or ``token``."""
    path = request.path
    handler = _HANDLERS.get((path.part, request.method))
    if handler is None:
        raise statuses.method_not_allowed()
    return handler(cluster, request)


# -- scale -------------------------------------------------------------------------------------


def _get_scale(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    path = request.path
    stored = cluster.registry.get(path.resource, path.name, path.namespace)
    return json_response(build_scale(stored.body, cluster.scale_paths(path.resource)))


def _write_scale(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    path = request.path
    paths = cluster.scale_paths(path.resource)
    if request.method == "PUT":
        request.check_query("UpdateOptions")
        change: ScaleReplacement | ScalePatch = ScaleReplacement(
            path.resource, request.json(), paths
        )
    else:
        request.check_query("PatchOptions")
        change = ScalePatch(path.resource, decode_patch(request), paths)
    options = request.write_options
    written = cluster.registry.patch(path.resource, path.name, change, path.namespace, options)
    return json_response(build_scale(written.body, paths))


# -- eviction ----------------------------------------------------------------------------------


class _EvictionMeta(msgspec.Struct):
    name: str | None = None


class _EvictionBody(msgspec.Struct, rename="camel"):
    metadata: _EvictionMeta | None = None
    delete_options: DeleteOptionsBody | None = None


def _evict(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    path, eviction = request.path, convert_body(request.json(), _EvictionBody)
    request.check_query("CreateOptions")
    name = eviction.metadata.name if eviction.metadata else None
    if name is not None and name != path.name:
        raise statuses.bad_request("name in URL does not match name in Eviction object")
    pod = cluster.get(path.resource, path.name, namespace=path.namespace)
    dry_run = request.write_options.dry_run
    _use_disruption_budget(cluster, pod, dry_run=dry_run)
    options = eviction.delete_options or DeleteOptionsBody()
    sent = options.preconditions or PreconditionsBody()
    cluster.registry.delete(
        path.resource,
        path.name,
        path.namespace,
        preconditions=Preconditions(sent.uid, sent.resource_version),
        dry_run=dry_run,
    )
    return json_response(statuses.created_document(), 201)


def _use_disruption_budget(cluster: Cluster, pod: JsonObject, *, dry_run: bool) -> None:
    """Count an eviction in the disruption budget that protects a pod.

    No controller maintains the budgets: ``status.disruptionsAllowed`` is what a test writes, and a
    budget without it allows nothing, as a new budget on a real server.

    Raises:
        RateLimited: the budget allows no eviction.
        ServerFailure: several budgets protect the pod.
    """
    metadata = pod["metadata"]
    pod_status: JsonObject = pod.get("status") or {}
    phase = pod_status.get("phase", "")
    if phase in _UNPROTECTED_PHASES or "deletionTimestamp" in metadata:
        return
    namespace: str = metadata["namespace"]
    labels: dict[str, str] = metadata.get("labels") or {}
    budgets = [
        each
        for each in cluster.objects("poddisruptionbudgets", namespace=namespace)
        if _protects(each, labels)
    ]
    if len(budgets) > 1:
        raise statuses.several_disruption_budgets()
    for budget in budgets:
        status: JsonObject = budget.get("status") or {}
        allowed: int = status.get("disruptionsAllowed") or 0
        name = budget["metadata"]["name"]
        if allowed <= 0:
            raise statuses.disruption_budget_violated(name, status)
        if not dry_run:
            change = MergePatch({"status": {"disruptionsAllowed": allowed - 1}})
            cluster.registry.patch("poddisruptionbudgets", name, change, namespace)


def _protects(budget: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    spec: JsonObject = budget.get("spec") or {}
    selector = spec.get("selector")
    return selector is not None and LabelSelector.parse(selector).matches(labels)


# -- tokens ------------------------------------------------------------------------------------


class _TokenSpec(msgspec.Struct, rename="camel"):
    audiences: list[str] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: dict[str, Any] | None = None


class _TokenRequestBody(msgspec.Struct):
    spec: _TokenSpec | None = None


def _create_token(cluster: Cluster, request: ObjectRequest) -> ObjectResponse:
    """Return a ``TokenRequest`` with its token, which this server accepts until it expires."""
    path, sent = request.path, convert_body(request.json(), _TokenRequestBody)
    account = cluster.get(path.resource, path.name, namespace=path.namespace)
    spec = sent.spec or _TokenSpec()
    seconds = spec.expiration_seconds or _TOKEN_SECONDS
    if seconds < _LEAST_TOKEN_SECONDS:
        text = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
        raise statuses.invalid(
            "TokenRequest",
            path.name,
            "spec.expirationSeconds",
            "FieldValueInvalid",
            text,
            group="authentication.k8s.io",
        )
    audiences = spec.audiences or [_AUDIENCE]
    now = cluster.now()
    expiry = now + dt.timedelta(seconds=seconds)
    metadata = account["metadata"]
    claims = ServiceAccountClaims(metadata["namespace"], path.name, metadata["uid"])
    token = issue_token(cluster.signing_key, claims, audiences, issued=now, expiry=expiry)
    return json_response(
        {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": path.name,
                "namespace": metadata["namespace"],
                "creationTimestamp": _format_time(now),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.bound_object_ref,
            },
            "status": {"token": token, "expirationTimestamp": _format_time(expiry)},
        },
        201,
    )


def _format_time(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_HANDLERS: Mapping[tuple[str, str], Callable[[Cluster, ObjectRequest], ObjectResponse]] = {
    ("scale", "GET"): _get_scale,
    ("scale", "PUT"): _write_scale,
    ("scale", "PATCH"): _write_scale,
    ("eviction", "POST"): _evict,
    ("token", "POST"): _create_token,
}

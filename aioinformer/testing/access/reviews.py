"""Reviews: objects that are created to ask a question, and are not stored.

``kubectl auth can-i`` creates a SelfSubjectAccessReview, ``kubectl auth whoami`` a
SelfSubjectReview, ``kubectl auth can-i --list`` a SelfSubjectRulesReview. A server behind a proxy
asks about other users with a SubjectAccessReview, and about tokens with a TokenReview.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import ServerError, Unauthorized
from aioinformer.testing.access.access import Access
from aioinformer.testing.access.rights import FULL_AUTHORITY, held_rules, is_allowed
from aioinformer.testing.access.users import ALL, RequestAttributes, User
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import JsonObject


@dataclass(frozen=True, slots=True)
class Review:
    """A review as it was sent by a user."""

    resource: Resource
    namespace: str
    """The namespace of the path; empty for a review without namespace."""
    body: JsonObject
    user: User

    @property
    def spec(self) -> JsonObject:
        """The question."""
        spec: JsonObject = self.body.get("spec") or {}
        return spec


def answer_review(cluster: Cluster, access: Access, review: Review) -> JsonObject:
    """Return a review with its answer.

    Raises:
        BadRequest: the review asks about nothing, or about both a resource and a path.
        Invalid: a review in a namespace asks about another one, or about a path.
    """
    resource = review.resource
    head: JsonObject = {"kind": resource.kind, "apiVersion": resource.api_version}
    metadata: JsonObject = {}
    if resource.plural == "selfsubjectreviews":
        metadata["creationTimestamp"] = _format_time(cluster.now())
    spec = {"spec": review.spec} if review.spec else {}
    status = _ANSWERS[resource.plural](cluster, access, review)
    return head | {"metadata": metadata} | spec | {"status": status}


def _format_time(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _user_info(user: User) -> JsonObject:
    uid = {"uid": user.uid} if user.uid else {}
    extra = {"extra": {key: list(user.extra[key]) for key in user.extra}} if user.extra else {}
    return {"username": user.name} | uid | {"groups": list(user.groups)} | extra


# -- access ------------------------------------------------------------------------------------


def _review_own_access(cluster: Cluster, access: Access, review: Review) -> JsonObject:
    return {"allowed": is_allowed(cluster, review.user, _read_attributes(cluster, review))}


def _review_access(cluster: Cluster, access: Access, review: Review) -> JsonObject:
    spec = review.spec
    user = access.make_user(spec.get("user") or "", spec.get("groups") or ())
    return {"allowed": is_allowed(cluster, user, _read_attributes(cluster, review))}


def _review_local_access(cluster: Cluster, access: Access, review: Review) -> JsonObject:
    wanted: Mapping[str, Any] = review.spec.get("resourceAttributes") or {}
    asked = wanted.get("namespace") or ""
    if review.spec.get("nonResourceAttributes") is not None:
        raise _invalid_review(review, "nonResourceAttributes", "disallowed on this kind of request")
    if asked != review.namespace:
        text = f'Invalid value: "{asked}": must match metadata.namespace'
        raise _invalid_review(review, "resourceAttributes.namespace", text)
    return _review_access(cluster, access, review)


def _invalid_review(review: Review, field: str, text: str) -> ServerError:
    cause = {"reason": "FieldValueInvalid", "message": text, "field": f"spec.{field}"}
    resource = review.resource
    return statuses.invalid_fields(resource.kind, "", [cause], group=resource.group)


def _read_attributes(cluster: Cluster, review: Review) -> RequestAttributes:
    wanted: Mapping[str, Any] | None = review.spec.get("resourceAttributes")
    document: Mapping[str, Any] | None = review.spec.get("nonResourceAttributes")
    if (wanted is None) is (document is None):
        raise statuses.bad_request(
            "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        )
    if document is not None:
        return RequestAttributes(verb=document.get("verb", ""), path=document.get("path", ""))
    wanted = wanted or {}
    return RequestAttributes(
        verb=wanted.get("verb", ""),
        resource=_find_resource(cluster, wanted.get("group", ""), wanted.get("resource", "")),
        part=wanted.get("subresource", ""),
        namespace=wanted.get("namespace", ""),
        name=wanted.get("name", ""),
    )


def _find_resource(cluster: Cluster, group: str, plural: str) -> Resource:
    """Return a served resource, or a made-up one: a question can be about any name."""
    for each in cluster.served:
        if (each.resource.group, each.resource.plural) == (group, plural):
            return each.resource
    try:
        return Resource(group, "v1", plural or ALL, plural or ALL)
    except ValueError as error:
        raise statuses.bad_request(str(error)) from error


# -- rules -------------------------------------------------------------------------------------


def _review_own_rules(cluster: Cluster, access: Access, review: Review) -> JsonObject:
    namespace: str = review.spec.get("namespace") or ""
    found = [*FULL_AUTHORITY] if review.user.unrestricted else []
    found += held_rules(cluster, review.user, namespace)
    return {
        "resourceRules": [dict(rule) for rule in found if not rule.get("nonResourceURLs")],
        "nonResourceRules": [dict(rule) for rule in found if rule.get("nonResourceURLs")],
        "incomplete": False,
    }


# -- users -------------------------------------------------------------------------------------


def _review_self(cluster: Cluster, access: Access, review: Review) -> JsonObject:
    return {"userInfo": _user_info(review.user)}


def _review_token(cluster: Cluster, access: Access, review: Review) -> JsonObject:
    token: str = review.spec.get("token") or ""
    try:
        user = access.authenticate(cluster, f"Bearer {token}")
    except Unauthorized:
        return {"authenticated": False, "user": {}}
    if user.name == statuses.ANONYMOUS:
        return {"authenticated": False, "user": {}}
    return {"authenticated": True, "user": _user_info(user)}


_ANSWERS: Mapping[str, Callable[[Cluster, Access, Review], JsonObject]] = {
    "selfsubjectaccessreviews": _review_own_access,
    "subjectaccessreviews": _review_access,
    "localsubjectaccessreviews": _review_local_access,
    "selfsubjectrulesreviews": _review_own_rules,
    "selfsubjectreviews": _review_self,
    "tokenreviews": _review_token,
}

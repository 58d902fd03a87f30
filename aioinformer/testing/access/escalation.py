"""The check of roles and bindings that a user writes: nobody gives rights that they don't have.

The verb ``escalate`` on the role, or ``bind`` on the role of a binding, allows it all the same, as
does ``system:masters``. Source: the policy-based storages of kubernetes' ``registry/rbac``, and
``Covers`` of component-helpers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import Status, server_error
from aioinformer.testing.access.rights import (
    ROLE_KINDS,
    Rule,
    bound_rules,
    find_role,
    is_allowed,
    matches_url,
    own_rules,
)
from aioinformer.testing.access.users import ALL, RequestAttributes, User
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import JsonObject
from aioinformer.testing.writes.role_references import RBAC_GROUP, RoleReference
from aioinformer.testing.writes.typed_bodies import convert_body
from aioinformer.testing.writes.write_options import quote

_FULL_AUTHORITY: Sequence[Rule] = (
    {"verbs": [ALL], "apiGroups": [ALL], "resources": [ALL]},
    {"verbs": [ALL], "nonResourceURLs": [ALL]},
)
_CLEANUP_METADATA = ("ownerReferences", "finalizers", "managedFields")
"""The metadata by which the garbage collector changes an object."""
_FIELDS = (
    ("apiGroups", "APIGroups"),
    ("resources", "Resources"),
    ("nonResourceURLs", "NonResourceURLs"),
    ("resourceNames", "ResourceNames"),
    ("verbs", "Verbs"),
)
"""The fields of a rule and their names in errors, in the order of errors."""


class _RuleBody(msgspec.Struct, rename="camel"):
    verbs: list[str] | None = None
    api_groups: list[str] | None = None
    resources: list[str] | None = None
    resource_names: list[str] | None = None
    non_resource_urls: list[str] | None = msgspec.field(default=None, name="nonResourceURLs")


class _AggregationBody(msgspec.Struct, rename="camel"):
    cluster_role_selectors: list[dict[str, Any]] | None = None


class _GrantBody(msgspec.Struct, rename="camel"):
    """The fields of a role or a binding that are read here."""

    metadata: dict[str, Any] | None = None
    rules: list[_RuleBody] | None = None
    aggregation_rule: _AggregationBody | None = None
    role_ref: RoleReference | None = None


def check_grant(
    cluster: Cluster,
    user: User,
    target: RequestAttributes,
    old: JsonObject | None,
    new: Mapping[str, Any],
) -> None:
    """Raise ``Forbidden`` if a write to an RBAC object gives rights that the user doesn't have.

    ``old`` is ``None`` for an object that the write creates.

    Raises:
        BadRequest: a field has the wrong type.
        NotFound: the role of a binding doesn't exist.
    """
    sent = convert_body(new, _GrantBody)
    if target.resource is None or (
        old is not None and _without_cleanup(old) == _without_cleanup(new)
    ):
        return
    name = str((sent.metadata or {}).get("name") or "")
    if target.resource.plural in ROLE_KINDS.values():
        missing = _find_role_excess(cluster, user, target, old or {}, new)
    else:
        missing = _find_binding_excess(cluster, user, target, new.get("roleRef") or {})
    if missing:
        raise statuses.forbidden_grant(target.resource, name, missing)


def _without_cleanup(body: Mapping[str, Any]) -> JsonObject:
    metadata: Mapping[str, Any] = body["metadata"]
    kept = {key: metadata[key] for key in metadata if key not in _CLEANUP_METADATA}
    return {**body, "metadata": kept}


def _find_role_excess(
    cluster: Cluster,
    user: User,
    target: RequestAttributes,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
) -> str:
    """Return why a user may not write a role; empty if the user may."""
    if is_allowed(cluster, user, replace(target, verb="escalate")):
        return ""
    missing = _describe_missing(cluster, user, target.namespace, new.get("rules") or ())
    if missing or not (_is_aggregated(old) or _is_aggregated(new)):
        return missing
    if _describe_missing(cluster, user, "", _FULL_AUTHORITY):
        return "must have cluster-admin privileges to use the aggregationRule"
    return ""


def _is_aggregated(role: Mapping[str, Any]) -> bool:
    rule: Mapping[str, Any] = role.get("aggregationRule") or {}
    return bool(rule.get("clusterRoleSelectors"))


def _find_binding_excess(
    cluster: Cluster, user: User, target: RequestAttributes, reference: Mapping[str, Any]
) -> str:
    """Return why a user may not write a binding to a role; empty if the user may."""
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    if kind not in ROLE_KINDS:
        message = f"unsupported role reference kind: {quote(kind)}"
        raise server_error(Status(500, "", message))
    resource = Resource(RBAC_GROUP, "v1", ROLE_KINDS[kind], kind)
    bound = RequestAttributes(verb="bind", resource=resource, namespace=target.namespace, name=name)
    if is_allowed(cluster, user, bound):
        return ""
    role = find_role(cluster, reference, target.namespace)
    if role is None:
        raise statuses.object_not_found(resource, name)
    return _describe_missing(cluster, user, target.namespace, role.get("rules") or ())


# -- rules that cover others -------------------------------------------------------------------


def _describe_missing(cluster: Cluster, user: User, namespace: str, wanted: Iterable[Rule]) -> str:
    """Return a server's text about the rights that a user lacks; empty if there are none."""
    held = [*own_rules(cluster, user, namespace), *bound_rules(cluster, user, namespace)]
    parts = [part for rule in wanted for part in _split_rule(rule)]
    missing = [part for part in parts if not any(_covers(rule, part) for rule in held)]
    if not missing:
        return ""
    groups = " ".join(map(quote, user.groups))
    lines = sorted({_format_rule(rule) for rule in _join_verbs(missing)})
    return "\n".join(
        (
            f"user {quote(user.name)} (groups=[{groups}]) is attempting to grant RBAC "
            "permissions not currently held:",
            *lines,
        )
    )


def _split_rule(rule: Rule) -> Iterator[Rule]:
    """Yield the rules with one value in each field that together are the same."""
    names = rule.get("resourceNames") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                yield from ({**part, "resourceNames": [name]} for name in names)
                if not names:
                    yield part
    for url in rule.get("nonResourceURLs") or ():
        for verb in rule.get("verbs") or ():
            yield {"nonResourceURLs": [url], "verbs": [verb]}


def _covers(held: Rule, part: Rule) -> bool:
    names = held.get("resourceNames") or ()
    return (
        _has_values(held, part, "verbs")
        and _has_values(held, part, "apiGroups")
        and all(_has_resource(held, each) for each in part.get("resources", ()))
        and all(_has_url(held, each) for each in part.get("nonResourceURLs", ()))
        and (not names or not {*names}.isdisjoint(part.get("resourceNames", ())))
    )


def _has_values(held: Rule, part: Rule, field: str) -> bool:
    values = held.get(field) or ()
    return ALL in values or all(each in values for each in part.get(field, ()))


def _has_resource(held: Rule, wanted: str) -> bool:
    values = held.get("resources") or ()
    _, slash, part = wanted.partition("/")
    return ALL in values or wanted in values or bool(slash and f"*/{part}" in values)


def _has_url(held: Rule, wanted: str) -> bool:
    return any(matches_url(url, wanted) for url in held.get("nonResourceURLs") or ())


def _join_verbs(parts: Iterable[Rule]) -> Iterator[Rule]:
    """Yield the rules, those for the same resources as one with all verbs."""
    joined: dict[str, JsonObject] = {}
    for part in parts:
        if "nonResourceURLs" in part:
            yield part
            continue
        target = _format_rule({**part, "verbs": ()})
        joined.setdefault(target, {**part, "verbs": []})["verbs"] += part["verbs"]
    yield from joined.values()


def _format_rule(rule: Rule) -> str:
    shown = (
        f"{label}:[{' '.join(map(quote, rule[field]))}]"
        for field, label in _FIELDS
        if rule.get(field)
    )
    return f"{{{', '.join(shown)}}}"

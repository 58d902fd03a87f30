"""The check of roles and bindings that a user writes: nobody gives rights that they don't have.

The verb ``escalate`` on the role, or ``bind`` on the role of a binding, allows it all the same, as
does ``system:masters``. Source: the policy-based storages of kubernetes' ``registry/rbac``, and
``Covers`` of component-helpers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product, starmap
from typing import Any

import msgspec

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import Status, server_error
from aioinformer.testing.access.rights import (
    FULL_AUTHORITY,
    ROLE_KINDS,
    Right,
    Rule,
    find_role,
    gives,
    held_rules,
    is_allowed,
)
from aioinformer.testing.access.users import RequestAttributes, User
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.wire import statuses
from aioinformer.testing.wire.encoding import JsonObject
from aioinformer.testing.writes.role_references import RBAC_GROUP, RoleReference
from aioinformer.testing.writes.typed_bodies import convert_body
from aioinformer.testing.writes.write_options import quote

_CLEANUP_METADATA = ("ownerReferences", "finalizers", "managedFields")
"""The metadata by which the garbage collector changes an object."""


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
    convert_body(new, _GrantBody)
    if target.resource is None or (
        old is not None and _without_cleanup(old) == _without_cleanup(new)
    ):
        return
    if target.resource.plural in ROLE_KINDS.values():
        missing = _find_role_excess(cluster, user, target, old or {}, new)
    else:
        missing = _find_binding_excess(cluster, user, target, new.get("roleRef") or {})
    if missing:
        metadata: Mapping[str, Any] = new.get("metadata") or {}
        raise statuses.forbidden_because(target.resource, metadata.get("name") or "", missing)


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
    if _describe_missing(cluster, user, "", FULL_AUTHORITY):
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
    held = list(held_rules(cluster, user, namespace))
    verbs: dict[Right, list[str]] = {}
    for right in (right for rule in wanted for right in _split_rule(rule)):
        if any(gives(rule, right) for rule in held):
            continue
        if right.resource:
            verbs.setdefault(right._replace(verb=""), []).append(right.verb)
        else:  # the server's text doesn't join the verbs for a path
            verbs[right] = [right.verb]
    if not verbs:
        return ""
    groups = " ".join(map(quote, user.groups))
    head = (
        f"user {quote(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not "
        "currently held:"
    )
    return "\n".join((head, *sorted(starmap(_format_rights, verbs.items()))))


def _split_rule(rule: Rule) -> Iterator[Right]:
    """Yield the rights that together are the same as a rule."""
    for verb in rule.get("verbs") or ():
        for url in rule.get("nonResourceURLs") or ():
            yield Right(verb, path=url)
        groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
        for target in product(groups, resources, rule.get("resourceNames") or ("",)):
            yield Right(verb, *target)


def _format_rights(target: Right, verbs: list[str]) -> str:
    """Return rights with the fields of Go's ``PolicyRule``, in the order of a server's errors."""
    fields: dict[str, Sequence[str]] = (
        {"APIGroups": [target.group], "Resources": [target.resource]}
        if target.resource
        else {"NonResourceURLs": [target.path]}
    )
    if target.name:
        fields["ResourceNames"] = [target.name]
    fields["Verbs"] = verbs
    shown = (f"{label}:[{' '.join(map(quote, values))}]" for label, values in fields.items())
    return f"{{{', '.join(shown)}}}"
